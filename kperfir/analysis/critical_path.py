"""What a launch's time is made of: the chain of work in which each link had to wait for the one before.

The path is walked back from the last end in the launch (by ns, which SMs share) to its first start. In a CTA it goes
along the warp that it is in; at a wait that really waited (longer than `bubbles.IDLE_CYCLES`) it goes on to what
was waited for: the flight and then the issue of an asynchronous copy, product or store, the last warp at a barrier,
or the last work of the role that an mbarrier was waiting for (`kperfir.analysis.segments`). At the start of a CTA it
goes on, past a gap, to the CTA that ended last before it on the same SM: the CTA tail.

Slack of a piece of a warp is by how much it could end later without the CTA ending later. With LF the latest end
that is harmless, d the piece's length (a wait's: at most `IDLE_CYCLES`, since it shrinks), over its successors

    LF(piece) = min( LF(next of the warp) - d(next),  LF(waiter) - lag  for each edge to a waiter;  the CTA's end )
    slack = LF - end

A region's slack is the least and the mean over its pieces in the CTAs on the path. Slack 0 does not promise that a
shorter piece makes the CTA shorter: another path may be as long.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from kperfir.analysis.bubbles import IDLE_CYCLES
from kperfir.analysis.segments import cut, dependencies
from kperfir.analysis.wait_time import WAIT_KINDS

if TYPE_CHECKING:
    from kperfir.analysis.segments import Edge, Piece

IN_FLIGHT = " in flight"
BETWEEN = "between CTAs"
STEP_COLUMNS = ["launch", "kernel", "cta", "warp", "role", "name", "kind", "start_cycles", "end_cycles", "via"]
COLUMNS = ["kernel", "role", "name", "kind", "cycles", "share", "steps", "least_slack_cycles", "mean_slack_cycles"]


def critical_path(spans: pd.DataFrame, flows: pd.DataFrame) -> pd.DataFrame:
    """One row per region of the CTAs on the critical path, the longest on it first within a kernel.

    Args:
        spans: As `Timeline.spans`.
        flows: As `Timeline.flows`.

    Returns:
        ``kernel, role, name, kind`` (of asynchronous work under way ``<kind> in flight``); ``cycles`` on the path,
        ``share`` of it, ``steps``; ``least_slack_cycles`` and ``mean_slack_cycles``, NaN for what is under way.
    """
    steps, slack = _walk(spans, flows)
    if steps.empty:
        return pd.DataFrame(columns=COLUMNS)
    keys = ["kernel", "role", "name", "kind"]
    on_path = steps.assign(cycles=steps["end_cycles"] - steps["start_cycles"]).groupby(keys, sort=False)["cycles"]
    table = pd.concat([on_path.sum(), on_path.size().rename("steps")], axis=1)
    slacks = slack.groupby(keys, sort=False)["slack"]
    slack_table = pd.concat(
        [slacks.min().rename("least_slack_cycles"), slacks.mean().rename("mean_slack_cycles")], axis=1
    )
    table = table.join(slack_table, how="outer").reset_index()
    table[["cycles", "steps"]] = table[["cycles", "steps"]].fillna(0).astype("int64")
    table["share"] = table["cycles"] / table.groupby("kernel")["cycles"].transform("sum")
    rank = {kernel: number for number, kernel in enumerate(dict.fromkeys(spans["kernel"].astype(str)))}
    table = table.assign(rank=table["kernel"].map(rank))
    order = ["rank", "cycles", "role", "name"]
    return table.sort_values(order, ascending=[True, False, True, True], kind="stable", ignore_index=True)[COLUMNS]


def critical_steps(spans: pd.DataFrame, flows: pd.DataFrame) -> pd.DataFrame:
    """The path itself, a row per step in order of time: to draw it.

    Args:
        spans: As `Timeline.spans`.
        flows: As `Timeline.flows`.

    Returns:
        ``launch, kernel, cta, warp, role, name, kind, start_cycles, end_cycles`` (clock of the CTA's SM); ``via``, why
        the path came here from the step after: ``order``, ``barrier``, ``arrival``, a kind of asynchronous work, or
        ``cta`` for the last step of a CTA.
    """
    return _walk(spans, flows)[0]


def _walk(spans: pd.DataFrame, flows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    steps: list[tuple[object, ...]] = []
    slacks: list[tuple[object, ...]] = []
    none = flows.iloc[:0]
    for launch, of_launch in spans.groupby("launch", sort=True):
        kernel = str(of_launch["kernel"].iloc[0])
        chain = _chain_of_ctas(of_launch)
        by_cta = dict(iter(of_launch[of_launch["cta"].isin(chain)].groupby("cta", sort=False)))
        on_chain = flows[(flows["launch"] == launch) & flows["cta"].isin(chain)]
        flights = dict(iter(on_chain.groupby("cta", sort=False)))
        for earlier, cta in zip([None, *chain], chain, strict=False):
            pieces = cut(by_cta[cta])
            edges = dependencies(pieces, flights.get(cta, none))
            place = (launch, kernel, cta)
            if earlier is not None:
                steps.append(_gap(place, by_cta[cta], by_cta[earlier]))
            steps += [(*place, *step) for step in _path(pieces, edges)]
            slacks += [
                (kernel, piece.role, piece.name, piece.kind, value)
                for piece, value in zip(pieces, slack_of(pieces, edges), strict=True)
            ]
    table = pd.DataFrame(steps, columns=STEP_COLUMNS)
    return table, pd.DataFrame(slacks, columns=["kernel", "role", "name", "kind", "slack"])


def _chain_of_ctas(spans: pd.DataFrame) -> list[int]:
    """CTAs on the path, in order of time."""
    ends = spans.assign(end_ns=spans["start_ns"] + spans["duration_ns"]).groupby("cta", sort=True)
    table = ends.agg(
        sm=("sm", "first"), start=("start_cycles", "min"), end=("end_cycles", "max"), end_ns=("end_ns", "max")
    )
    last = table["end_ns"].idxmax()
    before = table[table["sm"] == table.loc[last, "sm"]].drop(index=last)
    # Backwards in time; of those that end together the one with the smaller number first.
    before = before.sort_values("end", ascending=False, kind="stable")
    chain, start = [int(last)], int(table.loc[last, "start"])
    rows = zip(before.index.tolist(), before["start"].tolist(), before["end"].tolist(), strict=True)
    for cta, start_of_cta, end_of_cta in rows:
        if end_of_cta <= start:
            chain.append(cta)
            start = start_of_cta
    return chain[::-1]


def _gap(place: tuple[object, ...], after: pd.DataFrame, before: pd.DataFrame) -> tuple[object, ...]:
    """From the end of a CTA to the start of the next one on its SM."""
    return (*place, -1, "", BETWEEN, BETWEEN, int(before["end_cycles"].max()), int(after["start_cycles"].min()), "cta")


def _path(pieces: list[Piece], edges: list[Edge]) -> list[tuple[object, ...]]:
    """Steps of a CTA in order of time."""
    causes: dict[int, list[Edge]] = {}
    for edge in edges:
        causes.setdefault(edge.target, []).append(edge)
    current = max(range(len(pieces)), key=lambda number: (pieces[number].end, number), default=-1)
    until, via = pieces[current].end if pieces else 0, "cta"
    steps: list[tuple[object, ...]] = []
    while current >= 0:
        piece = pieces[current]
        cause = _binding(pieces, current, causes) if piece.waited else None
        if cause is None:
            steps.append(_step(piece, piece.name, piece.kind, (piece.start, until), via))
            current, until, via = piece.before, piece.start, "order"
            continue
        source = pieces[cause.source]
        own = cause.via in ("barrier", "arrival")
        name, kind = (piece.name, piece.kind) if own else (f"{source.name}{IN_FLIGHT}", f"{source.kind}{IN_FLIGHT}")
        steps.append(_step(piece if own else source, name, kind, (source.end, until), via))
        current, until, via = cause.source, source.end, cause.via
    return [step for step in reversed(steps) if step[5] > step[4]]  # type: ignore[operator]


def _binding(pieces: list[Piece], waiter: int, causes: dict[int, list[Edge]]) -> Edge | None:
    """The edge that came last; None if nothing that is known ended while the wait was on, or before it."""
    known = [
        edge for edge in causes.get(waiter, ()) if edge.source >= 0 and pieces[edge.source].end < pieces[waiter].end
    ]
    if pieces[waiter].kind == "barrier":
        known = [edge for edge in known if pieces[edge.source].end > pieces[waiter].start]
    return max(known, key=lambda edge: (pieces[edge.source].end, edge.source), default=None)


def _step(piece: Piece, name: str, kind: str, cycles: tuple[int, int], via: str) -> tuple[object, ...]:
    return (piece.warp, piece.role, name, kind, *cycles, via)


def slack_of(pieces: list[Piece], edges: list[Edge]) -> list[int]:
    """Slack of each piece in cycles, by the formula above."""
    if not pieces:
        return []
    waiters: dict[int, list[Edge]] = {}
    for edge in edges:
        if edge.source >= 0:
            waiters.setdefault(edge.source, []).append(edge)
    end_of_cta = max(piece.end for piece in pieces)
    latest = [end_of_cta] * len(pieces)
    for number in sorted(range(len(pieces)), key=lambda number: (pieces[number].end, number), reverse=True):
        after = pieces[number].after
        if after >= 0:
            latest[number] = min(latest[number], latest[after] - _least(pieces[after]))
        for edge in waiters.get(number, ()):
            latest[number] = min(latest[number], latest[edge.target] - edge.lag)
    return [max(0, late - piece.end) for late, piece in zip(latest, pieces, strict=True)]


def _least(piece: Piece) -> int:
    length = piece.end - piece.start
    return min(length, IDLE_CYCLES) if piece.kind in WAIT_KINDS else length

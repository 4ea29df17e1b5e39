"""Exposed communication per chunk, in kernels whose CTAs wait for flags that other CTAs set.

A poll is a wait for a flag: a `while` loop whose regions do nothing but atomics, loads and barriers, or an atomic that
polls by itself. A signal is an atomic outside of polls. Each is taken from the first warp of a CTA that has it. A poll
waited if it took longer than to find a flag set: than `SLACK` times the shortest one, or `LOOK_CYCLES`. The last signal
of another CTA that ended before it released it (inferred: which flag is whose is not recorded). A chunk is what that
warp did up to a signal that released a poll:

    K(chunk) = from the warp's signal before, or its first start, to the end of this signal, less its own polls
    communication = length of K(chunk)
    exposed  = mean, over the CTAs that wait for its sender, of |their polls, released by that sender, and K(chunk)|
    hidden   = communication - exposed: behind the work of those that need the data

A chunk that released no poll, because all found its flag set, is exposed nowhere: it counts if its sender signals as
often elsewhere (its signals have the name of one that released a poll). Times of several SMs are compared in
nanoseconds, and given in cycles.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from kperfir.analysis.intervals import common, length, union

if TYPE_CHECKING:
    from collections.abc import Collection

    from kperfir.analysis.intervals import Intervals

# What it takes to find a flag set is a way to L2 and back, this at most; a poll waited that took longer by a quarter.
LOOK_CYCLES = 400
SLACK = 1.25
COLUMNS = [
    "launch", "kernel", "chunk", "name", "cta", "warp", "waiters", "communication_cycles", "exposed_cycles",
    "hidden_cycles", "exposed_share",
]  # fmt: skip


def exposed_communication(spans: pd.DataFrame, polls: Collection[tuple[int, int]]) -> pd.DataFrame:
    """One row per chunk, in the order in which launches' chunks were signalled.

    Args:
        spans: As `Timeline.spans`, rows numbered from 0.
        polls: Launch and region of each region that polls: `polls_of`.

    Returns:
        ``launch, kernel``; ``chunk``, its number in the launch; ``name``, of the signal's region; ``cta, warp`` that
        sent it; ``waiters``, CTAs that waited during it; the figures above; ``exposed_share`` of the communication.
    """
    wanted = pd.MultiIndex.from_tuples(sorted(polls), names=["launch", "region"]) if polls else None
    rows: list[dict[str, object]] = []
    for launch, own in spans.groupby("launch", sort=True):
        if wanted is None:
            break
        polling = pd.MultiIndex.from_frame(own[["launch", "region"]]).isin(wanted)
        if polling.any():
            rows += _of_launch(int(launch), own, own.index[polling])
    return pd.DataFrame(rows, columns=COLUMNS)


def _of_launch(launch: int, own: pd.DataFrame, polling: pd.Index) -> list[dict[str, object]]:
    rate = own["duration_cycles"].sum() / max(own["duration_ns"].sum(), 1e-9)
    start = np.rint(own["start_ns"].to_numpy() * rate).astype(np.int64)
    frame = own.assign(start=start, end=start + own["duration_cycles"].to_numpy())
    polls = frame.loc[polling]
    polls = _leading(polls[~polls["parent"].isin(polls.index)])
    inside = _descendants(frame, polling)
    signals = _leading(frame[(frame["kind"] == "atomic") & ~inside & ~frame.index.isin(polling)])
    signals = signals.sort_values("end", kind="stable")
    released = _released(polls, signals)
    names = signals.loc[[row for row in released.values() if row >= 0], "name"].unique()
    chunks = signals[signals["name"].isin(names)]
    rows: list[dict[str, object]] = []
    for (cta, warp), sent in chunks.groupby(["cta", "warp"], sort=False):
        waits = polls.loc[[poll for poll, signal in released.items() if signal in set(sent.index)]]
        rows += _of_sender(frame, polls, sent, waits, (int(cta), int(warp)))
    rows.sort(key=lambda row: (row["end"], row["cta"], row["warp"]))
    return [
        {"launch": launch, "kernel": str(own["kernel"].iloc[0]), "chunk": number, **row}
        for number, row in enumerate(rows)
    ]


def _leading(rows: pd.DataFrame) -> pd.DataFrame:
    """Those of the first warp of each CTA that has them: the others do the same at the same time."""
    return rows[rows["warp"] == rows.groupby(["cta", "name"], observed=True)["warp"].transform("min")]


def _descendants(frame: pd.DataFrame, roots: pd.Index) -> pd.Series:
    """Which rows lie inside of one of `roots`."""
    parent = frame["parent"]
    inside = parent.isin(roots)
    while True:
        more = inside | parent.isin(frame.index[inside])
        if more.equals(inside):
            return inside
        inside = more


def _released(polls: pd.DataFrame, signals: pd.DataFrame) -> dict[int, int]:
    """By poll that waited, the row of the signal that released it; -1 if there is none."""
    least = polls.groupby("name", observed=True)["duration_cycles"].transform("min").clip(upper=LOOK_CYCLES)
    waited = polls["duration_cycles"] > SLACK * least
    polls = polls[waited]
    ends, ctas, index = signals["end"].to_numpy(), signals["cta"].to_numpy(), signals.index.to_numpy()
    found = {}
    for row, end, cta in zip(polls.index, polls["end"], polls["cta"], strict=True):
        place = int(np.searchsorted(ends, end, side="right")) - 1
        while place >= 0 and ctas[place] == cta:
            place -= 1
        found[int(row)] = int(index[place]) if place >= 0 else -1
    return found


def _of_sender(
    frame: pd.DataFrame, polls: pd.DataFrame, sent: pd.DataFrame, waits: pd.DataFrame, sender: tuple[int, int]
) -> list[dict[str, object]]:
    """Its chunks. `waits`: the polls that any of its signals released."""
    own = frame[(frame["cta"] == sender[0]) & (frame["warp"] == sender[1])]
    busy = polls[(polls["cta"] == sender[0]) & (polls["warp"] == sender[1])]
    away = _set(busy)
    waiting = [_set(rows) for _, rows in waits.groupby(["cta", "warp"], sort=False)]
    before = int(own["start"].min())
    rows = []
    for name, end in zip(sent["name"], sent["end"], strict=True):
        chunk = _without(before, int(end), away)
        total = length(chunk)
        shared = [common(chunk, each) for each in waiting]
        exposed = sum(shared) / len(shared) if shared else 0.0
        rows.append(
            {
                "name": str(name), "cta": sender[0], "warp": sender[1], "waiters": sum(part > 0 for part in shared),
                "communication_cycles": total, "exposed_cycles": exposed, "hidden_cycles": total - exposed,
                "exposed_share": exposed / total if total else 0.0, "end": int(end),
            }
        )  # fmt: skip
        before = int(end)
    return rows


def _without(start: int, end: int, away: Intervals) -> Intervals:
    """The cycles from `start` to `end` that are not `away`."""
    starts = np.clip(np.r_[start, away[1]], start, end)
    ends = np.clip(np.r_[away[0], end], start, end)
    return starts[starts < ends], ends[starts < ends]


def _set(rows: pd.DataFrame) -> Intervals:
    return union(rows["start"].to_numpy(np.int64), rows["end"].to_numpy(np.int64))

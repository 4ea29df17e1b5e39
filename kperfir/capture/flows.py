"""Which wait completed which asynchronous work: pairs of spans, from the `flows` of a kernel's layout.

    pairs = pair_spans(flow, spans)

Work of one flow completes in the order in which it was issued, so counting executions is enough, whatever the control
flow; docs/contracts.md, section 3, states the rule. Owns that rule; what a span is belongs to `tables`.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from kperfir.capture.layout import BufferLayout, Flow

    Rows = NDArray[np.int64]

FLOW_COLUMNS = (
    "launch", "flow", "cta", "kind", "from_span", "to_span", "from_warp", "to_warp", "start_cycles", "end_cycles",
    "duration_cycles",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Side:
    """Executions of the regions of one side of a flow by one warp, in order: rows of spans, and what each counts."""

    rows: Rows
    counts: Rows

    @property
    def numbers(self) -> Rows:
        """How much was done at the end of each."""
        return np.cumsum(self.counts)


def build_flows(spans: pd.DataFrame, layouts: Sequence[BufferLayout], lapped: pd.DataFrame) -> pd.DataFrame:
    """One row per pair of an issue and the wait that completed it.

    Args:
        spans: `Timeline.spans`.
        layouts: Of each launch, by its number.
        lapped: Rows ``launch, cta, warp`` of the tracks whose beginning was overwritten: what crosses warps cannot be
            counted there.
    """
    incomplete_start: dict[int, set[tuple[int, int]]] = defaultdict(set)
    for launch, cta, warp in lapped[["launch", "cta", "warp"]].itertuples(index=False, name=None):
        incomplete_start[launch].add((cta, warp))
    parts = []
    bounds = np.searchsorted(spans["launch"].to_numpy(), np.arange(len(layouts) + 1))
    for launch, layout in enumerate(layouts):
        of_launch = spans.iloc[bounds[launch] : bounds[launch + 1]]
        for flow in layout.flows:
            pairs = list(_pairs_of_flow(flow, layout, spans, of_launch, incomplete_start[launch]))
            if pairs:
                parts.append(_rows(launch, flow, spans, np.concatenate(pairs, axis=1)))
    if not parts:
        return pd.DataFrame(columns=FLOW_COLUMNS).astype({name: "int64" for name in FLOW_COLUMNS if name != "kind"})
    return pd.concat(parts, ignore_index=True)


def _rows(launch: int, flow: Flow, spans: pd.DataFrame, pairs: Rows) -> pd.DataFrame:
    start, end = spans["start_cycles"].to_numpy()[pairs[0]], spans["end_cycles"].to_numpy()[pairs[1]]
    forward = end >= start  # Clocks of one SM: a pair that ran backwards would be a wrong one.
    source, target = pairs[:, forward]
    warps = spans["warp"].to_numpy()
    return pd.DataFrame(
        {
            "launch": launch,
            "flow": flow.id,
            "cta": spans["cta"].to_numpy()[source],
            "kind": spans["kind"].to_numpy()[source],
            "from_span": source,
            "to_span": target,
            "from_warp": warps[source],
            "to_warp": warps[target],
            "start_cycles": start[forward],
            "end_cycles": end[forward],
            "duration_cycles": (end - start)[forward],
        },
        columns=list(FLOW_COLUMNS),
    )


def _pairs_of_flow(
    flow: Flow, layout: BufferLayout, spans: pd.DataFrame, of_launch: pd.DataFrame, lost: set[tuple[int, int]]
) -> Iterator[Rows]:
    """Arrays of shape (2, n): rows of the issues and of their waits."""
    regions = [region for region, _ in (*flow.issue, *flow.wait)]
    chosen = of_launch[of_launch["region"].isin(regions) & of_launch["complete"]]
    chosen = chosen.assign(row=chosen.index, scope=_scopes(flow, layout, spans, chosen))
    for (cta, _), group in chosen.groupby(["cta", "scope"], sort=False):
        sides = {warp: _sides(flow, of_warp) for warp, of_warp in group.groupby("warp", sort=True)}
        if flow.via == "commit_group":
            for of_warp in sides.values():
                yield _pair_groups(of_warp, group)
            continue
        issuers = [warp for warp, (issue, _) in sides.items() if len(issue.rows) and (cta, warp) not in lost]
        for warp in _waiters(sides, issuers, layout):
            if issuers and (cta, warp) not in lost:
                issuer = warp if warp in issuers else issuers[0]
                yield _pair_barrier(sides[issuer][0], sides[warp][1], flow.slots, spans)


def _scopes(flow: Flow, layout: BufferLayout, spans: pd.DataFrame, chosen: pd.DataFrame) -> Rows:
    """Row of the execution that counts separately around each span; -1 where the whole CTA counts together."""
    region = flow.scope
    while region >= 0 and layout.regions[region].kind != "iteration":
        region = layout.regions[region].parent
    rows: Rows = chosen.index.to_numpy().astype(np.int64)
    if region < 0:
        return np.full(len(rows), -1, np.int64)
    regions, parents = spans["region"].to_numpy(), spans["parent"].to_numpy()
    while True:
        climbs = (rows >= 0) & (regions[rows] != region)
        if not climbs.any():
            return rows
        rows = np.where(climbs, parents[rows], rows)


def _sides(flow: Flow, of_warp: pd.DataFrame) -> tuple[_Side, _Side]:
    ordered = of_warp.sort_values("start_cycles", kind="stable")
    rows, regions = ordered["row"].to_numpy(), ordered["region"]
    sides = []
    for pairs in (flow.issue, flow.wait):
        counts = regions.map(dict(pairs))
        mine = counts.notna().to_numpy()
        sides.append(_Side(rows[mine], counts[mine].to_numpy().astype(np.int64)))
    return sides[0], sides[1]


def _pair_groups(sides: tuple[_Side, _Side], group: pd.DataFrame) -> Rows:
    """A wait ends when all groups but the last `count` before it are complete."""
    issue, wait = sides
    start = group["start_cycles"]
    committed_at = start.loc[issue.rows].to_numpy()
    before = np.searchsorted(committed_at, start.loc[wait.rows].to_numpy(), side="right")
    committed = np.r_[0, issue.numbers][before]
    complete = np.maximum.accumulate(committed - wait.counts) if len(wait.rows) else committed
    # An issue without a commit belongs to the group that the next commit closes.
    numbers = issue.numbers + (issue.counts == 0)
    partner = np.searchsorted(complete, numbers, side="left")
    return _paired(issue.rows, wait.rows, partner)


def _pair_barrier(issue: _Side, wait: _Side, slots: int, spans: pd.DataFrame) -> Rows:
    """The n-th issue completes with the n-th wait, or `slots` later if the first ones had nothing to wait for."""
    if not len(wait.rows):
        return np.empty((2, 0), np.int64)
    numbers = issue.numbers
    if spans["end_cycles"].to_numpy()[wait.rows[0]] < spans["start_cycles"].to_numpy()[issue.rows[0]]:
        numbers = numbers + slots
    return _paired(issue.rows, wait.rows, np.searchsorted(wait.numbers, numbers, side="left"))


def _paired(issues: Rows, waits: Rows, partner: Rows) -> Rows:
    known = partner < len(waits)
    return np.stack([issues[known], waits[partner[known]]])


def _waiters(sides: dict[int, tuple[_Side, _Side]], issuers: list[int], layout: BufferLayout) -> list[int]:
    """Warps that arrows lead to: those that issued themselves, else the first one of each role that waits."""
    roles = layout.role_of_warp()
    waiting = [warp for warp, (_, wait) in sides.items() if len(wait.rows)]
    first: dict[int, int] = {}
    for warp in waiting:
        first.setdefault(roles[warp], warp)
    return [warp for warp in waiting if warp in issuers or first[roles[warp]] == warp]

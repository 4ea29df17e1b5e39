"""Which lane of its SM each CTA is drawn in.

A track per CTA is unreadable for a large grid, so CTAs that follow each other share lanes: an SM has as many *slots*
as it ever held CTAs at once, and a slot has one lane per warp.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from kperfir._native import trace

from kperfir.analysis.grouped import group_by

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kperfir.timeline import Timeline


@dataclass(frozen=True, slots=True)
class LaunchLanes:
    """The drawn shape of one launch, in whole nanoseconds from the launch's start.

    `roots` has one row per (CTA, warp), ordered by lane, then time: ``sm, slot, warp, role, cta, cta_x, cta_y, cta_z,
    start_ns, end_ns, records, dropped, lane``. `lanes` has one row per lane, in order: ``sm, slot, warp, role``.
    `first_span` and `end_span`: for each root, which spans of the launch are its.
    """

    roots: pd.DataFrame
    lanes: pd.DataFrame
    first_span: NDArray[np.int64]
    end_span: NDArray[np.int64]

    @property
    def root_of_span(self) -> NDArray[np.int64]:
        """For each span of the launch, its row in `roots`."""
        order = np.argsort(self.first_span, kind="stable")
        return np.repeat(order, (self.end_span - self.first_span)[order])


def whole_ns(spans: pd.DataFrame, *, room: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Start and end of each span in nanoseconds, rounded, behind `room` entries that are the caller's.

    A time that is close to the middle may go either way.
    """
    start, duration = (np.ascontiguousarray(spans[name], np.float64) for name in ("start_ns", "duration_ns"))
    return trace.whole_ns(start, duration, room)


def lanes_of(
    spans: pd.DataFrame, times: tuple[NDArray[np.int64], NDArray[np.int64]], tracks: pd.DataFrame
) -> LaunchLanes:
    """Assign the CTAs of one launch to lanes.

    Args:
        spans: Rows of `Timeline.spans` that belong to the launch, in their order.
        times: `whole_ns` of them.
        tracks: Rows of `Timeline.tracks` that belong to the launch. A track without spans is drawn as a bare CTA
            slice; a CTA without any span has no known time and is left out.
    """
    cta, warp = spans["cta"].to_numpy(), spans["warp"].to_numpy()
    changes = (cta[1:] != cta[:-1]) | (warp[1:] != warp[:-1])
    begin = np.flatnonzero(np.r_[len(cta) > 0, changes])
    warps = spans[["cta", "warp", "sm", "cta_x", "cta_y", "cta_z"]].iloc[begin]
    start, end = (edge.reduceat(ns, begin) for edge, ns in zip((np.minimum, np.maximum), times, strict=True))
    of_cta = group_by(warps["cta"])
    ctas = warps.drop(columns="warp").iloc[of_cta.first]
    ctas = ctas.assign(start_ns=of_cta.min(start), end_ns=of_cta.max(end)).sort_values("cta", ignore_index=True)
    ctas["slot"] = _slots(ctas["sm"].to_numpy(), ctas["start_ns"].to_numpy(), ctas["end_ns"].to_numpy())
    kept = tracks[["cta", "warp", "role", "records", "dropped"]]
    roots = ctas.merge(kept, on="cta").sort_values(
        ["sm", "slot", "warp", "start_ns", "end_ns", "cta"], ignore_index=True
    )
    lane_key = roots[["sm", "slot", "warp"]].to_numpy()
    changed = np.any(lane_key[1:] != lane_key[:-1], axis=1)
    roots["lane"] = np.cumsum(np.r_[0, changed]) if len(roots) else np.zeros(0, np.int64)
    lanes = roots.drop_duplicates("lane")[["sm", "slot", "warp", "role"]].reset_index(drop=True)

    row_of_track = pd.Series(roots.index.to_numpy(), index=pd.MultiIndex.from_frame(roots[["cta", "warp"]]))
    row_of_warp = row_of_track.reindex(pd.MultiIndex.from_frame(warps[["cta", "warp"]])).to_numpy().astype(np.int64)
    first_span, end_span = np.zeros(len(roots), np.int64), np.zeros(len(roots), np.int64)
    first_span[row_of_warp], end_span[row_of_warp] = begin, np.append(begin[1:], len(cta))
    return LaunchLanes(roots, lanes, first_span, end_span)


def launch_rows(timeline: Timeline, launch: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Spans and tracks of one launch."""
    return rows_of_launch(timeline.spans, launch), rows_of_launch(timeline.tracks, launch)


def rows_of_launch(table: pd.DataFrame, launch: int) -> pd.DataFrame:
    """The rows of one launch. Tables are sorted by launch, so this is a view and looks at no other row."""
    numbers = table["launch"].to_numpy()
    # Of the column's own type, or all of the column would be converted.
    first, last = np.searchsorted(numbers, np.array([launch, launch + 1], numbers.dtype))
    return table.iloc[first:last]


def _slots(sm: NDArray[np.int64], start: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
    """Lowest slot of its SM that is free when each CTA starts."""
    slots = np.zeros(len(sm), np.int64)
    free: dict[int, list[int]] = {}
    busy: dict[int, list[tuple[int, int]]] = {}
    for row in np.lexsort((np.arange(len(sm)), start, sm)).tolist():
        unit = int(sm[row])
        idle, running = free.setdefault(unit, []), busy.setdefault(unit, [])
        while running and running[0][0] <= start[row]:
            heapq.heappush(idle, heapq.heappop(running)[1])
        # Without an idle slot all earlier ones are busy, so the next number is their count.
        slot = heapq.heappop(idle) if idle else len(running)
        heapq.heappush(running, (int(end[row]), slot))
        slots[row] = slot
    return slots

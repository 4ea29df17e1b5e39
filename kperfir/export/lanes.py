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

from kperfir.analysis.grouped import group_by

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kperfir.timeline import Timeline


@dataclass(frozen=True, slots=True)
class LaunchLanes:
    """The drawn shape of one launch, in whole nanoseconds from the launch's start.

    `roots` has one row per (CTA, warp), ordered by lane, then time: ``sm, slot, warp, role, cta, cta_x, cta_y, cta_z,
    start_ns, end_ns, records, dropped, lane``. `lanes` has one row per lane, in order: ``sm, slot, warp, role``.
    `root_of_span` maps each span of the launch to its row in `roots`.
    """

    roots: pd.DataFrame
    lanes: pd.DataFrame
    root_of_span: NDArray[np.int64]


def whole_ns(spans: pd.DataFrame) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Start and end of each span in nanoseconds, rounded. A time that is close to the middle may go either way."""
    start = spans["start_ns"].to_numpy()
    end = start + spans["duration_ns"].to_numpy()
    return np.rint(start).astype(np.int64), np.rint(end).astype(np.int64)


def lanes_of(spans: pd.DataFrame, tracks: pd.DataFrame) -> LaunchLanes:
    """Assign the CTAs of one launch to lanes.

    Args:
        spans: Rows of `Timeline.spans` that belong to the launch, in their order.
        tracks: Rows of `Timeline.tracks` that belong to the launch. A track without spans is drawn as a bare CTA
            slice; a CTA without any span has no known time and is left out.
    """
    start, end = whole_ns(spans)
    of_cta = group_by(spans["cta"])
    ctas = spans[["cta", "sm", "cta_x", "cta_y", "cta_z"]].iloc[of_cta.first]
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
    warps = group_by(spans["cta"], spans["warp"])
    row_of_warp = row_of_track.reindex(pd.MultiIndex.from_frame(spans[["cta", "warp"]].iloc[warps.first])).to_numpy()
    return LaunchLanes(roots, lanes, row_of_warp.astype(np.int64)[warps.number])


def launch_rows(timeline: Timeline, launch: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Spans and tracks of one launch."""
    return rows_of_launch(timeline.spans, launch), rows_of_launch(timeline.tracks, launch)


def rows_of_launch(table: pd.DataFrame, launch: int) -> pd.DataFrame:
    """The rows of one launch. Tables are sorted by launch, so this is a view and looks at no other row."""
    first, last = np.searchsorted(table["launch"].to_numpy(), [launch, launch + 1])
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

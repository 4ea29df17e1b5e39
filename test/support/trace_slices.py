"""The slices of a .pftrace and the spans of a timeline, as tables that must be equal.

A row says where a span is (launch, SM, CTA, warp), what it is, when, and which span it lies in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from kperfir.timeline import Timeline
    from support.toy_timeline import ToyTimeline
    from support.trace_processor import OpenTrace

WAITS = {"async_wait", "barrier", "mbarrier_wait", "wgmma_wait"}  # None lies in another one here.
COLUMNS = [
    "launch", "sm", "cta", "warp", "name", "kind", "ts", "dur", "depth", "iteration", "start_cycles", "duration_cycles",
    "incomplete", "wait", "wait_cycles", "file", "line", "kernel", "parent_name", "parent_start_cycles",
    "parent_iteration",
]  # fmt: skip


def launch_offsets(trace: OpenTrace) -> dict[int, int]:
    launches = trace.sql(
        "select extract_arg(arg_set_id, 'debug.launch') launch, extract_arg(arg_set_id, 'debug.offset_ns') offset"
        " from slice where extract_arg(arg_set_id, 'debug.offset_ns') is not null"
    )
    return dict(zip(launches["launch"], launches["offset"], strict=True))


def slices_of_timeline(timeline: ToyTimeline | Timeline, offsets: dict[int, int]) -> pd.DataFrame:
    spans = timeline.spans.astype({name: "object" for name in ("name", "kind", "file", "kernel")})
    parents = spans.reindex(spans["parent"])
    offset = spans["launch"].map(offsets)
    start = np.rint(spans["start_ns"]).astype("int64")
    frame = spans.assign(
        ts=start + offset,
        dur=np.rint(spans["start_ns"] + spans["duration_ns"]).astype("int64") - start,
        depth=spans["depth"].astype(int) + 1,  # Under the CTA slice.
        incomplete=~spans["complete"],
        wait=spans["kind"].isin(WAITS),
        wait_cycles=_waiting(spans),
        parent_name=parents["name"].fillna("CTA").to_numpy(),
        parent_start_cycles=parents["start_cycles"].fillna(-1).to_numpy(),
        parent_iteration=parents["iteration"].fillna(-1).to_numpy(),
    )
    return sorted_slices(frame)


def _waiting(spans: pd.DataFrame) -> list[int]:
    """Cycles in waits of each span, one span at a time."""
    parent, kinds, cycles = spans["parent"].tolist(), spans["kind"].tolist(), spans["duration_cycles"].tolist()
    waiting = [0] * len(spans)
    for row, kind in enumerate(kinds):
        above = row
        while kind in WAITS and above >= 0:
            waiting[above] += cycles[row]
            above = parent[above]
    return waiting


def slices_of_trace(trace: OpenTrace) -> pd.DataFrame:
    frame = trace.sql(
        """
        select s.id, s.parent_id, s.name, s.category kind, s.ts, s.dur, s.depth,
          extract_arg(s.arg_set_id, 'debug.cta') cta, extract_arg(s.arg_set_id, 'debug.warp') warp,
          extract_arg(s.arg_set_id, 'debug.iteration') iteration,
          extract_arg(s.arg_set_id, 'debug.start_cycles') start_cycles,
          extract_arg(s.arg_set_id, 'debug.duration_cycles') duration_cycles,
          coalesce(extract_arg(s.arg_set_id, 'debug.incomplete'), 0) incomplete,
          coalesce(extract_arg(s.arg_set_id, 'debug.wait'), 0) wait,
          coalesce(extract_arg(s.arg_set_id, 'debug.wait_cycles'), 0) wait_cycles,
          extract_arg(s.arg_set_id, 'source.file_name') file,
          extract_arg(s.arg_set_id, 'source.line_number') line,
          extract_arg(s.arg_set_id, 'source.function_name') kernel,
          sm.name sm, launch.name launch
        from slice s join track lane on lane.id = s.track_id
          join track sm on sm.id = lane.parent_id join track launch on launch.id = sm.parent_id
        """
    ).set_index("id")
    root = frame["parent_id"].copy()
    top = pd.Series(frame.index, index=frame.index)
    while root.notna().any():
        top = root.where(root.notna(), top)
        root = frame["parent_id"].reindex(top).set_axis(frame.index)
    spans = frame[frame["parent_id"].notna()]
    parents = frame.reindex(spans["parent_id"])
    ctas = frame.reindex(top.loc[spans.index])
    is_cta = parents["cta"].notna().to_numpy()
    return sorted_slices(
        spans.assign(
            launch=spans["launch"].str.extract(r"launch (\d+)", expand=False).astype(int),
            sm=spans["sm"].str.removeprefix("SM ").astype(int),
            cta=ctas["cta"].to_numpy(),
            warp=ctas["warp"].to_numpy(),
            iteration=spans["iteration"].fillna(-1),
            parent_name=np.where(is_cta, "CTA", parents["name"]),
            parent_start_cycles=parents["start_cycles"].fillna(-1).to_numpy(),
            parent_iteration=parents["iteration"].fillna(-1).to_numpy(),
        )
    )


def sorted_slices(frame: pd.DataFrame) -> pd.DataFrame:
    texts = {"name", "kind", "file", "kernel", "parent_name"}
    frame = frame[COLUMNS].astype({name: "str" if name in texts else "int64" for name in COLUMNS})
    return frame.sort_values(COLUMNS, ignore_index=True)

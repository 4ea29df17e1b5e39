"""What a timeline looks like when it is drawn, whatever the format: lanes, CTA slices, nesting, one time axis.

Launches are timed from their own start; here they are put one behind the other, or where the timeline's placement says
that they belong (`kperfir merge`). A launch has rows: first the CTA slice
of each warp (`LaunchLanes.roots`), then the spans, which nest below.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from kperfir._native import trace

from kperfir.analysis.wait_time import is_wait, wait_cycles
from kperfir.errors import ExportError
from kperfir.export.lanes import LaunchLanes, lanes_of, launch_rows, rows_of_launch, whole_ns

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd
    from numpy.typing import NDArray

    from kperfir.timeline import Timeline

LAUNCH_GAP_NS = 1_000


@dataclass(frozen=True)
class LaunchDrawing:
    """One launch. Arrays have one entry per row; times are whole nanoseconds of the axis that all launches share.

    `events`: the begins and ends in the order in which they must be written, so that ties nest. A begin is the number
    of its row, an end that plus the number of rows. Instants have no end.
    """

    launch: dict[str, Any]  # Row of `Timeline.launches`.
    offset_ns: int  # Where the launch's own zero lies on the axis.
    lanes: LaunchLanes
    spans: pd.DataFrame
    marks: pd.DataFrame  # Rows of `Timeline.marks`; ``index`` is where in `spans` each lies.
    is_wait: NDArray[np.bool_]  # Per span: its warp does nothing but wait.
    wait_cycles: NDArray[np.int64]  # Per span: the part of it that is waiting.
    times: tuple[NDArray[np.int64], NDArray[np.int64]]  # Per row: start and end, from the launch's own zero.
    is_instant: NDArray[np.bool_]  # Per span.
    flows: pd.DataFrame  # Rows of `Timeline.flows`, with ``from_row`` and ``to_row`` among the rows here.
    events: NDArray[np.int64]

    @cached_property
    def start_ns(self) -> NDArray[np.int64]:
        """Where each row starts."""
        return self.times[0] + self.offset_ns

    @cached_property
    def end_ns(self) -> NDArray[np.int64]:
        """Where each row ends."""
        return self.times[1] + self.offset_ns

    @cached_property
    def lane(self) -> NDArray[np.int64]:
        """The lane of each row."""
        lanes: NDArray[np.int64] = self.lanes.roots["lane"].to_numpy()
        return np.concatenate([lanes, lanes[self.lanes.root_of_span]])

    @cached_property
    def instant(self) -> NDArray[np.bool_]:
        """Which rows have no length and no end."""
        return np.concatenate([np.zeros(len(self.lanes.roots), np.bool_), self.is_instant])

    @cached_property
    def values(self) -> NDArray[Any]:
        """Per span: what a mark carries, int or float; else None."""
        values = np.full(len(self.spans), None, object)
        values[self.marks["index"].to_numpy(np.int64)] = self.marks["value"].to_numpy()
        return values

    @property
    def extent_ns(self) -> tuple[int, int]:
        """Where the launch starts and ends."""
        start, end = self.times
        if not len(start):
            return self.offset_ns, self.offset_ns
        return int(start.min()) + self.offset_ns, int(end.max()) + self.offset_ns


def launch_drawings(timeline: Timeline) -> Iterator[LaunchDrawing]:
    """Draw the launches one at a time, in order."""
    free_ns = 0
    placement = timeline.placement
    for launch in timeline.launches.to_dict("records"):
        placed_ns = placement.start_ns[launch["launch"]] if placement else None
        drawing = _draw(timeline, launch, free_ns, placed_ns)
        yield drawing
        free_ns = drawing.extent_ns[1] + LAUNCH_GAP_NS


def _draw(timeline: Timeline, launch: dict[str, Any], free_ns: int, placed_ns: int | None) -> LaunchDrawing:
    spans, tracks = launch_rows(timeline, launch["launch"])
    room = len(tracks)  # There are no more roots than that.
    start, end = whole_ns(spans, room=room)
    lanes = lanes_of(spans, (start[room:], end[room:]), tracks)
    roots = lanes.roots
    start, end = start[room - len(roots) :], end[room - len(roots) :]
    start[: len(roots)], end[: len(roots)] = roots["start_ns"], roots["end_ns"]
    # A fitted time may lie a little before the launch's zero; nothing may lie before the axis' zero.
    offset_ns = free_ns - min(0, int(start.min(initial=0))) if placed_ns is None else placed_ns

    first_row = int(spans.index[0]) if len(spans) else 0
    parent = spans["parent"].to_numpy()
    parent = np.ascontiguousarray(np.where(parent < 0, -1, parent - first_row) if first_row else parent)
    is_instant = np.ascontiguousarray(spans["kind"] == "mark", np.bool_)
    marks = rows_of_launch(timeline.marks, launch["launch"])
    return LaunchDrawing(
        launch=launch,
        offset_ns=offset_ns,
        lanes=lanes,
        spans=spans,
        marks=marks.assign(index=marks["span"] - first_row),
        is_wait=is_wait(spans),
        wait_cycles=wait_cycles(spans, parent),
        events=_ordered(lanes, parent, spans["depth"].to_numpy(), is_instant, (start, end)),
        times=(start, end),
        is_instant=is_instant,
        flows=_flows(timeline, launch["launch"], len(roots) - first_row, (start, end)),
    )


def _ordered(
    lanes: LaunchLanes,
    parent: NDArray[np.int64],
    depth: NDArray[np.int16],
    is_instant: NDArray[np.bool_],
    times: tuple[NDArray[np.int64], NDArray[np.int64]],
) -> NDArray[np.int64]:
    """Order the events, and correct `times` so that none goes back along the walk over a root's rows.

    Raises:
        ExportError: ``not-nested``.
    """
    runs = lanes.first_span, lanes.end_span
    ordered = trace.order(runs, parent, np.ascontiguousarray(depth, np.int16), is_instant, times)
    if ordered is None:
        raise _not_nested(
            "a span whose parent comes later, or whose depth is not its parent's depth + 1", "a tree of spans per warp"
        )
    events, moved_ns = ordered
    if moved_ns > 1:
        raise _not_nested("a span that ends after the one around it", "spans that lie inside their parents")
    return events


def _not_nested(found: str, expected: str) -> ExportError:
    return ExportError(
        "not-nested",
        what="the spans of a warp do not nest",
        found=found,
        expected=expected,
        fix="report this as a bug of kperfir, with the .kpf file",
    )


def _flows(
    timeline: Timeline, launch: int, shift: int, times: tuple[NDArray[np.int64], NDArray[np.int64]]
) -> pd.DataFrame:
    """Arrows from the start of a row to the end of one; none that rounding to nanoseconds would turn round."""
    flows = rows_of_launch(timeline.flows, launch)
    flows = flows.assign(from_row=flows["from_span"] + shift, to_row=flows["to_span"] + shift)
    starts, ends = times
    forward = ends[flows["to_row"].to_numpy(np.int64)] >= starts[flows["from_row"].to_numpy(np.int64)]
    return flows[forward]

"""What a timeline looks like when it is drawn, whatever the format: lanes, CTA slices, nesting, one time axis.

Launches are timed from their own start; here they are put one behind the other, or where the timeline's placement says
that they belong (`kperfir merge`). A launch has rows: first the CTA slice
of each warp (`LaunchLanes.roots`), then the spans, which nest below.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kperfir.analysis.wait_time import is_wait, wait_cycles
from kperfir.errors import ExportError
from kperfir.export.lanes import LaunchLanes, lanes_of, launch_rows, rows_of_launch, whole_ns
from kperfir.export.nesting import event_order

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd
    from numpy.typing import NDArray

    from kperfir.timeline import Timeline

LAUNCH_GAP_NS = 1_000


@dataclass(frozen=True, slots=True)
class LaunchDrawing:
    """One launch. Arrays have one entry per row; times are whole nanoseconds of the axis that all launches share."""

    launch: dict[str, Any]  # Row of `Timeline.launches`.
    offset_ns: int  # Where the launch's own zero lies on the axis.
    lanes: LaunchLanes
    spans: pd.DataFrame
    values: NDArray[Any]  # Per span: what a mark carries, int or float; else None.
    is_wait: NDArray[np.bool_]  # Per span: its warp does nothing but wait.
    wait_cycles: NDArray[np.int64]  # Per span: the part of it that is waiting.
    lane: NDArray[np.int64]
    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    instant: NDArray[np.bool_]
    flows: pd.DataFrame  # Rows of `Timeline.flows`, with ``from_row`` and ``to_row`` among the rows here.
    begin_order: NDArray[np.int64]  # Position of the row's begin and end in the walk over all nested rows.
    end_order: NDArray[np.int64]

    @property
    def extent_ns(self) -> tuple[int, int]:
        """Where the launch starts and ends."""
        if not len(self.start_ns):
            return self.offset_ns, self.offset_ns
        return int(self.start_ns.min()), int(self.end_ns.max())

    def event_order(self) -> NDArray[np.int64]:
        """The begins and ends in the order in which they must be written, so that ties nest.

        A begin is the number of its row, an end that plus the number of rows. Instants have no end.
        """
        rows = len(self.lane)
        order = np.empty(2 * rows, np.int64)
        order[self.begin_order] = np.arange(rows)
        order[self.end_order] = np.arange(rows, 2 * rows)
        return order[(order < rows) | ~self.instant[order - rows]] if self.instant.any() else order


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
    lanes = lanes_of(spans, tracks)
    roots = lanes.roots
    root_count = len(roots)
    span_start, span_end = whole_ns(spans)
    start, end = np.r_[roots["start_ns"].to_numpy(), span_start], np.r_[roots["end_ns"].to_numpy(), span_end]
    # A fitted time may lie a little before the launch's zero; nothing may lie before the axis' zero.
    offset_ns = free_ns - min(0, int(start.min(initial=0))) if placed_ns is None else placed_ns

    parent = spans["parent"].to_numpy()
    first_row = int(spans.index[0]) if len(spans) else 0
    begin_order, end_order = event_order(
        np.r_[np.full(root_count, -1), np.where(parent < 0, lanes.root_of_span, parent - first_row + root_count)],
        np.r_[np.zeros(root_count, np.int64), spans["depth"].to_numpy() + 1],
    )
    root = np.r_[np.arange(root_count), lanes.root_of_span]
    start, end = _in_order(start, end, begin_order, end_order, root)
    root_lane = roots["lane"].to_numpy()
    return LaunchDrawing(
        launch=launch,
        offset_ns=offset_ns,
        lanes=lanes,
        spans=spans,
        values=_values(timeline, launch["launch"], spans),
        is_wait=is_wait(spans),
        wait_cycles=wait_cycles(
            spans[["kind", "duration_cycles"]].assign(parent=np.where(parent < 0, -1, parent - first_row))
        ),
        lane=root_lane[root],
        start_ns=start + offset_ns,
        end_ns=end + offset_ns,
        instant=np.r_[np.zeros(root_count, np.bool_), (spans["kind"] == "mark").to_numpy()],
        flows=_flows(timeline, launch["launch"], root_count - first_row, (start, end)),
        begin_order=begin_order,
        end_order=end_order,
    )


def _values(timeline: Timeline, launch: int, spans: pd.DataFrame) -> NDArray[Any]:
    values = np.full(len(spans), None, object)
    marks = rows_of_launch(timeline.marks, launch)
    if len(marks):
        values[marks["span"].to_numpy() - int(spans.index[0])] = marks["value"].to_numpy()
    return values


def _flows(
    timeline: Timeline, launch: int, shift: int, times: tuple[NDArray[np.int64], NDArray[np.int64]]
) -> pd.DataFrame:
    """Arrows from the start of a row to the end of one; none that rounding to nanoseconds would turn round."""
    flows = rows_of_launch(timeline.flows, launch)
    flows = flows.assign(from_row=flows["from_span"] + shift, to_row=flows["to_span"] + shift)
    starts, ends = times
    forward = ends[flows["to_row"].to_numpy(np.int64)] >= starts[flows["from_row"].to_numpy(np.int64)]
    return flows[forward]


def _in_order(
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    begin_order: NDArray[np.int64],
    end_order: NDArray[np.int64],
    root: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Starts and ends that never go back along the walk over a root's rows.

    The same cycle may have come out as two neighbouring nanoseconds, since an end is a start plus a duration.

    Raises:
        ExportError: ``not-nested`` if that is not all there is to correct.
    """
    if not len(start):
        return start, end
    times = np.empty(2 * len(start), np.int64)
    times[begin_order], times[end_order] = start, end
    # Each root on an axis of its own, so that one pass over all of them does not mix them.
    first = int(times.min())
    shift = np.empty_like(times)
    shift[begin_order] = shift[end_order] = root * (int(times.max()) - first + 1) - first
    ordered = np.maximum.accumulate(times + shift) - shift
    if int((ordered - times).max()) > 1:
        raise ExportError(
            "not-nested",
            what="the spans of a warp do not nest",
            found="a span that ends after the one around it",
            expected="spans that lie inside their parents",
            fix="report this as a bug of kperfir, with the .kpf file",
        )
    return ordered[begin_order], ordered[end_order]

"""Write timelines as a Perfetto trace (.pftrace).

    capture (device, "simulated") > launch > SM > lane (CTA slot, warp) : CTA slice > region slices

Owns what a timeline looks like in Perfetto. Rare packets come from the protobuf library (`pftrace_packets`), slices
from `MessageBatch`; both write one packet sequence per capture. Timestamps are whole nanoseconds; a launch starts at
its own `offset_ns` (an argument of its slice), because launches are timed relative to their start. Raw cycles are
arguments.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from kperfir.export.columns import MessageBatch, interleave
from kperfir.export.drawing import LaunchDrawing, launch_drawings
from kperfir.export.pftrace_packets import Annotation, PacketWriter, TrackEventType

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from kperfir.timeline import Timeline

EVENTS_PER_CHUNK = 1 << 16


def write(timelines: Sequence[Timeline], out: BinaryIO) -> None:
    """Write all `timelines` into one trace; each becomes a group of tracks of its own."""
    for number, timeline in enumerate(timelines):
        packets = PacketWriter(out, timeline, sequence=number + 1)
        for drawing in launch_drawings(timeline):
            _write_launch(packets, drawing)


def _write_launch(packets: PacketWriter, drawing: LaunchDrawing) -> None:
    launch_track = packets.launch(drawing)
    lane_tracks = packets.lanes(launch_track, drawing.lanes.lanes)
    packets.intern_ctas(drawing.lanes.roots["cta"].unique())
    order = drawing.event_order()
    events = _Events(packets, drawing, lane_tracks[drawing.lane])
    for first in range(0, len(order), EVENTS_PER_CHUNK):
        packets.raw(events.packed(order[first : first + EVENTS_PER_CHUNK]))


@dataclass(frozen=True, slots=True)
class _Events:
    """Packs the slice events of a launch; rows as in `LaunchDrawing`."""

    packets: PacketWriter
    drawing: LaunchDrawing
    track: NDArray[np.int64]  # Uuid of each row's lane.

    def packed(self, events: NDArray[np.int64]) -> bytes:
        """Serialised packets of `events`, which are a part of `LaunchDrawing.event_order`."""
        rows = len(self.track)
        is_end = events >= rows
        is_cta = events < self._root_count
        is_span = ~is_end & ~is_cta
        batches = [
            (self._cta_begins(events[is_cta]), np.flatnonzero(is_cta)),
            (self._span_begins(events[is_span]), np.flatnonzero(is_span)),
            (self._ends(events[is_end] - rows), np.flatnonzero(is_end)),
        ]
        return interleave([(batch, positions) for batch, positions in batches if len(positions)])

    @property
    def _root_count(self) -> int:
        return len(self.drawing.lanes.roots)

    def _cta_begins(self, rows: NDArray[np.int64]) -> MessageBatch:
        roots = self.drawing.lanes.roots.iloc[rows]
        annotations = [
            self._annotation(name, roots[name].to_numpy())
            for name in ("cta", "cta_x", "cta_y", "cta_z", "warp", "records", "dropped")
        ]
        role = MessageBatch(len(rows))
        role.varint(Annotation.NAME_IID, self.packets.annotation_iid("role"))
        role.varint(Annotation.STRING_VALUE_IID, self.packets.role_iids(roots["role"]))
        event = MessageBatch(len(rows))
        event.varint(3, self.packets.cta_category_iid)
        for annotation in [*annotations, role]:
            event.message(4, annotation)
        event.varint(9, TrackEventType.SLICE_BEGIN)
        event.varint(10, self.packets.cta_name_iids(roots["cta"].to_numpy()))
        event.varint(11, self.track[rows])
        return self._packet(self.drawing.start_ns[rows], event)

    def _span_begins(self, rows: NDArray[np.int64]) -> MessageBatch:
        index = rows - self._root_count
        spans = self.drawing.spans.iloc[index]
        iteration = spans["iteration"].to_numpy()
        incomplete = ~spans["complete"].to_numpy()
        event = MessageBatch(len(rows))
        event.varint(3, self.packets.kind_iids(spans["kind"]))
        event.message(4, self._annotation("iteration", iteration), present=iteration >= 0)
        event.message(4, self._annotation("start_cycles", spans["start_cycles"].to_numpy()))
        event.message(4, self._annotation("duration_cycles", spans["duration_cycles"].to_numpy()))
        event.message(4, self._flag("incomplete", len(rows)), present=incomplete)
        event.message(4, self._flag("wait", len(rows)), present=self.drawing.is_wait[index])
        wait_cycles = self.drawing.wait_cycles[index]
        event.message(4, self._annotation("wait_cycles", wait_cycles), present=wait_cycles > 0)
        for value, present in self._values(self.drawing.values[index]):
            event.message(4, value, present=present)
        event.varint(9, np.where(self.drawing.instant[rows], TrackEventType.INSTANT, TrackEventType.SLICE_BEGIN))
        event.varint(10, self.packets.region_name_iids(spans["name"]))
        event.varint(11, self.track[rows])
        event.varint(34, self.packets.source_iids(spans))
        self._flows(event, 47, "from_row", rows)
        return self._packet(self.drawing.start_ns[rows], event)

    def _values(self, values: NDArray[Any]) -> Iterator[tuple[MessageBatch, NDArray[np.bool_]]]:
        """Annotations of what marks carry, and which rows have them."""
        is_float = np.array([isinstance(value, float) for value in values], np.bool_)
        is_large = np.array([isinstance(value, int) and value >= 1 << 63 for value in values], np.bool_)
        is_int = np.array([value is not None for value in values], np.bool_) & ~is_float & ~is_large
        for present, field, dtype in (
            (is_int, Annotation.INT_VALUE, np.int64),
            (is_large, Annotation.UINT_VALUE, np.uint64),
            (is_float, Annotation.DOUBLE_VALUE, np.float64),
        ):
            if present.any():
                annotation = MessageBatch(len(values))
                annotation.varint(Annotation.NAME_IID, self.packets.annotation_iid("value"))
                numbers: NDArray[Any] = np.where(present, values, 0).astype(dtype)
                if is_float is present:
                    annotation.double(field, numbers)
                else:
                    annotation.varint(field, numbers)
                yield annotation, present

    def _ends(self, rows: NDArray[np.int64]) -> MessageBatch:
        event = MessageBatch(len(rows))
        event.varint(9, TrackEventType.SLICE_END)
        event.varint(11, self.track[rows])
        # At the end: the wait may have begun before what it waits for was issued by another warp.
        self._flows(event, 48, "to_row", rows)
        return self._packet(self.drawing.end_ns[rows], event)

    def _flows(self, event: MessageBatch, field: int, side: str, rows: NDArray[np.int64]) -> None:
        """Add the ids of the arrows that leave or reach `rows`, each of which may have several."""
        flows = self.drawing.flows
        turn = flows.groupby(side).cumcount().to_numpy()
        for number in range(int(turn.max(initial=-1)) + 1):
            some = flows[turn == number]
            ids = np.zeros(len(self.track), np.int64)
            ids[some[side].to_numpy()] = some.index.to_numpy() + 1
            mine = ids[rows]
            event.fixed64(field, mine | self.packets.sequence << 40, present=mine > 0)

    def _annotation(self, name: str, values: NDArray[np.integer]) -> MessageBatch:
        annotation = MessageBatch(len(values))
        annotation.varint(Annotation.NAME_IID, self.packets.annotation_iid(name))
        annotation.varint(Annotation.INT_VALUE, values)
        return annotation

    def _flag(self, name: str, rows: int) -> MessageBatch:
        annotation = MessageBatch(rows)
        annotation.varint(Annotation.NAME_IID, self.packets.annotation_iid(name))
        annotation.varint(Annotation.BOOL_VALUE, 1)
        return annotation

    def _packet(self, timestamp: NDArray[np.int64], event: MessageBatch) -> MessageBatch:
        packet = MessageBatch(len(timestamp))
        packet.varint(8, timestamp)
        packet.varint(10, self.packets.sequence)
        packet.message(11, event)
        packet.varint(13, 2)  # SEQ_NEEDS_INCREMENTAL_STATE: interned names.
        trace = MessageBatch(len(timestamp))
        trace.message(1, packet)
        return trace

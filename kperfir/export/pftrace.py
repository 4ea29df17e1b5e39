"""Write timelines as a Perfetto trace (.pftrace).

    capture (device, "simulated") > launch > SM > lane (CTA slot, warp) : CTA slice > region slices

Owns what a timeline looks like in Perfetto. Rare packets come from the protobuf library (`pftrace_packets`), slices
from `MessageBatch`; both write one packet sequence per capture. Timestamps are whole nanoseconds; a launch starts at
its own `offset_ns` (an argument of its slice), because launches are timed relative to their start. Raw cycles are
arguments.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import pandas as pd

from kperfir.export.columns import MessageBatch, interleave
from kperfir.export.drawing import LaunchDrawing, launch_drawings
from kperfir.export.pftrace_packets import Annotation, PacketWriter, TrackEventType

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from kperfir.timeline import Timeline

EVENTS_PER_CHUNK = 1 << 18


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
    events = _Events(packets, drawing, lane_tracks)
    for first in range(0, len(order), EVENTS_PER_CHUNK):
        packets.raw(events.packed(order[first : first + EVENTS_PER_CHUNK]))


@dataclass(frozen=True)
class _Events:
    """Packs the slice events of a launch; rows as in `LaunchDrawing`."""

    packets: PacketWriter
    drawing: LaunchDrawing
    lane_tracks: NDArray[np.int64]  # Uuid of each lane.

    @cached_property
    def _iids(self) -> pd.DataFrame:
        """What stands for the kind, the name and the source of each span."""
        spans = self.drawing.spans
        return pd.DataFrame(
            {
                "kind": self.packets.kind_iids(spans["kind"]),
                "name": self.packets.region_name_iids(spans["name"]),
                "source": self.packets.source_iids(spans),
            }
        )

    @cached_property
    def _arrows(self) -> dict[str, list[tuple[NDArray[np.int64], NDArray[np.int64]]]]:
        """Rows that arrows leave or reach, ascending, and the arrows' ids; a row of several is in several of these."""
        flows = self.drawing.flows
        arrows: dict[str, list[tuple[NDArray[np.int64], NDArray[np.int64]]]] = {}
        for side in ("from_row", "to_row"):
            turn = flows.groupby(side).cumcount().to_numpy()
            arrows[side] = []
            for number in range(int(turn.max(initial=-1)) + 1):
                some = flows[turn == number].sort_values(side)
                arrows[side].append((some[side].to_numpy(np.int64), some.index.to_numpy(np.int64) + 1))
        return arrows

    def _track(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        return self.lane_tracks[self.drawing.lane[rows]]

    def packed(self, events: NDArray[np.int64]) -> bytes:
        """Serialised packets of `events`, which are a part of `LaunchDrawing.event_order`."""
        rows = len(self.drawing.lane)
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
        event.varint(11, self._track(rows))
        return self._packet(self.drawing.start_ns[rows], event)

    def _span_begins(self, rows: NDArray[np.int64]) -> MessageBatch:
        index = rows - self._root_count
        spans, iids = self.drawing.spans, self._iids
        iteration = spans["iteration"].to_numpy()[index]
        event = MessageBatch(len(rows))
        event.varint(3, iids["kind"].to_numpy()[index])
        event.message(4, self._annotation("iteration", iteration), present=iteration >= 0)
        for name in ("start_cycles", "duration_cycles"):
            event.message(4, self._annotation(name, spans[name].to_numpy()[index]))
        event.message(4, self._flag("incomplete", len(rows)), present=~spans["complete"].to_numpy()[index])
        event.message(4, self._flag("wait", len(rows)), present=self.drawing.is_wait[index])
        wait_cycles = self.drawing.wait_cycles[index]
        event.message(4, self._annotation("wait_cycles", wait_cycles), present=wait_cycles > 0)
        for value, present in self._values(self.drawing.values[index]):
            event.message(4, value, present=present)
        event.varint(9, np.where(self.drawing.instant[rows], TrackEventType.INSTANT, TrackEventType.SLICE_BEGIN))
        event.varint(10, iids["name"].to_numpy()[index])
        event.varint(11, self._track(rows))
        event.varint(34, iids["source"].to_numpy()[index])
        self._flows(event, 47, "from_row", rows)
        return self._packet(self.drawing.start_ns[rows], event)

    def _values(self, values: NDArray[Any]) -> Iterator[tuple[MessageBatch, NDArray[np.bool_]]]:
        """Annotations of what marks carry, and which rows have them."""
        rows_of: dict[int, list[int]] = {}
        for row in np.flatnonzero(values != None).tolist():  # noqa: E711 - of each element.
            if isinstance(values[row], float):
                field = Annotation.DOUBLE_VALUE
            else:
                field = Annotation.INT_VALUE if values[row] < 1 << 63 else Annotation.UINT_VALUE
            rows_of.setdefault(field, []).append(row)
        for field, rows in sorted(rows_of.items()):
            present = np.zeros(len(values), np.bool_)
            present[rows] = True
            annotation = MessageBatch(len(values))
            annotation.varint(Annotation.NAME_IID, self.packets.annotation_iid("value"))
            if field == Annotation.DOUBLE_VALUE:
                doubles = np.zeros(len(values), np.float64)
                doubles[rows] = values[rows]
                annotation.double(field, doubles)
            else:
                numbers: NDArray[Any] = np.zeros(len(values), np.int64 if field == Annotation.INT_VALUE else np.uint64)
                numbers[rows] = values[rows]
                annotation.varint(field, numbers)
            yield annotation, present

    def _ends(self, rows: NDArray[np.int64]) -> MessageBatch:
        event = MessageBatch(len(rows))
        event.varint(9, TrackEventType.SLICE_END)
        event.varint(11, self._track(rows))
        # At the end: the wait may have begun before what it waits for was issued by another warp.
        self._flows(event, 48, "to_row", rows)
        return self._packet(self.drawing.end_ns[rows], event)

    def _flows(self, event: MessageBatch, field: int, side: str, rows: NDArray[np.int64]) -> None:
        """Add the ids of the arrows that leave or reach `rows`, each of which may have several."""
        for ends, ids in self._arrows[side]:
            place = np.minimum(np.searchsorted(ends, rows), len(ends) - 1)
            event.fixed64(field, ids[place] | self.packets.sequence << 40, present=ends[place] == rows)

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

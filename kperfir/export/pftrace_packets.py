"""The rare packets of a Perfetto trace (tracks, interned strings, launches) and the ids that slices refer to.

Owns uuids and interning of one capture, hence of one packet sequence. Slices are not its business.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
import pandas as pd
from kperfir._native import trace
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import (
    DebugAnnotation,
    InternedData,
    Trace,
    TracePacket,
    TrackDescriptor,
    TrackEvent,
)

from kperfir.analysis.grouped import group_by

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kperfir.export.drawing import LaunchDrawing
    from kperfir.timeline import Timeline

# Arguments of slices, as lib/Trace/Slices.h has them in order: those of a CTA that are numbers, then the others.
ROOT_ARGUMENTS = ("cta", "cta_x", "cta_y", "cta_z", "warp", "records", "dropped")
ARGUMENTS = (
    *ROOT_ARGUMENTS, "role", "iteration", "start_cycles", "duration_cycles", "incomplete", "wait", "wait_cycles",
    "value",
)  # fmt: skip
_NAMES_PER_PACKET = 4096


class PacketWriter:
    """Writes the packets of one capture to `out`, and knows the interned id of everything it has declared."""

    def __init__(self, out: BinaryIO, timeline: Timeline, *, sequence: int) -> None:
        self.sequence = sequence
        self._out = out
        self._timeline = timeline
        # Uuids are global to a trace, and traces get merged: 32 bits tell captures apart, 24 number the tracks.
        identity = repr((sorted(timeline.metadata.items(), key=str), sequence)).encode()
        self._next_uuid = int.from_bytes(hashlib.blake2b(identity, digest_size=4).digest(), "little") << 24
        spans = timeline.spans
        self._names = [str(name) for name in spans["name"].cat.categories]
        self._kinds = [str(kind) for kind in spans["kind"].cat.categories]
        self._roles = [str(role) for role in timeline.tracks["role"].cat.categories]
        self._sources = _sources(spans)
        self._ctas: set[int] = set()
        self.cta_category_iid = len(self._kinds) + 1
        self._begin_sequence()
        self._root = self._track(0, _capture_name(timeline), rank=sequence)

    # Ids that slices refer to. Interned ids start at 1.

    def annotation_iid(self, name: str) -> int:
        return ARGUMENTS.index(name) + 1

    def kind_iids(self, kinds: pd.Series) -> NDArray[np.int64]:
        return _category_iids(kinds)

    def region_name_iids(self, names: pd.Series) -> NDArray[np.int64]:
        return _category_iids(names)

    def cta_name_iids(self, ctas: NDArray[np.integer]) -> NDArray[np.int64]:
        return ctas.astype(np.int64) + len(self._names) + 1

    def role_iids(self, roles: pd.Series) -> NDArray[np.int64]:
        return _category_iids(roles)

    def source_iids(self, spans: pd.DataFrame) -> NDArray[np.int64]:
        groups = group_by(spans["file"], spans["line"], spans["kernel"])
        iids: NDArray[np.int64] = self._sources.get_indexer(_source_index(spans.iloc[groups.first])) + 1
        return iids[groups.number]

    # Packets, in the order in which they are written.

    def launch(self, drawing: LaunchDrawing) -> int:
        """Declare the track of a launch, put the launch's slice on it, and return its uuid."""
        launch = drawing.launch
        start_ns, end_ns = drawing.extent_ns
        track = self._track(self._root, f"launch {launch['launch']}: {launch['kernel']}", rank=int(launch["launch"]))
        message = Trace()
        begin = self._packet(message, start_ns)
        begin.track_event.type = TrackEvent.TYPE_SLICE_BEGIN
        begin.track_event.track_uuid = track
        begin.track_event.name = str(launch["kernel"])
        for name, value in launch.items():
            _annotate(begin.track_event.debug_annotations.add(), name, value)
        _annotate(begin.track_event.debug_annotations.add(), "offset_ns", drawing.offset_ns)
        notes = begin.track_event.debug_annotations.add(name="notes")
        for note in self._timeline.notes:
            notes.array_values.add(string_value=note)
        end = self._packet(message, end_ns)
        end.track_event.type = TrackEvent.TYPE_SLICE_END
        end.track_event.track_uuid = track
        self.raw(message.SerializeToString())
        return track

    def lanes(self, launch_track: int, lanes: pd.DataFrame) -> NDArray[np.int64]:
        """Declare the SMs and lanes of a launch; `lanes` as in `LaunchLanes`. Returns the uuid of each lane."""
        slots = lanes.groupby("sm")["slot"].transform("max")
        warps = int(lanes["warp"].max()) + 1 if len(lanes) else 0
        roles = lanes["role"].nunique() > 1
        sm_tracks = {
            int(sm): self._track(launch_track, f"SM {sm}", rank=int(sm)) for sm in sorted(lanes["sm"].unique())
        }
        uuids = []
        for lane, last_slot in zip(lanes.itertuples(index=False), slots, strict=True):
            name = f"warp {lane.warp}" + (f" ({lane.role})" if roles else "")
            if last_slot:
                name = f"slot {lane.slot} · {name}"
            uuids.append(self._track(sm_tracks[int(lane.sm)], name, rank=int(lane.slot) * warps + int(lane.warp)))
        return np.array(uuids, np.int64)

    def intern_ctas(self, ctas: NDArray[np.integer]) -> None:
        """Declare the names of CTA slices that no earlier launch had."""
        new = sorted(set(ctas.tolist()) - self._ctas)
        self._ctas.update(new)
        for first in range(0, len(new), _NAMES_PER_PACKET):
            message = Trace()
            interned = self._packet(message).interned_data
            for cta in new[first : first + _NAMES_PER_PACKET]:
                interned.event_names.add(iid=cta + len(self._names) + 1, name=f"CTA {cta}")
            self.raw(message.SerializeToString())

    def raw(self, packets: bytes | memoryview) -> None:
        """Append serialised packets."""
        self._out.write(packets)

    def _begin_sequence(self) -> None:
        message = Trace()
        packet = self._packet(message)
        packet.sequence_flags = TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
        packet.first_packet_on_sequence = True
        interned: InternedData = packet.interned_data
        for table, names in (
            (interned.event_names, self._names),
            (interned.event_categories, [*self._kinds, "cta"]),
            (interned.debug_annotation_names, ARGUMENTS),
        ):
            for iid, name in enumerate(names, 1):
                table.add(iid=iid, name=name)
        for iid, role in enumerate(self._roles, 1):
            interned.debug_annotation_string_values.add(iid=iid, str=role.encode())
        for iid, (file, line, kernel) in enumerate(self._sources, 1):
            interned.source_locations.add(
                iid=iid, file_name=str(file), line_number=int(line), function_name=str(kernel)
            )
        self.raw(message.SerializeToString())

    def _track(self, parent: int, name: str, *, rank: int) -> int:
        self._next_uuid += 1
        message = Trace()
        track = self._packet(message).track_descriptor
        track.uuid = self._next_uuid
        if parent:
            track.parent_uuid = parent
        track.name = name
        track.sibling_order_rank = rank
        track.child_ordering = TrackDescriptor.EXPLICIT
        # By default Perfetto merges siblings of one name.
        track.sibling_merge_behavior = TrackDescriptor.SIBLING_MERGE_BEHAVIOR_NONE
        self.raw(message.SerializeToString())
        return self._next_uuid

    def _packet(self, message: Trace, timestamp_ns: int | None = None) -> TracePacket:
        packet = message.packet.add(trusted_packet_sequence_id=self.sequence)
        packet.sequence_flags = TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
        if timestamp_ns is not None:
            packet.timestamp = timestamp_ns
        return packet


def _capture_name(timeline: Timeline) -> str:
    launches = timeline.launches
    chips = ", ".join(dict.fromkeys(launches["chip"].astype(str))) or "no launch"
    simulated = " (simulated)" if timeline.metadata.get("simulated") or launches["simulated"].any() else ""
    where = " ".join(
        f"{key} {timeline.metadata[key]}" for key in ("host", "pid", "rank") if timeline.metadata.get(key) is not None
    )
    label = f"{timeline.placement.label} · " if timeline.placement else ""
    return f"{label}kperfir: {chips}{simulated}" + (f" · {where}" if where else "")


def _category_iids(column: pd.Series) -> NDArray[np.int64]:
    iids: NDArray[np.int64] = column.cat.codes.to_numpy().astype(np.int64) + 1
    return iids


def _source_index(spans: pd.DataFrame) -> pd.MultiIndex:
    return pd.MultiIndex.from_frame(spans[["file", "line", "kernel"]])


def _sources(spans: pd.DataFrame) -> pd.MultiIndex:
    """Each source of a span once, in the order of the spans."""
    launch = spans["launch"].to_numpy()
    region = np.ascontiguousarray(spans["region"], np.int32)
    count = int(region.max(initial=-1)) + 1
    begin = np.flatnonzero(np.r_[len(launch) > 0, launch[1:] != launch[:-1]])
    firsts = [np.empty(0, np.int64)]
    for first, end in zip(begin.tolist(), [*begin[1:].tolist(), len(launch)], strict=False):
        rows = trace.first_rows(region[first:end], count)
        firsts.append(np.sort(rows[rows >= 0]) + first)
    return _source_index(spans.iloc[np.concatenate(firsts)]).drop_duplicates()


def _annotate(annotation: DebugAnnotation, name: str, value: object) -> None:
    annotation.name = name
    if isinstance(value, (bool, np.bool_)):
        annotation.bool_value = bool(value)
    elif isinstance(value, (int, np.integer)):
        annotation.int_value = int(value)
    elif isinstance(value, (float, np.floating)):
        annotation.double_value = float(value)
    else:
        annotation.string_value = str(value)

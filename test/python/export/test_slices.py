"""Slices that native code writes are the ones that the protobuf library would write, at every edge of its encoding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kperfir._native import trace
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TracePacket, TrackEvent

from kperfir.export.pftrace_packets import ARGUMENTS, ROOT_ARGUMENTS

EDGES = (0, 1, 127, 128, 16383, 16384, (1 << 31) - 1, 1 << 32, (1 << 63) - 1, -1, -(1 << 63))
SEQUENCE = 3
CATEGORY = 300
TRACK = (1 << 62) + 5


def _table(edge: int, **changes: Any) -> dict[str, dict[str, Any]]:
    """One root with one span, whose numbers are `edge` where they may be."""
    one = np.array([edge], np.int64)
    iid = np.array([abs(edge) % (1 << 62)], np.int64)
    table: dict[str, dict[str, Any]] = {
        "rows": {
            "events": np.array([0, 1, 3, 2], np.int64),
            "start": np.array([edge, edge], np.int64),
            "end": np.array([edge, edge], np.int64),
            "region": np.zeros(1, np.int32),
            "iteration": one,
            "start_cycles": one,
            "duration_cycles": one,
            "wait_cycles": one,
            "complete": np.array([edge % 2 == 0]),
            "values": {name: np.empty(0, np.int64) for name in ("row", "kind")} | {"bits": np.empty(0, np.uint64)},
            "flows": {name: np.empty(0, np.int64) for name in ("from_row", "to_row", "id")},
        },
        "regions": {
            "kind": iid, "name": iid, "source": iid, "is_wait": np.array([True]), "is_instant": np.array([False]),
        },
        "roots": {
            "numbers": np.full(len(ROOT_ARGUMENTS), edge, np.int64), "role": iid, "name": iid,
            "track": np.array([TRACK], np.int64),
        },
        "sequence": {
            "id": SEQUENCE, "cta_category": CATEGORY, "offset": 0,
            "arguments": list(range(1, len(ARGUMENTS) + 1)),
        },
    }  # fmt: skip
    for name, value in changes.items():
        table["rows"][name] = value
    return table


def _packet(time: int, kind: TrackEvent.Type) -> TracePacket:
    packet = TracePacket(timestamp=time % (1 << 64), trusted_packet_sequence_id=SEQUENCE, sequence_flags=2)
    packet.track_event.type = kind
    packet.track_event.track_uuid = TRACK
    return packet


def _annotate(packet: TracePacket, name: str, **value: Any) -> None:
    packet.track_event.debug_annotations.add(name_iid=ARGUMENTS.index(name) + 1, **value)


def _expected(edge: int) -> list[TracePacket]:
    iid = abs(edge) % (1 << 62)
    root = _packet(edge, TrackEvent.TYPE_SLICE_BEGIN)
    root.track_event.category_iids.append(CATEGORY)
    root.track_event.name_iid = iid
    for name in ROOT_ARGUMENTS:
        _annotate(root, name, int_value=edge)
    _annotate(root, "role", string_value_iid=iid)
    span = _packet(edge, TrackEvent.TYPE_SLICE_BEGIN)
    span.track_event.category_iids.append(iid)
    span.track_event.name_iid = iid
    span.track_event.source_location_iid = iid
    if edge >= 0:
        _annotate(span, "iteration", int_value=edge)
    for name in ("start_cycles", "duration_cycles"):
        _annotate(span, name, int_value=edge)
    if edge % 2:
        _annotate(span, "incomplete", bool_value=True)
    _annotate(span, "wait", bool_value=True)
    if edge > 0:
        _annotate(span, "wait_cycles", int_value=edge)
    return [root, span, *(_packet(edge, TrackEvent.TYPE_SLICE_END) for _ in range(2))]


@pytest.mark.parametrize("edge", EDGES)
def test_bytes_equal_protobuf_for_edge_values(edge: int) -> None:
    written = bytes(trace.SliceWriter(**_table(edge)).write(0, 4))
    assert Trace(packet=_expected(edge)).SerializeToString(deterministic=True) == written


def test_events_may_be_written_one_by_one() -> None:
    table = _table(77)
    writer = trace.SliceWriter(**table)
    parts = b"".join(bytes(writer.write(event, event + 1)) for event in range(4))
    assert parts == bytes(trace.SliceWriter(**table).write(0, 4))


@pytest.mark.parametrize("arrows", [1, 5, 4000])
def test_packet_of_many_arrows_has_its_exact_length(arrows: int) -> None:
    ids = np.arange(arrows, dtype=np.int64) << 40
    flows = {"from_row": np.ones(arrows, np.int64), "to_row": np.ones(arrows, np.int64), "id": ids}
    packets = Trace.FromString(bytes(trace.SliceWriter(**_table(9, flows=flows)).write(0, 4))).packet
    assert list(packets[1].track_event.flow_ids) == ids.tolist()
    assert list(packets[2].track_event.terminating_flow_ids) == ids.tolist()
    assert not packets[0].track_event.flow_ids


@pytest.mark.parametrize("value", [-2.5, float("inf"), 1 << 63, -(1 << 63), 0])
def test_value_of_a_mark(value: float) -> None:
    kind, bits = trace.DOUBLE, int(np.float64(value).view(np.uint64))
    if isinstance(value, int):
        kind, bits = (trace.UNSIGNED if value >= 1 << 63 else trace.SIGNED), value % (1 << 64)
    values = {"row": np.array([1], np.int64), "kind": np.array([kind], np.int64), "bits": np.array([bits], np.uint64)}
    packets = Trace.FromString(bytes(trace.SliceWriter(**_table(9, values=values)).write(0, 4))).packet
    last = packets[1].track_event.debug_annotations[-1]
    assert ARGUMENTS[last.name_iid - 1] == "value"
    assert getattr(last, last.WhichOneof("value")) == value


def test_packet_of_many_values_has_its_exact_length() -> None:
    bits = np.arange(4000, dtype=np.uint64) << np.uint64(40)
    values = {"row": np.ones(4000, np.int64), "kind": np.full(4000, trace.UNSIGNED, np.int64), "bits": bits}
    packets = Trace.FromString(bytes(trace.SliceWriter(**_table(9, values=values)).write(0, 4))).packet
    found = packets[1].track_event.debug_annotations[-4000:]
    assert [annotation.uint_value for annotation in found] == bits.tolist()


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("events", np.array([0, 4], np.int64)),
        ("region", np.ones(1, np.int32)),
        ("start", np.zeros(1, np.int64)),
        ("iteration", np.zeros(2, np.int64)),
        ("flows", {name: np.array([2], np.int64) for name in ("from_row", "to_row", "id")}),
    ],
)
def test_columns_that_do_not_fit_are_refused(name: str, column: object) -> None:
    with pytest.raises(ValueError, match=r"no such|length|as many"):
        trace.SliceWriter(**_table(1, **{name: column}))

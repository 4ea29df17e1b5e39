"""The column packer writes what the protobuf library would write."""

import numpy as np
import pytest
from kperfir._native import trace
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import DebugAnnotation, TrackEvent

from kperfir.export.columns import MessageBatch, interleave

EDGES = [0, 1, 127, 128, 16_383, 16_384, 2**32 - 1, 2**32, 2**56, 2**63 - 1, -1, -(2**63)]


def _annotation(value: int) -> bytes:
    return DebugAnnotation(name_iid=300, int_value=value).SerializeToString()


def _messages(batch: MessageBatch) -> list[bytes]:
    """Each message by itself: in between stand messages of one byte, of field 15, which no batch here has."""
    mark = MessageBatch(batch.rows)
    mark.varint(15, 0)
    rows = np.arange(batch.rows)
    parts = interleave([(batch, 2 * rows), (mark, 2 * rows + 1)]).split(b"\x78\x00")
    assert parts.pop() == b""
    return parts


def test_varint_equals_protobuf_for_edge_values() -> None:
    batch = MessageBatch(len(EDGES))
    batch.varint(1, 300)
    batch.varint(4, np.array(EDGES, np.int64))
    assert _messages(batch) == [_annotation(value) for value in EDGES]


def test_double_equals_protobuf() -> None:
    values = [0.0, -1.5, float("inf"), 1e300]
    batch = MessageBatch(len(values))
    batch.varint(1, 300)
    batch.double(5, np.array(values))
    assert _messages(batch) == [
        DebugAnnotation(name_iid=300, double_value=value).SerializeToString() for value in values
    ]


def test_absent_field_leaves_no_bytes() -> None:
    batch = MessageBatch(3)
    batch.varint(1, 300)
    batch.varint(4, np.array([5, 6, 7]), present=np.array([True, False, True]))
    assert _messages(batch)[1] == DebugAnnotation(name_iid=300).SerializeToString()


@pytest.mark.parametrize("annotations", [1, 40, 4000])
def test_nested_message_has_exact_length(annotations: int) -> None:
    # Forty annotations need a length of two bytes, four thousand one of three.
    event = MessageBatch(2)
    for _ in range(annotations):
        inner = MessageBatch(2)
        inner.varint(1, 300)
        inner.varint(4, np.array([1, 1 << 40]))
        event.message(4, inner, present=np.array([True, False]))
    event.varint(9, 2)
    full = TrackEvent(type=TrackEvent.TYPE_SLICE_END)
    for _ in range(annotations):
        full.debug_annotations.add(name_iid=300, int_value=1)
    assert _messages(event) == [full.SerializeToString(), TrackEvent(type=2).SerializeToString()]


def test_interleave_keeps_the_given_order() -> None:
    narrow, wide = MessageBatch(2), MessageBatch(1)
    narrow.varint(1, np.array([1, 2]))
    wide.varint(1, np.array([1 << 20]))
    merged = interleave([(narrow, np.array([0, 2])), (wide, np.array([1]))])
    assert merged == b"\x08\x01" + b"\x08\x80\x80\x40" + b"\x08\x02"


@pytest.mark.parametrize("positions", [[0, 0], [0, 2], [-1, 0]])
def test_positions_that_are_no_permutation_are_refused(positions: list[int]) -> None:
    batch = MessageBatch(2)
    batch.varint(1, 5)
    with pytest.raises(ValueError, match="permutation"):
        interleave([(batch, np.array(positions))])


def test_columns_of_another_length_are_refused() -> None:
    batch = MessageBatch(3)
    batch.varint(1, np.array([1, 2]))
    with pytest.raises(ValueError, match="another length"):
        interleave([(batch, np.arange(3))])


def test_fields_that_do_not_nest_are_refused() -> None:
    outer, inner = (trace.MESSAGE, b"\x0a", None, None, 1), (trace.MESSAGE, b"\x0a", None, None, 1)
    with pytest.raises(ValueError, match="more fields than there are"):
        trace.interleave([([outer, inner, (trace.CONSTANT, b"", None, None, 0)], np.arange(1))])

"""Serialise many protobuf messages of one shape, column by column.

    batch = MessageBatch(rows)
    batch.varint(8, timestamps)
    batch.message(11, event_batch)
    trace = interleave([(batch, positions)])

A million slices through the protobuf library take ten seconds; here a message field is an array, and native code
(lib/Trace) goes through the rows. The bytes are the ones the library would write (fields in the order they are added,
minimal varints). This module knows tags and types; which fields exist is the caller's business.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from kperfir._native import trace

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Mask = NDArray[np.bool_]
    # Kind, bytes in front of the value, values, rows that have it, fields inside of it.
    Field = tuple[int, bytes, NDArray[np.uint64] | None, Mask | None, int]

_VARINT = 0
_FIXED64 = 1
_LENGTH_DELIMITED = 2


class MessageBatch:
    """`rows` messages with the same fields; a field may be absent in some rows."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.fields: list[Field] = []

    def varint(self, field: int, values: NDArray[np.integer] | int, *, present: Mask | None = None) -> None:
        """Add an integer field (int32, int64, uint64, bool, enum).

        Args:
            field: Field number of the message.
            values: One value for all rows, or shape ``(rows,)``; negative values become ten bytes, as protobuf says.
            present: Shape ``(rows,)``; rows that carry the field. Default: all.
        """
        if isinstance(values, int):
            self._constant(_tag(field, _VARINT) + _varint(values), present)
        else:
            words = values.astype(np.uint64 if values.dtype.kind == "u" else np.int64, copy=False)
            self._add(trace.VARINT, _tag(field, _VARINT), words.view(np.uint64), present)

    def double(self, field: int, values: NDArray[np.float64]) -> None:
        """Add a double field."""
        self._add(trace.FIXED64, _tag(field, _FIXED64), values.astype(np.float64, copy=False).view(np.uint64), None)

    def fixed64(self, field: int, values: NDArray[np.integer], *, present: Mask) -> None:
        """Add a field of eight bytes; arguments as for `varint`."""
        self._add(trace.FIXED64, _tag(field, _FIXED64), values.astype(np.uint64, copy=False), present)

    def message(self, field: int, inner: MessageBatch, *, present: Mask | None = None) -> None:
        """Add a sub-message field; `inner` has the same number of rows and is complete."""
        self.fields.append((trace.MESSAGE, _tag(field, _LENGTH_DELIMITED), None, present, len(inner.fields)))
        self.fields += inner.fields

    def _constant(self, content: bytes, present: Mask | None) -> None:
        for begin in range(0, len(content), trace.LITERAL_BYTES):
            self._add(trace.CONSTANT, content[begin : begin + trace.LITERAL_BYTES], None, present)

    def _add(self, kind: int, literal: bytes, values: NDArray[np.uint64] | None, present: Mask | None) -> None:
        contiguous = None if values is None else np.ascontiguousarray(values)
        self.fields.append((kind, literal, contiguous, present, 0))


def interleave(batches: list[tuple[MessageBatch, NDArray[np.int64]]]) -> bytes:
    """Concatenate the messages of several batches in one order.

    Args:
        batches: Each with the positions of its rows among all messages; together the positions are a permutation.
    """
    return trace.interleave([(batch.fields, positions) for batch, positions in batches])


def _tag(field: int, wire_type: int) -> bytes:
    return _varint(field << 3 | wire_type)


def _varint(value: int) -> bytes:
    value %= 1 << 64
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])

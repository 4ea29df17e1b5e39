"""Serialise many protobuf messages of one shape, column by column.

    batch = MessageBatch(rows)
    batch.varint(8, timestamps)
    batch.message(11, event_batch)
    matrix, used = batch.bytes_matrix()

A million slices through the protobuf library take ten seconds; here a message field is a few numpy operations over all
rows. The bytes are the ones the library would write (fields in the order they are added, minimal varints). This module
knows the wire format only; which fields exist is the caller's business.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bytes = NDArray[np.uint8]
    Mask = NDArray[np.bool_]

_VARINT = 0
_FIXED64 = 1
_LENGTH_DELIMITED = 2


class MessageBatch:
    """`rows` messages with the same fields; a field may be absent in some rows."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self._columns: list[tuple[Bytes, Mask]] = []

    def varint(self, field: int, values: NDArray[np.integer] | int, *, present: Mask | None = None) -> None:
        """Add an integer field (int32, int64, uint64, bool, enum).

        Args:
            field: Field number of the message.
            values: One value for all rows, or shape ``(rows,)``; negative values become ten bytes, as protobuf says.
            present: Shape ``(rows,)``; rows that carry the field. Default: all.
        """
        self._constant(_tag(field, _VARINT), present)
        column = np.full(self.rows, values) if isinstance(values, int) else values
        matrix, used = _varints(column)
        self._columns.append((matrix, used if present is None else used & present[:, None]))

    def double(self, field: int, values: NDArray[np.float64]) -> None:
        """Add a double field."""
        self._constant(_tag(field, _FIXED64), None)
        matrix = np.ascontiguousarray(values, "<f8").view(np.uint8).reshape(self.rows, 8)
        self._columns.append((matrix, np.ones(matrix.shape, np.bool_)))

    def fixed64(self, field: int, values: NDArray[np.integer], *, present: Mask) -> None:
        """Add a field of eight bytes; arguments as for `varint`."""
        self._constant(_tag(field, _FIXED64), present)
        matrix = values.astype("<u8").view(np.uint8).reshape(self.rows, 8)
        self._columns.append((matrix, np.repeat(present[:, None], 8, axis=1)))

    def message(self, field: int, inner: MessageBatch, *, present: Mask | None = None) -> None:
        """Add a sub-message field; `inner` has the same number of rows and is complete."""
        matrix, used = inner.bytes_matrix()
        lengths, lengths_used = _varints(used.sum(axis=1, dtype=np.int64))
        self._constant(_tag(field, _LENGTH_DELIMITED), present)
        for part, mask in ((lengths, lengths_used), (matrix, used)):
            self._columns.append((part, mask if present is None else mask & present[:, None]))

    def bytes_matrix(self) -> tuple[Bytes, Mask]:
        """The messages, one per row: byte values, and which of them belong to the message."""
        if not self._columns:
            return np.zeros((self.rows, 0), np.uint8), np.zeros((self.rows, 0), np.bool_)
        if len(self._columns) > 1:
            matrices, masks = zip(*self._columns, strict=True)
            self._columns = [(np.concatenate(matrices, axis=1), np.concatenate(masks, axis=1))]
        return self._columns[0]

    def _constant(self, content: bytes, present: Mask | None) -> None:
        matrix = np.broadcast_to(np.frombuffer(content, np.uint8), (self.rows, len(content)))
        used = np.ones(matrix.shape, np.bool_) if present is None else np.repeat(present[:, None], len(content), axis=1)
        self._columns.append((matrix, used))


def interleave(batches: list[tuple[MessageBatch, NDArray[np.int64]]]) -> bytes:
    """Concatenate the messages of several batches in one order.

    Args:
        batches: Each with the positions of its rows among all messages; together the positions are a permutation.
    """
    parts = [(*batch.bytes_matrix(), positions) for batch, positions in batches]
    rows = sum(len(positions) for _, _, positions in parts)
    width = max((matrix.shape[1] for matrix, _, _ in parts), default=0)
    merged = np.zeros((rows, width), np.uint8)
    merged_used = np.zeros((rows, width), np.bool_)
    for matrix, used, positions in parts:
        merged[positions, : matrix.shape[1]] = matrix
        merged_used[positions, : matrix.shape[1]] = used
    return merged[merged_used].tobytes()


def _tag(field: int, wire_type: int) -> bytes:
    value = field << 3 | wire_type
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


def _varints(values: NDArray[np.integer]) -> tuple[Bytes, Mask]:
    unsigned = values.astype(np.int64).view(np.uint64) if values.dtype.kind != "u" else values.astype(np.uint64)
    widest = int(unsigned.max()).bit_length() if len(unsigned) else 1
    width = max(1, -(-widest // 7))
    shifted = unsigned[:, None] >> np.arange(0, 7 * width, 7, dtype=np.uint64)
    used = shifted > 0
    used[:, 0] = True
    more = np.zeros_like(used)
    more[:, :-1] = used[:, 1:]
    return (shifted & np.uint64(0x7F) | more.astype(np.uint64) << np.uint64(7)).astype(np.uint8), used

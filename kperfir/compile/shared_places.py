"""Where an element of a tensor is in shared memory, by the encoding of the memory.

    place = Places.of("memdesc<64x32xf16, #ttg.swizzled_shared<{vec = 8, perPhase = 1, ...}>, ...>")
    place.of((3, 8))  # the number of the element

Layouts are linear: each bit of an offset adds something to the coordinates, by XOR. Those bases are what the encodings
of Triton's GPU dialect mean (TritonGPUAttrDefs.td); a test compares them with Triton's own conversion.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    Basis = tuple[int, ...]

_SWIZZLED = re.compile(
    r"#ttg\.swizzled_shared<\{vec = (\d+), perPhase = (\d+), maxPhase = (\d+), order = \[([\d, ]+)\]\}>"
)
_MATRIX = re.compile(
    r"#ttg\.nvmma_shared<\{swizzlingByteWidth = (\d+), transposed = (true|false), elementBitWidth = (\d+)\}>"
)
_LINEAR = re.compile(r"#ttg\.shared_linear<\{offset = (\[\[.*?\]\]), block = \[\]\}")
# Rows of a tile of matrix operands, and the bytes that stay together in it.
_TILE_ROWS = 8
_CHUNK_BYTES = 16
_TILE_BYTES = 128


class NoPlaces(Exception):
    """The encoding is none of those that are known here."""


@dataclass(frozen=True, slots=True)
class Places:
    """The inverse of a layout: coordinates to offset.

    Attributes:
        shape: Of the memory.
        pivots: By highest bit, a sum of bases that has it, and the bits of the offset that make it.
    """

    shape: tuple[int, ...]
    pivots: dict[int, tuple[int, int]]

    @classmethod
    def of(cls, encoding: str, shape: Sequence[int]) -> Places:
        """The places in memory of `encoding`, a type or attribute as MLIR prints it, and `shape`.

        Raises:
            NoPlaces: If they are not known.
        """
        places = cls(tuple(shape), {})
        for bit, basis in enumerate(offset_bases(encoding, shape)):
            value, made = places._reduce(places._flat(basis), 1 << bit)
            if value:
                places.pivots[value.bit_length()] = (value, made)
        return places

    def at(self, coordinates: Sequence[int]) -> int:
        """The offset, in elements.

        Raises:
            NoPlaces: If no offset has these coordinates.
        """
        rest, made = self._reduce(self._flat(coordinates), 0)
        if rest:
            raise NoPlaces
        return made

    def _flat(self, coordinates: Sequence[int]) -> int:
        """Coordinates as one number whose bits are theirs."""
        number = 0
        for coordinate, extent in zip(coordinates, self.shape, strict=True):
            number = number << extent.bit_length() | coordinate
        return number

    def _reduce(self, value: int, made: int) -> tuple[int, int]:
        while value and value.bit_length() in self.pivots:
            other, bits = self.pivots[value.bit_length()]
            value, made = value ^ other, made ^ bits
        return value, made


def offset_bases(encoding: str, shape: Sequence[int]) -> list[Basis]:
    """What each bit of an offset, the lowest first, adds to the coordinates.

    Raises:
        NoPlaces: If that is not known.
    """
    if match := _SWIZZLED.search(encoding):
        vector, per_phase, phases = (int(match[number]) for number in (1, 2, 3))
        return _swizzled(shape, [int(dimension) for dimension in match[4].split(",")], (vector, per_phase, phases))
    if (match := _MATRIX.search(encoding)) and len(shape) == 2 and int(match[1]):
        return _of_matrices(shape, int(match[1]), int(match[3]) // 8, transposed=match[2] == "true")
    if match := _LINEAR.search(encoding):
        return [tuple(int(number) for number in basis.split(",")) for basis in re.findall(r"\[([\d, ]+)\]", match[1])]
    raise NoPlaces


def _swizzled(shape: Sequence[int], order: Sequence[int], swizzle: tuple[int, int, int]) -> list[Basis]:
    """Dimensions one after the other; the vectors of a row change places by its phase."""
    vector, per_phase, phases = swizzle
    if len(order) != len(shape):
        raise NoPlaces
    bases = []
    for place, dimension in enumerate(order):
        for bit in range(shape[dimension].bit_length() - 1):
            moved = vector * ((1 << bit) // per_phase % phases) if place == 1 else 0
            bases.append(_basis(len(shape), (dimension, 1 << bit), (order[0], moved % shape[order[0]])))
    return bases


def _of_matrices(shape: Sequence[int], width: int, element_bytes: int, *, transposed: bool) -> list[Basis]:
    """Tiles of eight rows of `width` bytes, swizzled; one below the other, then beside each other."""
    row, column = (1, 0) if transposed else (0, 1)
    tile, vector = width // element_bytes, _CHUNK_BYTES // element_bytes
    if shape[column] < tile or shape[row] < _TILE_ROWS:
        raise NoPlaces
    across, down = (range(shape[dimension].bit_length() - 1) for dimension in (column, row))
    inside = [bit for bit in across if 1 << bit < tile]
    bases = [_basis(2, (column, 1 << bit), (row, 0)) for bit in inside]
    for bit in down:
        phase = (1 << bit) * width // _TILE_BYTES % (width // _CHUNK_BYTES) if 1 << bit < _TILE_ROWS else 0
        bases.append(_basis(2, (row, 1 << bit), (column, vector * phase)))
    return bases + [_basis(2, (column, 1 << bit), (row, 0)) for bit in across if bit not in inside]


def _basis(rank: int, first: tuple[int, int], second: tuple[int, int]) -> Basis:
    values = [0] * rank
    for dimension, value in (first, second):
        values[dimension] |= value
    return tuple(values)

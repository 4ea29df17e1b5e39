"""What a cubin says of itself, read without NVIDIA's tools: they are processes, and compiling should not wait for one.

    registers(cubin)

A cubin is an ELF file; section ``.nv.info`` is a list of attributes. Which number is which attribute is not documented;
test_cubin.py compares with what cuobjdump prints.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_SECTION = struct.Struct("<IIQQQQIIQQ")  # Name, type, flags, address, offset, size, link, info, alignment, entry size.
_SIZED = 4  # The form of an attribute whose value follows, with its size in front.
_REGISTERS = 0x2F  # Of a function: its symbol, and how many registers a thread of it has.


def registers(cubin: bytes) -> int | None:
    """Registers per thread, the most of any function; None if that is not there."""
    try:
        counts = [count for info in _sections(cubin, b".nv.info") for count in _register_counts(info)]
    except (struct.error, IndexError, ValueError):
        return None
    return max(counts, default=None)


def _sections(elf: bytes, wanted: bytes) -> Iterator[bytes]:
    """Contents of the sections of a name."""
    (table,) = struct.unpack_from("<Q", elf, 40)
    size, count, names = struct.unpack_from("<HHH", elf, 58)
    sections = [_SECTION.unpack_from(elf, table + size * index) for index in range(count)]
    strings = sections[names][4]
    for name, *_, offset, length, _link, _info, _alignment, _entry in sections:
        if elf[strings + name : elf.index(b"\0", strings + name)] == wanted:
            yield elf[offset : offset + length]


def _register_counts(info: bytes) -> Iterator[int]:
    place = 0
    while place < len(info):
        form, attribute, size = struct.unpack_from("<BBH", info, place)
        if form == _SIZED and attribute == _REGISTERS:
            yield struct.unpack_from("<II", info, place + 4)[1]
        place += 4 + (size if form == _SIZED else 0)

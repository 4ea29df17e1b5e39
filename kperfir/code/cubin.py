"""What a cubin says of itself, read without NVIDIA's tools: they are processes, and compiling should not wait for one.

    registers(cubin), stack_bytes(cubin)

A cubin is an ELF file; section ``.nv.info`` is a list of attributes. Which number is which attribute is not documented;
test_cubin.py compares with what cuobjdump prints.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAGIC = b"\x7fELF"
_SECTION = struct.Struct("<IIQQQQIIQQ")  # Name, type, flags, address, offset, size, link, info, alignment, entry size.
_SIZED = 4  # The form of an attribute whose value follows, with its size in front.
# Attributes of a function: its symbol, and a number.
_REGISTERS = 0x2F  # How many a thread of it has.
_STACK = 0x12  # Bytes that a thread needs for it and for what it calls.


def registers(cubin: bytes) -> int | None:
    """Registers per thread, the most of any function; None if that is not there."""
    return _most(cubin, _REGISTERS)


def stack_bytes(cubin: bytes) -> int | None:
    """Bytes of a thread's stack, the most of any function: its arrays, and spilled registers; None if not there."""
    return _most(cubin, _STACK)


def _most(cubin: bytes, attribute: int) -> int | None:
    if not cubin.startswith(_MAGIC):
        return None
    try:
        values = [value for info in _sections(cubin, b".nv.info") for value in _values(info, attribute)]
    except (struct.error, IndexError, ValueError):
        return None
    return max(values, default=None)


def _sections(elf: bytes, wanted: bytes) -> Iterator[bytes]:
    """Contents of the sections of a name."""
    (table,) = struct.unpack_from("<Q", elf, 40)
    size, count, names = struct.unpack_from("<HHH", elf, 58)
    sections = [_SECTION.unpack_from(elf, table + size * index) for index in range(count)]
    strings = sections[names][4]
    for name, *_, offset, length, _link, _info, _alignment, _entry in sections:
        if elf[strings + name : elf.index(b"\0", strings + name)] == wanted:
            yield elf[offset : offset + length]


def _values(info: bytes, wanted: int) -> Iterator[int]:
    place = 0
    while place < len(info):
        form, attribute, size = struct.unpack_from("<BBH", info, place)
        if form == _SIZED and attribute == wanted:
            yield struct.unpack_from("<II", info, place + 4)[1]
        place += 4 + (size if form == _SIZED else 0)

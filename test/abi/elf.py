"""Read symbols, relocations and bytes of an x86_64 shared library.

Just enough of ELF for the ABI audit of libtriton.so (500 MB, 300 000 symbols):
tables stay in numpy arrays, and names become strings only where they are asked for.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

SYMBOL = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")]
)
RELOCATION = np.dtype([("offset", "<u8"), ("type", "<u4"), ("symbol", "<u4"), ("addend", "<i8")])
Table = np.ndarray[tuple[int], np.dtype[np.void]]
R_X86_64_RELATIVE = 8
SECTION_WITHOUT_BYTES = 8


@dataclass(frozen=True, slots=True)
class Section:
    """One section: where it is in the file and in memory."""

    kind: int
    address: int
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class Symbol:
    """One defined symbol."""

    name: str
    address: int
    size: int


@dataclass(frozen=True, slots=True)
class SymbolTable:
    """A symbol section and the strings that it refers to."""

    table: Table
    names: bytes

    def name(self, start: int) -> bytes:
        return self.names[start : self.names.index(b"\0", start)]


class Library:
    """A shared library, opened for reading."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._sections = self._read_sections()
        self._imports = self._read_symbols(".dynsym", ".dynstr")
        # The full table, where the library was not stripped of it: it has hidden functions too.
        full = ".symtab" in self._sections
        self._symbols = self._read_symbols(".symtab", ".strtab") if full else self._imports
        defined = self._symbols.table[self._symbols.table["section"] != 0]
        self._by_address = defined[np.argsort(defined["value"], kind="stable")]
        relocations = self._read_table(".rela.dyn", RELOCATION)
        self._relocations = relocations[np.argsort(relocations["offset"])]

    def symbols(self, wanted: Callable[[bytes], bool]) -> list[Symbol]:
        """Defined symbols whose mangled name is `wanted`, sorted by name."""
        found: dict[str, Symbol] = {}
        columns = (self._by_address[key].tolist() for key in ("name", "value", "size"))
        for start, address, size in zip(*columns, strict=True):
            name = self._symbols.name(start)
            if wanted(name):
                found.setdefault(name.decode(), Symbol(name.decode(), address, size))
        return [found[name] for name in sorted(found)]

    def names_at(self, address: int) -> list[str]:
        """Every symbol that is defined at `address`: identical functions are folded into one."""
        first = np.searchsorted(self._by_address["value"], address, "left")
        last = np.searchsorted(self._by_address["value"], address, "right")
        return [self._symbols.name(start).decode() for start in self._by_address["name"][first:last].tolist()]

    def read(self, address: int, size: int) -> bytes:
        for section in self._sections.values():
            if section.address <= address < section.address + section.size and section.kind != SECTION_WITHOUT_BYTES:
                start = section.offset + address - section.address
                return self._bytes[start : start + size]
        raise ValueError(f"address {address:#x} is in no section")

    def words(self, address: int, size: int) -> list[list[str] | int]:
        """The 8-byte words of a table: names where a word is relocated, else its value."""
        first = np.searchsorted(self._relocations["offset"], address, "left")
        last = np.searchsorted(self._relocations["offset"], address + size, "left")
        relocated = {int(row["offset"]): row for row in self._relocations[first:last]}
        return [
            self._target(relocated[at]) if at in relocated else struct.unpack("<q", self.read(at, 8))[0]
            for at in range(address, address + size, 8)
        ]

    def _target(self, row: np.void) -> list[str]:
        if row["type"] == R_X86_64_RELATIVE:
            return self.names_at(int(row["addend"])) or [hex(row["addend"])]
        return [self._imports.name(int(self._imports.table[row["symbol"]]["name"])).decode()]

    def _read_symbols(self, symbols: str, names: str) -> SymbolTable:
        where = self._sections[names]
        return SymbolTable(self._read_table(symbols, SYMBOL), self._bytes[where.offset : where.offset + where.size])

    def _read_table(self, section: str, dtype: np.dtype[np.void]) -> Table:
        where = self._sections[section]
        return np.frombuffer(self._bytes, dtype, where.size // dtype.itemsize, where.offset)

    def _read_sections(self) -> dict[str, Section]:
        (table,) = struct.unpack_from("<Q", self._bytes, 0x28)
        count, names_index = struct.unpack_from("<HH", self._bytes, 0x3C)
        headers = [struct.unpack_from("<IIQQQQ", self._bytes, table + 64 * i) for i in range(count)]
        names = headers[names_index][4]
        return {
            self._bytes[names + name : self._bytes.find(b"\0", names + name)].decode(): Section(
                kind, address, offset, size
            )
            for name, kind, _, address, offset, size in headers
        }


def returned_constant(code: bytes) -> int | None:
    """The value of a function that only returns a constant; None if it does more."""
    for prologue in (b"\xf3\x0f\x1e\xfa", b"\x55\x48\x89\xe5"):  # endbr64; push rbp, mov rbp, rsp
        code = code.removeprefix(prologue)
    if code[:1] == b"\xb8":  # mov eax, imm32
        return struct.unpack_from("<I", code, 1)[0]
    return 0 if code[:2] == b"\x31\xc0" else None  # xor eax, eax


def deleted_size(code: bytes) -> int | None:
    """Size that a deleting destructor passes to operator delete; None if that is not visible.

    The size is in esi: the last `mov esi, imm32`, which is followed within a few
    instructions by the call or the tail jump.
    """
    at = code.rfind(b"\xbe")
    while at >= 0:
        if at + 5 < len(code) and any(opcode in code[at + 5 : at + 16] for opcode in (b"\xe8", b"\xe9")):
            (size,) = struct.unpack_from("<I", code, at + 1)
            if 0 < size < 1 << 20:
                return size
        at = code.rfind(b"\xbe", 0, at)
    return None

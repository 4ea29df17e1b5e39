"""Parse what ``g++ -fdump-lang-class`` says about the headers: class sizes and vtables."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

CLASS_LINE = re.compile(r"Class (.+)")
SIZE_LINE = re.compile(r"   size=(\d+) align=\d+")
VTABLE_LINE = re.compile(r"(?:.*::)?(_ZTV\w+): \d+ entries")
SLOT_LINE = re.compile(r"\d+\s+(?:\(int \(\*\)\(\.\.\.\)\))?(.+)")


@dataclass(frozen=True, slots=True)
class HeaderClasses:
    """What a compiler makes of the headers.

    Attributes:
        sizes: Size in bytes by qualified class name.
        vtables: Slots by mangled vtable name; a slot is a qualified function name or a number.
    """

    sizes: dict[str, int]
    vtables: dict[str, list[str]]


def parse_class_dump(path: Path) -> HeaderClasses:
    """Read a dump; instantiations of the standard library are left out."""
    sizes: dict[str, int] = {}
    vtables: dict[str, list[str]] = {}
    name, slots = "", None
    with path.open() as lines:
        for line in lines:
            if match := CLASS_LINE.match(line):
                name, slots = match[1], None
            elif line.startswith("   size=") and not name.startswith("std::"):
                sizes[name] = int(SIZE_LINE.match(line)[1])  # type: ignore[index]
            elif "_ZTV" in line and (match := VTABLE_LINE.match(line)):
                slots = vtables.setdefault(match[1], [])
            elif slots is not None:
                if match := SLOT_LINE.match(line):
                    slots.append(match[1].strip())
                elif not line.strip():
                    slots = None
    return HeaderClasses(sizes, vtables)

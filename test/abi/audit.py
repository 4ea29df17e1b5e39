"""Compare the MLIR headers that the plugin is compiled with to a libtriton.so.

    PYTHONPATH=test python -m abi.audit path/to/libtriton.so   # prints what agrees and what does not

Three comparisons, none of which runs any code of the library: the slots of every vtable, the
size of every operation's Properties, and the size of every class that can be deleted.
"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from abi.class_dump import HeaderClasses
from abi.elf import Library, deleted_size, returned_constant
from abi.headers import dump_headers

# Operations whose Properties differ between LLVM 23.1 and Triton's LLVM. kperfir
# creates operations by name and touches neither; test_abi.py holds it to that.
DIFFERENT_PROPERTIES = frozenset({"mlir::NVVM::InlinePtxOp", "mlir::LLVM::InvokeOp"})


@dataclass(slots=True)
class Comparison:
    """Result of one kind of comparison.

    Attributes:
        equal: How many items agree.
        unknown: Items that cannot be compared, such as a slot whose target has no symbol.
        different: One line per item that disagrees.
    """

    what: str
    equal: int = 0
    unknown: int = 0
    different: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [f"{self.what}: {self.equal} equal, {len(self.different)} different, {self.unknown} not comparable"]
        return "\n  ".join(lines + [f"{name}: {text}" for name, text in sorted(self.different.items())])


def compare_vtables(headers: HeaderClasses, library: Library) -> Comparison:
    """Every vtable that both sides have must hold the same functions in the same order."""
    result = Comparison("vtable slots")
    ours = {name: slots for name, slots in headers.vtables.items() if re.search("mlir|llvm", name)}
    found = {
        symbol.name: library.words(symbol.address, symbol.size)
        for symbol in library.symbols(lambda name: name.startswith(b"_ZTV") and name.decode() in ours)
    }
    plain = demangle({name for slots in found.values() for slot in slots if isinstance(slot, list) for name in slot})
    for vtable, theirs in found.items():
        slots = ours[vtable]
        if len(slots) != len(theirs):
            result.different[vtable] = f"{len(slots)} slots in the headers, {len(theirs)} in the library"
            continue
        for index, (mine, other) in enumerate(zip(slots, theirs, strict=True)):
            if index == 1:
                continue  # The type_info pointer: there is none without RTTI.
            agrees = slots_agree(mine, other, plain)
            if agrees is None:
                result.unknown += 1
            elif agrees:
                result.equal += 1
            else:
                result.different[f"{vtable}[{index}]"] = f"{mine} in the headers, {other} in the library"
    return result


def slots_agree(mine: str, other: list[str] | int, plain: dict[str, str]) -> bool | None:
    """None: one side does not say which function it is."""
    if isinstance(other, int):
        return mine == str(other)
    if mine == "0" or all(name.startswith("0x") for name in other):
        return None  # An abstract class's destructor, or a function without a symbol.
    return last_word(mine) in {last_word(plain[name]) for name in other}


def last_word(function: str) -> str:
    """The unqualified name of a function; all destructors have the same one."""
    text = re.sub(r"\[abi:\w+\]", "", function)
    while text != (text := re.sub(r"<[^<>]*>", "", text)):
        pass
    text = text.replace("(anonymous namespace)", "").partition("(")[0]
    name = text.split("::")[-1].split(" ")[-1]
    return "~" if name.startswith("~") else name


def compare_properties(headers: HeaderClasses, library: Library) -> Comparison:
    """The size of an operation's inline Properties, which its accessors index into."""
    result = Comparison("property sizes")
    symbols = library.symbols(lambda name: b"getOpPropertyByteSize" in name and b"5Model" in name)
    plain = demangle({symbol.name for symbol in symbols})
    for symbol in symbols:
        match = re.search(r"RegisteredOperationName::Model<(.*)>::getOp", plain[symbol.name])
        if not match:
            continue
        scope, _, name = match[1].rpartition("::")
        ours = headers.sizes.get(f"{scope}::detail::{name}GenericAdaptorBase::Properties")
        theirs = returned_constant(library.read(symbol.address, 16))
        if ours is None or theirs is None:
            result.unknown += 1
        elif ours == theirs or (ours, theirs) == (1, 0):  # An empty struct has size 1.
            result.equal += 1
        else:
            result.different[match[1]] = f"{ours} bytes in the headers, {theirs} in the library"
    return result


def compare_deleted_sizes(headers: HeaderClasses, library: Library) -> Comparison:
    """The size that each deleting destructor frees."""
    result = Comparison("sizes of deletable classes")
    symbols = library.symbols(lambda name: name.startswith(b"_ZN") and name.endswith(b"D0Ev"))
    plain = demangle({symbol.name for symbol in symbols})
    for symbol in symbols:
        name = plain[symbol.name].rpartition("::~")[0]
        ours = headers.sizes.get(name)
        if ours is None:
            continue
        theirs = deleted_size(library.read(symbol.address, min(symbol.size, 4096)))
        if theirs is None:
            result.unknown += 1
        elif ours == theirs:
            result.equal += 1
        else:
            result.different[name] = f"{ours} bytes in the headers, {theirs} in the library"
    return result


def demangle(names: set[str]) -> dict[str, str]:
    ordered = sorted(names)
    text = subprocess.run(["c++filt"], input="\n".join(ordered), text=True, capture_output=True, check=True).stdout
    return dict(zip(ordered, text.splitlines(), strict=True))


def audit(headers: HeaderClasses, library: Library) -> list[Comparison]:
    return [
        compare_vtables(headers, library),
        compare_properties(headers, library),
        compare_deleted_sizes(headers, library),
    ]


def main() -> None:
    headers, library = dump_headers(), Library(Path(sys.argv[1]))
    for comparison in audit(headers, library):
        print(comparison)


if __name__ == "__main__":
    main()

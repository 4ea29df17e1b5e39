"""What the threads of a CTA hold in registers, as far as it follows from their numbers alone.

    values = thread_values(program, ["%r92"], threads=128)
    values["%r92"]          # of each thread, but for a number that is the same for all; None: not known

Addresses of shared memory are such values: a base, the same for all, and an offset that the compiler computes from the
number of the thread. Control flow is taken to be the same for the threads of a warp wherever one register has several
values, as it is in what Triton makes: its branches and loops are on scalars. Knows what integer instructions compute;
what an address costs is not its business.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from kperfir.code.ptx import PtxInstruction, PtxProgram

WARP = 32
# Loops settle in a few rounds or, where something goes round that is not followed, never.
_ROUNDS = 12
_WORD = re.compile(r"[%$\w]+")
_NUMBER = re.compile(r"-?(?:0x[0-9a-fA-F]+|\d+)U?$")
_BITS = re.compile(r"\.[bus](16|32|64)$")
_FLOAT = re.compile(r"\.b?f(?:16|32|64)(?:x2)?\b")
# The clamp of a shuffle whose lanes are all of one segment.
_WHOLE_WARP = "31"
_LOADS = ("ld.param", "ld.global", "ld.const")
# Of the grid and the CTA; and symbols, which are addresses.
_UNIFORM = re.compile(r"%n?ctaid|%n?cluster|%ntid|[A-Za-z_$][\w$]*$")
_THREAD = "%tid.x"
_LANE = "%laneid"


@dataclass(frozen=True, slots=True)
class Lanes:
    """A value of each thread; unless `exact`, all are off by the same number, which is not known."""

    values: NDArray[np.int64]
    exact: bool

    @property
    def is_uniform(self) -> bool:
        """Whether all threads hold the same."""
        return bool((self.values == self.values[0]).all())

    def joined(self, other: Lanes) -> Lanes | None:
        """What holds of either."""
        if self.exact and other.exact and np.array_equal(self.values, other.values):
            return self
        mine, theirs = self.values - self.values[0], other.values - other.values[0]
        return Lanes(mine, exact=False) if np.array_equal(mine, theirs) else None


def address_of(instruction: PtxInstruction) -> str:
    """The register of the first address that it names; empty if that is a symbol, and the same for all threads.

    What is added to the register is the same for all too.
    """
    inside = instruction.operands.partition("[")[2].partition("]")[0]
    return _named(inside.partition("+")[0].strip(), instruction)


def guard_of(instruction: PtxInstruction) -> tuple[str, bool] | None:
    """The predicate that it is executed under, and whether it must not hold; None if it always is."""
    return (instruction.guard, instruction.negated) if instruction.guard else None


def _named(word: str, instruction: PtxInstruction) -> str:
    """The register that a word of its operands names, as told apart from those of other scopes; empty if none."""
    return next((name for name in instruction.reads if name.partition("@")[0] == word), "")


def thread_values(program: PtxProgram, registers: Iterable[str], threads: int) -> dict[str, Lanes | None]:
    """The values of `registers`, each over all places that write it."""
    wanted = [name for name in dict.fromkeys(registers) if name]
    return _Solver(program, threads).solve(wanted)


def same_for_all(threads: int) -> Lanes:
    """A value that is not known, and the same for all threads."""
    return Lanes(np.zeros(threads, np.int64), exact=False)


class _Solver:
    """Finds values from the top: a register that no round has reached yet puts no limit on what others may be."""

    def __init__(self, program: PtxProgram, threads: int) -> None:
        self._threads = np.arange(max(threads, WARP), dtype=np.int64)
        self._writers: dict[str, list[PtxInstruction]] = {}
        for instruction in program.instructions:
            for name in _written(instruction):
                self._writers.setdefault(name, []).append(instruction)
        self._known: dict[str, Lanes | None] = {}

    def solve(self, wanted: Sequence[str]) -> dict[str, Lanes | None]:
        needed = self._needed(wanted)
        for _ in range(_ROUNDS):
            changed = False
            for name in needed:
                changed |= self._update(name)
            if not changed:
                return {name: self._known.get(name) for name in wanted}
        return dict.fromkeys(wanted)

    def _needed(self, wanted: Sequence[str]) -> list[str]:
        """All registers that these depend on, those first that others are made of."""
        order: list[str] = []
        seen: set[str] = set()
        waiting = [(name, False) for name in wanted]
        while waiting:
            name, done = waiting.pop()
            if done:
                order.append(name)
            elif name not in seen:
                seen.add(name)
                waiting.append((name, True))
                waiting += [(read, False) for writer in self._writers.get(name, ()) for read in _read(writer)]
        return order

    def _update(self, name: str) -> bool:
        """Compute a register from what is known now; whether that is news."""
        found: Lanes | None = None
        reached = False
        for writer in self._writers.get(name, ()):
            if any(read in self._writers and read not in self._known for read in _read(writer)):
                continue  # Not reached yet.
            value = self._of(writer)
            found, reached = (found.joined(value) if found and value else None) if reached else value, True
        if not reached and name in self._writers:
            return False
        before = self._known.get(name, _NOTHING)
        self._known[name] = found
        return before is _NOTHING or not _same(before, found)

    def _of(self, instruction: PtxInstruction) -> Lanes | None:
        opcode, (target, *operands) = instruction.opcode, _split(instruction.operands)
        word = opcode.split(".", 1)[0]
        if opcode.startswith(_LOADS):
            register = address_of(instruction)
            address = self._known.get(register) if register else self._uniform()
            return self._uniform() if address and address.is_uniform else None
        if opcode.startswith("shfl.sync.idx") and operands[1:3] == ["0", _WHOLE_WARP]:
            value = self._operand(operands[0], instruction)
            return Lanes(value.values.reshape(-1, WARP)[:, :1].repeat(WARP, 1).ravel(), value.exact) if value else None
        make = _COMPUTED.get(word)
        if make is None or instruction.has_effects:
            return None
        values = [self._operand(operand, instruction) for operand in operands]
        known = [value for value in values if value is not None]
        if len(known) < len(values):
            return None
        if target.startswith("{") or _FLOAT.search(opcode):  # Parts of a value, or no integers.
            return self._uniform() if all(value.is_uniform for value in known) else None
        if all(value.exact for value in known):
            result = make(opcode, [value.values for value in known])
            return None if result is None else Lanes(_narrow(result, opcode), exact=True)
        if all(value.is_uniform for value in known):
            return self._uniform()
        return _moved(word, opcode, known)

    def _operand(self, text: str, instruction: PtxInstruction) -> Lanes | None:
        if _NUMBER.match(text):
            return Lanes(np.full_like(self._threads, int(text.removesuffix("U"), 0)), exact=True)
        if text == _THREAD:
            return Lanes(self._threads, exact=True)
        if text == _LANE:
            return Lanes(self._threads % WARP, exact=True)
        if name := _named(text, instruction):
            return self._known.get(name)
        return self._uniform() if _UNIFORM.match(text) else None

    def _uniform(self) -> Lanes:
        return same_for_all(len(self._threads))


_NOTHING = Lanes(np.zeros(0, np.int64), exact=False)


def _same(before: Lanes | None, after: Lanes | None) -> bool:
    if before is None or after is None:
        return before is after
    return before.exact == after.exact and np.array_equal(before.values, after.values)


def _written(instruction: PtxInstruction) -> tuple[str, ...]:
    """What it writes; of one with effects, the registers before its first comma, or in braces."""
    if not instruction.has_effects:
        return instruction.writes
    first = _split(instruction.operands)[:1]
    words = _WORD.findall(first[0]) if first and "[" not in first[0] else []
    return tuple(name for word in words if (name := _named(word, instruction)))


def _read(instruction: PtxInstruction) -> list[str]:
    written = _written(instruction) if instruction.has_effects else ()
    return [name for name in instruction.reads if name not in written]


def _split(operands: str) -> list[str]:
    return [part.strip() for part in re.split(r",(?![^{\[]*[}\]])", operands)]


def _moved(word: str, opcode: str, operands: Sequence[Lanes]) -> Lanes | None:
    """What keeps values apart by as much as they were, some of which are off by an unknown number."""
    values = [operand.values for operand in operands]
    if word == "mov" or (word == "cvt" and opcode.startswith("cvt.u32.u64")):
        return operands[0]
    if word == "add":
        return Lanes(values[0] + values[1], exact=False)
    if word == "sub":
        return Lanes(values[0] - values[1], exact=False)
    if word == "neg":
        return Lanes(-values[0], exact=False)
    if word == "selp" and operands[2].is_uniform:
        return operands[0].joined(operands[1])
    if word == "shl" and operands[1].exact and operands[1].is_uniform:
        return Lanes(values[0] << values[1], exact=False)
    if word in ("mul", "mad") and ".lo" in opcode:
        fixed = [operand.exact and operand.is_uniform for operand in operands[:2]]
        product = values[0] * values[1] if any(fixed) or (operands[0].exact and operands[1].exact) else None
        if product is None:
            return None
        return Lanes(product + (values[2] if word == "mad" else 0), exact=False)
    return None


def _width(opcode: str) -> int:
    bits = _BITS.search(opcode)
    return int(bits[1]) if bits else 64


def _narrow(values: NDArray[np.int64], opcode: str) -> NDArray[np.int64]:
    """As a register of that width holds them, without a sign; predicates are 0 and 1."""
    width = 2 * _width(opcode) if ".wide" in opcode else _width(opcode)
    if opcode.startswith("cvt"):
        width = int((re.search(r"^cvt\.[bus](\d+)", opcode) or ["", "64"])[1])
    return values if width >= 64 or opcode.startswith("setp") else values & ((1 << width) - 1)


def _signed(values: NDArray[np.int64], width: int) -> NDArray[np.int64]:
    if width >= 64:
        return values
    half = 1 << (width - 1)
    return ((values & ((1 << width) - 1)) ^ half) - half


def _bits(opcode: str, operands: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    value, position, length = operands
    taken = value >> position & ((1 << length) - 1)
    return _signed(taken, int(length[0])) if ".s" in opcode and int(length[0]) else taken


def _permuted(opcode: str, operands: Sequence[NDArray[np.int64]]) -> NDArray[np.int64] | None:
    if opcode != "prmt.b32":
        return None
    both = (operands[0] & _mask(32)) | operands[1] << 32
    result = np.zeros_like(both)
    for place in range(4):
        chosen = operands[2] >> 4 * place & 15
        byte = both >> 8 * (chosen & 7) & 255
        result |= np.where(chosen & 8, 255 * (byte >> 7), byte) << 8 * place
    return result


def _compared(opcode: str, operands: Sequence[NDArray[np.int64]]) -> NDArray[np.int64] | None:
    compare = _COMPARISONS.get(opcode.split(".")[1])
    if compare is None or len(operands) != 2 or not re.search(r"\.[bus]\d+$", opcode):
        return None
    width = _width(opcode)
    left, right = ((_signed(each, width) if ".s" in opcode[5:] else each & _mask(width)) for each in operands)
    return compare(left, right).astype(np.int64)


def _mask(width: int) -> int:
    return (1 << min(width, 63)) - 1


def _shifted(opcode: str, operands: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    value = _signed(operands[0], _width(opcode)) if opcode.startswith("shr.s") else operands[0]
    return value >> operands[1]


def _product(opcode: str, operands: Sequence[NDArray[np.int64]]) -> NDArray[np.int64] | None:
    if ".hi" in opcode:
        return None
    left, right = (_signed(each, _width(opcode)) for each in operands[:2]) if ".s" in opcode else operands[:2]
    return left * right + (operands[2] if len(operands) > 2 else 0)


def _converted(opcode: str, operands: Sequence[NDArray[np.int64]]) -> NDArray[np.int64] | None:
    match = re.match(r"cvt\.[bus]\d+\.([bus])(\d+)$", opcode)
    if match is None:
        return None
    return _signed(operands[0], int(match[2])) if match[1] == "s" else operands[0]


_COMPARISONS: dict[str, Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.bool_]]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal,
}  # fmt: skip

_COMPUTED: dict[str, Callable[[str, Sequence[NDArray[np.int64]]], NDArray[np.int64] | None]] = {
    "mov": lambda opcode, operands: operands[0],
    "cvt": _converted,
    "add": lambda opcode, operands: operands[0] + operands[1],
    "sub": lambda opcode, operands: operands[0] - operands[1],
    "mul": _product,
    "mad": _product,
    "shl": lambda opcode, operands: operands[0] << operands[1],
    "shr": _shifted,
    "and": lambda opcode, operands: operands[0] & operands[1],
    "or": lambda opcode, operands: operands[0] | operands[1],
    "xor": lambda opcode, operands: operands[0] ^ operands[1],
    "not": lambda opcode, operands: operands[0] ^ 1 if ".pred" in opcode else ~operands[0],
    "neg": lambda opcode, operands: -operands[0],
    "prmt": _permuted,
    "bfe": _bits,
    "selp": lambda opcode, operands: np.where(operands[2] != 0, operands[0], operands[1]),
    "setp": _compared,
}

"""In which instructions of PTX the accesses of a region are made, and what they cost where PTX tells their addresses.

    code = RegionCode(layout, ptx, regions)
    code.of(region)                     # its instructions, in order
    code.shared_cost(instruction)       # by the numbers of the threads alone

Shared memory that the compiler takes by itself (the scratch of a conversion of layouts, of a reduction) has no layout
in the IR, and neither has the place that a copy writes to: there the addresses are read off the assembly.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from kperfir.code.flow import open_regions
from kperfir.code.ptx import parse_ptx
from kperfir.code.thread_values import WARP, address_of, guard_of, same_for_all, thread_values
from kperfir.compile import access_cost

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from kperfir.capture.layout import BufferLayout
    from kperfir.code.ptx import PtxInstruction
    from kperfir.code.thread_values import Lanes

# Of each kind of region, the instructions that access the memory it is about.
_SHARED = r"ld\.shared|st\.shared|ldmatrix|stmatrix"
_INSTRUCTION = {
    "load": re.compile(r"ld\.global"),
    "store": re.compile(r"st\.global"),
    "atomic": re.compile(r"(?:atom|red)\."),
    "async_copy": re.compile(r"cp\.async\.c[ag]\."),
    "local_load": re.compile(r"ld\.shared|ldmatrix"),
    "local_store": re.compile(r"st\.shared|stmatrix"),
    **dict.fromkeys(("convert_layout", "reduce", "scan"), re.compile(rf"{_SHARED}|(?:atom|red)\.[\w.]*shared")),
}
_VECTOR = re.compile(r"\.v(\d)\b")
_BITS = re.compile(r"\.(?:bf|[bufs])(\d+)(x2)?$")
_COPIED = re.compile(r"\], *(0x[0-9a-f]+|\d+)\b")
_MATRICES = re.compile(r"\.x(\d)\b")


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one instruction of a warp, in wavefronts; `exact` if each warp's is that."""

    cost: int
    ideal: int
    exact: bool


class RegionCode:
    """The instructions of regions of a kernel."""

    def __init__(self, layout: BufferLayout, ptx: str, regions: Collection[int]) -> None:
        self._layout = layout
        self._program = parse_ptx(ptx, layout.kernel)
        self._found = self._find(regions)
        self._costs: dict[tuple[str, int, str, str, bool], Cost | None] = {}

    def of(self, region: int) -> tuple[PtxInstruction, ...]:
        """Those that access its memory: of one copy, where the compiler made several alike."""
        return self._found.get(region, ())

    def shared_cost(self, instruction: PtxInstruction) -> Cost | None:
        """What an access to shared memory takes; None if its addresses do not follow from the thread's number."""
        # What is added to the register is the same for all threads, and decides nothing.
        register, guard = address_of(instruction), instruction.guard
        key = (instruction.opcode, width_of(instruction), register, guard, instruction.negated)
        if key not in self._costs:
            self._costs[key] = self._shared_cost(instruction)
        return self._costs[key]

    def _shared_cost(self, instruction: PtxInstruction) -> Cost | None:
        register = address_of(instruction)
        place = self._values.get(register) if register else same_for_all(self._layout.total_warps * WARP)
        width = width_of(instruction)
        if place is None or not width:
            return None
        guard = guard_of(instruction)
        active = self._values.get(guard[0]) if guard else None
        known = not guard or (active is not None and active.exact)
        warps = _warps(place, active if known else None, inverted=bool(guard and guard[1]))
        costs = {_cost(offsets, mask, instruction.opcode, width) for offsets, mask in warps}
        cost, ideal = max(costs)
        return Cost(cost, ideal, exact=known and len(costs) == 1)

    def _find(self, regions: Collection[int]) -> dict[int, tuple[PtxInstruction, ...]]:
        layout, program = self._layout, self._program
        children = {each.id: 1 << each.id for each in layout.regions}
        for child in reversed(layout.regions):
            if child.parent >= 0:
                children[child.parent] |= children[child.id]
        events = {
            number: [
                (event.edge, event.region) for event in layout.frames[instruction.stamp[0]].stamps[instruction.stamp[1]]
            ]
            for number, instruction in enumerate(program.instructions)
            if instruction.stamp is not None
        }
        state = open_regions(program.flow, events, [children[each.id] for each in layout.regions])
        runs: dict[int, list[list[PtxInstruction]]] = {region: [] for region in regions}
        for number, instruction in enumerate(program.instructions):
            for edge, started in events.get(number, ()):
                if edge == "start" and started in runs:
                    runs[started].append([])
            for region in runs if state[number] and not instruction.own else ():
                pattern = _INSTRUCTION.get(layout.regions[region].kind)
                inside = (state[number] or 0) >> region & 1 and runs[region]
                if inside and pattern and pattern.match(instruction.opcode):
                    runs[region][-1].append(instruction)
        return {
            region: tuple(copies[0])
            for region, copies in runs.items()
            if copies and all([i.opcode for i in copy] == [i.opcode for i in copies[0]] for copy in copies)
        }

    @cached_property
    def _values(self) -> Mapping[str, Lanes | None]:
        asked = [instruction for code in self._found.values() for instruction in code if "shared" in instruction.opcode]
        names = [address_of(instruction) for instruction in asked] + [each.guard for each in asked]
        return thread_values(self._program, names, self._layout.total_warps * WARP)


def width_of(instruction: PtxInstruction) -> int:
    """Bytes per lane; 0 if that is not known."""
    opcode = instruction.opcode
    if opcode.startswith("cp.async"):
        size = _COPIED.search(instruction.operands)
        return int(size[1], 0) if size else 0
    if "matrix" in opcode:
        matrices = _MATRICES.search(opcode)
        return 4 * int(matrices[1]) if matrices else 0
    vector, bits = _VECTOR.search(opcode), _BITS.search(opcode)
    return (int(vector[1]) if vector else 1) * int(bits[1]) * (2 if bits[2] else 1) // 8 if bits else 0


def _warps(place: Lanes, active: Lanes | None, *, inverted: bool) -> list[tuple[list[int], list[bool]]]:
    """Of each warp the offsets of its lanes, and which of them take part."""
    rows = []
    for first in range(0, len(place.values), WARP):
        offsets = place.values[first : first + WARP]
        mask = [True] * WARP
        if active is not None:
            mask = [bool(value) != inverted for value in active.values[first : first + WARP].tolist()]
        rows.append(((offsets - offsets[0]).tolist(), mask))
    return rows


def _cost(offsets: Sequence[int], mask: Sequence[bool], opcode: str, width: int) -> tuple[int, int]:
    if "matrix" in opcode:
        matrices = width // 4
        rows = access_cost.MATRIX_ROWS
        return sum(access_cost.matrix_wavefronts(offsets[m * rows : (m + 1) * rows]) for m in range(matrices)), matrices
    # Numbers that share a bank's word may not, if they begin in the middle of one: the worst is taken.
    shifts = range(0, access_cost.BANK_BYTES, width) if width < access_cost.BANK_BYTES else (0,)
    cost = max(access_cost.wavefronts([offset + shift for offset in offsets], width, mask) for shift in shifts)
    return cost, access_cost.ideal_wavefronts(width, sum(mask))

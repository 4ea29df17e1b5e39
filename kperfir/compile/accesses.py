"""How each timed access of a kernel meets memory, predicted from its linear layout: bank conflicts and coalescing.

    found = find_accesses(module)  # at the end of the ttgir stage, records in place
    facts = predict(found, layout, ptx)  # docs/contracts.md, section 3

Three parts of the compiler are asked: layouts and pointers (`access_shapes`) say which bytes a lane accesses, and the
PTX in what instructions it does. Where one of them does not know, or they do not fit together, the access is there and
says why there is no prediction: nothing is guessed.
"""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kperfir.capture.layout import parse_layout
from kperfir.code.flow import open_regions
from kperfir.code.ptx import parse_ptx
from kperfir.compile import access_cost
from kperfir.compile.access_shapes import OPERATIONS, Found, Unknown

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from kperfir.capture.layout import BufferLayout
    from kperfir.code.ptx import PtxInstruction
    from kperfir.compile.pointers import Form

ACCESSES_VERSION = 1
# A larger access is a larger number of the same; more is not worth the time.
MOST_REQUESTS = 512

_INSTRUCTION = {
    "load": re.compile(r"ld\.global"),
    "store": re.compile(r"st\.global"),
    "async_copy": re.compile(r"cp\.async\.c[ag]\."),
    "local_load": re.compile(r"ld\.shared|ldmatrix"),
    "local_store": re.compile(r"st\.shared|stmatrix"),
}
_VECTOR = re.compile(r"\.v(\d)\b")
_BITS = re.compile(r"\.[bufs](\d+)$")
_COPIED = re.compile(r"\], *(0x[0-9a-f]+|\d+)\b")
_MATRICES = re.compile(r"\.x(\d)\b")


@dataclass(frozen=True, slots=True)
class Code:
    """In what instructions an access is made: `count` of `opcode`, each of `width` bytes per lane."""

    opcode: str
    width: int
    count: int

    @property
    def is_matrix(self) -> bool:
        return "matrix" in self.opcode


def predict(found: Sequence[Found], layout_text: str, ptx: str) -> dict[str, Any]:
    """What each access costs, as plain values. Takes its time, so it is asked of kernels that are recorded.

    Args:
        found: As `find_accesses` gives them.
        layout_text: The layout of the kernel, which names the regions.
        ptx: The assembly that was made of the module.
    """
    layout = parse_layout(layout_text)
    by_region: dict[int, list[Found]] = {}
    for access in found:
        region = _region_at(layout, access)
        if region is not None:
            by_region.setdefault(region, []).append(access)
    codes = _codes(layout, ptx, by_region)
    rows = [row for region, accesses in by_region.items() for row in _rows(region, accesses, codes.get(region, ()))]
    return {"version": ACCESSES_VERSION, "accesses": rows}


def _region_at(layout: BufferLayout, access: Found) -> int | None:
    """The region that the record before the access started, if it is of the access's kind."""
    frame, slot = access.stamp
    started = [event.region for event in layout.frames[frame].stamps[slot] if event.edge == "start"]
    return started[-1] if started and layout.regions[started[-1]].kind == OPERATIONS[access.op][0] else None


def _codes(layout: BufferLayout, ptx: str, regions: Collection[int]) -> dict[int, tuple[PtxInstruction, ...]]:
    """The instructions of each region that access its memory: of one copy, where the compiler made several alike."""
    program = parse_ptx(ptx, layout.kernel)
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
            pattern = _INSTRUCTION[layout.regions[region].kind]
            if (state[number] or 0) >> region & 1 and pattern.match(instruction.opcode) and runs[region]:
                runs[region][-1].append(instruction)
    return {
        region: tuple(copies[0])
        for region, copies in runs.items()
        if copies and all([i.opcode for i in copy] == [i.opcode for i in copies[0]] for copy in copies)
    }


def _rows(region: int, accesses: Sequence[Found], code: Sequence[PtxInstruction]) -> Iterator[dict[str, Any]]:
    """A row for each access of a region, whose instructions follow each other in the same order."""
    rest = list(code)
    for access in accesses:
        space = OPERATIONS[access.op][1]
        row: dict[str, Any] = {"region": region, "op": access.op, "space": space}
        try:
            made = _take(access, rest)
            row |= {"instruction": made.opcode, "bytes": made.width, "requests": made.count}
            if access.copies > 1:
                row["copies"] = access.copies
            if access.why:
                raise Unknown(access.why)
            row |= _shared_cost(access, made) if space == "shared" else _global_cost(access, made)
        except Unknown as unknown:
            row["why"] = str(unknown)
        yield row


def _take(access: Found, rest: list[PtxInstruction]) -> Code:
    """The instructions of the access: those that together have as many bytes per lane as it has."""
    if access.bases is None:
        raise Unknown(access.why)
    wanted = access.element_bytes << sum(any(basis) for basis in access.bases.registers)
    taken, total = [], 0
    while rest and total < wanted:
        taken.append(rest.pop(0))
        total += _width(taken[-1])
    if total != wanted or len({(each.opcode, _width(each)) for each in taken}) != 1:
        raise Unknown("its instructions are not those that its layout asks for")
    return Code(taken[0].opcode, _width(taken[0]), len(taken))


def _width(instruction: PtxInstruction) -> int:
    """Bytes per lane."""
    opcode = instruction.opcode
    if opcode.startswith("cp.async"):
        size = _COPIED.search(instruction.operands)
        return int(size[1], 0) if size else 0
    if "matrix" in opcode:
        matrices = _MATRICES.search(opcode)
        return 4 * int(matrices[1]) if matrices else 0
    vector, bits = _VECTOR.search(opcode), _BITS.search(opcode)
    return (int(vector[1]) if vector else 1) * int(bits[1]) // 8 if bits else 0


def _span(bases: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """All sums of the bases, in the order of the numbers whose bits choose them."""
    sums: list[tuple[int, ...]] = [tuple(0 for _ in bases[0])] if bases else [()]
    for basis in bases:
        sums += [tuple(a ^ b for a, b in zip(each, basis, strict=True)) for each in sums]
    return sums


def _shared_cost(access: Found, code: Code) -> dict[str, Any]:
    registers, lanes = ([basis for (basis,) in part] for part in access.offsets)
    if code.is_matrix:
        rows = _matrix_rows(registers, lanes, transposed=".trans" in code.opcode)
        each = access_cost.matrix_wavefronts([row for (row,) in _span([(basis,) for basis in rows])])
        matrices = code.width // 4
        cost, ideal = each * matrices, matrices
    else:
        # What a vector holds is next to each other: the lane's place is that of its lowest element.
        places = [place & ~(code.width - 1) for (place,) in _span([(basis,) for basis in lanes])]
        cost, ideal = access_cost.wavefronts(places, code.width), access_cost.ideal_wavefronts(code.width)
    return {"cost": cost * code.count, "ideal": ideal * code.count, "bound": "exact"}


def _matrix_rows(registers: list[int], lanes: list[int], *, transposed: bool) -> list[int]:
    """What the three bits of a row's number add to where it begins."""
    if not transposed:
        return lanes[2:5]
    return [next(basis for basis in registers if basis), *lanes[:2]]


def _global_cost(access: Found, code: Code) -> dict[str, Any]:
    form, bases = access.form, access.bases
    if form is None or bases is None:
        raise Unknown(access.why)
    registers = [basis for basis in bases.registers if any(basis)]
    inside = (code.width // access.element_bytes).bit_length() - 1
    starts = list(itertools.islice(_span(registers[inside:]) if registers[inside:] else [()], MOST_REQUESTS + 1))
    if len(starts) > MOST_REQUESTS:
        raise Unknown("it is too large")
    lanes = _span(bases.lanes)
    if not form.terms:
        lanes = lanes[:1]  # One address for all.
    cost, longest = 0, 0
    for start in starts:
        places = [tuple(a ^ b for a, b in zip(lane, start, strict=True)) if start else lane for lane in lanes]
        request, run = _request(form, places, code.width)
        cost, longest = cost + request, max(longest, run)
    whole = all(term.is_known for term in form.terms.values())
    distinct = 1 << sum(any(basis) for basis in bases.lanes)
    ideal = max(1, distinct * code.width // access_cost.SECTOR_BYTES) * code.count
    return {
        "cost": cost,
        "ideal": ideal,
        "bound": "exact" if whole and not access.masked else "at most",
        "run_bytes": longest,
    }


def _request(form: Form, places: Sequence[tuple[int, ...]], width: int) -> tuple[int, int]:
    """Sectors of one instruction of a warp, and the most bytes in a row that it asks for."""
    blocks: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    multiple = math.gcd(form.multiple, access_cost.SECTOR_BYTES)
    for term in form.terms.values():
        multiple = multiple if term.is_known else math.gcd(multiple, term.multiple)
        fills = term.step and term.run * term.step % access_cost.SECTOR_BYTES == 0
        if not (term.is_known or term.apart or fills):
            raise Unknown("its addresses wrap around, at no place that is known")
    for place in places:
        key, offset = [], 0
        for dimension, term in form.terms.items():
            index = place[dimension]
            block, within = divmod(index, term.run)
            key.append(block)
            offset += term.step * within
        blocks.setdefault(tuple(key), []).append((offset, offset + width))
    multiple = max(multiple, width)  # Any access is aligned to its width, and so are all that are widths apart.
    counts = [access_cost.sectors(ranges, multiple) for ranges in blocks.values()]
    if None in counts:
        raise Unknown(
            f"its rows begin at multiples of {multiple} bytes for all that is known, not of {access_cost.SECTOR_BYTES}"
        )
    return sum(count or 0 for count in counts), max(_longest(ranges) for ranges in blocks.values())


def _longest(ranges: list[tuple[int, int]]) -> int:
    longest, begin, end = 0, 0, -1
    for low, high in sorted(set(ranges)):
        if low > end:
            begin = low
        end = max(end, high)
        longest = max(longest, end - begin)
    return longest

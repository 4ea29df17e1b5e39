"""How each timed access of a kernel meets memory, predicted from its linear layout: bank conflicts and coalescing.

    found = find_accesses(module)  # at the end of the ttgir stage, records in place
    facts = predict(found, layout, ptx)  # docs/contracts.md, section 3

Three parts of the compiler are asked: layouts and pointers (`access_shapes`) say which bytes a lane accesses, the PTX
in what instructions it does, and where the IR has no layout, at which addresses (`access_code`). Where one of them does
not know, or they do not fit together, the access is there and says why there is no prediction: nothing is guessed. Of
global memory there is a worst case then, a sector for each lane.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kperfir.capture.layout_json import parse_layout
from kperfir.compile import access_cost
from kperfir.compile.access_code import RegionCode, width_of
from kperfir.compile.access_shapes import BY_CODE, OPERATIONS, Found, Unknown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kperfir.capture.layout import BufferLayout
    from kperfir.code.ptx import PtxInstruction
    from kperfir.compile.pointers import Form

ACCESSES_VERSION = 1
# A larger access is a larger number of the same; more is not worth the time.
MOST_REQUESTS = 512
WORST = "worst case"
_BY_DATA = "its addresses are computed from data, or in a way that is not followed"
_LOOP = "it is a loop of compare and swap, which goes round as often as others come between"
_TURNS = "lanes that meet at one address take turns there, which depends on data"


@dataclass(frozen=True, slots=True)
class Code:
    """In what instructions an access is made: `made`, each of `width` bytes per lane."""

    made: tuple[PtxInstruction, ...]
    width: int

    @property
    def opcode(self) -> str:
        return self.made[0].opcode

    @property
    def count(self) -> int:
        return len(self.made)

    @property
    def is_matrix(self) -> bool:
        return "matrix" in self.opcode

    @property
    def row(self) -> dict[str, Any]:
        return {"instruction": self.opcode, "bytes": self.width, "requests": self.count}


def predict(found: Sequence[Found], layout_text: str, ptx: str) -> dict[str, Any]:
    """What each access costs, as plain values. Takes its time, so it is asked of kernels that are recorded.

    Args:
        found: As `find_accesses` gives them.
        layout_text: The layout of the kernel, which names the regions.
        ptx: The assembly that was made of the module; empty for a target that has none.
    """
    layout = parse_layout(layout_text)
    by_region: dict[int, list[Found]] = {}
    for access in found:
        region = _region_at(layout, access)
        if region is not None:
            by_region.setdefault(region, []).append(access)
    if ptx:
        code = RegionCode(layout, ptx, by_region)
        rows = [row for region, accesses in by_region.items() for row in _rows(region, accesses, code)]
    else:
        why = f"only accesses of NVIDIA GPUs are predicted, not of {layout.target}"
        rows = [_named(region, access) | {"why": why} for region, accesses in by_region.items() for access in accesses]
    return {"version": ACCESSES_VERSION, "accesses": rows}


def _region_at(layout: BufferLayout, access: Found) -> int | None:
    """The region that the record before the access started, if it is of the access's kind."""
    frame, slot = access.stamp
    started = [event.region for event in layout.frames[frame].stamps[slot] if event.edge == "start"]
    return started[-1] if started and layout.regions[started[-1]].kind == OPERATIONS[access.op][0] else None


def _named(region: int, access: Found) -> dict[str, Any]:
    return {"region": region, "op": access.op, "space": OPERATIONS[access.op][1]}


def _rows(region: int, accesses: Sequence[Found], code: RegionCode) -> Iterator[dict[str, Any]]:
    """Rows for each access of a region, whose instructions follow each other in the same order."""
    rest = list(code.of(region))
    if any(access.op in BY_CODE for access in accesses):
        yield from _rows_by_code(_named(region, accesses[0]), rest, code)
        return
    for access in accesses:
        row = _named(region, access)
        made = None
        try:
            made = _take(access, rest)
            row |= made.row
            if access.copies > 1:
                row["copies"] = access.copies
            row |= _shared_cost(access, made, code) if row["space"] == "shared" else _global_cost(access, made)
        except Unknown as unknown:
            row["why"] = str(unknown)
        yield row
        if made and access.op == "ttg.async_copy_global_to_local":
            yield _row_of_code(_named(region, access) | {"space": "shared"}, made, code)


def _rows_by_code(named: dict[str, Any], rest: Sequence[PtxInstruction], code: RegionCode) -> Iterator[dict[str, Any]]:
    """A row for each sort of instruction, whichever operation of the region has made it."""
    sorts: dict[tuple[str, int], list[PtxInstruction]] = {}
    for instruction in rest:
        sorts.setdefault((instruction.opcode, width_of(instruction)), []).append(instruction)
    for (_, width), made in sorts.items():
        yield _row_of_code(named, Code(tuple(made), width), code)
    if not rest and named["op"] == "ttg.convert_layout":
        yield named | {"why": "it needs no shared memory: lanes exchange values in registers"}


def _row_of_code(named: dict[str, Any], made: Code, code: RegionCode) -> dict[str, Any]:
    """The row of instructions that access shared memory, by their addresses in the PTX."""
    row = named | made.row
    try:
        return row | _cost_by_code(made, code)
    except Unknown as unknown:
        return row | {"why": str(unknown)}


def _cost_by_code(made: Code, code: RegionCode) -> dict[str, Any]:
    if made.opcode.startswith(("atom", "red")):
        raise Unknown(_TURNS)
    if not made.width:
        raise Unknown("what its instructions access is not known")
    costs = [code.shared_cost(instruction) for instruction in made.made]
    known = [cost for cost in costs if cost is not None]
    if len(known) < len(costs):
        if made.is_matrix:
            raise Unknown(_BY_DATA)
        ideal = access_cost.ideal_wavefronts(made.width)
        # All lanes at different words of the same banks.
        return {"cost": access_cost.LANES * made.count, "ideal": ideal * made.count, "bound": WORST, "why": _BY_DATA}
    exact = all(cost.exact for cost in known)
    cost, ideal = (sum(getattr(each, name) for each in known) for name in ("cost", "ideal"))
    return {"cost": cost, "ideal": ideal, "bound": "exact" if exact else "at most"}


def _take(access: Found, rest: list[PtxInstruction]) -> Code:
    """The instructions of the access: those that together have as many bytes per lane as it has."""
    if access.bases is None:
        raise Unknown(access.why)
    wanted = access.element_bytes << sum(any(basis) for basis in access.bases.registers)
    taken, total = [], 0
    while rest and total < wanted:
        taken.append(rest.pop(0))
        total += width_of(taken[-1])
    if access.op == "tt.atomic_rmw" and any(".cas" in each.opcode for each in taken):
        raise Unknown(_LOOP)
    if total != wanted or len({(each.opcode, width_of(each)) for each in taken}) != 1:
        raise Unknown("its instructions are not those that its layout asks for")
    return Code(tuple(taken), width_of(taken[0]))


def _span(bases: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """All sums of the bases, in the order of the numbers whose bits choose them."""
    sums: list[tuple[int, ...]] = [tuple(0 for _ in bases[0])] if bases else [()]
    for basis in bases:
        sums += [tuple(a ^ b for a, b in zip(each, basis, strict=True)) for each in sums]
    return sums


def _shared_cost(access: Found, code: Code, region: RegionCode) -> dict[str, Any]:
    if access.why or not access.offsets:
        return _cost_by_code(code, region)
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
    assert bases is not None  # `_take` has asked.
    distinct = 1 << sum(any(basis) for basis in bases.lanes)
    ideal = max(1, distinct * code.width // access_cost.SECTOR_BYTES) * code.count
    try:
        if form is None:
            raise Unknown(access.why)
        return {"ideal": ideal} | _known_cost(access, form, code)
    except Unknown as unknown:
        # Each lane somewhere else.
        cost = max(distinct, ideal // code.count) * code.count
        return {"cost": cost, "ideal": ideal, "bound": WORST, "why": str(unknown)}


def _known_cost(access: Found, form: Form, code: Code) -> dict[str, Any]:
    bases = access.bases
    assert bases is not None
    registers = [basis for basis in bases.registers if any(basis)]
    inside = (code.width // access.element_bytes).bit_length() - 1
    starts = list(itertools.islice(_span(registers[inside:]) if registers[inside:] else [()], MOST_REQUESTS + 1))
    if len(starts) > MOST_REQUESTS:
        raise Unknown("it is too large")
    lanes = _span(bases.lanes)
    if not form.terms:
        lanes = lanes[:1]  # One address for all.
    cost, lines, longest, fixed = 0, 0, 0, True
    touched: dict[tuple[int, ...], set[int]] = {}
    multiple = _multiple(form, code.width)
    for start in starts:
        places = [tuple(a ^ b for a, b in zip(lane, start, strict=True)) if start else lane for lane in lanes]
        rows = _rows_of(form, places, code.width)
        counts = [access_cost.sectors(ranges, multiple) for ranges in rows.values()]
        cost += sum(count for count, _ in counts)
        fixed &= all(always for _, always in counts)
        longest = max(longest, *map(_longest, rows.values()))
        for row, ranges in rows.items():
            lines += len(access_cost.units(ranges, access_cost.LINE_BYTES))
            touched.setdefault(row, set()).update(access_cost.units(ranges, access_cost.SECTOR_BYTES))
    beside = {"run_bytes": longest, "lines": lines, "touched": sum(map(len, touched.values()))}
    if not fixed:
        why = (
            f"its rows begin at multiples of {multiple} bytes for all that is known, not of {access_cost.SECTOR_BYTES}"
        )
        return {"cost": cost, "bound": WORST, "why": why} | beside
    whole = all(term.is_known for term in form.terms.values())
    return {"cost": cost, "bound": "exact" if whole and not access.masked else "at most"} | beside


def _multiple(form: Form, width: int) -> int:
    """What rows begin at multiples of: any access is aligned to its width, and so are all that are widths apart."""
    multiple = math.gcd(form.multiple, access_cost.SECTOR_BYTES)
    for term in form.terms.values():
        multiple = multiple if term.is_known else math.gcd(multiple, term.multiple)
        fills = term.step and term.run * term.step % access_cost.SECTOR_BYTES == 0
        if not (term.is_known or term.apart or fills):
            raise Unknown("its addresses wrap around, at no place that is known")
    return max(multiple, width)


def _rows_of(form: Form, places: Sequence[tuple[int, ...]], width: int) -> dict[tuple[int, ...], list[tuple[int, int]]]:
    """The bytes that one instruction of a warp asks for, of each row those from where it begins."""
    blocks: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    for place in places:
        key, offset = [], 0
        for dimension, term in form.terms.items():
            index = place[dimension]
            block, within = divmod(index, term.run)
            key.append(block)
            offset += term.step * within
        blocks.setdefault(tuple(key), []).append((offset, offset + width))
    return blocks


def _longest(ranges: list[tuple[int, int]]) -> int:
    longest, begin, end = 0, 0, -1
    for low, high in sorted(set(ranges)):
        if low > end:
            begin = low
        end = max(end, high)
        longest = max(longest, end - begin)
    return longest

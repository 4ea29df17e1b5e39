"""Whether ptxas left the instructions of each region between the clock reads that the region begins and ends with.

    found = audit_code(Code(ptx, sass), layout)

In the PTX the order is what kperfir made it. Each machine instruction comes from a line of the PTX, so for each one it
is known which regions were open where it was written, and which are open where it is now: both by following control
flow. Memory accesses, matrix instructions and synchronisation must be in the same regions in both; arithmetic may move,
and is counted.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kperfir.audit.verdicts import EMPTY, FAILED, LOST, MOVED, OK, REMOVED
from kperfir.code.flow import open_regions
from kperfir.code.parts import Part, find_parts
from kperfir.code.ptx import own_instructions

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kperfir.capture.layout import BufferLayout, Region
    from kperfir.code.ptx import PtxInstruction, PtxProgram
    from kperfir.code.sass import MachineInstruction, MachineProgram

# PTX that is tied to its place: what it does, others can see.
_ANCHOR = re.compile(
    r"^(ld|ldu|st|cp|atom|red|ldmatrix|stmatrix|tensormap|multimem|mma|wgmma|tcgen05|bar|barrier|mbarrier|fence|membar"
    r"|griddepcontrol|shfl|redux|vote|match)\b(?!\.param|\.const|\.local)"
)
# What ptxas makes of it. Address arithmetic is made of it too, and may be anywhere.
_MACHINE_ANCHOR = re.compile(
    r"^(LD|LDG|LDS|LDSM|LDGSTS|LDGDEPBAR|LDTM|LDT|ST|STG|STS|STSM|STT|STTM|DEPBAR|ATOM|ATOMG|ATOMS|RED|REDG|REDAS|REDUX"
    r"|CREDUX|SHFL|VOTE|VOTEU|MATCH|[HIDQOB]G?MMA|WARPGROUP\w*|UTMA\w+|UBLK\w+|SYNCS|BAR|B2R|MEMBAR|FENCE|ERRBAR|ARRIVES"
    r"|UCGABAR_\w+|UTC\w+|ACQBULK|PREEXIT)$"
)
# Kinds that are nothing without an instruction that PTX calls so.
_REQUIRED = {
    "load": r"^(ld|ldu)\b|^cp\.|^mbarrier", "store": r"^(st|red|multimem)\b|^cp\.", "atomic": r"^(atom|red)\b",
    "async_copy": r"^cp\.async|^mbarrier", "async_wait": r"^cp\.async|^bar|^mbarrier", "wgmma": r"^wgmma",
    "wgmma_wait": r"^wgmma", "tcgen05": r"^tcgen05|^mbarrier", "tma": r"^cp\.|^mbarrier|^tensormap|^fence",
    "mbarrier_wait": r"^mbarrier",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Code:
    """The PTX of a kernel, and what ptxas made of it."""

    ptx: PtxProgram
    sass: MachineProgram


@dataclass(frozen=True, slots=True)
class Move:
    """A machine instruction that is not in a region that its PTX is in, or the other way round."""

    instruction: str
    ptx: str
    ptx_line: int


@dataclass(frozen=True, slots=True)
class RegionAudit:
    """What became of one region. Counts are of machine instructions.

    Attributes:
        verdict: One of `verdicts`: ``moved`` if an anchor left it, or one of elsewhere is in it.
        anchors: Instructions that must be in it; `left` are those that are not, `entered` others' that are.
        arithmetic: Other instructions that were written in it; so many left it, and so many of elsewhere are in it.
        copies: How often its records are in the machine code, as often as in the PTX being 1: more where ptxas has
            duplicated code, which loses nothing.
        lost: Its records that are missing, as (frame, slot).
    """

    region: int
    name: str
    kind: str
    file: str
    line: int
    verdict: str
    anchors: int
    left: tuple[Move, ...]
    entered: tuple[Move, ...]
    arithmetic: int
    arithmetic_left: int
    arithmetic_entered: int
    copies: float
    lost: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class CodeAudit:
    """All regions, and how many machine instructions of the kernel are there for records alone.

    Attributes:
        regions: In the order of their ids.
        instructions: Of the kernel.
        own_instructions: Those for records; `set_up_instructions` run before the first one, `copy_out_instructions`
            after the last one.
        records: Clock reads.
    """

    regions: tuple[RegionAudit, ...]
    instructions: int
    own_instructions: int
    set_up_instructions: int
    copy_out_instructions: int
    records: int

    @property
    def failed(self) -> list[RegionAudit]:
        """Regions whose times are not, or not only, those of what they are named after."""
        return [region for region in self.regions if region.verdict in FAILED]


@dataclass(slots=True)
class _Tally:
    """What is counted of one region."""

    anchors: int = 0
    left: list[Move] = field(default_factory=list)
    entered: list[Move] = field(default_factory=list)
    arithmetic: int = 0
    arithmetic_left: int = 0
    arithmetic_entered: int = 0


def audit_code(code: Code, layout: BufferLayout) -> CodeAudit:
    """Compare the two forms of an instrumented kernel.

    Args:
        code: Both from the same compilation.
        layout: That of its records.
    """
    return _Audit(code, layout).run()


class _Audit:
    def __init__(self, code: Code, layout: BufferLayout) -> None:
        self._ptx, self._sass, self._layout = code.ptx, code.sass, layout
        self._own = own_instructions(code.ptx)
        self._number_at: dict[int, int] = {}
        for number, instruction in enumerate(code.ptx.instructions):
            self._number_at.setdefault(instruction.line, number)
        self._stamp_at = {each.line: each.stamp for each in code.ptx.instructions if each.stamp is not None}
        self._written: list[int | None] = []

    def run(self) -> CodeAudit:
        subtrees = _subtrees(self._layout.regions)
        ptx_stamps = {n: each.stamp for n, each in enumerate(self._ptx.instructions) if each.stamp is not None}
        sass_stamps = {
            number: self._stamp_at[each.ptx_line]
            for number, each in enumerate(self._sass.instructions)
            if each.reads_clock and each.ptx_line in self._stamp_at
        }
        self._written = open_regions(self._ptx.flow, self._events(ptx_stamps), subtrees)
        placed = open_regions(self._sass.flow, self._events(sass_stamps), subtrees)
        tallies = self._compare(placed)
        stamps = _Stamps(self._layout, Counter(ptx_stamps.values()), Counter(sass_stamps.values()))
        regions = [self._judge(region, tallies[region.id], stamps) for region in self._layout.regions]
        parts = find_parts(self._sass.flow, sass_stamps)
        own = Counter(
            part for each, part in zip(self._sass.instructions, parts, strict=True) if self._is_own(each)
        )  # fmt: skip
        return CodeAudit(
            tuple(regions), len(self._sass.instructions), own.total(), own[Part.SET_UP], own[Part.COPY_OUT],
            len(sass_stamps),
        )  # fmt: skip

    def _events(self, stamps: Mapping[int, tuple[int, int]]) -> dict[int, list[tuple[str, int]]]:
        frames = {frame.id: frame.stamps for frame in self._layout.frames}
        return {
            number: [(event.edge, event.region) for event in frames[frame][slot]]
            for number, (frame, slot) in stamps.items()
        }

    def _is_own(self, instruction: MachineInstruction) -> bool:
        number = self._number_at.get(instruction.ptx_line)
        return number is not None and self._own[number]

    def _compare(self, placed: list[int | None]) -> list[_Tally]:
        tallies = [_Tally() for _ in self._layout.regions]
        for instruction, now in zip(self._sass.instructions, placed, strict=True):
            number = self._number_at.get(instruction.ptx_line)
            then = None if number is None or self._own[number] else self._written[number]
            if number is None or then is None or now is None or instruction.is_filler:
                continue
            self._count(tallies, instruction, self._ptx.instructions[number], (then, now))
        return tallies

    def _count(
        self, tallies: list[_Tally], instruction: MachineInstruction, origin: PtxInstruction, state: tuple[int, int]
    ) -> None:
        then, now = state
        is_anchor = bool(_ANCHOR.match(origin.opcode) and _MACHINE_ANCHOR.match(instruction.word))
        move = Move(instruction.text, f"{origin.opcode} {origin.operands}".strip(), origin.line)
        for region in _members(then | now):
            tally, was, remains = tallies[region], then >> region & 1, now >> region & 1
            if is_anchor:
                tally.anchors += was
                if was and not remains:
                    tally.left.append(move)
                elif remains and not was:
                    tally.entered.append(move)
            else:
                tally.arithmetic += was
                tally.arithmetic_left += was and not remains
                tally.arithmetic_entered += remains and not was

    def _judge(self, region: Region, tally: _Tally, stamps: _Stamps) -> RegionAudit:
        lost = stamps.lost(region.id)
        if stamps.is_removed(region.id):
            verdict = REMOVED
        elif lost:
            verdict = LOST
        elif tally.left or tally.entered:
            verdict = MOVED
        elif region.kind in _REQUIRED and not self._holds(region):
            verdict = EMPTY
        else:
            verdict = OK
        return RegionAudit(
            region.id, region.name, region.kind, region.file, region.line, verdict, tally.anchors, tuple(tally.left),
            tuple(tally.entered), tally.arithmetic, tally.arithmetic_left, tally.arithmetic_entered,
            stamps.copies(region.id), lost,
        )  # fmt: skip

    def _holds(self, region: Region) -> bool:
        """Whether the PTX has an instruction of the region's kind in it."""
        pattern = re.compile(_REQUIRED[region.kind])
        return any(
            before is not None and before >> region.id & 1 and not own and pattern.match(each.opcode)
            for each, before, own in zip(self._ptx.instructions, self._written, self._own, strict=True)
        )


class _Stamps:
    """How often each record's clock is read in both forms of the kernel."""

    def __init__(
        self, layout: BufferLayout, in_ptx: Counter[tuple[int, int]], in_sass: Counter[tuple[int, int]]
    ) -> None:
        self._in_ptx, self._in_sass = in_ptx, in_sass
        self._frames_left = {frame for frame, _ in in_sass}
        self._of_region: dict[int, list[tuple[int, int]]] = {region.id: [] for region in layout.regions}
        for frame in layout.frames:
            for slot, events in enumerate(frame.stamps):
                for event in events:
                    self._of_region[event.region].append((frame.id, slot))

    def lost(self, region: int) -> tuple[tuple[int, int], ...]:
        stamps = dict.fromkeys(self._of_region[region])
        return tuple(s for s in stamps if s[0] in self._frames_left and not self._in_sass[s])

    def is_removed(self, region: int) -> bool:
        stamps = self._of_region[region]
        return bool(stamps) and not any(self._in_sass[stamp] for stamp in stamps) and not self.lost(region)

    def copies(self, region: int) -> float:
        stamps = [stamp for stamp in dict.fromkeys(self._of_region[region]) if self._in_ptx[stamp]]
        return max((self._in_sass[stamp] / self._in_ptx[stamp] for stamp in stamps), default=0.0)


def _subtrees(regions: Iterable[Region]) -> list[int]:
    """For each region its own bit and those of the regions inside; parents come before."""
    regions = list(regions)
    subtrees = [1 << region.id for region in regions]
    for region in reversed(regions):
        if region.parent >= 0:
            subtrees[region.parent] |= subtrees[region.id]
    return subtrees


def _members(bits: int) -> list[int]:
    return [place for place in range(bits.bit_length()) if bits >> place & 1]

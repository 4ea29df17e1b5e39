"""Machine code of a kernel as data, from what nvdisasm prints of a cubin with the lines of its PTX (``-c -gp``).

    program = parse_sass(text, "matmul")
    program.instructions[0].ptx_line

Triton has ptxas note for every machine instruction which line of the PTX it comes from; that is how the two are tied.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from kperfir.code.flow import Flow, Jump, build_flow, solve_forward

_SECTION = re.compile(r"^\s*\.section\s+\.text\.([^,\s]+)")
_ANY_SECTION = re.compile(r"^\s*\.section\b|^//-+ \.")
_LABEL = re.compile(r"^(\.L_[\w.$]+|\$[\w.$]+):")
_PTX_LINE = re.compile(r'^\s*//## File "\.nv_debug_ptx_txt", line (\d+)')
_INSTRUCTION = re.compile(r"/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;")
_OPCODE = re.compile(r"^(?:@!?\w+\s+)?([A-Z][\w.]*)")
_TARGET = re.compile(r"(\.L_[\w.$]+)")
_BARRIER = re.compile(r"\b(B\d+)\b")

# ptxas puts these between a store and an asynchronous copy on some chips; they take an issue slot and do nothing.
FILLER = "@!PT LDS RZ"
_PADDING = "NOP"
_ENDS = ("EXIT", "RET", "BPT", "KILL")
_JUMPS = ("BRA", "BRX", "JMP", "JMX", "UBRA", "BRXU", "JMXU")


@dataclass(frozen=True, slots=True)
class MachineInstruction:
    """One instruction; `ptx_line` is 0 where ptxas does not say."""

    address: int
    text: str
    opcode: str
    ptx_line: int

    @property
    def word(self) -> str:
        """The opcode without modifiers."""
        return self.opcode.split(".", 1)[0]

    @property
    def reads_clock(self) -> bool:
        """Whether it reads the clock that stamps are made of."""
        return "SR_CLOCKLO" in self.text

    @property
    def is_filler(self) -> bool:
        """Whether it does nothing."""
        return self.text.startswith(FILLER)


@dataclass(frozen=True, slots=True)
class MachineProgram:
    """Instructions of one kernel, of its section alone, without padding."""

    instructions: tuple[MachineInstruction, ...]
    flow: Flow


def parse_sass(text: str, kernel: str) -> MachineProgram:
    """Read the code of `kernel` from a disassembly.

    Raises:
        ValueError: If it is not there.
    """
    instructions: list[MachineInstruction] = []
    labels: dict[str, int] = {}
    inside, ptx_line = False, 0
    for line in text.splitlines():
        section = _SECTION.match(line)
        if section:
            inside, ptx_line = section[1] == kernel, 0
        elif _ANY_SECTION.match(line):
            inside = False
        if not inside:
            continue
        if label := _LABEL.match(line):
            labels[label[1]] = len(instructions)
        elif mapped := _PTX_LINE.match(line):
            ptx_line = int(mapped[1])
        elif found := _INSTRUCTION.search(line):
            body = re.sub(r"\s+", " ", found[2])
            opcode = _OPCODE.match(body)
            if opcode and opcode[1] != _PADDING:
                instructions.append(MachineInstruction(int(found[1], 16), body, opcode[1], ptx_line))
    if not instructions:
        raise ValueError(f"the disassembly has no code of {kernel}")
    return MachineProgram(tuple(instructions), _flow(instructions, labels))


def _flow(instructions: list[MachineInstruction], labels: dict[str, int]) -> Flow:
    """A BSYNC goes to where the BSSY that was passed last for its barrier says, which follows from the flow."""
    jumps = {number: jump for number, each in enumerate(instructions) if (jump := _jump(each, labels)) is not None}
    begins = {number: each for number, each in enumerate(instructions) if each.word == "BSSY"}
    while True:
        flow = build_flow(len(instructions), labels.values(), jumps)
        added = False
        for number, reaching in _reaching(flow, instructions, begins):
            targets = {place for begin in reaching for place in _places(begins[begin].text, labels)}
            known = jumps[number]
            if not targets <= set(known.targets):
                jumps[number] = Jump(tuple(sorted({*known.targets, *targets})), known.falls_through)
                added = True
        if not added:
            return flow


def _jump(instruction: MachineInstruction, labels: dict[str, int]) -> Jump | None:
    text, word = instruction.text, instruction.word
    guarded = text.startswith("@")
    if word in _ENDS:
        return Jump((), falls_through=guarded)
    if word == "BSYNC":
        return Jump((), falls_through=guarded)
    if word not in _JUMPS:
        return None
    # A predicate may also be an operand (`BRA.U UP0, ...`); one that depends on divergence goes either way.
    conditional = guarded or ".DIV" in text or bool(re.search(rf"{word}(\.\w+)* !?U?P\d", text))
    return Jump(_places(text, labels), falls_through=conditional)


def _reaching(
    flow: Flow, instructions: list[MachineInstruction], begins: dict[int, MachineInstruction]
) -> list[tuple[int, list[int]]]:
    """For each BSYNC that is reached, the BSSY that may have been the last for its barrier."""
    bits = {number: 1 << place for place, number in enumerate(begins)}
    of_barrier: dict[str, int] = {}
    for number, each in begins.items():
        of_barrier[_barrier(each)] = of_barrier.get(_barrier(each), 0) | bits[number]

    def pass_instruction(number: int, state: int) -> int:
        if number in bits:
            state = state & ~of_barrier[_barrier(instructions[number])] | bits[number]
        return state

    def apply(block: int, state: int) -> int:
        for number in flow.blocks[block]:
            state = pass_instruction(number, state)
        return state

    found = []
    for members, before in zip(flow.blocks, solve_forward(flow, 0, apply), strict=True):
        state = before
        for number in members:
            if state is None:
                break
            if instructions[number].word == "BSYNC":
                mine = state & of_barrier.get(_barrier(instructions[number]), 0)
                found.append((number, [begin for begin, bit in bits.items() if mine & bit]))
            state = pass_instruction(number, state)
    return found


def _barrier(instruction: MachineInstruction) -> str:
    found = _BARRIER.search(instruction.text)
    return found[1] if found else ""


def _places(text: str, labels: dict[str, int]) -> tuple[int, ...]:
    return tuple(labels[name] for name in _TARGET.findall(text) if name in labels)

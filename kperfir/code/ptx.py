"""The PTX of a kernel as data: instructions, what they read and write, control flow, and which of them are kperfir's.

    program = parse_ptx(text, "matmul")
    free = own_instructions(program)

kperfir's own assembly ends its lines in ``// kperf``, a stamp in ``// kperf stamp <frame>.<slot>`` (docs/contracts.md,
section 1; passes/NvidiaLowering.cpp writes them). What LLVM made besides, such as the arithmetic of cursors, is found
by what it is for. Knows the syntax, and which instructions do more than write registers; nothing of what they compute.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kperfir.code.flow import Flow, Jump, build_flow, controlling_blocks

if TYPE_CHECKING:
    from collections.abc import Iterator

_OWN = re.compile(r"// kperf(?: stamp (\d+)\.(\d+))?\s*$")
_COMMENT = re.compile(r"//.*$")
_LABEL = re.compile(r"^([$\w]+):\s*(.*)$")
_STATEMENT = re.compile(r"^(?:@(!?)([\w%$]+)\s+)?([a-z][\w.:]*)\s*(.*)$", re.DOTALL)
_DECLARED = re.compile(r"^\.reg\s+\.\w+\s+(.*)$")
_WORD = re.compile(r"[%$\w]+")
_TABLE = ".branchtargets"
_DECLARED_NAME = re.compile(r"([%$\w]+)(?:<(\d+)>)?")
_LOCATION_DIRECTIVES = (".loc", ".file", ".section", ".pragma")

# First words of instructions that do more than write a register: they stay whether or not their results are used.
_EFFECTS = frozenset({
    "applypriority", "atom", "bar", "barrier", "bra", "brkpt", "brx", "call", "clusterlaunchcontrol", "cp", "discard",
    "elect", "exit", "fence", "griddepcontrol", "mbarrier", "membar", "multimem", "nanosleep", "pmevent", "prefetch",
    "prefetchu", "red", "redux", "ret", "setmaxnreg", "shfl", "st", "stackrestore", "stacksave", "stmatrix", "sured",
    "sust", "tcgen05", "tensormap", "trap", "vote", "wgmma",
})  # fmt: skip
_LASTING_LOADS = (".volatile", ".acquire", ".relaxed")


@dataclass(frozen=True, slots=True)
class PtxInstruction:
    """One instruction.

    Attributes:
        line: In the text, from 1.
        opcode: With its modifiers, such as ``st.shared.b32``.
        operands: The rest of its text.
        guard: The predicate that it is executed under, or empty.
        reads: Registers, the guard among them. Of one with effects, all that it names.
        writes: Registers that it writes and that are all it does; of one with effects, none.
        own: It is assembly of kperfir's.
        stamp: (frame, slot) if it reads the clock for a record.
        negated: It is executed where the guard does not hold.
    """

    line: int
    opcode: str
    operands: str
    guard: str = ""
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    own: bool = False
    stamp: tuple[int, int] | None = None
    negated: bool = False

    @property
    def has_effects(self) -> bool:
        """Whether it does more than write registers."""
        word = self.opcode.split(".", 1)[0]
        return word in _EFFECTS or (word == "ld" and any(part in self.opcode for part in _LASTING_LOADS))


@dataclass(frozen=True, slots=True)
class PtxProgram:
    """Instructions of one kernel in the order of the text."""

    instructions: tuple[PtxInstruction, ...]
    flow: Flow


def parse_ptx(text: str, kernel: str) -> PtxProgram:
    """Read the entry function `kernel` of `text`.

    Raises:
        ValueError: If there is no such function.
    """
    lines = text.splitlines()
    pattern = re.compile(rf"\.entry\s+{re.escape(kernel)}\b")
    head = next((number for number, line in enumerate(lines) if pattern.search(line)), None)
    if head is None:
        raise ValueError(f"the PTX has no .entry {kernel}")
    begin = next(number for number in range(head, len(lines)) if lines[number].startswith("{"))
    return _Parser(lines, begin).parse()


class _Parser:
    def __init__(self, lines: list[str], begin: int) -> None:
        self._lines = lines
        self._begin = begin
        self._scopes: list[dict[str, str]] = []
        self._scope_count = 0
        self._instructions: list[PtxInstruction] = []
        self._labels: dict[str, list[int]] = {}
        self._tables: dict[str, list[str]] = {}
        self._last_label = ""

    def parse(self) -> PtxProgram:
        for line, statement, mark in self._statements():
            self._take(line, statement, mark)
        jumps = {}
        for number, instruction in enumerate(self._instructions):
            jump = self._jump(number, instruction)
            if jump is not None:
                jumps[number] = jump
        leaders = {place for places in self._labels.values() for place in places}
        return PtxProgram(tuple(self._instructions), build_flow(len(self._instructions), leaders, jumps))

    def _statements(self) -> Iterator[tuple[int, str, re.Match[str] | None]]:
        """(line, text, kperfir's comment) of every statement of the function; opens and closes scopes on the way."""
        pending, pending_line = "", 0
        for number in range(self._begin, len(self._lines)):
            raw = self._lines[number]
            mark = _OWN.search(raw)
            rest = _COMMENT.sub("", raw).strip()
            while rest:
                if not pending:
                    if rest[0] == "{":
                        self._scopes.append({})
                        self._scope_count += 1
                        rest = rest[1:].lstrip()
                        continue
                    if rest[0] == "}":
                        self._scopes.pop()
                        if not self._scopes:
                            return
                        rest = rest[1:].lstrip()
                        continue
                    label = _LABEL.match(rest)
                    if label:
                        self._labels.setdefault(label[1], []).append(len(self._instructions))
                        self._last_label, rest = label[1], label[2]
                        continue
                    if rest.startswith(_LOCATION_DIRECTIVES):
                        break
                    pending_line = number + 1
                statement, semicolon, behind = rest.partition(";")
                pending = f"{pending} {statement}".strip()
                if not semicolon:
                    break
                yield pending_line, pending, mark
                pending, rest = "", behind.lstrip()

    def _take(self, line: int, statement: str, mark: re.Match[str] | None) -> None:
        if statement.startswith(_TABLE):
            self._tables[self._last_label] = _WORD.findall(statement.removeprefix(_TABLE))
            return
        declared = _DECLARED.match(statement)
        if declared:
            for name, count in _DECLARED_NAME.findall(declared[1]):
                names = [f"{name}{number}" for number in range(int(count))] if count else [name]
                self._scopes[-1].update({each: f"{each}@{self._scope_count}" for each in names})
            return
        match = None if statement.startswith(".") else _STATEMENT.match(statement)
        if match is None:
            return
        guard, opcode, operands = match[2] or "", match[3], match[4]
        stamp = (int(mark[1]), int(mark[2])) if mark and mark[1] and "%clock" in operands else None
        bare = PtxInstruction(line, opcode, operands, own=mark is not None, stamp=stamp)
        first, _, others = _split_first(operands)
        named = self._registers(guard)
        writes: tuple[str, ...] = ()
        reads = named + self._registers(operands)
        if not bare.has_effects:
            writes, reads = self._registers(first), named + self._registers(others)
        self._instructions.append(
            PtxInstruction(line, opcode, operands, self._name(guard), reads, writes, bare.own, stamp, match[1] == "!")
        )

    def _registers(self, text: str) -> tuple[str, ...]:
        return tuple(name for word in _WORD.findall(text) if (name := self._name(word)))

    def _name(self, word: str) -> str:
        """The register that `word` names, told apart from those of the same name in other scopes; empty if none."""
        for scope in reversed(self._scopes):
            if word in scope:
                return scope[word]
        return word if re.fullmatch(r"%[a-z]+\d+", word) else ""

    def _jump(self, number: int, instruction: PtxInstruction) -> Jump | None:
        word = instruction.opcode.split(".", 1)[0]
        if word in ("ret", "exit", "trap"):
            return Jump((), falls_through=bool(instruction.guard))
        if word not in ("bra", "brx"):
            return None
        names = _WORD.findall(instruction.operands)
        if word == "brx":
            names = self._tables.get(names[-1], [])
        targets = tuple(self._place(name, number) for name in names if name in self._labels)
        return Jump(targets, falls_through=bool(instruction.guard) and word == "bra")

    def _place(self, label: str, number: int) -> int:
        """Where `label` is; inline assembly repeats names in scopes of its own, and jumps within them."""
        return min(self._labels[label], key=lambda place: abs(place - number))


def _split_first(operands: str) -> tuple[str, str, str]:
    """The first operand, the comma, and the others."""
    depth = 0
    for place, letter in enumerate(operands):
        depth += (letter in "{[(") - (letter in "}])")
        if letter == "," and depth == 0:
            return operands[:place], ",", operands[place + 1 :]
    return operands, "", ""


def own_instructions(program: PtxProgram) -> list[bool]:
    """For each instruction, whether it is there for records alone.

    Those are the marked ones, and what would be dead without them: registers that nothing else reads, branches on which
    nothing else depends. What the kernel uses too is the kernel's.
    """
    return [not needed for needed in _Needed(program).find()]


class _Needed:
    """Everything that what the kernel itself does depends on."""

    def __init__(self, program: PtxProgram) -> None:
        self._instructions = program.instructions
        self._blocks = program.flow.blocks
        self._controlling = controlling_blocks(program.flow)
        self._block_of = [block for block, members in enumerate(self._blocks) for _ in members]
        self._writers: dict[str, list[int]] = {}
        for number, instruction in enumerate(self._instructions):
            for name in self._may_write(instruction):
                self._writers.setdefault(name, []).append(number)
        self._needed = [False] * len(self._instructions)

    @staticmethod
    def _may_write(instruction: PtxInstruction) -> tuple[str, ...]:
        """What has effects may write any register that it names; ours of that sort are stores and a barrier."""
        if not instruction.has_effects:
            return instruction.writes
        return () if instruction.own else instruction.reads

    def find(self) -> list[bool]:
        for number, instruction in enumerate(self._instructions):
            if instruction.has_effects and not instruction.own and not self._is_branch(number):
                self._need(number)
        # A branch that decides nothing lies on the way of what comes before and after it.
        for number in range(len(self._instructions)):
            if self._is_branch(number) and not self._instructions[number].guard and self._is_reached(number):
                self._need(number)
        return self._needed

    def _is_branch(self, number: int) -> bool:
        return self._instructions[number].opcode.split(".", 1)[0] in ("bra", "brx")

    def _is_reached(self, number: int) -> bool:
        """Whether the block runs unconditionally, or something that is needed decides whether it does."""
        deciders = self._controlling[self._block_of[number]]
        return not deciders or any(
            self._needed[members[-1]] for block, members in enumerate(self._blocks) if deciders >> block & 1
        )

    def _need(self, number: int) -> None:
        waiting = [number]
        while waiting:
            number = waiting.pop()
            if self._needed[number]:
                continue
            self._needed[number] = True
            for name in self._instructions[number].reads:
                waiting += self._writers.get(name, ())
            deciders = self._controlling[self._block_of[number]]
            waiting += [members[-1] for block, members in enumerate(self._blocks) if deciders >> block & 1]

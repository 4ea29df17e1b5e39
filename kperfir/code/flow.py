"""Control flow between the instructions of a kernel, whatever their language, and what follows from it.

    flow = build_flow(len(instructions), leaders={12}, jumps={11: Jump((3,), falls_through=True)})
    open_before = open_regions(flow, events, parents)

Instructions are numbered in the order of the text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Jump:
    """Where control may go after an instruction that does not simply fall through."""

    targets: tuple[int, ...]
    falls_through: bool


@dataclass(frozen=True, slots=True)
class Flow:
    """Basic blocks in the order of the text, each a range of instructions, and for each the blocks that may follow."""

    blocks: tuple[range, ...]
    successors: tuple[tuple[int, ...], ...]


def build_flow(count: int, leaders: Iterable[int], jumps: Mapping[int, Jump]) -> Flow:
    """Cut `count` instructions into blocks, at `leaders`, at what is jumped to, and behind every jump."""
    starts = {0, *leaders, *(number + 1 for number in jumps)}
    starts |= {target for jump in jumps.values() for target in jump.targets}
    begins = sorted(start for start in starts if start < count)
    ends = [*begins[1:], count]
    blocks = tuple(range(begin, end) for begin, end in zip(begins, ends, strict=True)) if count else ()
    block_at = {begin: block for block, begin in enumerate(begins)}
    successors = []
    for block, members in enumerate(blocks):
        jump = jumps.get(members[-1], Jump((), falls_through=True))
        following = [block_at[target] for target in jump.targets if target in block_at]
        if jump.falls_through and block + 1 < len(blocks):
            following.append(block + 1)
        successors.append(tuple(dict.fromkeys(following)))
    return Flow(blocks, tuple(successors))


def solve_forward(flow: Flow, entry: int, apply: Callable[[int, int], int]) -> list[int | None]:
    """Bits that hold at the begin of each block on some path from the first one, where `entry` holds.

    Args:
        flow: The blocks.
        entry: Bits before the first block.
        apply: Given a block and the bits before it, the bits behind it. More bits before never mean fewer behind.

    Returns:
        Per block the bits, or None where control never comes.
    """
    before: list[int | None] = [None] * len(flow.blocks)
    waiting = []
    if flow.blocks:
        before[0] = entry
        waiting.append(0)
    while waiting:
        block = waiting.pop()
        behind = apply(block, before[block] or 0)
        for successor in flow.successors[block]:
            known = before[successor]
            joined = behind if known is None else known | behind
            if joined != known:
                before[successor] = joined
                waiting.append(successor)
    return before


def open_regions(
    flow: Flow, events: Mapping[int, Sequence[tuple[str, int]]], subtrees: Sequence[int]
) -> list[int | None]:
    """Regions that are open when control reaches each instruction, as bits; None where it never does.

    Args:
        flow: Of the kernel.
        events: For instructions that are stamps, what they say in order: ("start", "end" or "gap", region). A gap ends
            with the next stamp.
        subtrees: For each region its own bit and those of all regions inside: an end closes those too.
    """

    gaps = 0
    for edge, region in (event for stamp in events.values() for event in stamp):
        gaps |= (edge == "gap") << region

    def pass_instruction(number: int, state: int) -> int:
        if number in events:
            state &= ~gaps
        for edge, region in events.get(number, ()):
            if edge in ("start", "gap"):
                state |= 1 << region
            elif edge == "end":
                state &= ~subtrees[region]
        return state

    def apply(block: int, state: int) -> int:
        for number in flow.blocks[block]:
            state = pass_instruction(number, state)
        return state

    result: list[int | None] = []
    for members, before in zip(flow.blocks, solve_forward(flow, 0, apply), strict=True):
        state = before
        for number in members:
            result.append(state)
            state = None if state is None else pass_instruction(number, state)
    return result


def controlling_blocks(flow: Flow) -> list[int]:
    """For each block, as bits, the blocks at whose end it is decided whether control comes to it."""
    behind = _post_dominators(flow)
    controlling = [0] * len(flow.blocks)
    for block, successors in enumerate(flow.successors):
        if len(successors) < 2:
            continue
        strict = behind[block] & ~(1 << block)
        for successor in successors:
            for dependent in _members(behind[successor] & ~strict):
                controlling[dependent] |= 1 << block
    return controlling


def _post_dominators(flow: Flow) -> list[int]:
    """For each block, as bits, itself and the blocks through which every path from it to an end leads."""
    everything = (1 << len(flow.blocks)) - 1
    behind = [everything if successors else 1 << block for block, successors in enumerate(flow.successors)]
    changed = True
    while changed:
        changed = False
        for block in reversed(range(len(flow.blocks))):
            if not flow.successors[block]:
                continue
            common = everything
            for successor in flow.successors[block]:
                common &= behind[successor]
            if (common := common | 1 << block) != behind[block]:
                behind[block] = common
                changed = True
    return behind


def _members(bits: int) -> list[int]:
    return [place for place in range(bits.bit_length()) if bits >> place & 1]

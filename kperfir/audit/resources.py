"""What a kernel takes of an SM, and how many of its CTAs an SM can hold at a time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kperfir.code.residency import occupancy

if TYPE_CHECKING:
    from kperfir.code.sass import MachineProgram

_USAGE = re.compile(r"REG:(\d+) STACK:(\d+)")
_STACK_ACCESS = ("STL", "LDL")


@dataclass(frozen=True, slots=True)
class Footprint:
    """What one variant of a kernel takes.

    Attributes:
        registers: Per thread.
        stack_bytes: Per thread.
        stack_accesses: Instructions that store registers to the stack or load them back: spills, most often.
        shared_bytes: Per CTA, dynamic.
        ctas_per_sm: How many fit; 0 where the limits of the chip are not known.
        limiter: What keeps more from fitting.
    """

    registers: int
    stack_bytes: int
    stack_accesses: int
    shared_bytes: int
    ctas_per_sm: int
    limiter: str
    instructions: int

    def is_worse_than(self, other: Footprint) -> bool:
        """Whether fewer CTAs fit, or more is kept on the stack."""
        return (
            self.ctas_per_sm < other.ctas_per_sm
            or self.stack_bytes > other.stack_bytes
            or self.stack_accesses > other.stack_accesses
        )


def footprint(usage: str, sass: MachineProgram, *, arch: int, threads: int, shared_bytes: int) -> Footprint:
    """Put together what `cuobjdump -res-usage` says and what the code shows.

    Raises:
        ValueError: If `usage` is not what that tool prints.
    """
    registers, stack = read_usage(usage)
    accesses = sum(each.word in _STACK_ACCESS for each in sass.instructions)
    ctas, limiter = occupancy(arch, threads=threads, registers=registers, shared_bytes=shared_bytes)
    return Footprint(registers, stack, accesses, shared_bytes, ctas, limiter, len(sass.instructions))


def read_usage(usage: str) -> tuple[int, int]:
    """Registers and bytes of stack per thread, from what `cuobjdump -res-usage` prints.

    Raises:
        ValueError: If `usage` is not that.
    """
    found = _USAGE.findall(usage)
    if not found:
        raise ValueError(f"no registers in {usage.strip()[:80]!r}")
    return max(int(registers) for registers, _ in found), max(int(stack) for _, stack in found)

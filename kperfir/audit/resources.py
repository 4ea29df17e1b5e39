"""What a kernel takes of an SM, and how many of its CTAs an SM can hold at a time.

Limits are those of NVIDIA's programming guide, technical specifications per compute capability.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kperfir.code.sass import MachineProgram

_WARP_SIZE = 32
_SUB_CORES = 4
_REGISTERS_PER_SM = 65536
_REGISTER_UNIT = 256  # Per warp.
_SHARED_UNIT = 128
_SHARED_RESERVED = 1024  # Per CTA, for the system.
_KIB = 1024
# Warps, CTAs and bytes of shared memory of an SM.
_LIMITS = {
    80: (64, 32, 164 * _KIB),
    86: (48, 16, 100 * _KIB),
    89: (48, 24, 100 * _KIB),
    90: (64, 32, 228 * _KIB),
    100: (64, 32, 228 * _KIB),
    103: (64, 32, 228 * _KIB),
}
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
    found = _USAGE.findall(usage)
    if not found:
        raise ValueError(f"no registers in {usage.strip()[:80]!r}")
    registers, stack = (max(int(entry[place]) for entry in found) for place in (0, 1))
    accesses = sum(each.word in _STACK_ACCESS for each in sass.instructions)
    ctas, limiter = occupancy(arch, threads=threads, registers=registers, shared_bytes=shared_bytes)
    return Footprint(registers, stack, accesses, shared_bytes, ctas, limiter, len(sass.instructions))


def occupancy(arch: int, *, threads: int, registers: int, shared_bytes: int) -> tuple[int, str]:
    """CTAs that an SM holds at a time, and what limits them; (0, "") for a chip that is not known."""
    if arch not in _LIMITS:
        return 0, ""
    max_warps, max_ctas, max_shared = _LIMITS[arch]
    warps = -(-threads // _WARP_SIZE)
    per_warp = _round_up(max(registers, 1) * _WARP_SIZE, _REGISTER_UNIT)
    # The register file is split over the sub-cores, and so are the warps.
    by_registers = _REGISTERS_PER_SM // _SUB_CORES // per_warp * _SUB_CORES // warps
    by_shared = max_shared // _round_up(shared_bytes + _SHARED_RESERVED, _SHARED_UNIT)
    return min(
        (max_warps // warps, "warps"),
        (max_ctas, "CTA slots"),
        (by_registers, "registers"),
        (by_shared, "shared memory"),
        key=lambda bound: bound[0],
    )


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit

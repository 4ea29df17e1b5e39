"""Ghost mode: records are taken, and cost nothing. What they then say is the truth of the timing model.

    plain = ...                                # a launch of the kernel without records
    with driver.ghost(Ghost.of(plain)):
        kernel[grid](...)                      # instrumented

kperfir's own instructions execute and take no time, and as many CTAs share an SM as without them. What the compiler
does differently elsewhere because of records stays: the cycles of a launch may differ from the plain kernel's by that.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from kperfir.code.ptx import own_instructions, parse_ptx

if TYPE_CHECKING:
    from kperfir.runtime.simt import FinishedLaunch
    from kperfir.runtime.simt_launcher import LoadedKernel


@dataclass(frozen=True, slots=True)
class Ghost:
    """What the kernel takes without records: registers per thread, and dynamic shared memory per CTA."""

    registers: int
    shared_bytes: int

    @classmethod
    def of(cls, plain: FinishedLaunch) -> Ghost:
        """From a launch without records."""
        return cls(int(plain.kernel.module.registers), plain.shape.shared_bytes)

    def launch_options(self, kernel: LoadedKernel) -> dict[str, Any]:
        """Arguments of the device's `launch`."""
        return {
            "free": free_instructions(kernel),
            "resident_registers": self.registers,
            "resident_shared_bytes": self.shared_bytes,
        }


def free_instructions(kernel: LoadedKernel) -> bytes:
    """For each instruction of the device's program, 1 if it is there for records alone."""
    own = _own_lines(kernel.ptx, str(kernel.module.entry))
    return bytes(line in own for line in kernel.module.ptx_lines)


@lru_cache(maxsize=8)
def _own_lines(ptx: bytes, entry: str) -> frozenset[int]:
    program = parse_ptx(ptx.decode(), entry)
    flags = zip(program.instructions, own_instructions(program), strict=True)
    return frozenset(instruction.line for instruction, is_own in flags if is_own)

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

from kperfir.code.parts import Part, find_parts
from kperfir.code.ptx import own_instructions, parse_ptx

if TYPE_CHECKING:
    from kperfir.runtime.simt import FinishedLaunch
    from kperfir.runtime.simt_launcher import LoadedKernel


@dataclass(frozen=True, slots=True)
class Ghost:
    """What the kernel takes without records, and what of them costs nothing.

    Attributes:
        registers: Per thread.
        shared_bytes: Dynamic shared memory per CTA.
        parts: Of kperfir's own instructions, those that take no time.
    """

    registers: int
    shared_bytes: int
    parts: frozenset[Part] = frozenset(Part)

    @classmethod
    def of(cls, plain: FinishedLaunch, parts: frozenset[Part] = frozenset(Part)) -> Ghost:
        """From a launch without records; from one with them, as many CTAs share an SM as with them."""
        return cls(int(plain.kernel.module.registers), plain.shape.shared_bytes, parts)

    def launch_options(self, kernel: LoadedKernel) -> dict[str, Any]:
        """Arguments of the device's `launch`."""
        return {
            "free": free_instructions(kernel, self.parts),
            "resident_registers": self.registers,
            "resident_shared_bytes": self.shared_bytes,
        }


def free_instructions(kernel: LoadedKernel, parts: frozenset[Part] = frozenset(Part)) -> bytes:
    """For each instruction of the device's program, not 0 if it is there for records alone, in one of `parts`."""
    own = _own_lines(kernel.ptx, str(kernel.module.entry))
    return bytes(_FLAGS[own[line]] if own.get(line) in parts else 0 for line in kernel.module.ptx_lines)


# A record waits for nothing. Set-up waits for what the kernel has asked for before its first record, such as the number
# of the thread, as it does where it takes time: that is no part of any region.
_FLAGS = {Part.SET_UP: 2, Part.RECORDS: 1, Part.COPY_OUT: 1}


@lru_cache(maxsize=8)
def _own_lines(ptx: bytes, entry: str) -> dict[int, Part]:
    """The part of each line that holds an instruction of kperfir's own."""
    program = parse_ptx(ptx.decode(), entry)
    stamps = {number for number, each in enumerate(program.instructions) if each.stamp is not None}
    parts = find_parts(program.flow, stamps)
    flags = zip(program.instructions, own_instructions(program), parts, strict=True)
    return {instruction.line: part for instruction, is_own, part in flags if is_own}

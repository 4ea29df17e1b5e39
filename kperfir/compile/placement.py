"""Whether records in shared memory would keep CTAs of a kernel from sharing an SM.

Registers decide that as well as shared memory, so it is asked of a kernel that is compiled.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from kperfir._native import record

from kperfir.code import cubin
from kperfir.code.residency import occupancy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    # What a device that takes assembly knows of the kernel with this name in it: registers per thread, or None.
    RegistersOf = Callable[[str, bytes], int | None]

_ELF = b"\x7fELF"


def loses_ctas(
    products: Mapping[str, Any], metadata: Mapping[str, Any], layout: str, registers_of: RegistersOf
) -> bool:
    """Whether an SM holds fewer CTAs of the kernel than if its records were elsewhere; False where that is not known.

    Args:
        products: Of the stages of Triton's compilation, by name.
        metadata: Triton's, after the last stage.
        layout: JSON of the profile buffer.
        registers_of: Asked where ptxas did not run.
    """
    fields = json.loads(layout)
    vendor, _, arch = fields["target"].partition(":")
    if fields["buffer"] != "shared" or vendor != "cuda" or not arch.isdecimal():
        return False
    warps = int(fields["total_warps"])
    with_records = int(metadata["shared"])
    without = with_records - record.shared_bytes(warps, int(fields["words_per_warp"]))

    def holds(shared_bytes: int, registers: int) -> int:
        threads = warps * int(fields["warp_size"])
        return occupancy(int(arch), threads=threads, registers=registers, shared_bytes=shared_bytes)[0]

    if holds(with_records, 1) == holds(without, 1):
        return False  # Whatever the registers.
    binary = products.get("cubin", b"")
    registers = cubin.registers(binary) if binary.startswith(_ELF) else registers_of(str(metadata["name"]), binary)
    return registers is not None and holds(with_records, registers) < holds(without, registers)

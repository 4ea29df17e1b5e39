"""Whether records in shared memory would keep CTAs of a kernel from sharing an SM.

Registers decide that as well as shared memory, so it is asked of a kernel that is compiled.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from kperfir._native import record

from kperfir.code import cubin
from kperfir.code.residency import occupancy
from kperfir.errors import DeviceError

if TYPE_CHECKING:
    from collections.abc import Mapping

_ELF = b"\x7fELF"


def loses_ctas(products: Mapping[str, Any], metadata: Mapping[str, Any], layout: str) -> bool:
    """Whether an SM holds fewer CTAs of the kernel than if its records were elsewhere; False where that is not known.

    Args:
        products: Of the stages of Triton's compilation, by name.
        metadata: Triton's, after the last stage.
        layout: JSON of the profile buffer.
    """
    fields = json.loads(layout)
    vendor, _, arch = fields["target"].partition(":")
    if fields["buffer"] != "shared" or vendor != "cuda" or not arch.isdecimal():
        return False
    warps = int(fields["total_warps"])
    words = record.SEGMENT_HEADER_WORDS + int(fields["words_per_warp"])
    with_records = int(metadata["shared"])
    without = with_records - warps * words * record.WORD_BYTES

    def holds(shared_bytes: int, registers: int) -> int:
        threads = warps * int(fields["warp_size"])
        return occupancy(int(arch), threads=threads, registers=registers, shared_bytes=shared_bytes)[0]

    if holds(with_records, 1) == holds(without, 1):
        return False  # Whatever the registers.
    registers = _registers(products, str(metadata["name"]))
    return registers is not None and holds(with_records, registers) < holds(without, registers)


def _registers(products: Mapping[str, Any], kernel: str) -> int | None:
    """Per thread: as ptxas says, or where it did not run, as the SIMT device does if it is to run the kernel.

    None if neither is there, or the device does not know all instructions of the target.
    """
    binary = products.get("cubin", b"")
    if isinstance(binary, bytes) and binary.startswith(_ELF):
        return cubin.registers(binary)
    simt = sys.modules.get("kperfir.runtime.simt")  # Without it there is no device, nor a reason to load one.
    device = simt and simt.active_simt_driver()
    if not device or not isinstance(binary, bytes) or not binary:
        return None
    try:
        return int(device.load(kernel, binary).module.registers)  # It keeps what it has read for the launch.
    except DeviceError:
        return None

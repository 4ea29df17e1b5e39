"""Errors of the SIMT device as kperfir's: where in the kernel, which argument, and what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kperfir.errors import DeviceError
from kperfir.runtime.memory import describe_fault, merged

if TYPE_CHECKING:
    from kperfir.runtime.arguments import Parameters

_FIXES = {
    "parse": "report it: the PTX came from Triton",
    "unsupported": "run the kernel on a GPU, or on another chip (TRITON_KPERF_SIMT_CHIP)",
    "out-of-bounds": "check the mask and the offsets of this access",
    "misaligned": "check the divisibility hints of the kernel's arguments (tl.multiple_of and specialisation)",
    "uninitialised": "store to shared memory, and synchronise, before this load",
    "race": "wait for the asynchronous operation, or fence, before this access",
    "deadlock": "check that every warp that must arrive at the barrier does",
    "limit": "use a smaller block, fewer warps or fewer stages",
}


def device_error(error: Any, kernel: str, parameters: Parameters | None = None) -> DeviceError:
    """Return what to raise for an error of the native device.

    Args:
        error: `kperfir._native.simt.Error`.
        kernel: Its name, if the error does not know it.
        parameters: Of the launch, to say which argument an address is nearest to.
    """
    place = [f"kernel {getattr(error, 'kernel', '') or kernel}"]
    if getattr(error, "file", ""):
        place.append(f"{error.file}:{error.line}")
    elif getattr(error, "ptx_line", 0):
        place.append(f"line {error.ptx_line} of its PTX")
    for name in ("cta", "warp", "lane"):
        index = getattr(error, name, None)
        if index is not None and index != -1:
            place.append(f"{name.upper() if name == 'cta' else name} {index}")
    found = str(error.message)
    if error.kind == "out-of-bounds" and error.is_global and parameters is not None:
        where = describe_fault(error.address, merged(parameters.storages), parameters.nulls)
        found += f"; {error.address:#x} is {where}"
    return DeviceError(
        str(error.kind),
        what=f"the kernel failed on the SIMT device: {str(error.kind).replace('-', ' ')}",
        where=", ".join(place),
        found=found,
        fix=_FIXES.get(error.kind, ""),
    )

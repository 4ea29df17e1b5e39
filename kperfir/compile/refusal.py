"""Says that a kernel runs without instrumentation, and why: in one place, so that Python shows each reason once."""

from __future__ import annotations

from kperfir.errors import CompileError, warn

PROTON = "Proton records in it, and Triton has one profile buffer for each launch"


def announce(kernel: str, reason: str) -> None:
    """Warn that `kernel` runs as it is, because of `reason`."""
    error = CompileError(
        "not-instrumented",
        what="a kernel cannot be instrumented and runs as it is",
        where=f"kernel {kernel}",
        found=reason,
        fix=_fix_of(reason),
    )
    warn(str(error))


def _fix_of(reason: str) -> str:
    if reason == PROTON:
        return "stop Proton's instrumentation or take its scopes out of the kernel; or leave the kernel to Proton"
    if reason.endswith("(buffer-bytes)"):
        return "set TRITON_KPERF_BUFFER_BYTES to such a size, or leave it unset"
    return "leave it out (TRITON_KPERF_KERNELS), or record fewer regions of it (TRITON_KPERF_REGIONS)"

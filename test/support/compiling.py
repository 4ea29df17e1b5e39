"""Compile cases of the corpus without launching them, plain or instrumented, for any target."""

from __future__ import annotations

import contextlib
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kperfir.config import resolve
from kperfir.errors import KPerfWarning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kernels.registry import Case

# Target names as the tables show them, and what Triton calls them.
TARGETS = {
    "sm_80": ("cuda", 80, 32),
    "sm_90": ("cuda", 90, 32),
    "sm_100": ("cuda", 100, 32),
    "gfx942": ("hip", "gfx942", 64),
}
# Those of which a few kernels are compiled: what differs from the ones above is little.
MORE_TARGETS = {
    "sm_89": ("cuda", 89, 32),
    "sm_120": ("cuda", 120, 32),
    "gfx950": ("hip", "gfx950", 64),
    "gfx1100": ("hip", "gfx1100", 32),
    "gfx1201": ("hip", "gfx1201", 32),
}


@dataclass(frozen=True, slots=True)
class Attempt:
    """A compilation: `error` says why Triton failed, `reason` why the kernel has no records."""

    compiled: Any = None
    error: str = ""
    reason: str = ""

    @property
    def layout(self) -> str:
        """JSON of the profile buffer, empty if the kernel was compiled as it is."""
        return getattr(self.compiled.metadata, "kperf_layout", "") if self.compiled else ""


@contextlib.contextmanager
def instrumentation(**options: Any) -> Iterator[None]:
    """Instrument what is compiled inside."""
    from kperfir.compile import triton_hook

    with triton_hook.installed(resolve({}, **options)):
        yield


def attempt(case: Case, target: str) -> Attempt:
    """Compile `case`, instrumented if that is switched on; never raises for what Triton cannot compile."""
    import triton
    from triton.backends.compiler import GPUTarget

    options = dict(case.options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            compiled = triton.compile(
                case.source(), target=GPUTarget(*(TARGETS | MORE_TARGETS)[target]), options=options
            )
        except Exception as error:
            return Attempt(error=f"{type(error).__name__}: {str(error).strip().splitlines()[-1][:200]}")
    reasons = [str(warning.message) for warning in caught if issubclass(warning.category, KPerfWarning)]
    return Attempt(compiled, reason="; ".join(reasons))


def compile_to_texts(kernel: Any, signature: dict[str, str], constants: dict[str, int], arch: int) -> dict[str, str]:
    """Compile a kernel for an NVIDIA GPU; return what each stage up to PTX has made of it."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    source = ASTSource(kernel, signature | dict.fromkeys(constants, "constexpr"), constants)
    compiled = triton.compile(source, target=GPUTarget("cuda", arch, 32))
    return {stage: compiled.asm[stage] for stage in ("ttir", "ttgir", "llir", "ptx")}


def stop_at_ptx(*arguments: Any) -> tuple[str, str] | None:
    """A stages hook that leaves ptxas out, which takes half of the time."""
    if not arguments:
        return "ptx", "ptx"
    arguments[1]["cubin"] = lambda ptx, metadata: b""
    return None

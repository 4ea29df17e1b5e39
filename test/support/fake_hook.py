"""A stand-in for `kperfir.compile.triton_hook`: kernels get a layout and a profile buffer, their code stays as it is.

`records(ctas)` is what an instrumented kernel would leave in the buffer of a launch.
"""

from __future__ import annotations

import hashlib
import random
from typing import Any

from support.programs import CtaSetting, Region, Role, Work, plan_program, run_cta

_plan = plan_program([Role("default", 4, [Region("kernel", [Work()])])])
LAYOUT = _plan.layout(strategy="saturate", words_per_warp=64)

_installed: list[tuple[Any, Any]] = []


def install(options: Any, registers_of: Any = None) -> None:
    """Chain onto Triton's stages hook."""
    import triton

    previous = triton.knobs.runtime.add_stages_inspection_hook

    def hook(*args: Any) -> tuple[str, str] | None:
        key = hashlib.sha256(f"fake {options}".encode()).hexdigest()
        if not args:
            before = previous() if previous else ("", "")
            return before[0] + key, before[1] + key
        if previous:
            previous(*args)
        stages = args[1]
        make_ptx = stages["ptx"]

        def make_ptx_with_layout(source: Any, metadata: dict[str, Any]) -> Any:
            ptx = make_ptx(source, metadata)
            metadata["kperf_layout"] = LAYOUT.text
            metadata["profile_scratch_size"], metadata["profile_scratch_align"] = LAYOUT.cta_bytes, 128
            return ptx

        stages["ptx"] = make_ptx_with_layout
        return None

    triton.knobs.runtime.add_stages_inspection_hook = hook
    _installed.append((hook, previous))


def uninstall() -> None:
    """Undo `install`."""
    import triton

    hook, previous = _installed.pop()
    if triton.knobs.runtime.add_stages_inspection_hook is hook:
        triton.knobs.runtime.add_stages_inspection_hook = previous


def records(ctas: int) -> bytes:
    """Return the profile buffer of a launch of `ctas` CTAs."""
    random_source = random.Random(ctas)
    return b"".join(
        run_cta(_plan, LAYOUT, random_source, CtaSetting(ctaid=(cta, 0, 0), start_clock=100)).data
        for cta in range(ctas)
    )

"""What kperfir adds to the compilation of a kernel: its passes, timed by MLIR, and its hooks, timed around them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

from kernels.cases import CASES
from kernels.matmuls import tiled
from sections.table import table
from support.compiling import attempt, instrumentation, stop_at_ptx

if TYPE_CHECKING:
    from collections.abc import Callable

KERNELS = ("vadd_fp32", "softmax_fp32", "matmul_fp16", "fa_fwd_fp16", "fa_bwd_dkdv", "matmul_persistent_tma_ws")
TARGETS = ("sm_80", "sm_90", "sm_100")
REPEATS = 5
BOUND_MS, BOUND_SHARE = 10.0, 0.02

# A line of MLIR's report: seconds, share, name.
_PASS = re.compile(
    r"^\s*(\d+\.\d+) \(.*?\)\s+"
    r"(KeepModule|InsertScopes|InsertRegions|VerifyBalance|AssignFrames|PlanBuffer|ConvertKPerfGPUToLLVM)"
)


def run() -> tuple[str, int]:
    """Compile each kernel in two processes of its own with empty caches: MLIR reports times in one of them."""
    rows = []
    for target in TARGETS:
        for name in KERNELS:
            if int(target[3:]) in CASES[name].archs:
                rows.append(_measure(name, target))
    columns = ("kernel", "target", "plain ms", "hooks and passes ms", "of these passes ms", "share", "within bound")
    text = "## Cost of compiling\n\nUp to PTX, without ptxas. The fastest of "
    text += f"{REPEATS}; the bound is {BOUND_MS:.0f} ms or {BOUND_SHARE:.0%}, whichever is larger. "
    text += "Passes are timed by MLIR,\nin a process of their own, since its report takes time in our hooks.\n"
    text += "MLIR runs no verifier behind our passes: the one behind Triton's next pass sees what they made.\n"
    text += "Kernels that add products to products, none of them here, are also compiled plain up to LLVM IR.\n\n"
    return text + table(columns, rows), 0


def _measure(name: str, target: str) -> list[Any]:
    plain, hooks, _, _ = _in_child(name, target)
    _, _, busy, report = _in_child(name, target, MLIR_ENABLE_TIMING="1")
    seconds = sum(float(match[1]) for line in report.splitlines() if (match := _PASS.match(line)))
    passes = 1000 * seconds * busy / REPEATS
    added = hooks + passes
    within = "yes" if added <= max(BOUND_MS, BOUND_SHARE * plain) else "no"
    return [name, target, plain, added, passes, f"{added / plain:.1%}", within]


def _in_child(name: str, target: str, **variables: str) -> tuple[float, float, float, str]:
    """What `main` prints, and what is on standard error."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **variables}
    child = subprocess.run(
        [sys.executable, "-P", "-m", "sections.compile", name, target],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    plain, hooks, busy = (float(word) for word in child.stdout.split())
    return plain, hooks, busy, child.stderr


def main(name: str, target: str) -> None:
    """Print the time of a plain compilation, of what our hooks do apart from running passes, and how busy we were.

    Times are CPU time in ms, of the fastest compilation: other load makes both slower, and not alike. MLIR reports
    wall time, which the share in which this process had a CPU corrects.
    """
    from triton import knobs

    knobs.compilation.always_compile = True
    knobs.runtime.add_stages_inspection_hook = stop_at_ptx
    case = CASES[name]
    # Imports, and what Triton and LLVM do once.
    attempt(tiled("warm-up", "fp16", "fp16", options={"num_warps": 4, "num_stages": 1}), target)
    plain = [_timed(lambda: attempt(case, target)) for _ in range(REPEATS)]
    clock = _HookClock()
    with instrumentation():
        clock.install()
        wall, cpu = time.perf_counter(), time.process_time()
        hooks = []
        for _ in range(REPEATS):
            before = clock.milliseconds
            attempt(case, target)
            hooks.append(clock.milliseconds - before)
        busy = (time.process_time() - cpu) / (time.perf_counter() - wall)
    print(min(plain), min(hooks), min(1.0, busy))


def _timed(action: Callable[[], Any]) -> float:
    started = time.process_time()
    action()
    return 1000 * (time.process_time() - started)


class _HookClock:
    """Time inside of kperfir's part of a stage, less Triton's own stages and pass managers inside of it."""

    def __init__(self) -> None:
        self.milliseconds = 0.0
        self._inner = 0.0

    def install(self) -> None:
        from triton._C.libtriton import ir

        from kperfir.compile import triton_hook

        compilation = triton_hook.Compilation
        for name in ("_run_ttgir", "_run_llir", "_run_later"):
            setattr(compilation, name, self._outside(getattr(compilation, name)))
        take_part = compilation.take_part

        def wrapped(this: Any) -> None:
            this._plain.update({name: self._inside(stage) for name, stage in this._plain.items()})
            take_part(this)

        compilation.take_part = wrapped  # type: ignore[method-assign]
        ir.pass_manager.run = self._inside(ir.pass_manager.run)

    def _outside(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*arguments: Any) -> Any:
            self._inner = 0.0
            started = time.process_time()
            result = function(*arguments)
            self.milliseconds += 1000 * (time.process_time() - started) - self._inner
            return result

        return wrapper

    def _inside(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*arguments: Any) -> Any:
            before, started = self._inner, time.process_time()
            try:
                return function(*arguments)
            finally:
                self._inner = before + 1000 * (time.process_time() - started)

        return wrapper


if __name__ == "__main__":
    main(*sys.argv[1:])

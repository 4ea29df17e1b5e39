"""Time from PTX text to a program of the SIMT device, for every kernel of the tests."""

from __future__ import annotations

import statistics
import time
from typing import Any

from kperfir._native import simt

from kernels.cases import CASES
from sections.table import table
from support.compiling import attempt

TARGETS = {"sm_80": 80, "sm_90": 90}
REPEATS = 5
LARGEST = 5


def run() -> tuple[str, int]:
    """Load every kernel a few times; the largest ones are shown, and what the 95th percentile takes."""
    rows: list[list[Any]] = []
    for target, arch in TARGETS.items():
        loads = [
            (len(module.instructions), seconds, name)
            for name, case in CASES.items()
            if arch in case.archs and (compiled := attempt(case, target).compiled)
            for module, seconds in [load(compiled.asm["ptx"])]
        ]
        loads.sort(reverse=True)
        p95 = loads[len(loads) // 20]
        rows += [[target, name, count, 1e3 * seconds] for count, seconds, name in loads[:LARGEST]]
        rows.append([target, f"95th percentile of {len(loads)}: {p95[2]}", p95[0], 1e3 * p95[1]])
    text = "## Load of a kernel on the SIMT device\n\n"
    text += f"CPU time from PTX text to a program, median of {REPEATS}; it is spent once for a text and process. The "
    text += "largest kernels of the tests.\n\n"
    return text + table(("target", "kernel", "instructions", "CPU ms"), rows), 0


def load(ptx: str) -> tuple[Any, float]:
    """The module of a text, and the CPU seconds that it takes."""
    seconds = []
    for _ in range(REPEATS):
        start = time.process_time()
        module = simt.Module(ptx)
        seconds.append(time.process_time() - start)
    return module, statistics.median(seconds)

"""Every kernel of the corpus on every target: compiled plain, compiled instrumented, and run where the device can."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from kernels.cases import CASES, WORKLOADS
from sections.table import table
from support.compiling import TARGETS, Attempt, attempt, instrumentation
from support.launch import run_profiled

if TYPE_CHECKING:
    from collections.abc import Iterator

FALLBACKS_ALLOWED = 3


def run() -> tuple[str, int]:
    """Compile and run; the status is 1 if a kernel that plain Triton compiles is lost, or too many fall back."""
    plain = {target: compile_all(target) for target in TARGETS}
    with instrumentation():
        instrumented = {target: compile_all(target) for target in TARGETS}
    ran = run_all()
    rows = [
        [
            name,
            *(outcome(plain[target].get(name), instrumented[target].get(name)) for target in TARGETS),
            ran.get(name, ""),
        ]
        for name in CASES
    ]
    text = "## Kernels of the tests\n\n" + table(("kernel", *TARGETS, "run on the SIMT device"), rows)
    counts = {target: [row[1 + index] for row in rows] for index, target in enumerate(TARGETS)}
    text += "\n" + table(
        ("target", "instrumented", "fallback", "lost", "not compiled by Triton"),
        [
            [target, *(sum(cell.startswith(word) for cell in cells) for word in ("yes", "fallback", "lost", "Triton"))]
            for target, cells in counts.items()
        ],
    )
    lost = any(cell.startswith("lost") for cells in counts.values() for cell in cells)
    many = any(sum(cell.startswith("fallback") for cell in cells) > FALLBACKS_ALLOWED for cells in counts.values())
    return text, int(lost or many or any(result != "matches" for result in ran.values()))


def compile_all(target: str) -> dict[str, Attempt]:
    """Attempts of all cases that are meant for `target`; every case without an NVIDIA-only language is tried on AMD."""
    arch = TARGETS[target][1]
    wanted = [
        case
        for case in CASES.values()
        if arch in case.archs or (arch == "gfx942" and not case.kernel.is_gluon() and 80 in case.archs)
    ]
    with silence():
        return {case.name: attempt(case, target) for case in wanted}


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Drop what the compiler prints about kernels that it cannot compile: whole modules. The table says what failed."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def outcome(plain: Attempt | None, instrumented: Attempt | None) -> str:
    """One cell of the table."""
    if plain is None or instrumented is None:
        return ""
    if plain.error:
        return f"Triton: {plain.error}"[:60]
    if instrumented.error:
        return f"lost: {instrumented.error}"[:120]
    return "yes" if instrumented.layout else f"fallback: {instrumented.reason}"[:120]


def run_all() -> dict[str, str]:
    """Profile every sm_80 workload on the SIMT device and verify what it computes."""
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, workload) in enumerate(WORKLOADS.items()):
            if workload.variant:
                continue
            try:
                profiled = run_profiled(workload, Path(folder) / f"{number}.kpf")
                workload.verify(profiled.arguments)
                results[name] = "matches"
            except Exception as error:
                results[name] = f"{type(error).__name__}: {str(error).splitlines()[0]}"[:120]
    return results

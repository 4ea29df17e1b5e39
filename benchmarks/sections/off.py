"""What kperfir costs a process that does not use it: the start of the interpreter, and what is left in Triton."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import sysconfig
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from sections.table import table
from support.traces import FIND_TRACES

PTH = Path(sysconfig.get_paths()["purelib"]) / "kperfir_activate.pth"
REPEATS = 60
BOUND_MS = 0.5

# What `site` does with our file at the start of every interpreter, timed inside.
_INSIDE = """
import site, sys, time
start = time.perf_counter_ns()
site.addpackage(sys.argv[1], sys.argv[2], set())
print((time.perf_counter_ns() - start) / 1e6)
"""
_START = "import site, sys; site.addsitedir(sys.argv[1])"


def run() -> tuple[str, int]:
    """Time the activation file alone, and whole interpreters with and without it, in turn."""
    inside = statistics.median(float(_python(_INSIDE, PTH.parent, PTH.name)) for _ in range(REPEATS))
    plain, installed = _time_starts()
    traces = json.loads(_python("import triton\n" + FIND_TRACES, site=True))
    within = inside <= BOUND_MS and not traces
    rows = [
        ["activation file at the start of an interpreter", f"{inside:.3f} ms", f"at most {BOUND_MS} ms"],
        ["whole start without it, with it", f"{plain:.2f} ms, {installed:.2f} ms", ""],
        ["objects of Triton that are replaced, hooks, modules loaded", str(len(traces)), "none"],
    ]
    text = f"## Cost when off\n\nNo variable of kperfir is set. Medians of {REPEATS} processes; whole starts alternate."
    text += "\nA launch runs through nothing of kperfir, so it costs nothing.\n\n"
    return text + table(("what", "found", "bound"), rows), 0 if within else 1


def _time_starts() -> tuple[float, float]:
    """Milliseconds of an interpreter whose only site folder is empty, and of one with the activation file in it."""
    with TemporaryDirectory() as empty, TemporaryDirectory() as full:
        (Path(full) / PTH.name).write_text(PTH.read_text())
        times: dict[str, list[float]] = {empty: [], full: []}
        for _ in range(REPEATS):
            for folder, taken in times.items():
                start = time.perf_counter()
                _python(_START, folder)
                taken.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times[empty]), statistics.median(times[full])


def _python(code: str, *arguments: str | Path, site: bool = False) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TRITON_KPERF", "PYTHON"))}
    command = [sys.executable, *([] if site else ["-S"]), "-P", "-c", code, *map(str, arguments)]
    return subprocess.run(command, env=kept, check=True, capture_output=True, text=True).stdout

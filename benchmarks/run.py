"""Measure kperfir, and write benchmarks/RESULTS.md.

    python benchmarks/run.py            every section
    python benchmarks/run.py simt       one section, printed only
    python benchmarks/run.py corpus     every kernel on every target: compiled, instrumented, run where it can be

Simulated figures are the same on every machine; host speed is this machine's, and labelled with its processor.
"""

from __future__ import annotations

import importlib
import os
import platform
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT.parent / "test"))  # The kernels and the launch helpers are the tests' own.

SECTIONS = ("overhead", "sass", "simt", "decode")
HEADING = """# Benchmarks

Written by `make bench` (benchmarks/run.py). Simulated cycles come from the timing model of the embedded SIMT device,
not from a GPU; they are the same on every machine. Host figures were taken on {machine}.
"""


def machine() -> str:
    """The processor and the number of CPUs, without anything that names the host."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    return f"{model}, {len(os.sched_getaffinity(0))} CPUs visible, Python {platform.python_version()}"


def main(arguments: list[str]) -> int:
    """Run the sections named on the command line, or all of them."""
    os.environ["TRITON_DEFAULT_FP_FUSION"] = "1"
    unknown = set(arguments) - {*SECTIONS, "corpus"}
    if unknown:
        print(f"no section {', '.join(sorted(unknown))}; there are {', '.join(SECTIONS)}, corpus", file=sys.stderr)
        return 2
    texts = []
    with tempfile.TemporaryDirectory() as cache:
        os.environ["TRITON_CACHE_DIR"] = cache
        for name in arguments or SECTIONS:
            text, status = importlib.import_module(f"sections.{name}").run()
            print(text, flush=True)
            texts.append(text)
            if status:
                return status
    if not arguments:
        written = "\n".join([HEADING.format(machine=machine()), *texts])
        (ROOT / "RESULTS.md").write_text(written, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

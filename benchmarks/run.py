"""Measure kperfir, and write benchmarks/RESULTS.md; or go through the corpus, for docs/corpus.md or docs/audit.md.

    python benchmarks/run.py            every section of the benchmarks
    python benchmarks/run.py simt       one section, printed only
    python benchmarks/run.py --corpus   every kernel of the tests and of real libraries, on every target
    python benchmarks/run.py --audit    what ptxas makes of every kernel of the tests

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

SECTIONS = ("overhead", "sass", "proton", "compile", "off", "load", "simt", "simt_mix", "decode", "advice")
CORPUS = ("corpus", "libraries")
AUDIT = ("audit",)
HEADING = """# Benchmarks

Written by `make bench` (benchmarks/run.py). Simulated cycles come from the timing model of the embedded SIMT device,
not from a GPU; they are the same on every machine. Host figures were taken on {machine}.
"""
CORPUS_HEADING = """# Corpus

Written by `make corpus` (benchmarks/run.py --corpus). What kperfir does with every kernel of the tests, and with every
kernel that the operations of real kernel libraries launch with their own host code, forward and backward.

A library's operation runs on the embedded SIMT device three times: plain under two orders of its warps, and profiled
with the default policy. Results are compared bit for bit, unless the two plain runs differ already. Autotuners get
their first configuration only. Every kernel that was launched is then instrumented again and assembled for sm_90 and
sm_100. A record that no longer fits into the buffer is dropped and counted; nothing else may be lost.
"""
AUDIT_HEADING = """# Audit

Written by `make audit` (benchmarks/run.py --audit). What ptxas makes of every kernel of the tests with the default
policy, by `kperfir audit` ([user guide](user-guide.md#audit-the-machine-code)): for each region, whether memory
accesses, matrix instructions and synchronisation stayed between the clock reads around them.
"""


def machine() -> str:
    """The processor and the number of CPUs, without anything that names the host."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    return f"{model}, {len(os.sched_getaffinity(0))} CPUs visible, Python {platform.python_version()}"


def main(arguments: list[str]) -> int:
    """Run the sections named on the command line, or all of them."""
    os.environ["TRITON_DEFAULT_FP_FUSION"] = "1"
    if arguments == ["--corpus"]:
        return write(ROOT.parent / "docs" / "corpus.md", CORPUS_HEADING, CORPUS)
    if arguments == ["--audit"]:
        return write(ROOT.parent / "docs" / "audit.md", AUDIT_HEADING, AUDIT)
    unknown = set(arguments) - {*SECTIONS, *CORPUS, *AUDIT}
    if unknown:
        known = ", ".join((*SECTIONS, *CORPUS, *AUDIT))
        print(f"no section {', '.join(sorted(unknown))}; there are {known}", file=sys.stderr)
        return 2
    if arguments:
        return max(run(name)[1] for name in arguments)
    return write(ROOT / "RESULTS.md", HEADING.format(machine=machine()), SECTIONS)


def write(path: Path, heading: str, sections: tuple[str, ...]) -> int:
    """Run `sections` and write what they found, faults included."""
    texts, statuses = zip(*(run(name) for name in sections), strict=True)
    path.write_text("\n".join([heading, *texts]), encoding="utf-8")
    return max(statuses)


def run(name: str) -> tuple[str, int]:
    """Run one section with a compile cache of its own, and print it."""
    with tempfile.TemporaryDirectory() as cache:
        os.environ["TRITON_CACHE_DIR"] = cache
        text, status = importlib.import_module(f"sections.{name}").run()
    print(text, flush=True)
    return text, status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Measure kperfir, and write benchmarks/RESULTS.md; or go through the corpus, for other documents.

    python benchmarks/run.py            every section of the benchmarks
    python benchmarks/run.py simt       one section, printed only
    python benchmarks/run.py --corpus   every kernel of the tests and of real libraries, on every target
    python benchmarks/run.py --audit    what ptxas makes of every kernel of the tests
    python benchmarks/run.py --accuracy what is reported of each, against the truth of the timing model

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

SECTIONS = ("overhead", "sass", "proton", "compile", "off", "load", "simt", "simt_mix", "decode", "advice", "page")
CORPUS = ("corpus", "libraries")
AUDIT = ("audit",)
ACCURACY = ("accuracy",)
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

ACCURACY_HEADING = """# Accuracy

Written by `make accuracy` (benchmarks/run.py --accuracy). What a capture with the default policy says of every kernel
of the tests, against what the timing model of the SIMT device says of it without the cost of records.

**The truth** is a ghost run: the instrumented kernel, whose own instructions execute and take no time
([timing-model.md](timing-model.md#ground-truth)). It is compared with the cycles of the plain kernel. They differ where
records keep LLVM from ordering, merging or unrolling what it otherwise would, which is then in all figures.

**Slowdown** is that of the whole launch: set-up, records, copy-out, and the CTAs that no longer fit on an SM because of
the buffer's shared memory. A small kernel pays the fixed part, of some 250 cycles, at once.

**Corrected** durations leave out what records took (`kperfir/analysis/correction.py`): a constant per record and per
frame, nothing where a wait hides it. An error of a region is that of the mean over its executions.

**Why kernels miss.** Four reasons explain most misses. *Waits move*: a region that waits for memory which was asked for
before other regions gets shorter by what records in between took; which of the waits hid how much cannot be told from
clocks alone, so it is in the uncertainty. *Contention*: where several warps of a sub-core compete for one unit (matrix
unit, shared memory, memory port), records change who comes first; single executions then differ by as much as one turn
of the unit, either way, and the mean of few executions by some of it. With four or more warps to a sub-core
(`warps_16`, `warps_32`) their records also queue for its issue slots, which a constant per record does not know.
*Occupancy*: fewer CTAs at a time wait less for
each other; `kperfir audit` says where that is so. *Short regions*: of a kernel of under a thousand cycles one per cent
is less than the uncertainty of a single wait. Tight loops that hold little but records (`while_for_while`, of one
record per frame) pay more than the constant for a frame. `atomics_i32` and `assert_print` differ already as ghosts.
In the one CTAs race for one address, and when each comes decides; in the other an instruction of ours waits, free or
not, for an unused result of a call, whose register it gets.

Time outside of leaf regions is arithmetic, which the default policy does not record (`regions="full"` does), and the
wait for a loaded value where arithmetic is the first to need it: it shows in the loop, iteration or kernel around.
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
    if arguments == ["--accuracy"]:
        return write(ROOT.parent / "docs" / "accuracy.md", ACCURACY_HEADING, ACCURACY)
    unknown = set(arguments) - {*SECTIONS, *CORPUS, *AUDIT, *ACCURACY}
    if unknown:
        known = ", ".join((*SECTIONS, *CORPUS, *AUDIT, *ACCURACY))
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

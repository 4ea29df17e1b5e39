"""Run every test of the project against the installed wheel, and count them.

    python tools/run_tests.py

Steps: lint, C++ tests (ctest), lit, pytest. All of them run even if one fails. The last
line says how many tests passed and failed over all steps; each linter run counts as one.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
BUILD = ROOT / "build" / "wheel"
REPORTS = ROOT / "build" / "reports"


@dataclass(frozen=True, slots=True)
class Step:
    """One test runner, and the JUnit file that it leaves (None: exit status only)."""

    name: str
    command: tuple[str | Path, ...]
    report: Path | None


@dataclass(frozen=True, slots=True)
class Count:
    """Tests of one step by outcome."""

    passed: int
    failed: int
    skipped: int


STEPS = (
    Step("lint", (sys.executable, ROOT / "tools" / "lint.py"), None),
    Step(
        "ctest",
        (BIN / "ctest", "--test-dir", BUILD, "-j2", "--output-on-failure", "--no-tests=error",
         "--progress", "--output-junit", REPORTS / "ctest.xml"),
        REPORTS / "ctest.xml",
    ),
    Step(
        "lit",
        (BIN / "lit", "-j2", "-s", "--xunit-xml-output", REPORTS / "lit.xml",
         ROOT / "test" / "Dialect", ROOT / "test" / "Passes"),
        REPORTS / "lit.xml",
    ),
    Step(
        "pytest",
        (BIN / "pytest", "-q", "-n2", "--dist", "loadfile", f"--junitxml={REPORTS / 'pytest.xml'}"),
        REPORTS / "pytest.xml",
    ),
)  # fmt: skip


def count(report: Path | None, status: int) -> Count:
    """Read a JUnit file; a runner that died without one is a failed test."""
    if report is None:
        return Count(int(status == 0), int(status != 0), 0)
    if not report.exists():
        return Count(0, 1, 0)
    cases = list(ElementTree.parse(report).iter("testcase"))
    failed = sum(has_child(case, "failure", "error") for case in cases)
    skipped = sum(has_child(case, "skipped") for case in cases)
    passed = len(cases) - failed - skipped
    if status and not failed:
        failed = 1  # Such as a collection error or a crashed worker.
    return Count(passed, failed, skipped)


def has_child(case: ElementTree.Element, *tags: str) -> bool:
    return any(case.find(tag) is not None for tag in tags)


def environment() -> dict[str, str]:
    """The caller's, less what would change what is tested."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("TRITON_") and k != "PYTHONPATH"}
    kept["PATH"] = f"{BIN}{os.pathsep}{kept['PATH']}"
    # The one setting that the references of the numeric tests assume.
    kept["TRITON_DEFAULT_FP_FUSION"] = "1"
    return kept


def main() -> int:
    REPORTS.mkdir(parents=True, exist_ok=True)
    counts, summary = [], []
    for step in STEPS:
        if step.report:
            step.report.unlink(missing_ok=True)
        print(f"=== {step.name} ===", flush=True)
        started = time.monotonic()
        result = subprocess.run(step.command, cwd=ROOT, env=environment(), check=False)
        counted = count(step.report, result.returncode)
        counts.append(counted)
        summary.append(
            f"{step.name:8} {counted.passed:6} passed {counted.failed:4} failed "
            f"{counted.skipped:4} skipped {time.monotonic() - started:7.1f} s"
        )
    print("\n".join(summary))
    failed = sum(item.failed for item in counts)
    print(
        f"{sum(item.passed for item in counts)} passed, {failed} failed, {sum(item.skipped for item in counts)} skipped"
    )
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())

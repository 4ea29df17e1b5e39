"""Parts of a compilation that may fail: what they print, and why they failed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from kperfir.compile.attempt import attempt, explain


def test_output_of_a_part_that_fails_is_its_reason(capfd: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        os.write(2, b"k.py:3:1: error: too many registers\nnote: here\n")
        raise RuntimeError("pass failed")

    assert attempt(fail) == (None, "too many registers")
    assert capfd.readouterr() == ("", "")


def test_output_of_a_part_that_works_is_let_go(capfd: pytest.CaptureFixture[str]) -> None:
    assert attempt(lambda: os.write(2, b"remark: slow\n")) == (13, None)
    assert capfd.readouterr().err == "remark: slow\n"


@pytest.mark.parametrize("closing", ["2>&-", ">&- 2>&-"])
def test_process_without_output_can_compile(closing: str) -> None:
    program = "import sys; from kperfir.compile.attempt import attempt; sys.exit(attempt(lambda: 7)[0])"
    done = subprocess.run(["sh", "-c", f'exec "$0" -c "$1" {closing}', sys.executable, program], check=False)
    assert done.returncode == 7


def test_program_that_closed_its_stderr_can_compile() -> None:
    program = (
        "import os, sys; os.close(2); from kperfir.compile.attempt import attempt; sys.exit(attempt(lambda: 7)[0])"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 7


def test_streams_that_a_program_has_replaced_are_no_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    class Writes:
        def write(self, text: str) -> int:
            return len(text)

    monkeypatch.setattr(sys, "stdout", Writes())
    monkeypatch.setattr(sys, "stderr", Writes())
    assert attempt(lambda: 7) == (7, None)


def test_output_that_nobody_reads_ends_no_compile() -> None:
    program = (
        "import os; from kperfir.compile.attempt import attempt; reader, writer = os.pipe(); os.close(reader); "
        "os.dup2(writer, 2); os._exit(sum(attempt(lambda: os.write(2, b'note'))[0] for _ in range(2)))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 8


def test_reason_of_ptxas_is_its_own_line() -> None:
    error = RuntimeError(
        "PTXAS error: Internal Triton PTX codegen error\n`ptxas` stderr:\n"
        "ptxas /tmp/x.ptx, line 367; fatal   : Parsing error near 'ote': syntax error\n"
        "ptxas fatal   : Ptx assembly aborted due to errors\n\nRepro command: ptxas -lineinfo /tmp/x.ptx\n"
    )
    assert explain(error, "") == "ptxas: fatal : Parsing error near 'ote': syntax error"

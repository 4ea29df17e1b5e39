"""Where commands write: never over what they read, nor with a traceback where they cannot."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from kperfir.cli.main import main
from support.synthetic import CaptureShape, matmul_plan, write_capture, write_matmul_capture

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("verb", [["export", "-o"], ["merge", "-o"], ["report", "--html"]])
def test_output_that_would_replace_the_input_is_refused(
    verb: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = tmp_path / ("x.csv" if verb[0] == "export" else "x.json")
    write_matmul_capture(name)
    before = name.read_bytes()
    assert main([verb[0], str(name), verb[1], str(name)]) == 2
    assert "same-file" in capsys.readouterr().err
    assert name.read_bytes() == before


def test_merge_names_the_formats_that_it_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_matmul_capture(tmp_path / "x.kpf")
    for name in ("all.csv", "all.speedscope.json", "all"):
        assert main(["merge", str(tmp_path / "x.kpf"), "-o", str(tmp_path / name)]) == 2
        assert "expected: .pftrace or .json" in capsys.readouterr().err


def test_run_does_not_replace_its_script(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "script.py"
    script.write_text("print(1)\n")
    assert main(["run", "-o", str(script), str(script)]) == 2
    assert "same-file" in capsys.readouterr().err
    assert script.read_text() == "print(1)\n"


@pytest.mark.parametrize("closed", ["stdout", "stderr"])
def test_closed_stream_is_no_error(closed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    capture = tmp_path / "x.kpf"
    write_matmul_capture(capture)
    monkeypatch.setattr(sys, closed, None)
    for verb in (["report"], ["report", "--json"], ["inspect"], ["advise"]):
        assert main([verb[0], str(capture), *verb[1:]]) == 0
    assert not getattr(sys, closed).buffer.raw.closefd, "Python would warn at its exit of a file that nobody closed"


def test_whatif_says_where_it_cannot_write(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "script.py"
    script.write_text("print(1)\n")
    assert main(["whatif", "-o", str(script), str(script)]) == 1
    assert "write-failed" in capsys.readouterr().err


def test_names_with_line_breaks_stay_in_their_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = matmul_plan(CaptureShape())
    plan.regions[0]["name"] = "two\nlines\tand é"
    write_capture(tmp_path / "x.kpf", plan, CaptureShape())
    assert main(["report", str(tmp_path / "x.kpf")]) == 0
    assert "two\\nlines\\tand é  " in capsys.readouterr().out

"""`kperfir run`: a script runs as Python would run it, in a session of the options given."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kperfir import config, session
from kperfir.errors import UsageError
from kperfir.runtime.run import run_script


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[config.Options]:
    """Options of the sessions that were started; none is really started."""
    options: list[config.Options] = []

    def start(settings: config.Options) -> SimpleNamespace:
        options.append(settings)
        return SimpleNamespace()

    monkeypatch.setattr(session, "start_process_session", start)
    monkeypatch.setattr(os, "environ", os.environ.copy())
    return options


def script(tmp_path: Path, text: str) -> str:
    path = tmp_path / "script.py"
    path.write_text(text)
    return str(path)


def run(argv: list[str], **settings: Any) -> int:
    return run_script(argv, config.resolve({}, **settings))


def test_run_gives_the_script_its_arguments_and_folder(
    tmp_path: Path, started: list[config.Options], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "beside.py").write_text("VALUE = 5\n")
    text = "import sys, beside\nif __name__ == '__main__': print(sys.argv[1:], beside.VALUE, __file__)\n"
    path = script(tmp_path, text)
    argv, search = sys.argv[:], sys.path[:]
    assert run([path, "--steps", "3"]) == 0
    assert capsys.readouterr().out == f"['--steps', '3'] 5 {path}\n"
    assert (sys.argv, sys.path) == (argv, search)
    assert len(started) == 1


def test_run_takes_a_module(tmp_path: Path, started: list[config.Options], capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "tool.py").write_text("import sys\nprint(__name__, sys.argv[1:])\n")
    assert run(["-m", "tool", "x"]) == 0
    assert capsys.readouterr().out == "__main__ ['x']\n"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("raise SystemExit(7)", 7),
        ("raise SystemExit", 0),
        ("import sys; sys.exit('no')", 1),
        ("1 / 0", 1),
        ("", 0),
        ("raise KeyboardInterrupt", 130),
    ],
)
def test_run_returns_the_exit_code_of_the_script(
    tmp_path: Path, started: list[config.Options], text: str, code: int
) -> None:
    assert run([script(tmp_path, text)]) == code


def test_run_shows_the_traceback_of_the_script_only(
    tmp_path: Path, started: list[config.Options], capsys: pytest.CaptureFixture[str]
) -> None:
    run([script(tmp_path, "def f():\n    1 / 0\nf()\n")])
    trace = capsys.readouterr().err
    assert trace.count("File ") == 2
    assert "ZeroDivisionError" in trace


def test_run_hands_its_options_to_child_processes(tmp_path: Path, started: list[config.Options]) -> None:
    text = "import os; assert os.environ['TRITON_KPERF'] == '1' and os.environ['TRITON_KPERF_LAUNCHES'] == '3'"
    assert run([script(tmp_path, text)], launches=3) == 0


@pytest.mark.parametrize(
    ("argv", "found"), [([], "nothing"), (["missing.py", "x"], "missing.py x, which does not exist"), (["-m"], "-m")]
)
def test_run_refuses_what_is_no_script(argv: list[str], found: str, started: list[config.Options]) -> None:
    with pytest.raises(UsageError, match="kperfir run") as caught:
        run(argv)
    assert caught.value.found == found
    assert started == []


def test_run_pretends_cuda_when_asked(tmp_path: Path, started: list[config.Options], chip_file: str) -> None:
    torch = pytest.importorskip("torch")
    text = "import torch; assert torch.ones(2, device='cuda').is_cuda"
    options = config.resolve({}, simt_chip=chip_file)
    assert run_script([script(tmp_path, text)], options, cuda_as_cpu=True) == 0
    assert not torch.cuda.is_available()
    assert [session_options.device for session_options in started] == ["simt"], "torch is not to be believed"


def test_run_does_not_pretend_cuda_and_ask_for_it(tmp_path: Path, started: list[config.Options]) -> None:
    with pytest.raises(UsageError, match="leave out one"):
        run_script([script(tmp_path, "")], config.resolve({}, device="cuda"), cuda_as_cpu=True)

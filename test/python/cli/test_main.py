"""Exit codes, streams, and errors of the command line as a whole."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import kperfir as kperfir_package
from kperfir.cli.main import VERBS

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Answer


def test_help_lists_every_verb(kperfir: Callable[..., Answer]) -> None:
    answer = kperfir("--help")
    assert answer.code == 0
    assert all(verb in answer.out for verb in VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(kperfir: Callable[..., Answer], verb: str) -> None:
    answer = kperfir(verb, "--help")
    assert answer.code == 0
    assert "Usage: kperfir" in answer.out


def test_version(kperfir: Callable[..., Answer]) -> None:
    assert kperfir("version").out == f"kperfir {version('kperfir')}\n"
    assert kperfir("--version").out == f"kperfir {version('kperfir')}\n"


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["report"], ["report", "--nonsense", "x.kpf"], ["export", "x.kpf"]]
)
def test_wrong_usage_is_exit_code_2(kperfir: Callable[..., Answer], arguments: list[str]) -> None:
    answer = kperfir(*arguments)
    assert answer.code == 2
    assert answer.out == ""
    assert "Usage" in answer.err


@pytest.mark.parametrize("verb", ["report", "inspect"])
def test_missing_file_is_one_message_of_four_parts(kperfir: Callable[..., Answer], tmp_path: Path, verb: str) -> None:
    path = tmp_path / "absent.kpf"
    answer = kperfir(verb, path)
    assert answer.code == 1
    assert answer.out == ""
    assert answer.err.splitlines() == [
        "kperfir: the capture file cannot be opened [file-missing]",
        f"  where: {path}",
        "  found: No such file or directory",
        "  fix: check the name of the file",
    ]


@pytest.mark.parametrize(
    ("content", "code"),
    [(b"", "not-a-kpf-file"), (b"\x7fELF" + bytes(200), "not-a-kpf-file")],
    ids=["empty", "foreign"],
)
def test_foreign_file_is_named_as_such(
    kperfir: Callable[..., Answer], tmp_path: Path, content: bytes, code: str
) -> None:
    path = tmp_path / "x.kpf"
    path.write_bytes(content)
    for verb in ("report", "inspect"):
        answer = kperfir(verb, path)
        assert answer.code == 1
        assert code in answer.err
        assert "Traceback" not in answer.err


def test_damaged_file_is_an_error_and_not_a_report(kperfir: Callable[..., Answer], whole: Path, tmp_path: Path) -> None:
    content = bytearray(whole.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path = tmp_path / "damaged.kpf"
    path.write_bytes(content)
    answer = kperfir("report", path)
    assert answer.code == 1
    assert "corrupt-file" in answer.err
    assert answer.out == ""


def test_truncated_file_is_reported_with_a_note(kperfir: Callable[..., Answer], whole: Path, tmp_path: Path) -> None:
    path = tmp_path / "killed.kpf"
    path.write_bytes(whole.read_bytes()[:-50])
    answer = kperfir("report", path)
    assert answer.code == 0
    assert "note: killed.kpf: " in answer.out


def test_capture_without_a_launch_is_reported_and_exported(
    kperfir: Callable[..., Answer], whole: Path, tmp_path: Path
) -> None:
    # What is left of a process that was killed in its first launch.
    third_chunk = json.loads(kperfir("inspect", whole, "--json").out)["chunks"][2]["offset"]
    path = tmp_path / "none.kpf"
    path.write_bytes(whole.read_bytes()[: third_chunk + 10])
    answer = kperfir("report", path)
    assert answer.code == 0
    assert answer.out.splitlines()[-1].startswith("no launch was recorded; ")
    assert json.loads(kperfir("report", path, "--json").out)["kernels"] == []
    for suffix in ("pftrace", "json", "csv", "parquet"):
        assert kperfir("export", path, "-o", tmp_path / f"none.{suffix}").code == 0
    assert b"no launch (simulated)" in (tmp_path / "none.pftrace").read_bytes()


def test_reader_that_closes_the_pipe_is_no_error(whole: Path) -> None:
    # A report of many rows, of which the reader takes one line.
    script = f"{sys.executable} -P -m kperfir export --format csv {whole} | head -n 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    header, code = done.stdout.splitlines()
    assert header.startswith("launch,kernel,cta")
    assert code == "0"
    assert "BrokenPipe" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_full_disk_behind_stdout_is_an_error_without_a_traceback(whole: Path) -> None:
    for verb in (["report"], ["export", "--format", "csv"], ["inspect"], ["inspect", "--json"]):
        with Path("/dev/full").open("w") as full:
            done = subprocess.run(
                [sys.executable, "-P", "-m", "kperfir", *verb, str(whole)],
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )
        assert done.returncode == 1
        assert "where: stdout" in done.stderr
        assert "Traceback" not in done.stderr


def test_source_folder_without_native_module_is_named(whole: Path, tmp_path: Path) -> None:
    source = Path(kperfir_package.__file__).parent
    copy = tmp_path / "kperfir"
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns("_native*", "__pycache__"))
    command = [sys.executable, "-m", "kperfir", "report", whole]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "native-missing" in done.stderr
    assert f"where: {copy}" in done.stderr
    assert "Traceback" not in done.stderr


def test_module_and_entry_point_are_the_same(kperfir: Callable[..., Answer]) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "kperfir", "version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == kperfir("version").out


def test_importing_the_command_line_imports_nothing_heavy() -> None:
    code = "import kperfir.cli.main, sys; print([m for m in ('triton', 'torch', 'pandas') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"

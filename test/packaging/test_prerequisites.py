"""A tool that the build needs and that is not there is named, with what to do about it."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "check_prerequisites.sh"
NEEDED_BY_THE_SCRIPT = ("sh", "uname")


def check(folder: Path, *, python: str = sys.executable, compiler: str = "g++") -> subprocess.CompletedProcess[str]:
    """Run the script where PATH has `folder` only."""
    for tool in NEEDED_BY_THE_SCRIPT:
        target = shutil.which(tool)
        assert target is not None
        if not (folder / tool).exists():
            (folder / tool).symlink_to(target)
    command = ["sh", str(SCRIPT), python, compiler]
    environment = os.environ | {"PATH": str(folder)}
    return subprocess.run(command, env=environment, check=False, capture_output=True, text=True)


def fake(folder: Path, name: str, body: str) -> str:
    path = folder / name
    path.write_text(f"#!{shutil.which('sh')}\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_everything_that_is_missing_is_named_at_once(tmp_path: Path) -> None:
    result = check(tmp_path, python="python-that-is-not-there", compiler="no-such-compiler")
    assert result.returncode == 1
    lines = result.stderr.splitlines()
    assert [line for line in lines if line.startswith("missing: ")] == [
        "missing: git",
        "missing: no-such-compiler, a C++20 compiler",
        "missing: python-that-is-not-there",
    ]
    fixes = [line for line in lines if line.startswith("    fix: ")]
    assert ["apt-get install git" in fixes[0], "apt-get install g++" in fixes[1]] == [True, True]
    assert "apt-get install python3" in fixes[2]


@pytest.mark.parametrize(
    ("fails", "package"),
    [("ensurepip", "python3-venv"), ("Python.h", "python3-dev"), ("version_info", "PYTHON=<Python 3.11 or newer>")],
)
def test_incomplete_python_is_told_by_package(tmp_path: Path, fails: str, package: str) -> None:
    fake(tmp_path, "git", "exit 0")
    fake(tmp_path, "g++", "exit 0")
    python = fake(tmp_path, "python3", f'case "$2" in *{fails}*) exit 1;; esac; exit 0')
    result = check(tmp_path, python=python)
    assert result.returncode == 1
    assert result.stderr.count("missing: ") == 1
    assert package in result.stderr


def test_old_compiler_is_told(tmp_path: Path) -> None:
    fake(tmp_path, "git", "exit 0")
    compiler = fake(tmp_path, "g++", 'case "$1" in -std=*) exit 1;; esac; echo 9.4.0')
    result = check(tmp_path, python=fake(tmp_path, "python3", "exit 0"), compiler=compiler)
    assert result.returncode == 1
    assert "missing: C++20 in" in result.stderr
    assert "(9.4.0)" in result.stderr


def test_this_machine_lacks_nothing(tmp_path: Path) -> None:
    command = ["sh", str(SCRIPT), sys.executable, os.environ.get("CXX") or "g++"]
    result = subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")

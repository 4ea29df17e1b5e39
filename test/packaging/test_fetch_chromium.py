"""Where the browser of the tests comes from, and that one that does not work is an error, not a skip.

apt-get is stood in for by a script that serves packages made here; unpacking is the real dpkg-deb's.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "fetch_chromium.py"
TOOLS = ("sh", "dpkg-deb", "tar", "readlink", "dirname", "cat")
# Renders the one page that it is tried with, if it finds its library where the launcher says.
BROWSER = """#!/bin/sh
case "$*" in
  --version) echo "Chromium 1.2" ;;
  *dump-dom*) for folder in $(echo "$LD_LIBRARY_PATH" | tr : ' '); do cat "$folder/libpage.so" 2>/dev/null; done ;;
esac
"""
APT_GET = """#!{python}
import pathlib, shutil, sys
archive = pathlib.Path({archive!r})
settings = dict(word.split("=", 1) for word in sys.argv[1:] if "=" in word)
if "install" in sys.argv:
    for deb in sorted(archive.glob("*.deb")):
        if "--print-uris" in sys.argv:
            print(f"'file:/archive/{{deb.name}}' {{deb.name}} 1 SHA256:0")
        else:
            shutil.copy(deb, pathlib.Path(settings["Dir::Cache"]) / "archives")
    if not any(archive.glob("*.deb")):
        sys.exit("E: Unable to locate package chromium")
"""


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine with nothing on its path but what unpacking takes."""

    root: Path

    @property
    def launcher(self) -> Path:
        return self.root / "deps" / "chromium" / "chromium"

    def script(self, path: Path, text: str) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
        return path

    def add(self, package: str, file: str, text: str) -> None:
        tree = self.root / "tree"
        self.script(tree / file, text)
        control = f"Package: {package}\nVersion: 1\nArchitecture: amd64\nMaintainer: a <a@b>\nDescription: d\n"
        self.script(tree / "DEBIAN" / "control", control)
        target = self.root / "archive" / f"{package}_1_amd64.deb"
        subprocess.run(["dpkg-deb", "-Znone", "--root-owner-group", "--build", tree, target], check=True)
        shutil.rmtree(tree)

    def fetch(self, **variables: str) -> subprocess.CompletedProcess[str]:
        kept = {name: value for name, value in os.environ.items() if name != "KPERFIR_CHROMIUM"}
        here = {"PATH": str(self.root / "bin"), "KPERFIR_DEPS": str(self.root / "deps")}
        return subprocess.run(
            [sys.executable, str(SCRIPT)], env=kept | here | variables, check=False, capture_output=True, text=True
        )

    def start(self) -> str:
        return subprocess.run([self.launcher, "--version"], check=True, capture_output=True, text=True).stdout


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    made = Machine(tmp_path)
    made.script(tmp_path / "bin" / "apt-get", APT_GET.format(python=sys.executable, archive=str(tmp_path / "archive")))
    (tmp_path / "archive").mkdir()
    for tool in (*TOOLS, "tr"):
        target = shutil.which(tool)
        assert target is not None
        (tmp_path / "bin" / tool).symlink_to(target)
    return made


def test_packages_that_lack_are_unpacked_and_tried(machine: Machine) -> None:
    machine.add("chromium", "usr/lib/chromium/chromium", BROWSER)
    machine.add("libpage", "usr/lib/x86_64-linux-gnu/libpage.so", "42")
    machine.add("libc6", "usr/lib/x86_64-linux-gnu/libc.so.6", "of another machine")
    result = machine.fetch()
    assert result.returncode == 0, result.stderr
    assert "3 packages" in result.stderr
    assert machine.start() == "Chromium 1.2\n"
    assert (machine.launcher.parent / "VERSION").read_text() == "Chromium 1.2\n"
    assert not list(machine.launcher.parent.rglob("libc.so.6"))
    moved = machine.launcher.parent.rename(machine.root / "moved")
    assert subprocess.run([moved / "chromium", "--version"], check=False).returncode == 0


@pytest.mark.parametrize("installed", [True, False])
def test_browser_of_the_machine_or_of_the_user_is_used_as_it_is(machine: Machine, installed: bool) -> None:
    path = machine.root / ("bin/chromium" if installed else "own browser")
    machine.script(path, BROWSER.replace("for folder", "echo 42; for folder"))
    result = machine.fetch(**({} if installed else {"KPERFIR_CHROMIUM": str(path)}))
    assert result.returncode == 0, result.stderr
    assert "packages" not in result.stderr
    assert machine.start() == "Chromium 1.2\n"


def test_browser_that_renders_nothing_is_an_error_with_its_fix(machine: Machine) -> None:
    machine.add("chromium", "usr/lib/chromium/chromium", BROWSER)
    result = machine.fetch()
    assert result.returncode == 1
    assert "does not render a page" in result.stderr
    assert "KPERFIR_CHROMIUM" in result.stderr
    assert not (machine.launcher.parent / "VERSION").exists()


def test_archive_without_the_package_is_an_error_with_its_fix(machine: Machine) -> None:
    result = machine.fetch()
    assert result.returncode == 1
    assert "Unable to locate package chromium" in result.stderr
    assert "KPERFIR_CHROMIUM" in result.stderr

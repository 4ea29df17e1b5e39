"""What the build fetches: suites in turn, no download twice, and no half of a tree left behind.

apt-get and pip are stood in for by scripts that serve packages made here; unpacking is the real dpkg-deb's.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "fetch_sources.py"
LLVM = ("libmlir-23-dev", "llvm-23-dev", "mlir-23-tools")
RUNTIME = ("libc6", "libstdc++6", "libgcc-s1", "libz3-4", "zlib1g", "libzstd1", "libtinfo6")
SHARED = "usr/lib/x86_64-linux-gnu"

# Serves the packages in $ARCHIVE/<suite>, whose names it lists as apt does; says in $ARCHIVE/log what it was asked for.
APT_GET = """#!{python}
import hashlib, os, pathlib, shutil, sys
archive = pathlib.Path(os.environ["ARCHIVE"])
words = [word for word in sys.argv[1:] if not word.startswith("-") and "=" not in word]
settings = dict(word.split("=", 1) for word in sys.argv[1:] if "=" in word)
with (archive / "log").open("a") as log:
    print(*words, file=log)
if words[0] == "indextargets":
    print("file:/archive|stable|main|Debian|Debian")
elif words[0] == "download":
    suite = pathlib.Path(settings["Dir::State::lists"]).parent.name
    for package in words[1:]:
        found = list((archive / suite).glob(package + "_*.deb"))
        if not found:
            sys.exit(f"E: Unable to locate package {{package}}")
        if "--print-uris" in sys.argv:
            digest = hashlib.sha256(found[0].read_bytes()).hexdigest()
            print(f"'file:/archive/{{found[0].name}}' {{found[0].name}} {{found[0].stat().st_size}} SHA256:{{digest}}")
        else:
            shutil.copy(found[0], ".")
            if os.environ.get("DAMAGED") == package:
                pathlib.Path(found[0].name).write_bytes(b"damaged")
"""


@dataclass(frozen=True, slots=True)
class Archive:
    """An archive of packages and the machine that fetches from it."""

    root: Path

    @property
    def deps(self) -> Path:
        return self.root / "deps"

    def add(self, suite: str, package: str, version: str, files: dict[str, str]) -> None:
        tree = self.root / "tree"
        for name, text in files.items():
            path = tree / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            path.chmod(0o755)
        control = tree / "DEBIAN" / "control"
        control.parent.mkdir(parents=True, exist_ok=True)
        control.write_text(
            f"Package: {package}\nVersion: {version}\nArchitecture: amd64\nMaintainer: a <a@b>\nDescription: d\n"
        )
        (self.root / suite).mkdir(exist_ok=True)
        target = self.root / suite / f"{package}_{version}_amd64.deb"
        subprocess.run(["dpkg-deb", "-Znone", "--root-owner-group", "--build", tree, target], check=True)
        shutil.rmtree(tree)

    def add_llvm(self, suite: str, version: str) -> None:
        """A suite that has everything; its C library's loader is a script that says which mlir-tblgen it would run."""
        series = version.partition(":")[2] or version
        self.add(suite, LLVM[0], version, {"usr/lib/llvm-23/include/mlir/IR/Operation.h": series})
        self.add(suite, LLVM[1], version, {
            "usr/include/llvm-23/llvm/Config/abi-breaking.h": "", "usr/include/llvm-c-23/llvm-c/DataTypes.h": "",
        })  # fmt: skip
        self.add(suite, LLVM[2], version, {"usr/lib/llvm-23/bin/mlir-tblgen": ""})
        loader = f"#!/bin/sh\necho LLVM version {series}\n"
        self.add(suite, RUNTIME[0], "2.42", {f"{SHARED}/ld-linux-x86-64.so.2": loader})
        for package in RUNTIME[1:]:
            self.add(suite, package, "1", {f"{SHARED}/{package}.so.1": ""})

    def fetch(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        variables = {
            "PATH": f"{self.root / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "ARCHIVE": str(self.root),
            "KPERFIR_DEPS": str(self.deps),
        }
        return subprocess.run(
            [sys.executable, str(SCRIPT), *arguments],
            env=os.environ | variables | environment, check=False, capture_output=True, text=True,
        )  # fmt: skip

    def downloads(self) -> list[str]:
        """Packages that were fetched, in order; listings do not count."""
        log = (self.root / "log").read_text().splitlines()
        return [words[1] for words in map(str.split, log) if words[0] == "download" and len(words) == 2]


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    apt_get = tmp_path / "bin" / "apt-get"
    apt_get.parent.mkdir()
    apt_get.write_text(APT_GET.format(python=sys.executable))
    apt_get.chmod(0o755)
    return Archive(tmp_path)


def test_first_suite_with_the_series_is_taken(archive: Archive) -> None:
    archive.add_llvm("unstable", "1:24.1.0-1")
    archive.add_llvm("stable-backports", "1:23.1.7-2")
    result = archive.fetch("llvm")
    assert result.returncode == 0, result.stderr
    assert (archive.deps / "llvm" / "VERSION").read_text() == "23.1.7-2\n"
    assert (archive.deps / "llvm" / "include" / "mlir" / "IR" / "Operation.h").read_text() == "23.1.7-2"
    assert "Debian stable-backports" in result.stderr


def test_no_suite_with_the_series_names_all_that_were_tried(archive: Archive) -> None:
    archive.add_llvm("unstable", "1:24.1.0-1")
    result = archive.fetch("llvm")
    assert result.returncode == 1
    assert "unstable: 24.1.0-1; testing: " in result.stderr
    assert "KPERFIR_LLVM_DIR" in result.stderr
    assert not (archive.deps / "llvm").exists()


def test_interrupted_fetch_goes_on_and_fetches_only_what_lacks(archive: Archive) -> None:
    archive.add_llvm("unstable", "1:23.1.4-1")
    broken = archive.fetch("llvm", DAMAGED="libz3-4")
    assert broken.returncode == 1
    assert "digest differs from the signed index" in broken.stderr
    assert not (archive.deps / "llvm").exists()
    before = archive.downloads()
    assert before == [*LLVM, *RUNTIME[: RUNTIME.index("libz3-4") + 1]]
    assert archive.fetch("llvm").returncode == 0
    assert archive.downloads()[len(before) :] == [*RUNTIME[RUNTIME.index("libz3-4") :]]


def test_package_without_its_files_replaces_nothing(archive: Archive) -> None:
    archive.add_llvm("unstable", "1:23.1.4-1")
    assert archive.fetch("llvm").returncode == 0
    archive.add("unstable", LLVM[1], "1:23.1.4-1", {"usr/include/llvm-23/llvm/Other.h": ""})
    result = archive.fetch("llvm")
    assert result.returncode == 1
    assert "fetch_sources: " in result.stderr
    assert "expected ./usr/include/llvm-c-23/llvm-c/* in it" in result.stderr
    assert (archive.deps / "llvm" / "include" / "llvm" / "Config" / "abi-breaking.h").exists()


def test_packed_tree_is_taken_only_with_its_digest(archive: Archive) -> None:
    archive.add_llvm("unstable", "1:23.1.4-1")
    assert archive.fetch("llvm").returncode == 0
    packed = archive.root / "llvm.tar.xz"
    digest = archive.fetch("pack", str(packed)).stdout.split()[0]
    assert digest == hashlib.sha256(packed.read_bytes()).hexdigest()
    shutil.rmtree(archive.deps)
    archive.deps.mkdir()
    wrong = archive.fetch("llvm", "--archive", str(packed), "--sha256", "0" * 64)
    assert wrong.returncode == 1
    assert f"sha256 is {digest}; expected {'0' * 64}" in wrong.stderr
    assert not (archive.deps / "llvm").exists()
    assert archive.fetch("llvm", "--archive", str(packed), "--sha256", digest).returncode == 0
    assert (archive.deps / "llvm" / "VERSION").read_text() == "23.1.4-1\n"


def test_googletest_sources_are_unpacked(archive: Archive) -> None:
    archive.add("stable", "googletest", "1.12.1-0.2", {"usr/src/googletest/CMakeLists.txt": "project"})
    assert archive.fetch("googletest").returncode == 0
    assert (archive.deps / "googletest" / "CMakeLists.txt").read_text() == "project"
    assert (archive.deps / "googletest" / "VERSION").read_text() == "1.12.1-0.2\n"


def test_libtriton_of_every_audited_wheel_is_taken_out_once(archive: Archive) -> None:
    (archive.root / "pip.py").write_text(FAKE_PIP)
    builds = json.loads((SCRIPT.parents[1] / "kperfir" / "compile" / "audited_libtriton.json").read_text())["builds"]
    (archive.root / "serves").write_text(json.dumps([build["wheel"] for build in builds]))
    for _ in range(2):
        result = archive.fetch("libtriton", PYTHONPATH=str(archive.root))
        assert result.returncode == 0, result.stderr
    files = {path.name: path.read_text() for path in (archive.deps / "libtriton").iterdir()}
    assert files == {f"{build['wheel']}.so": build["wheel"] for build in builds}
    assert (archive.root / "log").read_text().splitlines() == [build["wheel"] for build in builds]


def test_wheel_that_pip_does_not_find_is_named(archive: Archive) -> None:
    (archive.root / "pip.py").write_text(FAKE_PIP)
    (archive.root / "serves").write_text("[]")
    result = archive.fetch("libtriton", PYTHONPATH=str(archive.root))
    assert result.returncode == 1
    assert "pip has no wheel cp311-cp311 of triton==" in result.stderr
    assert "No matching distribution" in result.stderr


FAKE_PIP = """
import json, os, pathlib, sys, zipfile
archive = pathlib.Path(os.environ["ARCHIVE"])
options = dict(zip(sys.argv, sys.argv[1:]))
tag = "cp" + options["--python-version"] + "-" + options["--abi"]
with (archive / "log").open("a") as log:
    print(tag, file=log)
if tag not in json.loads((archive / "serves").read_text()):
    sys.exit("ERROR: No matching distribution")
folder = pathlib.Path(options["--dest"])
folder.mkdir(parents=True)
with zipfile.ZipFile(folder / "triton.whl", "w") as wheel:
    wheel.writestr("triton/_C/libtriton.so", tag)
"""

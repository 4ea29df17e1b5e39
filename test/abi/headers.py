"""Compile the audited headers once, the way the plugin is compiled, and keep the result."""

from __future__ import annotations

import hashlib
import os
import pickle
import shutil
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from abi.class_dump import HeaderClasses, parse_class_dump

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = ROOT / "build" / "abi"


def deps_dir() -> Path:
    """Where tools/fetch_sources.py puts what it fetches."""
    return Path(os.environ.get("KPERFIR_DEPS") or ROOT / ".deps")


def llvm_dir() -> Path:
    """Where the headers are: the same variable as the Makefile's, the same default."""
    return Path(os.environ.get("KPERFIR_LLVM_DIR") or deps_dir() / "llvm")


def triton_dir() -> Path:
    spec = find_spec("triton")
    assert spec is not None, "the triton wheel is not installed"
    assert spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0])


@cache
def compile_command() -> tuple[str, ...]:
    """g++ with the flags and include paths of tools/cmake/KPerfMLIR.cmake."""
    override = BUILD / "include" / "llvm" / "Config"
    override.mkdir(parents=True, exist_ok=True)
    original = (llvm_dir() / "include" / "llvm" / "Config" / "abi-breaking.h").read_text()
    checked = original.replace("LLVM_ENABLE_ABI_BREAKING_CHECKS 0", "LLVM_ENABLE_ABI_BREAKING_CHECKS 1")
    (override / "abi-breaking.h").write_text(checked)
    flags = ["-std=c++20", "-fno-rtti", "-fno-exceptions", "-fPIC", "-fvisibility=hidden"]
    system = [llvm_dir() / "include", triton_dir() / "include", triton_dir()]
    return (
        os.environ.get("CXX", "g++"),
        *flags,
        f"-I{BUILD / 'include'}",
        *(word for path in system for word in ("-isystem", str(path))),
    )


def dump_headers() -> HeaderClasses:
    """Classes of audited_headers.h, from a cache that is keyed by headers, compiler and source."""
    key = cache_key(HERE / "audited_headers.h", HERE / "class_dump.py", Path(__file__))
    cached = BUILD / f"classes-{key}.pickle"
    if not cached.exists():
        folder = BUILD / f"dump-{os.getpid()}"
        folder.mkdir(parents=True)
        source = folder / "audited.cpp"
        shutil.copy(HERE / "audited_headers.h", source)
        subprocess.run([*compile_command(), "-fsyntax-only", "-fdump-lang-class", source], cwd=folder, check=True)
        (dump,) = folder.glob("*.class")
        partial = folder / "classes.pickle"
        partial.write_bytes(pickle.dumps(parse_class_dump(dump)))
        partial.rename(cached)
        shutil.rmtree(folder)
    classes: HeaderClasses = pickle.loads(cached.read_bytes())
    return classes


def build_probe() -> Path:
    """probe.cpp as a Triton plugin, compiled anew only if it or what it depends on changed."""
    library = BUILD / f"probe-{cache_key(HERE / 'probe.cpp', Path(__file__))}.so"
    if not library.exists():
        BUILD.mkdir(parents=True, exist_ok=True)
        partial = library.with_suffix(f".{os.getpid()}")
        link = ["-shared", "-O1", HERE / "probe.cpp", "-o", partial, f"-L{triton_dir() / '_C'}", "-ltriton"]
        subprocess.run([*compile_command(), *link], check=True)
        partial.rename(library)
    return library


def included_headers() -> set[str]:
    """What audited_headers.h includes, directly or not, relative to LLVM's include folder."""
    command = [*compile_command(), "-M", "-x", "c++", HERE / "audited_headers.h"]
    rule = subprocess.run(command, text=True, capture_output=True, check=True).stdout
    include = str(llvm_dir() / "include") + "/"
    return {word.removeprefix(include) for word in rule.split() if word.startswith(include)}


def cache_key(*sources: Path) -> str:
    compiler = subprocess.run([*compile_command(), "--version"], capture_output=True, check=True).stdout
    version = llvm_dir() / "VERSION"
    digest = hashlib.sha256(compiler + sys.version.encode())
    digest.update(version.read_bytes() if version.exists() else str(llvm_dir()).encode())
    for path in (*sources, triton_dir() / "include" / "triton" / "Version.h"):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]

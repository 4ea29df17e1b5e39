"""The wheel, installed where there is nothing but its declared dependencies, works.

No compiler, no LLVM, no torch: what a user has after ``pip install kperfir``.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "build" / "packaging"
LLVM = Path(os.environ.get("KPERFIR_LLVM_DIR", ROOT / ".deps" / "llvm"))

LOAD_PLUGIN = """
import sys
from triton._C.libtriton import ir
ir.extend_dialects_with(sys.argv[1])
context = ir.context()
ir.load_dialects(context)
module = ir.parse_mlir_module(sys.argv[2], context)
print(module)
"""
# One operation of our own, in the form that every MLIR parser reads.
MODULE_WITH_RECORD = 'module { tt.func public @k() { kperf.record start "load" tt.return } }'


@pytest.fixture(scope="session")
def wheel() -> Path:
    (wheel,) = (ROOT / "build" / "wheelhouse").glob("kperfir-*.whl")
    return wheel


@pytest.fixture(scope="session")
def fresh_python(wheel: Path) -> Path:
    """Interpreter of an environment with the wheel; kept while the wheel's requirements are the same.

    Workers of one test run share it: one makes it, and it is not touched again while they use it.
    """
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        requirements = re.findall(r"^Requires-Dist: .*$", archive.read(metadata).decode(), re.MULTILINE)
    key = hashlib.sha256("\n".join([sys.version, *requirements]).encode()).hexdigest()[:16]
    environment = BUILD / key
    BUILD.mkdir(parents=True, exist_ok=True)
    with (BUILD / f"{key}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        install_wheel(environment, wheel)
    return environment / "bin" / "python"


def install_wheel(environment: Path, wheel: Path) -> None:
    """Make `environment`, or install `wheel` into it, unless it holds this very wheel."""
    installed, digest = environment / "installed", hashlib.sha256(wheel.read_bytes()).hexdigest()
    if installed.exists() and installed.read_text() == digest:
        return
    install = [environment / "bin" / "python", "-m", "pip", "install", "--quiet", "--only-binary=:all:"]
    if installed.exists():
        installed.write_text("")
        run([*install, "--force-reinstall", "--no-deps", "--no-index", wheel])
    else:
        run([sys.executable, "-m", "venv", "--clear", environment])
        run([*install, wheel])
    installed.write_text(digest)


def run(command: list[str | Path], cwd: Path | None = None) -> str:
    """Standard output of `command`; there is nothing in PATH, and no variable that could help."""
    environment = {"PATH": str(Path(command[0]).parent), "HOME": str(Path.home())}
    result = subprocess.run(
        command, env=environment | pip_settings(), cwd=cwd or BUILD, text=True, capture_output=True, check=False
    )
    assert result.returncode == 0, f"{command}: {result.stdout}{result.stderr}"
    return result.stdout


def pip_settings() -> dict[str, str]:
    """Where this machine's pip finds packages, and through what."""
    wanted = re.compile(r"(PIP|SSL|XDG)_.*|.*_proxy", re.IGNORECASE)
    return {name: value for name, value in os.environ.items() if wanted.fullmatch(name)}


def test_wheel_states_python_and_glibc_floor(wheel: Path) -> None:
    tag = "cp311-cp311" if sys.version_info < (3, 12) else "cp312-abi3"
    assert re.fullmatch(rf"kperfir-[\d.]+-{tag}-manylinux_2_\d+_x86_64\.whl", wheel.name)


def test_wheel_holds_plugin_native_module_and_activation(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert "kperfir/libkperfir_plugin.so" in names
    assert "kperfir_activate.pth" in names
    assert {"kperfir/_native/__init__.pyi", "kperfir/_native/record.pyi", "kperfir/_native/simt.pyi"} <= set(names)
    assert any(re.fullmatch(r"kperfir/_native\..*\.so", name) for name in names)
    assert "kperfir/include/kperfir/Policy.h" in names
    assert not any("__pycache__" in name or "test" in name.split("/") for name in names)


def test_plugin_serves_every_python_because_it_uses_none(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        plugin = archive.extract("kperfir/libkperfir_plugin.so", tmp_path)
    undefined = subprocess.run(["nm", "-D", "--undefined-only", plugin], text=True, capture_output=True, check=True)
    assert re.findall(r"\b_?Py[A-Z_]\w*", undefined.stdout) == []
    dynamic = subprocess.run(["objdump", "-p", plugin], text=True, capture_output=True, check=True).stdout
    assert "libpython" not in dynamic
    assert "RUNPATH" not in dynamic, "a path of the build machine is left in the plugin"
    assert "RPATH" not in dynamic


def test_fresh_environment_has_no_torch_and_no_compiler(fresh_python: Path) -> None:
    installed = {row["name"] for row in json.loads(run([fresh_python, "-m", "pip", "list", "--format=json"]))}
    assert {"kperfir", "triton", "numpy", "pandas"} <= installed
    assert installed.isdisjoint({"torch", "cmake", "ninja", "nanobind", "pytest"})


def test_import_works_in_fresh_environment(fresh_python: Path) -> None:
    found = Path(run([fresh_python, "-c", "import kperfir; print(kperfir.__file__)"]).strip())
    assert found.is_relative_to(fresh_python.parent.parent)


def test_native_module_loads_in_fresh_environment(fresh_python: Path) -> None:
    script = "from kperfir import _native; print(_native.record.__name__, _native.simt.__name__)"
    assert run([fresh_python, "-c", script]).split() == ["kperfir._native.record", "kperfir._native.simt"]


def test_doctor_finds_nothing_wrong_in_fresh_environment(fresh_python: Path) -> None:
    run([fresh_python.with_name("kperfir"), "doctor"])


def test_plugin_loads_into_libtriton_in_fresh_environment(fresh_python: Path, tmp_path: Path) -> None:
    script = "import kperfir, pathlib; print(pathlib.Path(kperfir.__file__).with_name('libkperfir_plugin.so'))"
    plugin = run([fresh_python, "-c", script]).strip()
    module = tmp_path / "module.mlir"
    module.write_text(MODULE_WITH_RECORD)
    assert 'kperf.record start "load"' in run([fresh_python, "-c", LOAD_PLUGIN, plugin, module])


def test_policy_of_the_guide_is_built_against_the_installed_wheel_and_runs(fresh_python: Path, tmp_path: Path) -> None:
    """The out-of-tree example of docs/pass-authors.md, with the header and the libtriton of the fresh environment."""
    if not (LLVM / "include" / "mlir").exists():
        pytest.skip(f"no headers of MLIR in {LLVM}")
    guide = (ROOT / "docs" / "pass-authors.md").read_text()
    (policy,) = re.findall(r"^```cpp\n(.*?)^```", guide, re.M | re.S)
    (tmp_path / "policy.cpp").write_text(policy)
    script = "import json; from kperfir import passes; print(json.dumps(passes.policy_flags()))"
    flags = json.loads(run([fresh_python, "-c", script], cwd=tmp_path))
    headers = fresh_python.parent.parent
    assert any(flag.startswith(f"-I{headers}") for flag in flags), "the header is not that of the wheel"
    compiler = shutil.which(os.environ.get("CXX") or "c++")
    assert compiler is not None
    build = [compiler, "policy.cpp", "-o", "policy.so", f"-isystem{LLVM}/include", *flags]
    done = subprocess.run(build, cwd=tmp_path, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    module = tmp_path / "kernel.ttgir"
    module.write_text("module { tt.func public @k(%x: f32) { %y = math.exp %x : f32 tt.return } }")
    run_policy = f"kperf-run-policy{{library={tmp_path}/policy.so policy=exponentials}}"
    printed = run([fresh_python.with_name("kperfir"), "opt", module, "--pass", run_policy])
    assert 'kperf.record start "exponential" of "math.exp"' in printed

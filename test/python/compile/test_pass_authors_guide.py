"""docs/pass-authors.md says what is so: its examples run, the one in C++ is built outside of kperfir."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import RunPython

ROOT = Path(__file__).resolve().parents[3]
GUIDE = (ROOT / "docs" / "pass-authors.md").read_text()
LLVM = Path(os.environ.get("KPERFIR_LLVM_DIR", ROOT / ".deps" / "llvm"))

TTGIR = """
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @k(%x: f32, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    scf.for %i = %c0 to %n step %c1 : i32 {
      %y = math.exp %x : f32
    }
    tt.return
  }
}
"""
# Profiles a kernel after the last example has added its policy.
PROFILE = """
import torch, triton, triton.language as tl, kperfir
@triton.jit
def k(x, y, n, B: tl.constexpr):
    o = tl.arange(0, B)
    for i in range(n):
        tl.store(y + i * B + o, tl.exp(tl.load(x + i * B + o)))
x, y = torch.randn(3, 128), torch.zeros(3, 128)
with kperfir.profile("policy.kpf", device="simt"):
    k[(1,)](x, y, 3, B=128)
torch.testing.assert_close(y, x.exp())
t = kperfir.load("policy.kpf")
one = t.spans[t.spans.warp == 0]
print(one.name.tolist().count("exponential"), t.marks[t.marks.warp == 0].value.tolist())
"""


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", GUIDE, re.M | re.S)


def test_callback_example_runs(run_python: RunPython, tmp_path: Path) -> None:
    (tmp_path / "example.py").write_text(blocks("python")[0])
    done = run_python("example.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.search(r"from load to store +16 ", done.stdout)
    assert done.stdout.count("[0, 1, 2, 3]") == 4


def test_patch_example_runs(run_python: RunPython, tmp_path: Path) -> None:
    (tmp_path / "example.py").write_text(blocks("python")[2])
    done = run_python("example.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("first operation") == 4


def test_frames_example_runs(run_python: RunPython, tmp_path: Path) -> None:
    (tmp_path / "example.py").write_text(blocks("python")[1])
    done = run_python("example.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("3 1 [(Event(edge='start', region=0), Event(edge='mark', region=1)), ")
    for name in ("fetch", "write", "row"):
        assert re.search(rf"{name} +16 ", done.stdout)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The guide's policy, built by the guide's script; the script goes on to profile a kernel."""
    if not (LLVM / "include" / "mlir").exists():
        pytest.skip(f"no headers of MLIR in {LLVM}")
    folder = tmp_path_factory.mktemp("policy")
    (folder / "exponentials.cpp").write_text(blocks("cpp")[0])
    (folder / "build.py").write_text(blocks("python")[3])
    environment = os.environ | {"KPERFIR_LLVM_DIR": str(LLVM)}
    done = subprocess.run(
        [sys.executable, "-P", "build.py"], cwd=folder, env=environment, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return folder / "exponentials.so"


def test_policy_records_what_it_says(library: Path, run_python: RunPython, tmp_path: Path) -> None:
    register = f"passes.add_pipeline('ttgir', passes.run_policy({str(library)!r}, 'exponentials'))\n"
    (tmp_path / "example.py").write_text("from kperfir import passes\n" + register + PROFILE)
    done = run_python("example.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[0] == "3 [0, 1, 2]"


def opt(tmp_path: Path, run_python: RunPython, passes: str, *more: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "k.ttgir").write_text(TTGIR)
    return run_python("-m", "kperfir", "opt", tmp_path / "k.ttgir", "--pass", passes, *more)


def test_policy_runs_on_files(library: Path, run_python: RunPython, tmp_path: Path) -> None:
    done = opt(tmp_path, run_python, f"kperf-run-policy{{library={library} policy=exponentials}}")
    assert done.returncode == 0, done.stderr
    assert 'kperf.mark "turn"(%' in done.stdout
    assert re.search(r'start "exponential" of "math.exp"\n.*math.exp.*\n.*end "exponential"', done.stdout)


def test_policy_that_is_not_there_is_refused(library: Path, run_python: RunPython, tmp_path: Path) -> None:
    done = opt(tmp_path, run_python, f"kperf-run-policy{{library={library} policy=other}}")
    assert done.returncode == 1
    assert "has no policy other" in done.stderr
    done = opt(tmp_path, run_python, "kperf-run-policy{library=/nowhere/x.so policy=other}")
    assert done.returncode == 1
    assert "cannot be loaded" in done.stderr


def test_opt_prints_and_times_each_pass(run_python: RunPython, tmp_path: Path) -> None:
    pipeline = "kperf-insert-regions,kperf-verify-balance,kperf-assign-frames"
    done = opt(tmp_path, run_python, pipeline, "--print-after-all", "--timing")
    assert done.returncode == 0, done.stderr
    for name in pipeline.split(","):
        assert f"// after {name}\n" in done.stderr
        assert re.search(rf"^// +[0-9.]+ ms  {name}$", done.stderr, re.M)
    assert "kperf.record" not in done.stdout
    assert "kperf_gpu.stamp" in done.stdout
    plain = opt(tmp_path, run_python, pipeline)
    folder = re.compile(r'"[^"]*/k\.ttgir"')  # The file is parsed in a folder of its own each time.
    assert folder.sub("k", plain.stdout) == folder.sub("k", done.stdout)
    assert plain.stderr == ""


def test_opt_prints_what_passes_did_before_one_failed(run_python: RunPython, tmp_path: Path) -> None:
    done = opt(tmp_path, run_python, "kperf-insert-regions,kperf-plan-buffer{strategy=all}", "--print-after-all")
    assert done.returncode == 1
    assert "// after kperf-insert-regions\n" in done.stderr
    assert "strategy is 'all'" in done.stderr

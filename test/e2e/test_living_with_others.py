"""Programs that use Triton in other ways too: another profiler, threads, caches, switches of Triton, torch.compile."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

import kperfir

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import RunPython

KERNELS = """
import os, sys, threading, warnings
import numpy as np
import triton
import triton.language as tl
import kperfir

@triton.jit
def scale(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) * 3.0, mask=i < n)

def work(times=1):
    x = np.arange(1000, dtype=np.float32)
    for _ in range(times):
        scale[(4,)](x, 1000, BLOCK=256)
    return float(x.sum())
"""

PROTON = """
import torch
import triton.profiler.language as pl
from triton.profiler.hooks.instrumentation import InstrumentationHook

@triton.jit
def scoped(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    pl.enter_scope("load")
    value = tl.load(x + i, mask=i < n)
    pl.exit_scope("load")
    tl.store(x + i, value + 1.0, mask=i < n)

hook = InstrumentationHook("default")

def allocate(size, alignment, stream):
    hook.buffer = torch.zeros(size, dtype=torch.uint8)
    return hook.buffer

hook.allocator = allocate  # Proton's own asks for CUDA memory.

def both():
    work()
    x = np.arange(1000, dtype=np.float32)
    scoped[(4,)](x, 1000, BLOCK=256)
    return float(x.sum())
"""


@pytest.mark.parametrize("first", ["proton", "kperfir"])
def test_proton_and_kperfir_share_a_process(first: str, tmp_path: Path, run_python: RunPython) -> None:
    starts = "hook.activate(); pl.enable_semantic('triton')\n"
    profile = "with kperfir.profile('out.kpf', device='simt'):\n"
    (tmp_path / "both.py").write_text(
        KERNELS + PROTON + (starts + profile if first == "proton" else profile + "    " + starts)
        + "    print(both(), bool(hook.buffer.any()))\n"
    )  # fmt: skip
    done = run_python(tmp_path / "both.py", cwd=tmp_path, TRITON_KPERF_DEVICE="simt")
    assert (done.returncode, done.stdout) == (0, "500500.0 True\n"), done.stderr
    assert done.stderr.count("Proton records in it") == 1
    timeline = kperfir.load(tmp_path / "out.kpf")
    assert timeline.launches["kernel"].tolist() == ["scale"]
    assert any("1 launch of scoped ran without instrumentation" in note for note in timeline.notes)


def test_threads_launch_at_the_same_time(tmp_path: Path, run_python: RunPython) -> None:
    (tmp_path / "threads.py").write_text(
        KERNELS + "sums = []\n"
        "threads = [threading.Thread(target=lambda: sums.append(work(5))) for _ in range(4)]\n"
        "with kperfir.profile('out.kpf', device='simt', launches=100):\n"
        "    for thread in threads: thread.start()\n"
        "    for thread in threads: thread.join()\n"
        "print(sorted(set(sums)), len(sums))\n"
    )
    done = run_python(tmp_path / "threads.py", cwd=tmp_path)
    expected = float((np.arange(1000, dtype=np.float32) * 3**5).sum())
    assert (done.returncode, done.stdout) == (0, f"[{expected}] 4\n"), done.stderr
    timeline = kperfir.load(tmp_path / "out.kpf")
    assert len(timeline.launches) == 20
    assert (timeline.launches["dropped"] == 0).all()
    assert timeline.tracks.groupby("launch")["stamps"].sum().nunique() == 1
    assert timeline.spans["complete"].all()


def test_kernels_of_earlier_runs_come_from_the_right_cache(tmp_path: Path, run_python: RunPython) -> None:
    (tmp_path / "program.py").write_text(KERNELS + "print(work())\n")
    settings = {"TRITON_CACHE_DIR": str(tmp_path / "cache"), "TRITON_KPERF_DEVICE": "simt"}
    for number, profiled in enumerate((False, True, False, True)):
        more = {"TRITON_KPERF": "1", "TRITON_KPERF_OUT": f"{number}.kpf"} if profiled else {}
        done = run_python(tmp_path / "program.py", cwd=tmp_path, **settings, **more)
        assert (done.returncode, done.stdout) == (0, "1498500.0\n"), done.stderr
        assert (tmp_path / f"{number}.kpf").exists() == profiled
        if profiled:
            assert len(kperfir.load(tmp_path / f"{number}.kpf").spans) > 0


def test_copy_of_a_kernel_is_reported_from_its_own_file(tmp_path: Path, run_python: RunPython) -> None:
    """And a tool that is called with the variables of the program still set does not take part in them."""
    settings = {"TRITON_CACHE_DIR": str(tmp_path / "cache"), "TRITON_KPERF_DEVICE": "simt", "TRITON_KPERF": "1"}
    for name in ("first", "second", 'qu"oted'):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "program.py").write_text(KERNELS + "print(work())\n")
        done = run_python(folder / "program.py", cwd=folder, TRITON_KPERF_OUT="x.kpf", **settings)
        assert done.returncode == 0, done.stderr
        files = set(kperfir.load(folder / "x.kpf").spans["file"].astype(str))
        assert files == {str(folder / "program.py")}
    done = run_python("-m", "kperfir", "audit", tmp_path / "second" / "x.kpf", cwd=tmp_path, **settings)
    assert done.returncode == 0, done.stdout + done.stderr
    # Nothing can read the PTX that LLVM writes for such a path; that is said in one line, without the PTX.
    done = run_python("-m", "kperfir", "audit", tmp_path / 'qu"oted' / "x.kpf", cwd=tmp_path, **settings)
    assert done.returncode == 1
    assert "not audited: ptxas: fatal : Parsing error" in done.stdout
    assert ".target" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    "switches",
    [
        {"TRITON_ALWAYS_COMPILE": "1"},
        {"TRITON_KERNEL_DUMP": "1"},
        {"MLIR_ENABLE_DUMP": "scale", "MLIR_ENABLE_TIMING": "1"},
        {"LLVM_IR_ENABLE_DUMP": "1"},
        {"TRITON_DISABLE_LINE_INFO": "1"},
        {"TRITON_DEBUG": "1"},
        {"TRITON_FRONT_END_DEBUGGING": "1"},
    ],
    ids=lambda switches: "+".join(switches),
)
def test_switches_of_triton_do_not_disturb(switches: dict[str, str], tmp_path: Path, run_python: RunPython) -> None:
    (tmp_path / "program.py").write_text(KERNELS + "print('sum', work())\n")
    settings = {
        "TRITON_KPERF": "1", "TRITON_KPERF_OUT": "out.kpf", "TRITON_DUMP_DIR": str(tmp_path / "dump"),
        "TRITON_CACHE_DIR": str(tmp_path / "cache"),
    }  # fmt: skip
    done = run_python(tmp_path / "program.py", cwd=tmp_path, **settings, **switches)
    assert done.returncode == 0, done.stderr
    assert "sum 1498500.0" in done.stdout
    timeline = kperfir.load(tmp_path / "out.kpf")
    assert timeline.launches["kernel"].tolist() == ["scale"]
    assert timeline.spans["complete"].all()
    if "TRITON_KERNEL_DUMP" in switches:
        assert "kperf_gpu" in "".join(path.read_text() for path in (tmp_path / "dump").rglob("*.ttgir"))


def test_interpreted_kernels_are_left_alone(tmp_path: Path, run_python: RunPython) -> None:
    (tmp_path / "program.py").write_text(
        KERNELS + "import torch\nx = torch.arange(1000.)\nscale[(4,)](x, 1000, BLOCK=256)\nprint(float(x.sum()))\n"
    )
    done = run_python(
        tmp_path / "program.py", cwd=tmp_path, TRITON_KPERF="1", TRITON_INTERPRET="1", TRITON_KPERF_OUT="out.kpf"
    )
    assert (done.returncode, done.stdout) == (0, "1498500.0\n"), done.stderr
    assert "TRITON_INTERPRET is set" in done.stderr


def test_kernel_compiled_ahead_of_time_is_recorded_when_it_is_launched(tmp_path: Path, run_python: RunPython) -> None:
    (tmp_path / "ahead.py").write_text(
        KERNELS + "from triton.compiler import ASTSource\n"
        "with kperfir.profile('out.kpf', device='simt'):\n"
        "    source = ASTSource(scale, {'x': '*fp32', 'n': 'i32', 'BLOCK': 'constexpr'}, {(2,): 256})\n"
        "    compiled = triton.compile(source)\n"
        "    x = np.arange(1000, dtype=np.float32)\n"
        "    compiled[(4, 1, 1)](kperfir.simt_array(x), 1000, 256)\n"
        "print(float(x.sum()))\n"
    )
    done = run_python(tmp_path / "ahead.py", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "1498500.0\n"), done.stderr
    assert kperfir.load(tmp_path / "out.kpf").launches["kernel"].tolist() == ["scale"]


def test_workers_of_pytest_write_files_of_their_own(tmp_path: Path, run_python: RunPython) -> None:
    (tmp_path / "test_program.py").write_text(
        KERNELS
        + "import pytest\n@pytest.mark.parametrize('n', range(4))\ndef test_work(n): assert work() == 1498500.0\n"
    )
    done = run_python(
        "-m", "pytest", "-q", "-n2", "--dist", "each", "-p", "no:cacheprovider", tmp_path,
        cwd=tmp_path, TRITON_KPERF="1",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    files = sorted(tmp_path.glob("kperf-*.kpf"))
    assert len(files) == 2
    assert [len(kperfir.load(file).launches) for file in files] == [4, 4]


INDUCTOR = """
import json
import torch
import torch._inductor.config as inductor
import torch._inductor.runtime.triton_heuristics as heuristics
from triton.backends.compiler import GPUTarget
import kperfir

# Inductor writes Triton kernels for the CPU on request; the SIMT device is the CPU that can run them.
inductor.cpu_backend = "triton"
inductor.compile_threads = 1
heuristics.GPUTarget = lambda *arguments: GPUTarget("cuda", 80, 32)

def function(x, y):
    return torch.softmax(x * y + 1, -1).sum(0)

x, y = torch.randn(32, 200), torch.randn(32, 200)
with kperfir.profile("out.kpf", device="simt"):
    error = (torch.compile(function)(x, y) - function(x, y)).abs().max()
print(json.dumps(float(error)))
"""


def test_kernels_of_torch_compile_are_recorded(tmp_path: Path, run_python: RunPython) -> None:
    (tmp_path / "compiled.py").write_text(INDUCTOR)
    done = run_python(tmp_path / "compiled.py", cwd=tmp_path, TORCHINDUCTOR_CACHE_DIR=str(tmp_path / "inductor"))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) < 1e-5
    timeline = kperfir.load(tmp_path / "out.kpf")
    assert len(timeline.launches) >= 1
    assert timeline.launches["kernel"].str.startswith("triton_").all()
    assert {"load", "reduce", "store"} <= set(timeline.spans["kind"])
    assert timeline.spans["complete"].all()

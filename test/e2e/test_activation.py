"""Profiling programs that know nothing of kperfir, each in a process of its own; the wheel must be installed."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import kperfir
from support.traces import FIND_TRACES

if TYPE_CHECKING:
    pass

KERNEL = """
import os, sys
import numpy as np
import triton
import triton.language as tl

@triton.jit
def scale(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) * 3.0, mask=i < n)

@triton.jit
def shift(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) + 1.0, mask=i < n)

def work(times=1):
    x = np.arange(1000, dtype=np.float32)
    for _ in range(times):
        scale[(4,)](x, 1000, BLOCK=256)
        shift[(4,)](x, 1000, BLOCK=256)
    return float(x.sum())
"""

MAIN = KERNEL + "print(work(int(sys.argv[1]) if sys.argv[1:] else 1))\n"

Run = "Callable[..., subprocess.CompletedProcess[str]]"


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.py"
    path.write_text(MAIN)
    return path


def captures(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.kpf"))


def launches(path: Path) -> dict[str, int]:
    return {str(name): int(n) for name, n in kperfir.load(path).launches["kernel"].value_counts().items()}


def test_script_is_profiled_when_the_variable_is_set_and_computes_the_same(
    script: Path, tmp_path: Path, run_python: Run
) -> None:
    plain = run_python(script, cwd=tmp_path, TRITON_KPERF_DEVICE="simt")
    assert plain.returncode == 0, plain.stderr
    assert captures(tmp_path) == []
    assert plain.stderr == ""
    profiled = run_python(script, cwd=tmp_path, TRITON_KPERF="1")
    assert profiled.returncode == 0, profiled.stderr
    assert profiled.stdout == plain.stdout
    (path,) = captures(tmp_path)
    assert launches(path) == {"scale": 1, "shift": 1}
    assert profiled.stderr.startswith(f"kperfir: 2 launches of 2 kernels in {path} (simulated time)")
    assert profiled.stderr.count("\n") == 1


def test_nothing_changes_when_no_variable_is_set(tmp_path: Path, run_python: Run) -> None:
    code = KERNEL + (
        "import sys\n"
        "assert not [name for name in sys.modules if name.startswith('kperfir')]\n"
        "assert triton.knobs.runtime.add_stages_inspection_hook is None\n"
        "work()\n"
    )
    (tmp_path / "plain.py").write_text(code)
    result = run_python(tmp_path / "plain.py", cwd=tmp_path)
    assert "0 active drivers" in result.stderr
    assert captures(tmp_path) == []


def test_nothing_of_kperfir_is_in_a_process_that_does_not_use_it(tmp_path: Path, run_python: Run) -> None:
    """Only the activation file is read, no hook is set, nothing of Triton is replaced: a launch costs nothing."""
    imports = "import triton, triton.runtime, triton.compiler, triton.testing\n"
    off = run_python("-c", imports + FIND_TRACES, cwd=tmp_path)
    assert json.loads(off.stdout) == [], off.stderr
    # The search finds what is there when it is on.
    on = json.loads(run_python("-c", imports + FIND_TRACES, cwd=tmp_path, TRITON_KPERF="1").stdout)
    assert {"kperfir.session", "triton.compiler.compiler.CompiledKernel.run", "sys.excepthook"} <= set(on)
    assert "triton.knobs.runtime.add_stages_inspection_hook" in on
    # A session that is over leaves no hook behind.
    used = "import kperfir\nwith kperfir.profile('x.kpf', device='simt'): pass\n"
    over = json.loads(run_python("-c", imports + used + FIND_TRACES, cwd=tmp_path).stdout)
    assert [place for place in over if place.split(".")[0] != "kperfir"] == []


def test_settings_come_from_the_environment(script: Path, tmp_path: Path, run_python: Run) -> None:
    result = run_python(
        script, "5", cwd=tmp_path, TRITON_KPERF="1", TRITON_KPERF_OUT="traces/", TRITON_KPERF_KERNELS="sc*",
        TRITON_KPERF_LAUNCHES="3",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    (path,) = captures(tmp_path / "traces")
    assert launches(path) == {"scale": 3}
    assert "not kept: 2 past the bound per kernel" in result.stderr


def test_unknown_variable_warns_with_a_suggestion(script: Path, tmp_path: Path, run_python: Run) -> None:
    result = run_python(script, cwd=tmp_path, TRITON_KPERF="1", TRITON_KPERF_KERNEL="scale")
    assert result.returncode == 0
    assert "did you mean TRITON_KPERF_KERNELS?" in result.stderr


def test_bad_value_is_named_and_the_script_runs_on(tmp_path: Path, run_python: Run) -> None:
    code = "import triton; print('still here')"
    result = run_python("-c", code, cwd=tmp_path, TRITON_KPERF="1", TRITON_KPERF_LAUNCHES="many")
    assert result.stdout == "still here\n"
    assert "kperfir is not active" in result.stderr
    assert "TRITON_KPERF_LAUNCHES" in result.stderr


def test_bad_value_is_the_reason_that_triton_has_no_device(script: Path, tmp_path: Path, run_python: Run) -> None:
    result = run_python(script, cwd=tmp_path, TRITON_KPERF="1", TRITON_KPERF_LAUNCHES="many")
    assert result.returncode == 1
    # No traceback through Triton's files: the line of the script, and what to change.
    assert "Traceback" not in result.stderr
    last = result.stderr[result.stderr.rindex(f"{script}:") :]
    assert re.match(
        re.escape(f"{script}:") + r"\d+: Triton finds no GPU, and kperfir is not active: an option has", last
    )
    assert "variable TRITON_KPERF_LAUNCHES" in last
    assert "active drivers" not in result.stderr


@pytest.mark.parametrize(("name", "value"), [("SIMT_CHIP", "h1000"), ("SIMT_CHIP", "/no/such.json"), ("DEVICE", "gpu")])
def test_device_that_cannot_be_is_said_once_and_without_a_traceback(
    script: Path, tmp_path: Path, run_python: Run, name: str, value: str
) -> None:
    result = run_python(
        script, cwd=tmp_path, TRITON_KPERF="1", **{"TRITON_KPERF_DEVICE": "simt", f"TRITON_KPERF_{name}": value}
    )
    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    assert value in result.stderr
    assert "Errno 2] No such file" not in result.stderr or value.endswith(".json")


def test_error_of_a_missing_device_is_of_the_type_that_libraries_expect(tmp_path: Path, run_python: Run) -> None:
    code = """if True:
        import triton
        try:
            triton.runtime.driver.active.get_current_target()
        except RuntimeError as error:
            print('no device:', error)
    """
    result = run_python("-c", code, cwd=tmp_path, TRITON_KPERF="1", TRITON_KPERF_DEVICE="gpu")
    assert result.stdout.startswith("no device: Triton finds no GPU")


@pytest.mark.parametrize("way", [["-m", "kperfir", "run"], []])
def test_script_that_asks_torch_for_cuda_is_told_of_the_option(tmp_path: Path, run_python: Run, way: list[str]) -> None:
    torch = pytest.importorskip("torch")
    assert not torch.cuda.is_available()
    path = tmp_path / "script_for_gpu.py"
    path.write_text("import torch\ntorch.zeros(4, device='cuda')\n")
    result = run_python(*way, path, cwd=tmp_path, TRITON_KPERF="1")
    assert result.returncode == 1
    *_, error, advice = result.stderr.splitlines()
    assert error.startswith("AssertionError: Torch not compiled with CUDA enabled")
    assert "`kperfir run --cuda-as-cpu SCRIPT`" in advice
    cured = run_python("-m", "kperfir", "run", "--cuda-as-cpu", path, cwd=tmp_path)
    assert cured.returncode == 0, cured.stderr


def test_process_that_imports_no_triton_is_left_alone(tmp_path: Path, run_python: Run) -> None:
    code = "import sys; print([name for name in sys.modules if name in ('triton', 'numpy', 'kperfir.session')])"
    result = run_python("-c", code, cwd=tmp_path, TRITON_KPERF="1")
    assert (result.stdout, result.stderr) == ("[]\n", "")


def test_capture_survives_sigkill(tmp_path: Path, run_python: Run) -> None:
    (tmp_path / "killed.py").write_text(KERNEL + "work(3)\nos.kill(os.getpid(), 9)\n")
    result = run_python(tmp_path / "killed.py", cwd=tmp_path, TRITON_KPERF="1", TRITON_KPERF_LAUNCHES="2")
    assert result.returncode == -signal.SIGKILL
    (path,) = captures(tmp_path)
    timeline = kperfir.load(path)
    assert launches(path) == {"scale": 2, "shift": 2}
    assert len(timeline.spans)
    assert timeline.notes, "a capture without an end says so"


def test_interrupt_ends_a_launch_and_the_next_one_runs(tmp_path: Path, run_python: Run) -> None:
    code = KERNEL + (
        "import signal, threading\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "@triton.jit\n"
        "def spin(x):\n"
        "    while tl.atomic_add(x, 0) == 0:\n"
        "        pass\n"
        "work()\n"
        "x = np.zeros(1, np.int32)\n"
        "threading.Timer(3, os.kill, [os.getpid(), signal.SIGINT]).start()\n"
        "try:\n"
        "    spin[(1,)](x)\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted')\n"
        "work()\n"
    )
    (tmp_path / "spins.py").write_text(code)
    result = run_python(tmp_path / "spins.py", cwd=tmp_path, TRITON_KPERF="1", TRITON_KPERF_OUT="out.kpf")
    assert (result.returncode, result.stdout) == (0, "interrupted\n"), result.stderr
    assert launches(tmp_path / "out.kpf") == {"scale": 2, "shift": 2}
    assert "not kept: 1 failed" in result.stderr


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_child_processes_write_files_of_their_own(method: str, tmp_path: Path, run_python: Run) -> None:
    code = KERNEL + (
        "import multiprocessing\n"
        "if __name__ == '__main__':\n"
        "    first = work()\n"
        f"    with multiprocessing.get_context('{method}').Pool(2) as pool:\n"
        "        results = pool.map(work, [1, 1, 1, 1])\n"
        "        pool.close(); pool.join()\n"
        "    assert results == [first] * 4\n"
    )
    (tmp_path / "many.py").write_text(code)
    result = run_python(tmp_path / "many.py", cwd=tmp_path, TRITON_KPERF="1", TRITON_KPERF_OUT="out.kpf")
    assert result.returncode == 0, result.stderr
    files = captures(tmp_path)
    assert tmp_path / "out.kpf" in files
    assert 2 <= len(files) <= 3, "each worker that got work has one"
    assert launches(tmp_path / "out.kpf") == {"scale": 1, "shift": 1}
    assert sum(launches(path)["scale"] for path in files) == 5


def test_autotuner_chooses_the_same_configuration_and_its_launches_are_not_kept(
    tmp_path: Path, run_python: Run
) -> None:
    code = KERNEL + (
        "configs = [triton.Config({'BLOCK': size}, num_warps=warps) for size in (64, 256, 1024) for warps in (1, 4)]\n"
        "tuned = triton.autotune(configs, key=['n'])(scale)\n"
        "x = np.arange(5000, dtype=np.float32)\n"
        "tuned[lambda meta: (triton.cdiv(5000, meta['BLOCK']),)](x, 5000)\n"
        "print(tuned.best_config, {str(config): times for config, times in tuned.configs_timings.items()}, x.sum())\n"
    )
    (tmp_path / "tunes.py").write_text(code)
    plain = run_python(tmp_path / "tunes.py", cwd=tmp_path, TRITON_KPERF_DEVICE="simt")
    profiled = run_python(tmp_path / "tunes.py", cwd=tmp_path, TRITON_KPERF="1", TRITON_KPERF_OUT="out.kpf")
    assert plain.returncode == 0, plain.stderr
    assert profiled.stdout == plain.stdout
    assert launches(tmp_path / "out.kpf") == {"scale": 1}
    assert "6 made by the autotuner" in profiled.stderr


def test_ranks_write_files_of_their_own(script: Path, tmp_path: Path, run_python: Run) -> None:
    for rank in ("0", "1"):
        result = run_python(script, cwd=tmp_path, TRITON_KPERF="1", TRITON_KPERF_OUT="out.kpf", RANK=rank)
        assert result.returncode == 0, result.stderr
    assert [path.name for path in captures(tmp_path)] == ["out-rank0.kpf", "out-rank1.kpf"]


def test_script_that_changes_directory_writes_where_it_was_started(tmp_path: Path, run_python: Run) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "moves.py").write_text(KERNEL + "os.chdir('elsewhere')\nwork()\n")
    run_python(tmp_path / "moves.py", cwd=tmp_path, TRITON_KPERF="1")
    assert len(captures(tmp_path)) == 1


def test_profile_in_a_script_keeps_its_block_and_the_process_session_keeps_the_rest(
    tmp_path: Path, run_python: Run
) -> None:
    code = KERNEL + "import kperfir\nwork()\nwith kperfir.profile('block.kpf'):\n    work(2)\nwork()\n"
    (tmp_path / "both.py").write_text(code)
    result = run_python(tmp_path / "both.py", cwd=tmp_path, TRITON_KPERF="1", TRITON_KPERF_OUT="all.kpf")
    assert result.returncode == 0, result.stderr
    assert launches(tmp_path / "all.kpf") == {"scale": 2, "shift": 2}
    assert launches(tmp_path / "block.kpf") == {"scale": 2, "shift": 2}


class TestRun:
    """`kperfir run`."""

    def test_variables_of_the_program_open_no_second_session(
        self, script: Path, tmp_path: Path, run_python: Run
    ) -> None:
        settings = {"TRITON_KPERF": "1", "TRITON_KPERF_OUT": "named.kpf", "TRITON_KPERF_DEVICE": "simt"}
        result = run_python("-m", "kperfir", "run", script, "2", cwd=tmp_path, **settings)
        assert result.returncode == 0, result.stderr
        assert [path.name for path in captures(tmp_path)] == ["named.kpf"]
        assert launches(tmp_path / "named.kpf") == {"scale": 2, "shift": 2}

    def test_run_profiles_a_script_and_returns_its_exit_code(self, tmp_path: Path, run_python: Run) -> None:
        (tmp_path / "exits.py").write_text(MAIN + "sys.exit(int(sys.argv[2]))\n")
        result = run_python(
            "-m", "kperfir", "run", "-o", "out.kpf", "--launches", "2", "exits.py", "3", "7", cwd=tmp_path
        )
        assert result.returncode == 7, result.stderr
        assert launches(tmp_path / "out.kpf") == {"scale": 2, "shift": 2}
        assert "kperfir report" in result.stderr

    def test_run_says_that_no_kernel_was_launched(self, tmp_path: Path, run_python: Run) -> None:
        (tmp_path / "nothing.py").write_text("print('done')\n")
        result = run_python("-m", "kperfir", "run", "-o", "out.kpf", "nothing.py", cwd=tmp_path)
        assert result.stdout == "done\n"
        assert result.stderr == "kperfir: no launch recorded: no Triton kernel was launched in this process\n"
        assert not (tmp_path / "out.kpf").exists()

    def test_run_lets_cuda_code_run_on_the_cpu(self, tmp_path: Path, run_python: Run) -> None:
        pytest.importorskip("torch")
        code = KERNEL + (
            "import torch\n"
            "assert torch.cuda.is_available()\n"
            "device = torch.device('cuda')\n"
            "x = torch.arange(1000, dtype=torch.float32, device=device)\n"
            "scale[(4,)](x, 1000, BLOCK=256)\n"
            "torch.cuda.synchronize()\n"
            "assert torch.equal(x.cpu(), torch.arange(1000.) * 3)\n"
        )
        (tmp_path / "gpu.py").write_text(code)
        result = run_python("-m", "kperfir", "run", "--cuda-as-cpu", "-o", "out.kpf", "gpu.py", cwd=tmp_path)
        assert result.returncode == 0, result.stderr
        assert launches(tmp_path / "out.kpf") == {"scale": 1}

    def test_run_profiles_child_processes_too(self, script: Path, tmp_path: Path, run_python: Run) -> None:
        code = f"import subprocess, sys; subprocess.run([sys.executable, {str(script)!r}], check=True)"
        (tmp_path / "parent.py").write_text(code)
        result = run_python("-m", "kperfir", "run", "-o", "out.kpf", "parent.py", cwd=tmp_path)
        assert result.returncode == 0, result.stderr
        (path,) = captures(tmp_path)
        assert path.name.startswith("out-")


def test_demo_writes_capture_and_timeline_without_torch(tmp_path: Path, run_python: Run) -> None:
    code = (
        "import json, sys; from kperfir.demo import main; code = main(); "
        "print(json.dumps({'code': code, 'torch': 'torch' in sys.modules}))"
    )
    result = run_python("-c", code, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    told: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
    assert told == {"code": 0, "torch": False}
    assert launches(tmp_path / "demo.kpf") == {"matmul": 1, "flash_attention": 1}
    assert (tmp_path / "demo.pftrace").stat().st_size > 0
    assert "agrees with NumPy" in result.stderr
    assert os.environ.get("HOME") is None or "matmul" in result.stdout

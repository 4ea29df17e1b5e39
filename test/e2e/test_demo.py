"""`kperfir demo` in a process that cannot import torch: kernels, capture, report and trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import kperfir

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

# A finder that comes first and has no torch for anybody.
WITHOUT_TORCH = """
import sys
class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, NoTorch())
from kperfir.cli.main import main
status = main(["demo", "-o", sys.argv[1]])
assert "torch" not in sys.modules
sys.exit(status)
"""


@pytest.fixture(scope="module")
def demo(run_python, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    folder = tmp_path_factory.mktemp("demo")
    return folder, run_python("-c", WITHOUT_TORCH, folder, cwd=folder)


def test_demo_runs_without_torch_and_agrees_with_numpy(demo):
    _, result = demo
    assert result.returncode == 0, result.stderr
    assert "matmul agrees with NumPy" in result.stderr
    assert "flash_attention agrees with NumPy" in result.stderr


def test_demo_reports_both_kernels_and_says_that_time_is_simulated(demo):
    _, result = demo
    assert "simulated" in result.stdout
    for text in ("matmul", "flash_attention", "dot kernels.py:", "async_wait kernels.py:", "loop kernels.py:"):
        assert text in result.stdout


def test_demo_leaves_a_capture_of_every_warp_without_drops(demo):
    folder, _ = demo
    timeline = kperfir.load(folder / "demo.kpf")
    assert timeline.launches["kernel"].tolist() == ["matmul", "flash_attention"]
    assert timeline.launches["simulated"].all()
    assert (timeline.launches["ctas_recorded"] == timeline.launches["ctas_total"]).all()
    assert (timeline.tracks["records"] > 0).all()
    assert (timeline.tracks["dropped"] == 0).all()
    assert timeline.spans["complete"].all()


def test_demo_leaves_a_perfetto_trace(demo):
    folder, _ = demo
    trace = (folder / "demo.pftrace").read_bytes()
    assert len(trace) > 10_000
    assert b"flash_attention" in trace


def test_demo_simulates_the_same_cycles_every_time(demo, run_python, tmp_path: Path):
    folder, _ = demo
    again = run_python("-m", "kperfir", "demo", "-o", tmp_path)
    assert again.returncode == 0, again.stderr
    first, second = (kperfir.load(path / "demo.kpf") for path in (folder, tmp_path))
    assert first.spans.equals(second.spans)

"""Strategy `flush` keeps all records of kernels that make far more than their buffer holds, and never hangs.

The host takes laps between steps of the SIMT device; what is decoded is compared with the clocks that it logged.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
import triton
import triton.language as tl

from e2e.test_warp_specialized import WORKLOAD as WARP_SPECIALIZED
from kernels.cases import WORKLOADS
from kernels.registry import Case
from kernels.workload import Arguments, Workload
from kperfir.capture.reader import Capture
from kperfir.config import resolve
from kperfir.errors import CaptureError, ConfigError, KPerfWarning
from kperfir.runtime import lap_drain
from kperfir.runtime.device import StreamedHostBuffer
from kperfir.runtime.lap_drain import LapDrain
from kperfir.runtime.recorder import Recorder
from support.ground_truth import compare_stamps
from support.launch import layout_of, run_plain, run_profiled
from support.small_chip import write_small_chip

if TYPE_CHECKING:
    from kperfir.runtime.device import HostBuffer
    from support.launch import ProfiledRun

COUNT = 1500


@triton.jit
def running_maximum(x, o, count):
    start = tl.program_id(0) * count
    best = tl.load(x + start)
    for i in range(count):
        best = tl.maximum(best, tl.load(x + start + i))
        tl.store(o + start + i, best)


def loop(ctas: int, count: int = COUNT) -> Workload:
    def build(generator: torch.Generator) -> Arguments:
        return {"x": torch.randn(ctas * count, generator=generator), "o": torch.zeros(ctas * count), "count": count}

    def reference(before: Arguments) -> dict[str, torch.Tensor]:
        x: Any = before["x"]
        return {"o": x.view(ctas, count).cummax(1).values.view(-1)}

    return Workload(CASE, (ctas,), build, reference)


CASE = Case("running_maximum", running_maximum, ("*fp32", "*fp32", "i32"), options={"num_warps": 2})
LOOP = loop(3)
# Of a CTA, for two warps: halves of 64 words, of which a warp fills more than sixty.
SMALL = 2 * 2 * 64 * 4


def flushed(path: Path, workload: Workload = LOOP, **options: Any) -> ProfiledRun:
    options = {"log": True, "strategy": "flush", "buffer_bytes": SMALL} | options
    run = run_profiled(workload, path, **options)
    workload.verify(run.arguments)
    return run


def words_of_halves(run: ProfiledRun) -> int:
    return int(layout_of(run)["words_per_warp"])


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("chip", ["a100", "h100"])
def test_a_kernel_with_many_times_the_records_that_its_buffer_holds_loses_none(chip: str, batch: int, tmp_path: Path):
    run = flushed(tmp_path / "out.kpf", simt_chip=chip, batch=batch)
    compared = compare_stamps(run)
    assert compared.warps == 3 * 2
    assert compared.dropped == 0
    assert (run.timeline.tracks["records"] > 10 * words_of_halves(run)).all()
    assert len(Capture.open(run.path).launches[0].laps) > compared.warps * 10
    iterations = run.timeline.spans[run.timeline.spans["kind"] == "iteration"]
    for _, of_warp in iterations.groupby(["cta", "warp"]):
        assert of_warp["iteration"].tolist() == list(range(COUNT))


def test_what_is_kept_is_what_a_buffer_that_is_large_enough_keeps(tmp_path: Path):
    small = flushed(tmp_path / "small.kpf", log=False).timeline
    large = flushed(tmp_path / "large.kpf", log=False, buffer_bytes=1 << 20)
    assert not Capture.open(large.path).laps
    for table, columns in (("stamps", ["frame", "slot"]), ("spans", ["name", "depth", "iteration", "complete"])):
        same = ["cta", "warp", *columns]
        assert getattr(small, table)[same].equals(getattr(large.timeline, table)[same])


@pytest.mark.parametrize("name", ["matmul_fp16", "softmax_fp32", "fa_fwd_fp16"])
def test_kernels_of_many_warps_lose_none(name: str, tmp_path: Path):
    workload = WORKLOADS[name]
    run = flushed(tmp_path / "out.kpf", workload, buffer_bytes=1 << 10)
    compared = compare_stamps(run, merged_code=True)
    assert compared.dropped == 0


def test_partitions_of_a_warp_specialised_kernel_lose_none(tmp_path: Path):
    run = flushed(tmp_path / "out.kpf", WARP_SPECIALIZED, buffer_bytes=8 * 4 * 32)
    compared = compare_stamps(run)
    assert (compared.warps, compared.dropped) == (2 * 7, 0)
    laps = Capture.open(run.path).launches[0].laps
    assert {lap.warp for lap in laps} > {0, 4}


def test_iterations_that_are_left_out_move_nothing(tmp_path: Path):
    timeline = flushed(tmp_path / "out.kpf", log=False, iterations="::3").timeline
    iterations = timeline.spans[timeline.spans["kind"] == "iteration"]
    for _, of_warp in iterations.groupby(["cta", "warp"]):
        assert of_warp["iteration"].tolist() == list(range(0, COUNT, 3))


def test_files_and_cycles_do_not_depend_on_the_threads_of_the_host(tmp_path: Path):
    one = flushed(tmp_path / "one.kpf", log=False)
    two = flushed(tmp_path / "two.kpf", log=False, simt_threads=2)
    assert one.cycles == two.cycles
    first, second = (
        [(lap.cta, lap.warp, lap.number, lap.words) for lap in Capture.open(run.path).launches[0].laps]
        for run in (one, two)
    )
    assert first == second
    first, second = (run.timeline.stamps["clock"] - run.launch.result.start_cycles for run in (one, two))
    assert first.equals(second)


def test_host_that_takes_nothing_costs_a_bounded_wait_and_drops_are_exact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    plain = run_plain(LOOP)
    monkeypatch.setattr(LapDrain, "poll", lambda self: False)
    monkeypatch.setattr(lap_drain, "PATIENCE_NS", 100_000)
    run = flushed(tmp_path / "out.kpf")
    compared = compare_stamps(run)
    assert compared.dropped > 0
    assert (run.timeline.tracks["stamps"] > 0).all()
    # All wait at the same time, once.
    assert 100_000 < run.launch.result.ns - plain.launch.result.ns < 1_000_000


def test_without_a_control_block_both_halves_are_filled_and_nobody_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def forget(buffer: HostBuffer) -> int:
        buffer._bytes[:] = 0
        return HostBuffer_data_ptr(buffer)

    HostBuffer_data_ptr = StreamedHostBuffer.data_ptr
    monkeypatch.setattr(StreamedHostBuffer, "data_ptr", forget)
    run = flushed(tmp_path / "out.kpf")
    compared = compare_stamps(run)
    assert compared.dropped > 0
    assert not Capture.open(run.path).laps
    half = words_of_halves(run) // 2
    assert (run.timeline.tracks["stamps"] > half).all(), "more than one half, tags left aside"


def test_file_bound_ends_the_waiting_and_the_launch_is_kept(tmp_path: Path):
    run = flushed(tmp_path / "out.kpf", file_bytes=192 << 10)
    assert run.path.stat().st_size <= 192 << 10
    compared = compare_stamps(run)
    assert compared.dropped > 0
    capture = Capture.open(run.path)
    assert len(capture.launches) == 1
    assert capture.laps


def test_lap_that_cannot_be_written_costs_later_records_and_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def fail(*arguments: Any) -> bool:
        raise CaptureError("write-failed", where="out.kpf", found="No space left on device", fix="make room")

    monkeypatch.setattr(Recorder, "take_lap", fail)
    with pytest.warns(KPerfWarning, match=r"(?s)running_maximum has dropped records.*No space left on device"):
        run = flushed(tmp_path / "out.kpf")
    assert compare_stamps(run).dropped > 0


def test_ctas_without_time_are_emptied_and_leave_no_records(tmp_path: Path):
    chip = write_small_chip(tmp_path, sm_count=2, max_ctas_per_sm=1)
    run = flushed(tmp_path / "out.kpf", loop(24, 200), log=False, simt_chip=chip, simt_waves=3)
    ((first, end),) = run.launch.result.untimed_ctas
    ctas = run.timeline.tracks["cta"].unique().tolist()
    assert set(ctas) == set(range(24)) - set(range(first, end))
    assert (run.timeline.tracks["dropped"] == 0).all()


KILLED = """
import os, signal, sys
from pathlib import Path
from e2e.test_flush import flushed
from kperfir.runtime.recorder import Recorder

take, count = Recorder.take_lap, 0
def take_some(*arguments):
    global count
    count += 1
    if count == 20:
        os.kill(os.getpid(), signal.SIGKILL)
    return take(*arguments)
Recorder.take_lap = take_some
flushed(Path(sys.argv[1]))
"""


def test_process_killed_in_the_middle_of_a_launch_leaves_a_readable_file(tmp_path: Path):
    path = tmp_path / "out.kpf"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run([sys.executable, "-P", "-c", KILLED, path], env=environment, check=False, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    capture = Capture.open(path)
    (laps,) = capture.laps.values()
    assert len(laps) == 19
    assert all(lap.words == len(lap.read()) > 0 for lap in laps)
    assert capture.launches == []
    assert any("19 laps are not used" in note for note in capture.notes)
    listed = subprocess.run(
        [sys.executable, "-P", "-m", "kperfir", "inspect", path, "--json"], check=True, capture_output=True
    )
    kinds = [chunk["kind"] for chunk in json.loads(listed.stdout)["chunks"]]
    assert kinds == ["PROC", "KERN", *["LAP"] * 19]


def test_a_second_session_may_size_its_buffers_by_a_capture_with_laps(tmp_path: Path):
    first = flushed(tmp_path / "first.kpf", log=False)
    sized = run_profiled(LOOP, tmp_path / "second.kpf", buffer_bytes=str(first.path), buffer="global")
    assert sized.timeline.tracks["dropped"].sum() == 0
    assert sized.timeline.tracks["records"].tolist() == first.timeline.tracks["records"].tolist()


def test_flush_does_not_go_with_a_shared_buffer():
    with pytest.raises(ConfigError, match="flush with a shared buffer"):
        resolve({}, strategy="flush", buffer="shared")

"""Sessions around launches on a device that runs nothing and a compiler hook that changes no code."""

from __future__ import annotations

import atexit
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import triton

import kperfir
from kperfir import session
from kperfir.errors import CaptureError, DeviceError, KPerfWarning, UsageError
from kperfir.runtime import file_names, summary
from support import fake_hook, fake_simt, fill
from support.fill import capture, fill_kernel, launch

pytestmark = pytest.mark.usefixtures("fake_native", "fake_compiler")


def test_profile_keeps_the_launches_of_the_block(profile: Any) -> None:
    with profile("out.kpf") as p:
        launch(2)
        launch(3)
    launch_records = capture(p.path).launches
    assert p.path == Path.cwd() / "out.kpf"
    assert [record.grid for record in launch_records] == [(2, 1, 1), (3, 1, 1)]
    assert [record.cycles for record in launch_records] == [1000, 1000]
    assert bytes(launch_records[1].read()[1]) == fake_hook.records(3)
    assert dict(p.summary.kept) == {"fill_kernel": 2}


def test_profile_says_what_was_captured_on(profile: Any) -> None:
    with profile("out.kpf") as p:
        launch()
    opened = capture(p.path)
    assert opened.process["simulated"] is True
    assert opened.process["chip"] == "tiny"
    assert opened.process["clock_hz"] == 1e9
    assert opened.process["versions"]["triton"] == triton.__version__
    facts = opened.kernels[0].facts
    assert facts["num_warps"] == 4
    assert facts["constants"] == {"BLOCK": 128}
    assert facts["file"] == fill.__file__


def test_launches_outside_the_block_are_not_instrumented(profile: Any) -> None:
    with profile("out.kpf") as p:
        launch()
    with profile("other.kpf") as q:
        pass
    assert len(capture(p.path).launches) == 1
    assert not q.path.exists()


def test_bound_per_kernel_keeps_the_first_and_counts_the_rest(profile: Any) -> None:
    with profile("out.kpf", launches=2) as p:
        for _ in range(5):
            launch()
    assert len(capture(p.path).launches) == 2
    assert dict(p.summary.skipped) == {("fill_kernel", "launches-per-kernel"): 3}
    assert "not kept: 3 past the bound per kernel (TRITON_KPERF_LAUNCHES)" in str(p.summary)


def test_launch_that_is_not_kept_has_no_memory_for_records(profile: Any) -> None:
    with profile("out.kpf", launches=1):
        launch()
        launch()
    kept, other = fake_simt.Device.created[-1].launches
    assert kept.params[-1] != b"\0" * 8
    assert other.params[-1] == b"\0" * 8


def test_ctas_beyond_the_memory_of_a_launch_are_left_out_and_counted(profile: Any) -> None:
    stride = fake_hook.LAYOUT.cta_bytes
    with profile("out.kpf", launch_bytes=3 * stride) as p:
        launch(5)
    (entry,) = capture(p.path).launches
    assert (entry.ctas, entry.facts["ctas_without_room"]) == (2, 3), "the largest power of two that fits"
    assert bytes(entry.read()[1]) == fake_hook.records(2)
    assert "2 of 5 CTAs were recorded; 3 had no room (raise TRITON_KPERF_LAUNCH_BYTES)" in " ".join(p.load().notes)


def test_ctas_that_ran_without_time_have_no_records(profile: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several ranges of the grid, as in a sampled launch with clusters along y."""
    monkeypatch.setattr(fake_simt.Device, "untimed", [(1, 3), (4, 5), (6, 7), (8, 9), (10, 11)])

    with profile("out.kpf") as p:
        launch(12)
    (entry,) = capture(p.path).launches
    recorded, _ = entry.read()
    assert recorded.tolist() == [0, 3, 5, 7, 9, 11]
    note = "6 of 12 CTAs simulated in detail, 1 to 2, 4, 6, 8 and others without time and records"
    assert note in " ".join(capture(p.path).notes)


@pytest.mark.parametrize("why", ["bound", "memory"])
def test_launch_without_memory_for_records_runs_all_the_same(
    why: str, profile: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Any, size: int, alignment: int, stream: int) -> None:
        raise RuntimeError("out of memory\nand more")

    if why == "memory":
        monkeypatch.setattr("kperfir.runtime.simt.SimtDriver.allocate_zeroed", refuse)
    with profile("out.kpf", launch_bytes=1 if why == "bound" else 1 << 20) as p:
        with pytest.warns(KPerfWarning, match=r"(?s)no-room.*TRITON_KPERF_LAUNCH_BYTES"):
            launch()
        with warnings.catch_warnings(action="error"):  # Once per kernel.
            launch()
    assert [entry.params[-1] for entry in fake_simt.Device.created[-1].launches] == [b"\0" * 8] * 2
    assert dict(p.summary.skipped) == {("fill_kernel", summary.FAILED): 2}


def test_window_of_launches_begins_where_it_was_asked_to(profile: Any) -> None:
    with profile("out.kpf", first_launch=2, launches=2) as p:
        for _ in range(5):
            launch()
    assert [entry.kernel_launch for entry in capture(p.path).launches] == [2, 3]
    assert dict(p.summary.skipped) == {
        ("fill_kernel", summary.BEFORE_WINDOW): 2,
        ("fill_kernel", "launches-per-kernel"): 1,
    }
    assert "2 before the first one to keep (TRITON_KPERF_FIRST_LAUNCH)" in str(p.summary)


def test_launches_of_the_autotuner_do_not_use_up_the_bound(profile: Any) -> None:
    configs = [triton.Config({"BLOCK": size}) for size in (64, 128, 256)]
    tuned = triton.autotune(configs, key=["count"])(fill_kernel)
    with profile("out.kpf", launches=1) as p:
        tuned[lambda meta: (triton.cdiv(256, meta["BLOCK"]),)](np.zeros(256, np.float32), 256)
    assert dict(p.summary.kept) == {"fill_kernel": 1}
    assert dict(p.summary.skipped) == {("fill_kernel", summary.AUTOTUNING): 3}
    *measured, kept = fake_simt.Device.created[-1].launches
    assert [launch.params[-1] == b"\0" * 8 for launch in measured] == [True] * 3, "what is measured is not instrumented"
    assert kept.params[-1] != b"\0" * 8
    assert dict(capture(p.path).skipped) == {(0, summary.AUTOTUNING): 3}


def test_inner_session_gets_the_launches_and_the_outer_gets_them_back(profile: Any) -> None:
    with profile("outer.kpf") as outer:
        launch()
        with profile("inner.kpf", strategy="ring") as inner:
            launch()
            launch()
        launch()
    assert len(capture(outer.path).launches) == 2
    assert len(capture(inner.path).launches) == 2


def test_second_session_of_one_name_does_not_overwrite_the_first(profile: Any) -> None:
    paths = []
    for _ in range(2):
        with profile() as p:
            launch()
        paths.append(p.path)
    assert paths[0] != paths[1]
    assert all(path.exists() for path in paths)
    assert paths[0].name.endswith(f"-{os.getpid()}.kpf")


def test_session_overwrites_a_file_that_is_named_again(profile: Any) -> None:
    for launches in (1, 2):
        with profile("out.kpf") as p, profile("out.kpf") as nested:
            for _ in range(launches):
                launch()
        assert p.path.name == "out.kpf"
        assert nested.path.name == "out-2.kpf"
        assert len(capture(nested.path).launches) == launches


def test_profile_cannot_be_entered_twice(profile: Any) -> None:
    p = profile("out.kpf")
    with p:
        pass
    with pytest.raises(UsageError, match="once"), p:
        pass


def test_profile_refuses_a_folder_that_is_not_there(profile: Any) -> None:
    with pytest.raises(CaptureError, match="no such folder"), profile("nowhere/out.kpf"):
        pass


def test_error_in_the_block_leaves_a_readable_file_and_nothing_switched_on(profile: Any) -> None:
    p = profile("out.kpf")

    def fail_inside() -> None:
        with p:
            launch()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_inside()
    assert len(capture(p.path).launches) == 1


def test_everything_is_switched_off_after_the_last_session(profile: Any) -> None:
    from triton.compiler.compiler import CompiledKernel
    from triton.runtime import _allocation
    from triton.runtime.autotuner import Autotuner

    config = sys.modules["triton.runtime.driver"].driver

    def state() -> list[Any]:
        return [
            vars(CompiledKernel)["run"], Autotuner._bench, _allocation._profile_allocator.get(),
            triton.knobs.runtime.add_stages_inspection_hook, config._default, config._active,
        ]  # fmt: skip

    before = state()
    with profile("out.kpf"):
        launch()
        assert state() != before
    assert state() == before


def test_kernel_compiled_past_kperfir_warns_once_and_is_counted(profile: Any) -> None:
    with profile("out.kpf") as p:
        hook = triton.knobs.runtime.add_stages_inspection_hook
        triton.knobs.runtime.add_stages_inspection_hook = lambda *args: ("mine", "mine") if not args else None
        try:
            with pytest.warns(KPerfWarning, match="fill_kernel runs without instrumentation"):
                launch()
            launch()
        finally:
            triton.knobs.runtime.add_stages_inspection_hook = hook
    assert dict(p.summary.skipped) == {("fill_kernel", summary.NOT_INSTRUMENTED): 2}
    assert str(p.summary) == f"no launch recorded; not kept: 2 not instrumented; noted in {p.path}"
    assert capture(p.path).uninstrumented == {("fill_kernel", "compiled past kperfir"): 2}


def test_kernel_that_is_not_to_be_recorded_does_not_warn(profile: Any) -> None:
    with profile("out.kpf", kernels="matmul*") as p:
        hook = triton.knobs.runtime.add_stages_inspection_hook
        triton.knobs.runtime.add_stages_inspection_hook = None
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                launch()
            assert caught == []
        finally:
            triton.knobs.runtime.add_stages_inspection_hook = hook
    assert not p.summary.skipped
    assert str(p.summary) == (
        "no launch recorded: no kernel matches matmul* (TRITON_KPERF_KERNELS); launched: fill_kernel"
    )


def test_launch_does_not_fail_where_warnings_are_errors(profile: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with profile("out.kpf") as p, warnings.catch_warnings():
        warnings.simplefilter("error")
        hook = triton.knobs.runtime.add_stages_inspection_hook
        triton.knobs.runtime.add_stages_inspection_hook = lambda *args: ("errors", "errors") if not args else None
        try:
            launch()
            launch()
        finally:
            triton.knobs.runtime.add_stages_inspection_hook = hook
    assert dict(p.summary.skipped) == {("fill_kernel", summary.NOT_INSTRUMENTED): 2}
    assert capsys.readouterr().err.count("kperfir: warning: kernel fill_kernel runs without instrumentation") == 1


def test_launch_that_fails_raises_to_the_program_and_is_counted(profile: Any) -> None:
    def fault(_: Any) -> None:
        raise fake_simt.Error("deadlock", "barrier 0", kernel="fill_kernel")

    with profile("out.kpf") as p:
        launch()
        device = fake_simt.Device.created[-1]
        kernel, device.on_launch = device.on_launch, fault
        with pytest.raises(DeviceError, match="deadlock"):
            launch()
        device.on_launch = kernel
        launch()
    assert len(capture(p.path).launches) == 2
    assert dict(p.summary.skipped) == {("fill_kernel", summary.FAILED): 1}


def test_file_that_cannot_be_written_warns_and_the_program_goes_on(profile: Any) -> None:
    with profile("out.kpf") as p:
        p.path.mkdir()
        with pytest.warns(KPerfWarning, match="cannot be written"):
            launch()
        launch()
    assert dict(p.summary.skipped) == {("fill_kernel", summary.FAILED): 2}


def test_foreign_profile_allocator_serves_launches_that_are_not_ours(profile: Any) -> None:
    from triton.runtime import _allocation

    from kperfir.runtime.device import HostBuffer

    asked: list[int] = []

    def foreign(size: int, alignment: int, stream: int | None) -> HostBuffer:
        asked.append(size)
        return HostBuffer(size, alignment)

    triton.runtime._allocation.set_profile_allocator(foreign)
    try:
        with profile("out.kpf", launches=1) as p:
            launch()
            launch()
            assert asked == [], "neither for one that is kept nor for one that is not"
            _allocation._profile_allocator.get()(96, 32, 0)  # As for a kernel that another tool instruments.
            assert asked == [96]
        assert _allocation._profile_allocator.get() is foreign
    finally:
        triton.runtime._allocation.set_profile_allocator(None)
    assert len(capture(p.path).launches) == 1


def test_capture_into_a_graph_is_left_alone_counted_and_said(profile: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a stream is captured nothing may be allocated past the graph, waited for or read: an error of CUDA."""
    from kperfir.runtime.simt import SimtDriver

    capturing = False

    def forbidden(*arguments: Any) -> Any:
        assert not capturing, "not permitted while a stream is captured"
        return allowed(*arguments)

    allowed = SimtDriver.allocate_zeroed
    monkeypatch.setattr(SimtDriver, "is_capturing", lambda self, stream: capturing)
    monkeypatch.setattr(SimtDriver, "allocate_zeroed", forbidden)
    with profile("out.kpf", launches=2) as p:
        launch()
        capturing = True
        with pytest.warns(KPerfWarning, match="its replays are not recorded"):
            launch()
        launch()  # Warnings are errors here: it is said once.
        capturing = False
        launch()
    # The graph's launches do not use up the bound.
    assert dict(p.summary.kept) == {"fill_kernel": 2}
    assert dict(p.summary.skipped) == {("fill_kernel", summary.IN_GRAPH): 2}
    assert "2 put into a CUDA graph (its replays are not recorded)" in str(p.summary)
    opened = capture(p.path)
    assert len(opened.launches) == 2
    assert any("cuda-graph" in note for note in opened.notes)


def test_inner_session_cannot_ask_for_another_device(profile: Any) -> None:
    with profile("out.kpf"):
        launch()
        with pytest.raises(UsageError, match="same device"), kperfir.profile("inner.kpf", device="cuda"):
            pass
        launch()


def test_process_session_reports_at_the_end(profile: Any, options: Any, capsys: pytest.CaptureFixture[str]) -> None:
    from dataclasses import replace

    session.start_process_session(replace(options, out="all.kpf"))
    running = session._runtime.current()
    assert running is not None
    try:
        launch()
        session._end_process_session(running)
    finally:  # Else all tests behind this one would be recorded.
        session._runtime.pop(running)
        atexit.unregister(session._end_process_session)
    line = capsys.readouterr().err
    assert line.startswith("kperfir: 1 launch of 1 kernel in ")
    assert "all.kpf (simulated time)" in line
    assert line.count("\n") == 1


class TestNames:
    def test_default_name_has_host_and_process(self, tmp_path: Path) -> None:
        name = file_names.capture_path(None, tmp_path, child=False).name
        assert name.startswith("kperf-")
        assert name.endswith(f"-{os.getpid()}.kpf")

    def test_folder_gets_the_default_name_inside(self, tmp_path: Path) -> None:
        (tmp_path / "traces").mkdir()
        for out in ("traces", "new/"):
            path = file_names.capture_path(out, tmp_path, child=True)
            assert path.parent == tmp_path / out.rstrip("/")
            assert path.name.startswith("kperf-")

    def test_descendants_and_ranks_do_not_share_a_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        assert file_names.capture_path("x.kpf", tmp_path, child=False) == tmp_path / "x.kpf"
        assert file_names.capture_path("x.kpf", tmp_path, child=True) == tmp_path / f"x-{os.getpid()}.kpf"
        monkeypatch.setenv("RANK", "3")
        assert file_names.capture_path("x.kpf", tmp_path, child=False) == tmp_path / "x-rank3.kpf"
        assert file_names.capture_path(None, tmp_path, child=False).name.endswith(f"-{os.getpid()}-rank3.kpf")


def test_forked_child_writes_a_file_of_its_own(profile: Any) -> None:
    with profile("out.kpf") as p:
        launch()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                launch(1)
                launch(1)
                status = 0 if p.path.name == f"out-{os.getpid()}.kpf" else 2
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        launch()
    assert len(capture(p.path).launches) == 2
    assert len(capture(p.path.with_stem(f"out-{child}")).launches) == 2


def test_a_kernel_is_described_to_the_file_once(profile: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from kperfir.capture.writer import CaptureWriter

    described: list[str] = []
    add = CaptureWriter.add_kernel

    def note(writer: CaptureWriter, layout: str, facts: Any = None) -> int:
        described.append(layout)
        return add(writer, layout, facts)

    monkeypatch.setattr(CaptureWriter, "add_kernel", note)
    with profile("out.kpf", launches=2) as p:
        for _ in range(5):
            launch()
    assert len(described) == 1
    assert len(capture(p.path).launches) == 2

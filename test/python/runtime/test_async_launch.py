"""Sessions around launches that still run when they return, as on a GPU."""

from __future__ import annotations

import os
import threading
from typing import Any

import pytest

from kperfir.errors import KPerfWarning
from kperfir.runtime import summary
from support import fake_hook
from support.fill import capture, launch

pytestmark = pytest.mark.usefixtures("fake_native", "fake_compiler")


class Asynchronous:
    """Lets the SIMT device behave as a GPU: records come when `complete` is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from kperfir.runtime.device import HostBuffer
        from kperfir.runtime.simt import SimtDriver

        self.complete = threading.Event()
        self.error: Exception | None = None
        read = HostBuffer.read

        def wait_and_read(buffer: HostBuffer) -> Any:
            assert self.complete.wait(timeout=60)
            if self.error is not None:
                raise self.error
            return read(buffer)

        monkeypatch.setattr(SimtDriver, "asynchronous", True)
        monkeypatch.setattr(HostBuffer, "read", wait_and_read)


def test_launch_does_not_wait_for_its_records(profile: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    device = Asynchronous(monkeypatch)
    with profile("out.kpf", launches=2) as p:
        for ctas in (1, 2, 3):
            launch(ctas)  # Would wait for ever.
        assert capture(p.path).launches == []
        device.complete.set()
        assert p.load().launches["grid_x"].tolist() == [1, 2]
    opened = capture(p.path)
    assert [(entry.launch, entry.kernel_launch) for entry in opened.launches] == [(0, 0), (1, 1)]
    assert [bytes(entry.read()[1]) for entry in opened.launches] == [fake_hook.records(n) for n in (1, 2)]
    assert dict(p.summary.kept) == {"fill_kernel": 2}
    assert dict(p.summary.skipped) == {("fill_kernel", "launches-per-kernel"): 1}


def test_end_of_a_session_waits_for_launches_that_still_run(profile: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    device = Asynchronous(monkeypatch)
    with profile("out.kpf") as p:
        launch()
        threading.Timer(0.2, device.complete.set).start()
    assert len(capture(p.path).launches) == 1


def test_launch_that_fails_after_it_was_made_is_counted(profile: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    device = Asynchronous(monkeypatch)
    device.error = RuntimeError("CUDA error: an illegal memory access was encountered\nand more")
    device.complete.set()
    with pytest.warns(KPerfWarning, match=r"(?s)no-records.*illegal memory access"), profile("out.kpf") as p:
        launch()
    assert dict(p.summary.skipped) == {("fill_kernel", summary.FAILED): 1}
    assert capture(p.path).skipped == {(0, summary.FAILED): 1}


def test_fault_of_kperfir_itself_is_counted_and_said(profile: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from kperfir.capture.writer import CaptureWriter

    def fail(*arguments: Any, **keywords: Any) -> Any:
        raise KeyError("unexpected")

    device = Asynchronous(monkeypatch)
    device.complete.set()
    monkeypatch.setattr(CaptureWriter, "add_launch", fail)
    with pytest.warns(KPerfWarning, match=r"(?s)internal.*KeyError: 'unexpected'"), profile("out.kpf") as p:
        launch()
    assert dict(p.summary.skipped) == {("fill_kernel", summary.FAILED): 1}


def test_child_of_a_fork_leaves_records_that_are_awaited_to_its_parent(
    profile: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = Asynchronous(monkeypatch)
    with profile("out.kpf") as p:
        launch(1)
        child = os.fork()
        if child == 0:
            device.complete.set()
            launch(2)
            p.__exit__(None, None, None)
            os._exit(0 if p.load().launches["grid_x"].tolist() == [2] else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        device.complete.set()
    assert p.load().launches["grid_x"].tolist() == [1]


def test_launches_on_several_streams_keep_their_stream(profile: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from kperfir.runtime.simt import SimtDriver

    streams = iter([7, 9, 7])
    monkeypatch.setattr(SimtDriver, "get_current_stream", lambda self, device=None: next(streams))
    with profile("out.kpf") as p:
        launch(1)
        launch(2)
        launch(3)
    launches = p.load().launches
    assert launches["stream"].tolist() == [7, 9, 7]
    assert launches["grid_x"].tolist() == [1, 2, 3]
    assert [bytes(record.read()[1]) for record in capture(p.path).launches] == [fake_hook.records(n) for n in (1, 2, 3)]

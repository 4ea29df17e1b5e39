"""Something of kperfir fails that nobody expected: the program has its launch all the same, and hears of it once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from kperfir.capture.writer import CaptureWriter
from kperfir.errors import CaptureError, DeviceError, KPerfWarning
from kperfir.runtime import launch as launching
from kperfir.runtime import summary
from kperfir.runtime.recorder import Recorder
from kperfir.runtime.simt import SimtDriver
from support import fake_simt
from support.fill import capture, fill_kernel, launch

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.usefixtures("fake_native", "fake_compiler")


@pytest.fixture
def launched(profile: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The launches that reach the device."""
    seen: list[Any] = []
    made = fake_simt.Device.launch

    def note(self: Any, *args: Any, **kwargs: Any) -> Any:
        seen.append(args)
        return made(self, *args, **kwargs)

    monkeypatch.setattr(fake_simt.Device, "launch", note)
    return seen


def fail(*arguments: Any, **keywords: Any) -> Any:
    raise KeyError("unexpected")


def test_fault_before_a_launch(profile: Any, launched: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    with profile("out.kpf") as p, monkeypatch.context() as broken:
        broken.setattr(launching, "describe_kernel", fail)
        with pytest.warns(KPerfWarning, match=r"(?s)fill_kernel is not in the capture.*internal.*'unexpected'"):
            launch()
        launch()  # Warnings are errors here: it is said once.
    assert len(launched) == 2
    assert not p.path.exists()
    assert dict(p.summary.skipped) == {("fill_kernel", summary.FAILED): 2}
    assert "no launch recorded; not kept: 2 failed" in str(p.summary)


def test_fault_of_our_own_kind_is_said_once(
    profile: Any, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    def refuse(*arguments: Any, **keywords: Any) -> Any:
        raise CaptureError("write-failed", what="no space is left")

    with profile("out.kpf") as p, monkeypatch.context() as broken:
        broken.setattr(SimtDriver, "describe_last_launch", refuse)
        launch()
        launch()
    assert len(recwarn) == 1
    assert dict(p.summary.skipped) == {("fill_kernel", summary.FAILED): 2}


def test_fault_of_a_kernel_that_is_not_known_is_in_the_file_of_others(
    profile: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with profile("out.kpf") as p:
        launch()
        with monkeypatch.context() as broken:
            broken.setattr(launching, "describe_kernel", fail)
            with pytest.warns(KPerfWarning, match="not in the capture"):
                fill_kernel[(1,)](np.zeros(256, np.float32), 256, BLOCK=64)
    assert dict(p.summary.kept) == {"fill_kernel": 1}
    assert dict(p.summary.skipped) == {("fill_kernel", summary.FAILED): 1}
    assert any("fault of kperfir: internal" in note for note in capture(p.path).notes)


@pytest.mark.parametrize(
    ("owner", "name"),
    [(SimtDriver, "describe_last_launch"), (SimtDriver, "allocate_zeroed"), (CaptureWriter, "add_launch")],
)
def test_fault_around_a_launch_that_is_kept(
    profile: Any, launched: list[Any], monkeypatch: pytest.MonkeyPatch, owner: type, name: str
) -> None:
    with profile("out.kpf") as p:
        with monkeypatch.context() as broken:
            broken.setattr(owner, name, fail)
            with pytest.warns(KPerfWarning, match="fill_kernel is not in the capture"):
                launch()
            launch()
        launch()
    assert len(launched) == 3
    assert dict(p.summary.kept) == {"fill_kernel": 1}
    assert dict(p.summary.skipped) == {("fill_kernel", summary.FAILED): 2}
    assert capture(p.path).skipped == {(0, summary.FAILED): 2}


@pytest.mark.parametrize("owner", [Recorder, CaptureWriter], ids=["noting it", "writing it"])
def test_error_of_a_launch_is_the_programs_whatever_else_fails(
    profile: Any, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder, owner: type
) -> None:
    def refuse(*arguments: Any, **keywords: Any) -> Any:
        raise DeviceError("race", what="the kernel failed")

    with profile("out.kpf") as p:
        launch()
        with monkeypatch.context() as broken:
            broken.setattr(SimtDriver, "launch", refuse)
            broken.setattr(owner, "fail" if owner is Recorder else "skip", fail)
            with pytest.raises(DeviceError, match="the kernel failed"):
                launch()
    assert dict(p.summary.kept) == {"fill_kernel": 1}
    said = [str(warning.message) for warning in recwarn]
    assert len(said) == (1 if owner is Recorder else 0), "the program hears of its own error by itself"

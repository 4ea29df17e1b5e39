"""The adapter for Triton's own drivers, on a torch whose streams do their work when somebody waits for it."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import pytest
from kperfir._native import record

from kperfir.capture.laps import Lap, LapShape
from kperfir.runtime import torch_device
from kperfir.runtime.lap_drain import LapDrain, LapPlaces
from kperfir.runtime.launch import profile_device_of
from kperfir.runtime.torch_device import TorchDevice
from support import lazy_torch
from support.lap_writer import LapWriter


def driver() -> Any:
    return SimpleNamespace(
        get_active_torch_device=lambda: "cuda:0",
        get_device_interface=lambda: lazy_torch.cuda,
        get_current_device=lambda: 0,
        get_current_target=lambda: SimpleNamespace(backend="cuda", arch=90),
        utils=SimpleNamespace(get_device_properties=lambda device: {"sm_clock_rate": 1980000}),
    )


@pytest.fixture(autouse=True)
def _lazy_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    lazy_torch.install(monkeypatch)
    torch_device._drain_stream.cache_clear()
    torch_device._lap_stream.cache_clear()
    torch_device._exchange_of.cache_clear()


def test_nothing_waits_for_the_launch_until_its_records_are_read() -> None:
    buffer = TorchDevice(driver()).allocate_zeroed(1000, 256, stream=7)
    assert buffer.data_ptr() % 256 == 0
    assert buffer.nbytes == 1000
    kernel = lazy_torch.launch(7, buffer.data_ptr(), bytes(range(250)) * 4)
    buffer.begin_read()
    assert not kernel.done
    assert buffer.read().tobytes() == bytes(range(250)) * 4
    assert kernel.done


def test_buffer_is_zero_for_the_launch_on_its_own_stream() -> None:
    """The memory may be what a launch before has just written into: zeroing it is work of the stream."""
    device = TorchDevice(driver())
    buffer = device.allocate_zeroed(64, 32, stream=9)
    other = lazy_torch.launch(8, buffer.data_ptr(), b"")
    buffer.begin_read()
    assert buffer.read().tobytes() == bytes(64)
    assert not other.done, "streams do not wait for each other"


def test_memory_of_the_gpu_is_kept_until_the_copy_is_done() -> None:
    buffer = TorchDevice(driver()).allocate_zeroed(64, 32, stream=3)
    address = buffer.data_ptr()
    buffer.begin_read()
    assert lazy_torch.streams_that_use(address) == {3, "own 0"}


def test_laps_come_by_a_stream_of_their_own_while_the_launch_runs() -> None:
    """Who reads waits for the launch, which waits for laps to be taken: copies behind the launch would be too late."""
    places = LapPlaces(LapShape(warps=2, words_per_warp=64), ctas=3, stride=1024)
    buffer = TorchDevice(driver()).allocate_streamed(places.ctas * places.stride, 32, 7, places)
    laps: list[tuple[int, int, int, list[int]]] = []

    def take(lap: Lap) -> bool:
        laps.append((lap.cta, lap.warp, lap.number, lap.words.tolist()))
        return True

    drain = LapDrain(buffer, places, 0, take)
    address = buffer.data_ptr()

    def kernel() -> None:
        for cta, warp in ((2, 1), (0, 0)):
            writer = LapWriter(address, places, cta=cta, warp=warp, frame_words=2)
            for number in range(200):
                writer.put([number, cta])
            writer.finish()
            assert writer.lost == 0

    work = lazy_torch.Stream(7).put(kernel)
    drain.start()
    buffer.begin_read()
    assert not work.done
    data = buffer.read()
    drain.end()
    assert work.done
    for cta, warp in ((2, 1), (0, 0)):
        of_warp = [lap[2:] for lap in laps if lap[:2] == (cta, warp)]
        assert [number for number, _ in of_warp] == list(range(drain.taken[cta, warp]))
        taken = [word for _, words in of_warp for word in words]
        assert taken == [word for number in range(len(taken) // 2) for word in (number, cta)]
        assert len(of_warp) > 5
    assert data.reshape(3, -1)[2, :4].view("uint32") == record.CTA_MAGIC


def test_failed_launch_is_said_when_its_records_are_read() -> None:
    buffer = TorchDevice(driver()).allocate_zeroed(64, 32, stream=3)
    lazy_torch.launch(3, 0, b"", error=RuntimeError("CUDA error: an illegal memory access was encountered"))
    buffer.begin_read()
    with pytest.raises(RuntimeError, match="illegal memory access"):
        buffer.read()


def test_allocating_and_waiting_leave_alone_a_thread_that_captures_a_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """CUDA ends the capture of another thread with an error, unless the calling thread's mode is relaxed (2)."""
    mode, seen = 0, []

    def exchange(pointer: Any) -> None:
        nonlocal mode
        cell = ctypes.cast(pointer, ctypes.POINTER(ctypes.c_int)).contents
        mode, cell.value = cell.value, mode

    monkeypatch.setattr(torch_device, "_exchange_of", lambda backend: exchange)
    monkeypatch.setattr(lazy_torch, "on_call", lambda name: seen.append((name, mode)))
    buffer = TorchDevice(driver()).allocate_zeroed(64, 32, stream=3)
    buffer.begin_read()
    buffer.read()
    assert {name for name, _ in seen} >= {"zeros", "empty", "copy_", "synchronize"}
    assert {mode for _, mode in seen} == {2}
    assert mode == 0


def test_capture_into_a_graph_is_asked_of_the_stream_of_the_launch() -> None:
    adapter = driver()
    interface = SimpleNamespace()
    adapter.get_device_interface = lambda: interface
    device = TorchDevice(adapter)
    assert not device.is_capturing(5)
    interface.is_current_stream_capturing = lambda: True
    assert device.is_capturing(5)
    # Triton's own driver for NVIDIA GPUs asks CUDA.
    adapter.utils.is_stream_capturing = lambda stream: stream == 3
    assert (device.is_capturing(3), device.is_capturing(5)) == (True, False)


def test_driver_without_a_profile_device_gets_the_adapter() -> None:
    device = profile_device_of(driver())
    assert isinstance(device, TorchDevice)
    assert device.describe()["name"] == "NVIDIA H200"
    assert device.describe()["clock_hz"] == 1.98e9
    assert device.describe()["simulated"] is False

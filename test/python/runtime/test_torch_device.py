"""The adapter for Triton's own drivers, on torch's CPU in place of a GPU."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kperfir.runtime.launch import profile_device_of
from kperfir.runtime.torch_device import TorchDevice

torch = pytest.importorskip("torch")


def driver(synchronised: list[str]) -> Any:
    interface = SimpleNamespace(
        synchronize=lambda: synchronised.append("synchronize"), get_device_name=lambda: "NVIDIA H200"
    )
    return SimpleNamespace(
        get_active_torch_device=lambda: torch.device("cpu"),
        get_device_interface=lambda: interface,
        get_current_device=lambda: 0,
        get_current_target=lambda: SimpleNamespace(backend="cuda", arch=90),
        utils=SimpleNamespace(get_device_properties=lambda device: {"sm_clock_rate": 1980000}),
    )


def test_buffer_is_zeroed_aligned_and_complete_before_it_is_used() -> None:
    synchronised: list[str] = []
    buffer = TorchDevice(driver(synchronised)).allocate_zeroed(1000, 256)
    assert buffer.data_ptr() % 256 == 0
    assert buffer.read().tolist() == [0] * 1000
    assert synchronised == ["synchronize"]


def test_capture_into_a_graph_is_asked_of_the_stream_of_the_launch() -> None:
    adapter = driver([])
    device = TorchDevice(adapter)
    assert not device.is_capturing(5)
    adapter.get_device_interface().is_current_stream_capturing = lambda: True
    assert device.is_capturing(5)
    # Triton's own driver for NVIDIA GPUs asks CUDA.
    adapter.utils.is_stream_capturing = lambda stream: stream == 3
    assert (device.is_capturing(3), device.is_capturing(5)) == (True, False)


def test_driver_without_a_profile_device_gets_the_adapter() -> None:
    device = profile_device_of(driver([]))
    assert isinstance(device, TorchDevice)
    assert device.describe()["name"] == "NVIDIA H200"
    assert device.describe()["clock_hz"] == 1.98e9
    assert device.describe()["simulated"] is False

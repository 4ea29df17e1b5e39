"""A profile device for Triton's own drivers: buffers are torch tensors on the GPU.

Nothing here waits for the GPU but `TorchBuffer.read`. A buffer is zeroed on the stream of its launch, and copied to the
host on a stream of its own as soon as the launch is complete; torch's allocators recycle the memory of both sides.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
from typing import TYPE_CHECKING, Any

from kperfir._native import record

from kperfir.runtime.lap_drain import ENTRY_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from kperfir.runtime.lap_drain import LapPlaces

# The runtimes' functions that let a thread do what would break the capture of a graph in another thread, and its value:
# CU_STREAM_CAPTURE_MODE_RELAXED, hipStreamCaptureModeRelaxed.
_EXCHANGES = {"cuda": ("libcuda.so.1", "cuThreadExchangeStreamCaptureMode"),
              "hip": ("libamdhip64.so", "hipThreadExchangeStreamCaptureMode")}  # fmt: skip
_RELAXED = 2


class TorchBuffer:
    """A zeroed tensor of bytes on the GPU, then a copy of it on the host.

    Args:
        device: The device.
        size: Bytes.
        alignment: What its address is a multiple of.
        stream: Handle of the stream whose launch will write into it.
    """

    def __init__(self, device: TorchDevice, size: int, alignment: int, stream: int) -> None:
        import torch

        self._device = device
        self._stream = device.stream(stream)
        with device.interface.stream(self._stream):
            memory = torch.zeros(size + alignment, dtype=torch.uint8, device=device.torch_device)
        start = -int(memory.data_ptr()) % max(alignment, 1)
        self._bytes: Any = memory[start : start + size]
        self._copied: Any = None

    @property
    def nbytes(self) -> int:
        """Its size."""
        return int(self._bytes.numel())

    def data_ptr(self) -> int:
        """Return its device address, until `begin_read`."""
        return int(self._bytes.data_ptr())

    def begin_read(self) -> None:
        """Begin the copy to the host, behind what is on the stream so far; the GPU's memory is free after it."""
        import torch

        interface, device_bytes = self._device.interface, self._bytes
        drain = _drain_stream(interface, self._device.torch_device)
        with self._device.relaxed():
            drain.wait_event(self._stream.record_event())
            with interface.stream(drain):
                self._bytes = torch.empty(device_bytes.numel(), dtype=torch.uint8, pin_memory=True)
                self._bytes.copy_(device_bytes, non_blocking=True)
                device_bytes.record_stream(drain)
                self._copied = interface.Event(blocking=True)
                self._copied.record(drain)

    def read(self) -> NDArray[np.uint8]:
        """Return its bytes; waits for the copy that `begin_read` has begun."""
        with self._device.relaxed():
            self._copied.synchronize()
        data: NDArray[np.uint8] = self._bytes.numpy()
        return data


class TorchStreamedBuffer(TorchBuffer):
    """One whose laps are copied while the launch runs, and a control block in memory of the host that the GPU sees.

    A copy is on a stream that nothing else is on: what is behind the launch would wait for it.
    """

    def __init__(self, device: TorchDevice, size: int, alignment: int, stream: int, places: LapPlaces) -> None:
        import torch

        super().__init__(device, size, alignment, stream)
        self._block = torch.empty(places.control_bytes, dtype=torch.uint8, pin_memory=True)
        self.control = places.new_control(self._block.numpy())
        self._half = torch.empty(places.shape.half_words * record.WORD_BYTES, dtype=torch.uint8, pin_memory=True)
        self._device_bytes = self._bytes
        address, step = int(self._block.data_ptr()), ENTRY_BYTES
        with device.interface.stream(self._stream):
            entries = torch.arange(
                address + step, address + places.control_bytes, step, dtype=torch.int64, device=device.torch_device
            )
            shape, strides = (places.ctas, places.shape.warps), (places.stride // 8, places.shape.segment_bytes // 8)
            pointers = self._bytes[places.pointer_offset :].view(torch.int64)
            pointers.as_strided(shape, strides, pointers.storage_offset()).copy_(entries.view(shape), non_blocking=True)

    def copy(self, offset: int, nbytes: int) -> NDArray[np.uint8]:
        """Return bytes as they are now, in memory that the next call writes over."""
        interface = self._device.interface
        with self._device.relaxed():
            stream = _lap_stream(interface, self._device.torch_device)
            with interface.stream(stream):
                self._half[:nbytes].copy_(self._device_bytes[offset : offset + nbytes], non_blocking=True)
                copied = interface.Event(blocking=True)
                copied.record(stream)
            copied.synchronize()
        data: NDArray[np.uint8] = self._half[:nbytes].numpy()
        return data


class TorchDevice:
    """The GPU that a Triton driver works on."""

    simulated = False
    asynchronous = True

    def __init__(self, driver: Any) -> None:
        self._driver = driver

    @property
    def interface(self) -> Any:
        """Torch's module for devices of this kind, such as `torch.cuda`."""
        return self._driver.get_device_interface()

    @property
    def torch_device(self) -> Any:
        """The current device, as torch names it."""
        return self._driver.get_active_torch_device()

    def stream(self, handle: int) -> Any:
        """Return torch's view of the stream that Triton launches on."""
        return self.interface.ExternalStream(handle, device=self.torch_device)

    def allocate_zeroed(self, size: int, alignment: int, stream: int) -> TorchBuffer:
        """Return a buffer that is zero by the time a launch on `stream` begins."""
        with self.relaxed():
            return TorchBuffer(self, size, alignment, stream)

    def allocate_streamed(self, size: int, alignment: int, stream: int, places: LapPlaces) -> TorchStreamedBuffer:
        """Return such a buffer, whose segments point to its control block by the time a launch on `stream` begins."""
        with self.relaxed():
            return TorchStreamedBuffer(self, size, alignment, stream, places)

    @contextlib.contextmanager
    def relaxed(self) -> Iterator[None]:
        """Do not disturb a thread that captures a graph: allocating and waiting would end its capture with an error."""
        exchange = _exchange_of(self._driver.get_current_target().backend)
        mode = ctypes.c_int(_RELAXED)
        exchange(ctypes.byref(mode))
        try:
            yield
        finally:
            exchange(ctypes.byref(mode))

    def is_capturing(self, stream: int) -> bool:
        """Tell whether launches on `stream` go into a graph: nothing may be waited for then, nor read."""
        ask = getattr(self._driver.utils, "is_stream_capturing", None)
        if ask is not None:
            return bool(ask(stream))
        # Triton's driver for AMD GPUs does not know; torch knows it of the stream that Triton launches on.
        ask_of_current = getattr(self.interface, "is_current_stream_capturing", None)
        return ask_of_current is not None and bool(ask_of_current())

    def describe_last_launch(self) -> dict[str, Any]:
        """Return nothing: the GPU's own clocks are in the records."""
        return {}

    def describe(self) -> dict[str, Any]:
        """Return what a capture says about the GPU."""
        target = self._driver.get_current_target()
        properties = self._driver.utils.get_device_properties(self._driver.get_current_device())
        name = str(self.interface.get_device_name())
        return {
            "name": name,
            "simulated": False,
            "chip": name,
            "arch": target.arch,
            "clock_hz": float(properties["sm_clock_rate"]) * 1e3 if "sm_clock_rate" in properties else None,
            "sm_count": properties.get("multiprocessor_count"),
        }


@functools.cache
def _drain_stream(interface: Any, device: Any) -> Any:
    """Return the stream on which the records of a device are copied."""
    return interface.Stream(device=device)


@functools.cache
def _lap_stream(interface: Any, device: Any) -> Any:
    """Return the stream on which laps of a device are copied: never one that waits for a launch."""
    return interface.Stream(device=device)


@functools.cache
def _exchange_of(backend: str) -> Any:
    """Return the runtime's function that exchanges the capture mode of a thread; where there is none, one that does
    nothing.
    """
    library, name = _EXCHANGES.get(backend, ("", ""))
    try:
        return getattr(ctypes.CDLL(library), name) if library else _keep_mode
    except (OSError, AttributeError):
        return _keep_mode


def _keep_mode(mode: object) -> None:
    """Leave the mode as it is."""

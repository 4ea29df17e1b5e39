"""A profile device for Triton's own drivers: buffers are torch tensors on the GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class TorchBuffer:
    """A zeroed tensor of bytes."""

    def __init__(self, device: Any, size: int, alignment: int) -> None:
        import torch

        memory = torch.zeros(size + alignment, dtype=torch.uint8, device=device)
        start = -int(memory.data_ptr()) % max(alignment, 1)
        self._bytes = memory[start : start + size]

    def data_ptr(self) -> int:
        """Return its device address."""
        return int(self._bytes.data_ptr())

    def read(self) -> NDArray[np.uint8]:
        """Copy its bytes to the host."""
        data: NDArray[np.uint8] = self._bytes.cpu().numpy()
        return data


class TorchDevice:
    """The GPU that a Triton driver works on."""

    simulated = False

    def __init__(self, driver: Any) -> None:
        self._driver = driver

    def allocate_zeroed(self, size: int, alignment: int) -> TorchBuffer:
        """Return a zeroed buffer, complete before any stream may use it."""
        buffer = TorchBuffer(self._driver.get_active_torch_device(), size, alignment)
        # The kernel may run on a stream that does not wait for the one that zeroes.
        self.synchronize()
        return buffer

    def synchronize(self) -> None:
        """Wait until all launches are complete."""
        self._driver.get_device_interface().synchronize()

    def is_capturing(self, stream: int) -> bool:
        """Tell whether launches on `stream` go into a graph: nothing may be waited for then, nor read."""
        ask = getattr(self._driver.utils, "is_stream_capturing", None)
        if ask is not None:
            return bool(ask(stream))
        # Triton's driver for AMD GPUs does not know; torch knows it of the stream that Triton launches on.
        ask_of_current = getattr(self._driver.get_device_interface(), "is_current_stream_capturing", None)
        return ask_of_current is not None and bool(ask_of_current())

    def describe_last_launch(self) -> dict[str, Any]:
        """Return nothing: the GPU's own clocks are in the records."""
        return {}

    def describe(self) -> dict[str, Any]:
        """Return what a capture says about the GPU."""
        target = self._driver.get_current_target()
        properties = self._driver.utils.get_device_properties(self._driver.get_current_device())
        name = str(self._driver.get_device_interface().get_device_name())
        return {
            "name": name,
            "simulated": False,
            "chip": name,
            "arch": target.arch,
            "clock_hz": float(properties["sm_clock_rate"]) * 1e3 if "sm_clock_rate" in properties else None,
            "sm_count": properties.get("multiprocessor_count"),
        }

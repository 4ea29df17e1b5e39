"""What capturing needs of a device, whatever it is.

A driver that can be profiled has an attribute `profile_device` with these methods; for Triton's own drivers an adapter
provides them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class ProfileBuffer(Protocol):
    """A zeroed run of device memory that one launch writes records into."""

    @property
    def nbytes(self) -> int:
        """Its size; 0 once it takes no memory of its own any more."""
        ...

    def data_ptr(self) -> int:
        """Return its device address, before `begin_read`."""
        ...

    def begin_read(self) -> None:
        """Begin to bring its bytes to the host, behind the launch; waits for nothing."""
        ...

    def read(self) -> NDArray[np.uint8]:
        """Return its bytes on the host; waits for what `begin_read` has begun. May be called by another thread."""
        ...


class ProfileDevice(Protocol):
    """A device that kernels can be profiled on."""

    simulated: bool
    asynchronous: bool  # Launches may still run when they return.

    def allocate_zeroed(self, size: int, alignment: int, stream: int) -> ProfileBuffer:
        """Return a buffer of `size` bytes at a multiple of `alignment`, zero when a launch on `stream` begins."""
        ...

    def is_capturing(self, stream: int) -> bool:
        """Tell whether launches on `stream` go into a graph instead of being run."""
        ...

    def describe_last_launch(self) -> dict[str, Any]:
        """Return what the device itself says about the last launch of this thread; plain values, empty if nothing."""
        ...

    def describe(self) -> dict[str, Any]:
        """Return what a capture says about the device; plain values."""
        ...


class HostBuffer:
    """A zeroed buffer in host memory, for launches that are complete when they return.

    Pages that are never written cost nothing.
    """

    def __init__(self, size: int, alignment: int) -> None:
        import numpy as np

        self._memory: NDArray[np.uint8] = np.zeros(size + alignment, dtype=np.uint8)
        start = -int(self._memory.ctypes.data) % max(alignment, 1)
        self._bytes = self._memory[start : start + size]

    @property
    def nbytes(self) -> int:
        """Its size."""
        return int(self._bytes.nbytes)

    def data_ptr(self) -> int:
        """Return its address."""
        return int(self._bytes.ctypes.data)

    def begin_read(self) -> None:
        """Do nothing: the bytes are on the host."""

    def read(self) -> NDArray[np.uint8]:
        """Return its bytes; not a copy."""
        return self._bytes

"""What capturing needs of a device, whatever it is.

A driver that can be profiled has an attribute `profile_device` with these methods; for Triton's own drivers an adapter
provides them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from kperfir.runtime.lap_drain import LapPlaces


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


class StreamedBuffer(ProfileBuffer, Protocol):
    """One whose laps are read while the launch runs."""

    @property
    def control(self) -> NDArray[np.uint32]:
        """The control block, which kernel and host see at once; shape (1 + warps of all CTAs, CONTROL_WORDS)."""
        ...

    def copy(self, offset: int, nbytes: int) -> NDArray[np.uint8]:
        """Return bytes of the buffer as they are now; waits for that copy alone, not for the launch."""
        ...


class ProfileDevice(Protocol):
    """A device that kernels can be profiled on."""

    simulated: bool
    asynchronous: bool  # Launches may still run when they return.

    def allocate_zeroed(self, size: int, alignment: int, stream: int) -> ProfileBuffer:
        """Return a buffer of `size` bytes at a multiple of `alignment`, zero when a launch on `stream` begins."""
        ...

    def allocate_streamed(self, size: int, alignment: int, stream: int, places: LapPlaces) -> StreamedBuffer:
        """Return such a buffer with a control block, whose entries its segments point to when the launch begins."""
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

    def __init__(self, size: int, alignment: int, *, more: int = 0) -> None:
        import numpy as np

        self._memory: NDArray[np.uint8] = np.zeros(size + more + alignment, dtype=np.uint8)
        start = -int(self._memory.ctypes.data) % max(alignment, 1)
        self._bytes = self._memory[start : start + size]
        self._more = self._memory[start + size : start + size + more]

    @property
    def nbytes(self) -> int:
        """Its size."""
        return int(self._bytes.nbytes)

    @property
    def mapped_bytes(self) -> int:
        """What a kernel may use from its address on: more than its size, where something belongs to it."""
        return self.nbytes + int(self._more.nbytes)

    def data_ptr(self) -> int:
        """Return its address."""
        return int(self._bytes.ctypes.data)

    def begin_read(self) -> None:
        """Do nothing: the bytes are on the host."""

    def read(self) -> NDArray[np.uint8]:
        """Return its bytes; not a copy."""
        return self._bytes


class StreamedHostBuffer(HostBuffer):
    """One whose laps are taken between two steps of its launch; the control block lies behind it."""

    def __init__(self, size: int, alignment: int, places: LapPlaces) -> None:
        import numpy as np

        super().__init__(size, alignment, more=places.control_bytes)
        self.control = places.new_control(self._more)
        entries = self.control[1:]
        pointers = np.lib.stride_tricks.as_strided(
            self._bytes[places.pointer_offset :][:8].view(np.uint64),
            (places.ctas, places.shape.warps), (places.stride, places.shape.segment_bytes),
        )  # fmt: skip
        pointers[:] = (entries.ctypes.data + entries.strides[0] * np.arange(len(entries))).reshape(pointers.shape)

    def copy(self, offset: int, nbytes: int) -> NDArray[np.uint8]:
        """Return bytes as they are now; not a copy: nothing runs while they are used."""
        return self._bytes[offset : offset + nbytes]

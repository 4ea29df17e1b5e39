"""The profile buffer of one launch: asked for by Triton, given to the kernel, brought back to the host.

Owns Triton's slot for a profile allocator while kernels are captured. Why a launch is kept is no matter here.
"""

from __future__ import annotations

import functools
import json
import sys
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from kperfir.errors import CaptureError, as_ours, warn
from kperfir.runtime.room import RecordAddress, Room

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from kperfir.capture.laps import Lap, LapShape
    from kperfir.runtime.device import ProfileBuffer, ProfileDevice
    from kperfir.runtime.kernel import Kernel
    from kperfir.runtime.lap_drain import LapDrain


@dataclass(frozen=True, slots=True)
class Records:
    """The profile buffer of a launch.

    Attributes:
        pending_bytes: Memory that it holds on the device or on the host until it is read; 0 if the launch is complete.
        read: Returns it; shape ``(room.ctas * cta_bytes,)``, dtype uint8; zero where a CTA recorded nothing. Waits for
            the launch. Raises `CaptureError` if there is none.
    """

    pending_bytes: int
    read: Callable[[], NDArray[np.uint8]]


class Request(Protocol):
    """What to do when Triton asks for the profile buffer of a launch."""

    def allocate(self, alignment: int) -> RecordAddress | None:
        """Return what the kernel is launched with."""
        ...


class Nothing:
    """A launch that nobody keeps. Its kernel records nothing."""

    def allocate(self, alignment: int) -> None:
        """Return null."""


@dataclass(slots=True)
class Pending:
    """A launch that is kept.

    Attributes:
        take_lap: Where laps go that are taken while it runs; None if its kernel makes none (`LapDrain`).
    """

    device: ProfileDevice
    stream: int
    room: Room
    stride: int
    shape: LapShape | None = None
    take_lap: Callable[[Lap], bool] | None = None
    buffer: ProfileBuffer | None = None
    drain: LapDrain | None = None
    error: CaptureError | None = None

    def allocate(self, alignment: int) -> RecordAddress | None:
        """Return the address of the buffer; null where there is no memory for one: the launch itself must not fail."""
        nbytes = self.room.ctas * self.stride
        try:
            if self.room.wanted and not nbytes:
                raise MemoryError(f"{self.stride} bytes per CTA are more than a launch may have")
            if self.shape is not None and self.take_lap is not None and nbytes:
                return self._allocate_streamed(nbytes, alignment, self.shape, self.take_lap)
            self.buffer = self.device.allocate_zeroed(nbytes, alignment, self.stream)
        except Exception as error:  # Whatever the device's library raises.
            self.error = CaptureError(
                "no-room", where="the profile buffer of a launch",
                found=(str(error) or type(error).__name__).splitlines()[0],
                expected=f"memory for {nbytes or self.stride} bytes",
                fix="set a bound that fits (TRITON_KPERF_LAUNCH_BYTES), or record fewer CTAs (TRITON_KPERF_CTAS)",
            )  # fmt: skip
            return None
        return RecordAddress.of(self.buffer, self.room, self.stride)

    def _allocate_streamed(
        self, nbytes: int, alignment: int, shape: LapShape, take_lap: Callable[[Lap], bool]
    ) -> RecordAddress:  # fmt: skip
        from kperfir.runtime.lap_drain import LapDrain, LapPlaces

        places = LapPlaces(shape, self.room.ctas, self.stride)
        buffer = self.device.allocate_streamed(nbytes, alignment, self.stream, places)
        self.buffer = buffer
        self.drain = LapDrain(buffer, places, self.room.first, take_lap)
        if self.device.asynchronous:
            self.drain.start()
        return RecordAddress.of(buffer, self.room, self.stride, self.drain.poll)

    def abandon(self) -> None:
        """Take nothing more from a launch that failed."""
        if self.drain is not None:
            self.drain.end()

    def begin_read(self, kernel: Kernel, untimed: list[list[int]] | None) -> Records:
        """Begin to bring the records to the host, once the launch was made."""
        if self.buffer is not None:
            try:
                self.buffer.begin_read()
            except Exception as error:  # Whatever the device's library raises.
                self.error = _unreadable(error)
        waits = self.device.asynchronous and self.buffer is not None and self.error is None
        nbytes = self.buffer.nbytes if waits and self.buffer is not None else 0
        return Records(nbytes, functools.partial(self._read, kernel, untimed))

    def _read(self, kernel: Kernel, untimed: list[list[int]] | None) -> NDArray[np.uint8]:
        if self.error is not None:
            self.abandon()
            raise self.error
        try:
            data = None if self.buffer is None else self.buffer.read()
        except Exception as error:  # The launch has failed: the program hears of it when it waits itself.
            raise _unreadable(error) from error
        finally:
            self.abandon()  # What is left of a launch that is complete comes with the buffer.
        taken = self.drain.taken if self.drain is not None else None
        if self.drain is not None and self.drain.error is not None:
            fault = as_ours(self.drain.error, f"kernel {kernel.name}")
            warn(f"a launch of kernel {kernel.name} has dropped records that could not be taken while it ran: {fault}")
        return _without_untimed(as_written(kernel, self.room.ctas, data, taken), self.room, untimed)


def _unreadable(error: Exception) -> CaptureError:
    return CaptureError(
        "no-records", where="the profile buffer of a launch",
        found=(str(error) or type(error).__name__).splitlines()[0],
        fix="see what the program itself says of its launches; if they work, report this",
    )  # fmt: skip


class ProfileAllocator:
    """Stands in Triton's one slot for a profile allocator, and passes on what is not for us."""

    def __init__(self) -> None:
        self._local = threading.local()
        self._previous: Any = None

    def __call__(self, size: int, alignment: int, stream: int | None) -> Any:
        """Allocate, as Triton asks."""
        request: Request | None = getattr(self._local, "request", None)
        if request is not None:
            return request.allocate(alignment)
        from triton.runtime import _allocation

        if self._previous is None or isinstance(self._previous, _allocation.NullAllocator):
            driver = sys.modules["triton.runtime.driver"].driver.active
            return driver.allocate_default_profile_scratch(size, alignment, stream)
        return self._previous(size, alignment, stream)

    def expect(self, request: Request | None) -> None:
        """Give the next allocation of this thread to `request`; None ends that."""
        from triton.runtime import _allocation

        slot = _allocation._profile_allocator
        if request is not None and slot.get() is not self:
            self._previous = slot.get()  # Somebody may have set another one since: theirs stays reachable.
            slot.set(self)
        self._local.request = request

    def uninstall(self) -> None:
        """Put back the allocator that was there."""
        if self._previous is None:
            return
        from triton.runtime import _allocation

        if _allocation._profile_allocator.get() is self:
            _allocation._profile_allocator.set(self._previous)
        self._previous = None


def _without_untimed(data: NDArray[np.uint8], room: Room, untimed: list[list[int]] | None) -> NDArray[np.uint8]:
    """Return the buffer without the records of CTAs that a device has run without time: their clocks tell nothing."""
    if untimed is None or not room.ctas:
        return data
    timed = data.copy().reshape(room.ctas, -1)
    for span in untimed:
        first, last = (min(max(cta - room.first, 0), room.ctas) for cta in span)
        timed[first:last] = 0
    return timed.reshape(-1)


def as_written(
    kernel: Kernel, ctas: int, data: NDArray[np.uint8] | None, taken: NDArray[np.uint32] | None = None
) -> NDArray[np.uint8]:  # fmt: skip
    """Return the bytes of all CTAs as a file has them.

    Args:
        kernel: What was launched.
        ctas: CTAs that have room.
        data: The device's buffer, which may have more bytes to align each CTA; None if nobody asked for one.
        taken: Laps of each warp that are in the file; none if nobody took any.

    Raises:
        CaptureError: ``size-mismatch``.
    """
    from kperfir.capture.laps import pack_rows

    fields = json.loads(kernel.layout)
    stride, cta_bytes = int(kernel.facts["scratch_bytes"]), int(fields["cta_bytes"])
    if data is None or not cta_bytes <= stride < cta_bytes + int(kernel.facts["scratch_align"]):
        raise CaptureError(
            "size-mismatch", where=f"kernel {kernel.name}", found=f"{stride} bytes of profile buffer per CTA",
            expected=f"{cta_bytes}", fix="switch off other profilers that instrument kernels, such as Proton",
        )  # fmt: skip
    if data.nbytes != ctas * stride:
        raise CaptureError(
            "size-mismatch", where=f"kernel {kernel.name}", found=f"a profile buffer of {data.nbytes} bytes",
            expected=f"{ctas} CTAs of {stride} bytes", fix="report it: driver and launch disagree",
        )  # fmt: skip
    rows = data.reshape(-1, stride)[:, :cta_bytes]
    return pack_rows(fields, rows, taken).reshape(-1)

"""Takes the laps of a launch while it runs, and tells the kernel that it may write over them.

    drain = LapDrain(buffer, room, take)
    drain.start()            # in a thread of its own, or where somebody calls `poll` now and then: not at all
    ...
    drain.end()              # nothing is taken any more: `taken` says what was

Owns the host's side of the control block (lib/Record/FORMAT.md; the kernel's is passes/LapEnd.cpp). Holds one lap at a
time. How bytes get to the host is the device's business (`StreamedBuffer`), what becomes of them, that of `take`.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from kperfir._native import record

from kperfir.capture.laps import Lap, LapShape, read_half
from kperfir.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from kperfir.runtime.device import StreamedBuffer

# A warp waits for the host so long at most. Clocks of a warp are 32 bits: at 2 GHz it may be silent for two seconds.
PATIENCE_NS = 1_000_000_000
# A launch fills halves for longer than this; looking costs a little of the program's own time.
_INTERVAL_S = 0.0002
ENTRY_BYTES = record.CONTROL_WORDS * record.WORD_BYTES


@dataclass(frozen=True, slots=True)
class LapPlaces:
    """Where the segments of a launch are in its buffer, and their entries in its control block, by CTA and warp.

    Attributes:
        shape: How a CTA's share is divided.
        ctas: CTAs with room.
        stride: Bytes from one share to the next.
    """

    shape: LapShape
    ctas: int
    stride: int

    @property
    def control_bytes(self) -> int:
        """Size of the control block."""
        return ENTRY_BYTES * (1 + self.ctas * self.shape.warps)

    @property
    def pointer_offset(self) -> int:
        """Byte offset in the buffer of the first segment's pointer to its entry: a multiple of 8, as all strides."""
        return self.shape.segment_offset(0) + record.CONTROL_ENTRY_WORD * record.WORD_BYTES

    def new_control(self, memory: NDArray[np.uint8]) -> NDArray[np.uint32]:
        """Make a control block of `control_bytes` bytes; shape (1 + entries, CONTROL_WORDS)."""
        control = memory.view(np.uint32).reshape(-1, record.CONTROL_WORDS)
        control[:] = 0
        control[1:, record.TO_HEADER_WORD] = ENTRY_BYTES * np.arange(1, len(control))
        control[0, record.PATIENCE_WORD :].view(np.uint64)[:] = PATIENCE_NS
        return control


class LapDrain:
    """Takes laps from one buffer.

    Args:
        buffer: What a launch writes into.
        places: Where its laps are.
        first_cta: Linear id of the first CTA with room.
        take: Keeps a lap; False if it cannot, and will not any more. May raise, with the same effect.

    Attributes:
        taken: Laps that were kept; shape (ctas, warps), dtype uint32.
        error: What `take` has raised.
    """

    def __init__(
        self, buffer: StreamedBuffer, places: LapPlaces, first_cta: int, take: Callable[[Lap], bool]
    ) -> None:  # fmt: skip
        self.taken = np.zeros((places.ctas, places.shape.warps), np.uint32)
        self.error: Exception | None = None
        self._buffer = buffer
        self._places = places
        self._first_cta = first_cta
        self._take = take
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Poll from now on, in a thread."""
        # Who never waits for a launch must be able to end all the same.
        self._thread = threading.Thread(target=self._run, name="kperfir-laps", daemon=True)
        self._thread.start()

    def poll(self) -> bool:
        """Take what is there; return whether there was anything."""
        with self._lock:
            entries = self._buffer.control[1:]
            if self._ended.is_set() or self._buffer.control[0, record.STOPPED_WORD]:
                return False
            waiting = np.flatnonzero(entries[:, record.LAPS_ENDED_WORD] != self.taken.reshape(-1))
            try:
                for entry in waiting.tolist():
                    if not self._take_from(entry):
                        self._stop()
                        break
            except Exception as error:  # Whatever the device's library or the file raises.
                self.error = error
                self._stop()
            return waiting.size > 0

    def end(self) -> None:
        """Take no more; returns when nothing is being taken."""
        self._ended.set()
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()
        with self._lock:
            pass

    def _run(self) -> None:
        while not self._ended.is_set():
            if not self.poll():
                self._ended.wait(_INTERVAL_S)

    def _stop(self) -> None:
        """Let no warp wait any more."""
        self._buffer.control[0, record.STOPPED_WORD] = 1
        self._ended.set()

    def _take_from(self, entry: int) -> bool:
        cta, warp = divmod(entry, self._places.shape.warps)
        control, shape = self._buffer.control[1 + entry], self._places.shape
        for _ in range(2):  # Both halves may be full; a warp that has filled more meanwhile lets others go first.
            number = int(self.taken[cta, warp])
            if number == control[record.LAPS_ENDED_WORD]:
                break
            offset = cta * self._places.stride + shape.half_offset(warp, number)
            half = self._buffer.copy(offset, record.WORD_BYTES * shape.half_words).view(np.uint32)
            ended, words = read_half(half)
            if ended != number + 1:
                raise _overwritten(f"CTA {self._first_cta + cta}, warp {warp}", ended, number + 1)
            if not self._take(Lap(self._first_cta + cta, warp, number, words)):
                return False
            self.taken[cta, warp] += 1
            control[record.LAPS_TAKEN_WORD] = self.taken[cta, warp]
        return True


def _overwritten(where: str, found: int, expected: int) -> CaptureError:
    return CaptureError(
        "corrupt-buffer", where=where, found=f"lap {found} in half a segment", expected=f"lap {expected}",
        fix="if the kernel writes out of bounds, correct that; otherwise report a bug of kperfir",
    )  # fmt: skip

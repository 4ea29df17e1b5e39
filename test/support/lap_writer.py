"""A warp in Python that fills the halves of its segment and waits for the host, as passes/LapEnd.cpp has a kernel do.

    writer = LapWriter(buffer.data_ptr(), places, cta=0, warp=1, frame_words=3)
    writer.put([1, 2, 3])
    writer.finish()

The frames that tests write are numbers, not stamps: what is in them is nobody's business here.
"""

from __future__ import annotations

import ctypes
import time
from typing import TYPE_CHECKING

import numpy as np
from kperfir._native import record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from kperfir.runtime.lap_drain import LapPlaces


def words_at(address: int, count: int) -> NDArray[np.uint32]:
    """The words of the process at an address."""
    return np.ctypeslib.as_array((ctypes.c_uint32 * count).from_address(address))


class LapWriter:
    """One warp.

    Attributes:
        records: Frames that it has executed.
        lost: Those of them that found no room.
    """

    def __init__(self, buffer: int, places: LapPlaces, *, cta: int, warp: int, frame_words: int) -> None:
        shape = places.shape
        share = buffer + cta * places.stride
        self.share = words_at(share, record.CTA_HEADER_WORDS)
        self._segment = words_at(share + shape.segment_offset(warp), shape.segment_bytes // 4)
        self._data = self._segment[record.SEGMENT_HEADER_WORDS :]
        self._halves = self._data.reshape(2, -1)
        self._limit = shape.half_words - record.HALF_TRAILER_WORDS - frame_words
        self._cursor = 0
        self.records = self.lost = 0

    def put(self, frame: Sequence[int]) -> None:
        """Store a frame, of at most `frame_words` words, and end the lap if no other one fits."""
        self.records += 1
        if self._cursor == len(self._data):
            self.lost += 1
            return
        self._data[self._cursor : self._cursor + len(frame)] = frame
        self._cursor += len(frame)
        half, used = divmod(self._cursor, self._halves.shape[1])
        if used > self._limit:
            self._end_lap(half, used)

    def finish(self) -> None:
        """End the CTA."""
        self._segment[:2] = (4 * self._cursor, self.records)
        self.share[0] = record.CTA_MAGIC

    def _end_lap(self, half: int, used: int) -> None:
        lap = int(self._halves[1 - half][-2]) + 1
        self._halves[half][-2:] = (lap, 4 * used)
        self._cursor = (1 - half) * self._halves.shape[1]
        address = int(self._segment[2:4].view(np.uint64)[0])
        if address:
            entry = words_at(address, record.CONTROL_WORDS)
            entry[record.LAPS_ENDED_WORD] = lap
        if lap > 1 and not (address and self._is_taken(address, lap - 1)):
            self._cursor = len(self._data)

    def _is_taken(self, address: int, lap: int) -> bool:
        entry = words_at(address, record.CONTROL_WORDS)
        header = words_at(address - int(entry[record.TO_HEADER_WORD]), record.CONTROL_WORDS)
        until = time.monotonic_ns() + int(header[record.PATIENCE_WORD :].view(np.uint64)[0])
        while entry[record.LAPS_TAKEN_WORD] < lap:
            if header[record.STOPPED_WORD]:
                return False
            if time.monotonic_ns() > until:
                header[record.STOPPED_WORD] = 1
                return False
            time.sleep(0.0002)
        return True

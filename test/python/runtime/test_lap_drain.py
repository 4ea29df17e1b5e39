"""Laps are taken in order while their launch runs; who cannot take any more says so, and nothing is lost in between."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np
import pytest
from kperfir._native import record

from kperfir.capture.laps import Lap, LapShape, pack_rows
from kperfir.errors import CaptureError
from kperfir.runtime import lap_drain
from kperfir.runtime.device import StreamedHostBuffer
from kperfir.runtime.lap_drain import LapDrain, LapPlaces
from support.lap_writer import LapWriter

if TYPE_CHECKING:
    from collections.abc import Callable

SHAPE = LapShape(warps=3, words_per_warp=64)
CTA_BYTES = record.cta_bytes(SHAPE.warps, SHAPE.words_per_warp)
PLACES = LapPlaces(SHAPE, ctas=2, stride=CTA_BYTES + 16)
FIRST_CTA = 5
FRAME_WORDS = 3
FRAMES = 400


class Launch:
    """Warps that write so many frames each, with different sizes, and a drain."""

    def __init__(self, take: Callable[[Lap], bool] | None = None) -> None:
        self.laps: list[Lap] = []
        self.buffer = StreamedHostBuffer(PLACES.ctas * PLACES.stride, 32, PLACES)
        self.drain = LapDrain(self.buffer, PLACES, FIRST_CTA, take or self.keep)
        self.writers = {
            (cta, warp): LapWriter(self.buffer.data_ptr(), PLACES, cta=cta, warp=warp, frame_words=FRAME_WORDS)
            for cta in range(PLACES.ctas)
            for warp in range(SHAPE.warps)
        }

    def keep(self, lap: Lap) -> bool:
        self.laps.append(Lap(lap.cta, lap.warp, lap.number, lap.words.copy()))
        return True

    def run(self) -> None:
        threads = [threading.Thread(target=self._write, args=place) for place in self.writers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.drain.end()

    def _write(self, cta: int, warp: int) -> None:
        writer = self.writers[cta, warp]
        for number in range(FRAMES):
            writer.put(frame(cta, warp, number))
        writer.finish()

    def rest(self) -> np.ndarray:
        """The segments that are left, in the form of a file; shape (ctas, warps, words)."""
        rows = self.buffer.read().reshape(PLACES.ctas, -1)[:, :CTA_BYTES]
        fields = {"strategy": "flush", "total_warps": SHAPE.warps, "words_per_warp": SHAPE.words_per_warp}
        packed = pack_rows(fields, rows, self.drain.taken).view(np.uint32)
        return packed[:, record.CTA_HEADER_WORDS :].reshape(PLACES.ctas, SHAPE.warps, -1)

    def kept(self, cta: int, warp: int) -> list[int]:
        """All words of a warp: of its laps, then the rest."""
        laps = [lap for lap in self.laps if (lap.cta, lap.warp) == (FIRST_CTA + cta, warp)]
        assert [lap.number for lap in laps] == list(range(len(laps)))
        cursor, records, _, taken = (segment := self.rest()[cta, warp])[:4].tolist()
        assert records == FRAMES
        assert taken == len(laps)
        data = segment[4:]
        assert not data[cursor // 4 :].any()
        return [word for lap in laps for word in lap.words.tolist()] + data[: cursor // 4].tolist()


def frame(cta: int, warp: int, number: int) -> list[int]:
    return [1000 * number + 100 * cta + 10 * warp + part for part in range(1 + (number + warp) % FRAME_WORDS)]


def words(cta: int, warp: int, frames: int = FRAMES) -> list[int]:
    return [word for number in range(frames) for word in frame(cta, warp, number)]


def test_every_frame_of_every_warp_is_kept_once_and_in_order() -> None:
    launch = Launch()
    launch.drain.start()
    launch.run()
    for cta, warp in launch.writers:
        assert launch.kept(cta, warp) == words(cta, warp)
        assert launch.rest()[cta, warp, 2] == 0
    assert all(writer.lost == 0 for writer in launch.writers.values())
    assert (launch.drain.taken > 10).all()


@pytest.mark.parametrize("fault", [None, OSError("No space left on device")])
def test_who_cannot_take_more_lets_warps_go_on_without_records(fault: Exception | None) -> None:
    def take_some(lap: Lap) -> bool:
        if len(launch.laps) == 20:
            if fault is not None:
                raise fault
            return False
        return launch.keep(lap)

    launch = Launch(take_some)
    launch.drain.start()
    launch.run()
    assert launch.drain.error is fault
    for (cta, warp), writer in launch.writers.items():
        kept = launch.kept(cta, warp)
        assert 0 < writer.lost < FRAMES
        assert kept == words(cta, warp, FRAMES - writer.lost)
        assert launch.rest()[cta, warp, 2] == 1


def test_host_that_never_answers_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lap_drain, "PATIENCE_NS", 50_000_000)
    launch = Launch()
    launch.run()
    assert launch.laps == []
    for (cta, warp), writer in launch.writers.items():
        assert launch.kept(cta, warp) == words(cta, warp, FRAMES - writer.lost)
    assert not launch.drain.poll(), "a kernel that has given up is not answered any more"


def test_laps_that_end_with_their_launch_are_taken_or_left_but_never_both() -> None:
    launch = Launch()
    writer = launch.writers[0, 0]
    while not writer.lost and writer.records < FRAMES:
        writer.put(frame(0, 0, writer.records))
        if writer.records == 20:  # One lap has ended.
            assert launch.drain.poll()
            assert not launch.drain.poll()
        if launch.buffer.control[1, record.LAPS_ENDED_WORD] == 3:
            break
        if launch.buffer.control[1, record.LAPS_ENDED_WORD] == 2:
            launch.drain.poll()
    writer.finish()
    launch.drain.end()
    assert not launch.drain.poll()
    cursor, records, stopped, taken = launch.rest()[0, 0, :4].tolist()
    assert (stopped, taken, len(launch.laps)) == (0, 2, 2)
    rest = launch.rest()[0, 0, 4 : 4 + cursor // 4].tolist()
    assert [word for lap in launch.laps for word in lap.words.tolist()] + rest == words(0, 0, records)


def test_half_that_something_else_has_written_to_is_not_taken_for_a_lap() -> None:
    launch = Launch()
    launch.buffer.control[2, record.LAPS_ENDED_WORD] = 7
    assert launch.drain.poll()
    assert launch.laps == []
    assert isinstance(launch.drain.error, CaptureError)
    assert "CTA 5, warp 1" in str(launch.drain.error)
    assert launch.buffer.control[0, record.STOPPED_WORD] == 1

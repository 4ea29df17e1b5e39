"""Laps in a .kpf file: put together they are what a buffer that was large enough would have held."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from kperfir._native import record

import kperfir
from kperfir.capture import format as kpf
from kperfir.capture.decode import decode_buffer
from kperfir.capture.laps import Lap, read_buffer
from kperfir.capture.reader import Capture
from kperfir.capture.writer import CaptureWriter, LaunchInfo, Ticket
from kperfir.errors import CaptureError
from support.synthetic import CaptureShape, describe_process, matmul_plan, run_launch, write_matmul_capture

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SHAPE = CaptureShape(ctas=3, warps=2, iterations=120, words_per_warp=8192)
LAP_WORDS = 50
HEADER = record.CTA_HEADER_WORDS


class Cut:
    """A launch, and the same one as a kernel with laps leaves it: `laps` and `rows`, whose words tests may change."""

    def __init__(self) -> None:
        plan = matmul_plan(SHAPE)
        self.layout = plan.layout(strategy="flush", words_per_warp=128)
        large = plan.layout(strategy="saturate", words_per_warp=SHAPE.words_per_warp, tag_first=False)
        runs = run_launch(plan, large, SHAPE, random.Random(SHAPE.seed), 10_000)
        self.laps: list[Lap] = []
        self.rows = np.zeros((SHAPE.ctas, self.layout.cta_bytes // 4), np.uint32)
        for cta, run in enumerate(runs):
            words = np.frombuffer(run.data, np.uint32)
            self.rows[cta, :HEADER] = words[:HEADER]
            self.rows[cta, 1] = self.layout.hash
            segments = words[HEADER:].reshape(SHAPE.warps, -1)
            for warp, (segment, (cursor, records, *_)) in enumerate(
                zip(segments, segments[:, :4].tolist(), strict=True)
            ):
                data = segment[4 : 4 + cursor // 4]
                taken = len(data) // LAP_WORDS
                for number in range(taken):
                    self.laps.append(Lap(cta, warp, number, data[number * LAP_WORDS :][:LAP_WORDS]))
                rest = data[taken * LAP_WORDS :]
                self.segment(cta, warp)[: 4 + len(rest)] = [4 * len(rest), records, 0, taken, *rest]

    def segment(self, cta: int, warp: int) -> np.ndarray:
        return self.rows[cta, HEADER:].reshape(SHAPE.warps, -1)[warp]

    def write(self, path: Path, *, ended: bool = True) -> Path:
        with CaptureWriter(path, describe_process(SHAPE)) as writer:
            kernel = writer.add_kernel(self.layout.text, {"registers": 96})
            ticket = writer.reserve(kernel)
            assert ticket is not None
            for lap in self.laps:
                assert writer.add_lap(kernel, ticket, lap, keep_free=0)
            if ended:
                writer.add_launch(kernel, LaunchInfo((SHAPE.ctas, 1, 1)), self.rows.tobytes(), ticket)
        return path


def test_a_capture_with_laps_decodes_as_one_without(tmp_path: Path) -> None:
    write_matmul_capture(tmp_path / "large.kpf", SHAPE)
    large = kperfir.load(tmp_path / "large.kpf")
    cut = kperfir.load(Cut().write(tmp_path / "cut.kpf"))
    for table in ("spans", "stamps", "tracks", "marks"):
        assert getattr(cut, table).equals(getattr(large, table)), table
    assert (large.tracks["stamps"] > 500).all()


def test_order_in_the_file_does_not_matter_and_other_ctas_are_passed_over(tmp_path: Path) -> None:
    expected = kperfir.load(Cut().write(tmp_path / "cut.kpf")).stamps
    cut = Cut()
    random.Random(0).shuffle(cut.laps)
    cut.laps.append(replace(cut.laps[0], cta=SHAPE.ctas + 4))
    assert kperfir.load(cut.write(tmp_path / "other.kpf")).stamps.equals(expected)


def test_what_is_dropped_is_counted_where_a_warp_has_stopped(tmp_path: Path) -> None:
    cut = Cut()
    cut.segment(1, 1)[1] += 30
    with pytest.raises(CaptureError, match=r"(?s)corrupt-buffer.*every frame had room"):
        kperfir.load(cut.write(tmp_path / "wrong.kpf")).tracks  # noqa: B018
    cut.segment(1, 1)[2] = 1
    tracks = kperfir.load(cut.write(tmp_path / "stopped.kpf")).tracks
    assert tracks["dropped"].tolist() == [0, 0, 0, 30, 0, 0]


def forget_a_lap(cut: Cut) -> None:
    del cut.laps[3]


def count_too_many(cut: Cut) -> None:
    cut.segment(2, 0)[3] = 0xFFFFFFFF


def pass_the_end(cut: Cut) -> None:
    cut.segment(0, 1)[0] = 4 * 128 + 4


@pytest.mark.parametrize("damage", [forget_a_lap, count_too_many, pass_the_end])
def test_laps_and_rests_that_do_not_go_together_are_refused(damage: Callable[[Cut], None], tmp_path: Path) -> None:
    cut = Cut()
    damage(cut)
    with pytest.raises(CaptureError, match=r"corrupt-file"):
        kperfir.load(cut.write(tmp_path / "x.kpf")).stamps  # noqa: B018


def test_lap_with_another_crc_is_refused_when_it_is_read(tmp_path: Path) -> None:
    path = Cut().write(tmp_path / "x.kpf")
    lap = Capture.open(path).laps[0][5]
    data = bytearray(path.read_bytes())
    data[lap.blob_offset + 7] ^= 1
    path.write_bytes(data)
    with pytest.raises(CaptureError, match=f"lap {lap.number} of warp {lap.warp} of CTA {lap.cta}"):
        kperfir.load(path).stamps  # noqa: B018


def test_laps_of_a_launch_that_is_not_there_are_said(tmp_path: Path) -> None:
    cut = Cut()
    capture = Capture.open(cut.write(tmp_path / "x.kpf", ended=False))
    assert capture.launches == []
    assert any(f"{len(cut.laps)} laps are not used" in note for note in capture.notes)


def test_laps_leave_room_in_the_file(tmp_path: Path) -> None:
    cut = Cut()
    bounds = kpf.Bounds(file_bytes=256 << 10)
    with CaptureWriter(tmp_path / "x.kpf", describe_process(SHAPE), bounds) as writer:
        kernel = writer.add_kernel(cut.layout.text)
        noise = np.random.default_rng(0).integers(0, 1 << 32, 100, dtype=np.uint32)
        lap, kept = Lap(0, 0, 0, noise), 0
        while writer.add_lap(kernel, Ticket(0, 0), lap, keep_free=100 << 10):
            kept += 1
    assert kept > 50
    assert 60 << 10 < (tmp_path / "x.kpf").stat().st_size < 156 << 10


@pytest.mark.parametrize("change", [lambda sizes: sizes[:-1], lambda sizes: sizes + 1, lambda sizes: sizes | 1 << 31])
def test_sizes_of_segments_that_do_not_fit_the_buffer_are_refused(change: Callable[[Any], Any], tmp_path: Path) -> None:
    launch = Capture.open(Cut().write(tmp_path / "x.kpf")).launches[0]
    raw = read_buffer(launch)
    assert raw.warp_words is not None
    with pytest.raises(CaptureError, match="size-mismatch"):
        decode_buffer(launch.kernel.layout, replace(raw, warp_words=change(raw.warp_words)))

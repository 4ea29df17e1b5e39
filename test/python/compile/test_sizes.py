"""Buffers of the size that an earlier capture says is needed: the arithmetic, and what is refused."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from kperfir.capture.layout_json import parse_layout
from kperfir.capture.reader import Capture
from kperfir.compile.pipeline import with_words
from kperfir.compile.sizes import measured_words, words_for
from kperfir.config import resolve
from kperfir.errors import CaptureError, ConfigError
from support.programs import CtaSetting, run_cta
from support.random_programs import random_plan
from support.synthetic import CaptureShape, matmul_plan, write_matmul_capture

if TYPE_CHECKING:
    from pathlib import Path


def test_words_hold_all_records_of_random_programs() -> None:
    for seed in range(100):
        rng = random.Random(seed)
        plan = random_plan(rng)
        layout = plan.layout(strategy="saturate", words_per_warp=1, frame_align=rng.choice((1, 2, 4)))
        tiny = run_cta(plan, layout, random.Random(seed), CtaSetting())
        records = max(warp.warp.words()[1] for warp in tiny.warps)
        roomy = plan.layout(
            strategy="saturate", words_per_warp=words_for(layout, records), frame_align=layout.frame_align
        )
        for warp in run_cta(plan, roomy, random.Random(seed), CtaSetting()).warps:
            cursor, executed = warp.warp.words()[:2]
            assert cursor <= 4 * (roomy.words_per_warp - roomy.max_frame_words)  # The next frame would fit as well.
            assert executed <= records


@pytest.mark.parametrize("strategy", ["saturate", "ring"])
def test_a_capture_says_what_its_kernels_need_though_it_dropped_records(strategy: str, tmp_path: Path) -> None:
    words = []
    for name, room in (("tiny", 40), ("roomy", 4096)):
        path = tmp_path / f"{name}.kpf"
        write_matmul_capture(path, CaptureShape(strategy=strategy, words_per_warp=room, launches=2))
        words.append(measured_words(path))
    assert words[0] == words[1]
    layout = matmul_plan(CaptureShape()).layout(strategy=strategy, words_per_warp=words[0]["matmul_kernel"])
    assert parse_layout(layout.text).words_per_warp < 4096
    dropped = Capture.open(tmp_path / "tiny.kpf").launches[0].kernel.layout.words_per_warp
    assert dropped < words[0]["matmul_kernel"]


def test_captures_without_records_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "sums.kpf"
    write_matmul_capture(path, CaptureShape(strategy="aggregate"))
    with pytest.raises(ConfigError, match="bad-option"):
        measured_words(path)
    with pytest.raises(CaptureError, match="file-missing"):
        measured_words(tmp_path / "none.kpf")


def test_option_is_a_number_or_a_capture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    options = resolve({"TRITON_KPERF_BUFFER_BYTES": "first.kpf"})
    assert options.buffer_bytes == str(tmp_path / "first.kpf")  # A child may be in another folder.
    assert resolve(options.to_environment()) == options
    with pytest.raises(ConfigError) as caught:
        resolve({}, buffer_bytes="first.txt")
    assert ".kpf" in caught.value.expected


def test_words_come_into_the_pass_that_plans() -> None:
    assert with_words("kperf-plan-buffer{buffer-bytes=0 strategy=ring}", 12) == (
        "kperf-plan-buffer{buffer-bytes=0 strategy=ring words-per-warp=12}"
    )

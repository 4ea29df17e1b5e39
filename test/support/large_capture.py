"""A capture of millions of records in seconds: one CTA from the reference encoder, repeated at other times.

write_large_capture(path, ctas=3600)
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np
from kperfir._native import record

from kperfir.capture.writer import CaptureWriter, LaunchInfo
from support.programs import CtaSetting, run_cta
from support.synthetic import CLOCK_HZ, CaptureShape, describe_process, matmul_plan

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


SHIFT = 1 << 20  # Cycles; no word of the buffer is this much larger in the second of two runs but a clock.
_SMS = 108
_START_NS = 5_000_000
_CTA_ID_X, _SM = 2, 5
_WIDE = {"start_clock": 6, "start_ns": 8, "end_clock": 10, "end_ns": 12}


def write_large_capture(path: Path, *, ctas: int, iterations: int = 64) -> int:
    """Write a launch of `ctas` CTAs of four warps, one to an SM at a time; returns how many records it holds."""
    shape = CaptureShape(ctas=ctas, iterations=iterations, words_per_warp=16 * iterations + 64, sms=_SMS)
    plan = matmul_plan(shape)
    layout = plan.layout(strategy=shape.strategy, words_per_warp=shape.words_per_warp)
    settings = [CtaSetting(start_clock=clock, clock_hz=CLOCK_HZ, start_ns=_START_NS, skew=0) for clock in (0, SHIFT)]
    first, later = (run_cta(plan, layout, random.Random(0), setting) for setting in settings)
    duration = first.header.end_clock - first.header.start_clock
    words = np.frombuffer(first.data, np.uint32)
    is_clock = np.frombuffer(later.data, np.uint32) - words == SHIFT
    is_clock[: record.CTA_HEADER_WORDS] = False
    with CaptureWriter(path, describe_process(shape)) as writer:
        kernel = writer.add_kernel(layout.text, {"registers": 96})
        data = _repeated(words, is_clock, ctas, duration)
        info = LaunchInfo((ctas, 1, 1), cycles=duration * -(-ctas // _SMS), clock_hz=CLOCK_HZ)
        writer.add_launch(kernel, info, data.view(np.uint8).reshape(-1))
    return int(np.count_nonzero(is_clock)) * ctas


def _repeated(words: NDArray[np.uint32], is_clock: NDArray[np.bool_], ctas: int, duration: int) -> NDArray[np.uint32]:
    """The words of one CTA for each of `ctas`, on its own SM and at its own time; shape (ctas, words)."""
    number = np.arange(ctas, dtype=np.uint64)
    start = number // _SMS * (duration + 300)
    data = np.tile(words, (ctas, 1))
    data += np.where(is_clock, start[:, None], 0).astype(np.uint32)
    data[:, _CTA_ID_X], data[:, _SM] = number, number % _SMS
    for name, word in _WIDE.items():
        base = int(words[word]) | int(words[word + 1]) << 32
        moved = base + (start if name.endswith("clock") else (start * 1e9 / CLOCK_HZ).astype(np.uint64))
        data[:, word], data[:, word + 1] = moved & 0xFFFFFFFF, moved >> np.uint64(32)
    return data

"""Sizes of buffers from what an earlier capture of the same kernels says: the second pass of two.

    words = measured_words(Path("first.kpf"))      # {"matmul": 1204}

A capture counts the records of each warp exactly, those that were dropped included, so the next one can have room for
all. Owns that arithmetic; what is done with it is `kperf-plan-buffer`'s.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING

from kperfir.capture.decode import decode_buffer
from kperfir.capture.laps import read_buffer
from kperfir.capture.reader import Capture
from kperfir.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from kperfir.capture.layout import BufferLayout


def measured_words(path: Path) -> dict[str, int]:
    """Per kernel, data words that hold all records of any warp of any launch in the capture.

    Raises:
        CaptureError: The file is absent, foreign, damaged, or of another version.
        ConfigError: ``bad-option``: it has no records of any kernel.
    """
    words: dict[str, int] = {}
    for launch in Capture.open(path).launches:
        layout = launch.kernel.layout
        if layout.aggregate:
            continue
        tracks = decode_buffer(layout, read_buffer(launch), want=(), where=launch.where).tracks
        needed = words_for(layout, int(tracks["records"].max(initial=0)))
        words[launch.kernel.name] = max(needed, words.get(launch.kernel.name, 0))
    if not words:
        raise ConfigError(
            "bad-option", where=f"buffer_bytes, {path}", found="no records of a kernel",
            expected="a capture of the kernels that are to be recorded",
            fix="record once with strategy saturate or ring",
        )  # fmt: skip
    return words


def words_for(layout: BufferLayout, records: int) -> int:
    """Words that hold `records` stamps, whichever frames they are of; and room for one frame more, which always is."""
    most = max((Fraction(frame.words, len(frame.stamps)) for frame in layout.frames), default=Fraction(0))
    return ceil(records * most) + layout.max_frame_words

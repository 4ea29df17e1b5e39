"""Host speed from a .kpf file to tables."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import torch

import kperfir
from kernels.reductions import reduce2d
from sections.table import table

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS, COLUMNS, BLOCK_ROWS = 4096, 8192, 32
REPEATS = 3


def capture(path: Path) -> None:
    """Record a reduction with a long loop in many CTAs."""
    x, o = torch.ones(ROWS, COLUMNS, dtype=torch.float16), torch.empty(ROWS)
    with kperfir.profile(path, device="simt", buffer_bytes=16 << 10):
        reduce2d[(ROWS // BLOCK_ROWS,)](x, o, COLUMNS, B=128, R=BLOCK_ROWS)


def fastest(call: Callable[[], object]) -> float:
    """CPU seconds of the fastest of a few calls."""
    seconds = []
    for _ in range(REPEATS):
        start = time.process_time()
        call()
        seconds.append(time.process_time() - start)
    return min(seconds)


def run() -> tuple[str, int]:
    """Time loading and the first use of each table."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "decode.kpf"
        capture(path)
        timeline = kperfir.load(path)
        stamps, spans = int(timeline.tracks["stamps"].sum()), len(timeline.spans)
        to_spans = fastest(lambda: kperfir.load(path).spans)
        to_summary = fastest(lambda: kperfir.load(path).summary())
        megabytes = path.stat().st_size / 1e6
    rows = [
        ["file to spans", to_spans, stamps / to_spans / 1e6, spans / to_spans / 1e6],
        ["file to summary", to_summary, stamps / to_summary / 1e6, spans / to_summary / 1e6],
    ]
    text = f"## Host speed of decoding\n\n{stamps:,} stamps, {spans:,} spans, a file of {megabytes:.1f} MB.\n\n"
    return text + table(("step", "CPU seconds", "M stamps/s", "M spans/s"), rows), 0

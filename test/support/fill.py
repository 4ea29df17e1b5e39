"""A kernel to launch on a device that runs nothing, and the capture of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import triton
import triton.language as tl

if TYPE_CHECKING:
    from pathlib import Path


@triton.jit
def fill_kernel(target, count, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(target + offsets, 1.0, mask=offsets < count)


def launch(ctas: int = 2) -> None:
    """Launch `fill_kernel`."""
    target = np.zeros(256, np.float32)
    fill_kernel[(ctas,)](target, 256, BLOCK=128)


def capture(path: Path) -> Any:
    """Open a capture."""
    from kperfir.capture.reader import Capture

    return Capture.open(path)

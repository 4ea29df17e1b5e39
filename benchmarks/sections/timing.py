"""Host time of a call."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

REPEATS = 3


def fastest(call: Callable[[], object]) -> float:
    """CPU seconds of the fastest of `REPEATS` calls."""
    seconds = []
    for _ in range(REPEATS):
        start = time.process_time()
        call()
        seconds.append(time.process_time() - start)
    return min(seconds)

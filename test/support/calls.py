"""How many Python functions a call goes through: whether work is done row by row, without a clock to say so."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType


def calls_of(run: Callable[[], object]) -> int:
    """Calls of Python functions in `run()`; those of C functions are not counted."""
    count = 0

    def count_calls(frame: FrameType, event: str, arg: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(count_calls)
    try:
        run()
    finally:
        sys.setprofile(before)
    return count

"""Sets of cycles as sorted, disjoint intervals: two arrays, starts and ends (exclusive)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Cycles = NDArray[np.int64]
    Intervals = tuple[Cycles, Cycles]


def union(start: Cycles, end: Cycles) -> Intervals:
    """The cycles that any of these intervals covers. They may come in any order and overlap."""
    order = np.argsort(start, kind="stable")
    start, end = start[order], np.maximum.accumulate(end[order]) if len(end) else end
    if not len(start):
        return start, end
    first = np.r_[True, start[1:] > end[:-1]]
    last = np.r_[first[1:], True]
    return start[first], end[last]


def length(intervals: Intervals) -> int:
    """How many cycles these are."""
    return int((intervals[1] - intervals[0]).sum())


def common(first: Intervals, second: Intervals) -> int:
    """How many cycles two sets share."""
    return int((_covered(second, first[1]) - _covered(second, first[0])).sum())


def _covered(intervals: Intervals, until: Cycles) -> Cycles:
    """Cycles of the set before each of `until`."""
    start, end = intervals
    if not len(start):
        return np.zeros(len(until), np.int64)
    before = np.r_[0, np.cumsum(end - start)]
    place = np.searchsorted(start, until, side="right")
    inside = np.maximum(0, end[np.maximum(place - 1, 0)] - until) * (place > 0)
    covered: Cycles = before[place] - inside
    return covered

"""Sets of cycles as sorted, disjoint intervals: two arrays, starts and ends (exclusive)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

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


def together(sets: Iterable[Intervals]) -> Intervals:
    """The cycles of any of these sets."""
    start, end = _joined(sets)
    return union(start, end)


def exactly_one(sets: Iterable[Intervals]) -> Intervals:
    """The cycles that are in one of these sets and in no other."""
    start, end = _joined(sets)
    at = np.concatenate([start, end])
    order = np.argsort(at, kind="stable")
    at = at[order]
    depth = np.cumsum(np.where(order < len(start), 1, -1))
    one = np.flatnonzero((depth[:-1] == 1) & (at[1:] > at[:-1]))
    return at[one], at[one + 1]


def _joined(sets: Iterable[Intervals]) -> Intervals:
    none = np.empty(0, np.int64)
    starts, ends = zip((none, none), *sets, strict=True)
    return np.concatenate(starts), np.concatenate(ends)


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

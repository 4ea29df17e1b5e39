"""Begins and ends follow the tree, whatever the rows' order says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from kperfir._native import trace

if TYPE_CHECKING:
    from numpy.typing import NDArray


def _walk(parent: list[int]) -> list[int]:
    """Reference: row of each begin, ~row of each end, by recursion."""
    events: list[int] = []

    def visit(row: int) -> None:
        events.append(row)
        for child in (r for r, p in enumerate(parent) if p == row):
            visit(child)
        events.append(~row)

    for root in (r for r, p in enumerate(parent) if p < 0):
        visit(root)
    return events


def _depths(parent: list[int]) -> list[int]:
    depth: list[int] = []
    for owner in parent:
        depth.append(0 if owner < 0 else depth[owner] + 1)
    return depth


def _order(
    parent: list[int], depth: list[int], times: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None,
    instant: list[int] | None = None,
) -> tuple[NDArray[np.int64], int] | None:  # fmt: skip
    """All spans in one root, which is row 0."""
    spans = len(parent)
    is_instant = np.isin(np.arange(spans), instant or [])
    times = times or (np.zeros(spans + 1, np.int64), np.zeros(spans + 1, np.int64))
    runs = np.array([0], np.int64), np.array([spans], np.int64)
    return trace.order(runs, np.array(parent, np.int64), np.array(depth, np.int16), is_instant, times)


def _events(parent: list[int], depth: list[int], instant: list[int] | None = None) -> list[int]:
    ordered = _order(parent, depth, instant=instant)
    assert ordered is not None
    rows = len(parent) + 1
    events = [event - 1 if event < rows else ~(event - rows - 1) for event in ordered[0].tolist()]
    assert (events[0], events[-1]) == (-1, 0)  # Begin of the root, and its end, as ~-1.
    return events[1:-1]


def test_children_of_an_empty_span_stay_inside_it() -> None:
    # Rows 1 and 2 begin in the same instant; row 3 is the child of row 1, but sorts behind row 2.
    assert _events([-1, 0, 0, 1], [0, 1, 1, 2]) == [0, 1, 3, ~3, ~1, 2, ~2, ~0]


def test_instants_have_no_end() -> None:
    assert _events([-1, 0, 0], [0, 1, 1], instant=[1]) == [0, 1, 2, ~2, ~0]


@pytest.mark.parametrize("seed", range(20))
def test_order_equals_recursive_walk_for_random_forests(seed: int) -> None:
    rng = np.random.default_rng(seed)
    parent = [-1]
    for row in range(1, 60):
        parent.append(int(rng.integers(-1, row)))
    assert _events(parent, _depths(parent)) == _walk(parent)


def test_roots_follow_each_other_whatever_the_order_of_their_spans() -> None:
    runs = np.array([2, 0, 0], np.int64), np.array([3, 2, 0], np.int64)  # The last one has no spans.
    times = np.zeros(6, np.int64), np.zeros(6, np.int64)
    parent, depth = np.array([-1, 0, -1], np.int64), np.array([0, 1, 0], np.int16)
    ordered = trace.order(runs, parent, depth, np.zeros(3, np.bool_), times)
    assert ordered is not None
    assert ordered[0].tolist() == [0, 5, 5 + 6, 0 + 6, 1, 3, 4, 4 + 6, 3 + 6, 1 + 6, 2, 2 + 6]


def test_times_do_not_go_back_along_the_walk() -> None:
    # The root from 0 to 10; in it a span that ends at 6 and holds one that ends at 7, and one that starts at 6.
    times = np.array([0, 0, 2, 6], np.int64), np.array([10, 6, 7, 10], np.int64)
    ordered = _order([-1, 0, -1], [0, 1, 0], times)
    assert ordered is not None
    assert ordered[1] == 1
    assert [column.tolist() for column in times] == [[0, 0, 2, 7], [10, 7, 7, 10]]


def test_no_spans_give_no_events() -> None:
    assert _events([], []) == []


def test_depth_that_contradicts_parent_is_refused() -> None:
    assert _order([-1, 0], [0, 2]) is None


@pytest.mark.parametrize("parent", [[1, -1], [-1, 1]])
def test_parent_that_is_no_earlier_row_is_refused(parent: list[int]) -> None:
    assert _order(parent, [0, 1]) is None


def test_parent_in_another_root_is_refused() -> None:
    runs = np.array([0, 1], np.int64), np.array([1, 2], np.int64)
    times = np.zeros(4, np.int64), np.zeros(4, np.int64)
    parent, depth = np.array([-1, 0], np.int64), np.array([0, 1], np.int16)
    assert trace.order(runs, parent, depth, np.zeros(2, np.bool_), times) is None


@pytest.mark.parametrize("runs", [([0], [3]), ([0, 1], [2, 2]), ([0], [1]), ([1], [0])])
def test_runs_that_are_no_partition_of_the_spans_are_refused(runs: tuple[list[int], list[int]]) -> None:
    rows = len(runs[0]) + 2
    with pytest.raises(ValueError, match=r"root|times"):
        trace.order(
            (np.array(runs[0], np.int64), np.array(runs[1], np.int64)),
            np.array([-1, 0], np.int64),
            np.array([0, 1], np.int16),
            np.zeros(2, np.bool_),
            (np.zeros(rows, np.int64), np.zeros(rows, np.int64)),
        )


def test_sum_of_the_outermost_counted_rows() -> None:
    # 0 holds 1 (counted, holds 2, which holds 3, counted) and 4 (holds 5, counted).
    parent = np.array([-1, 0, 1, 2, 0, 4], np.int64)
    values = np.array([100, 50, 40, 30, 20, 7], np.int64)
    counted = np.array([False, True, False, True, False, True])
    assert trace.sum_outermost(parent, values, counted).tolist() == [57, 50, 0, 30, 7, 7]


def test_sum_of_rows_that_do_not_come_first_is_refused() -> None:
    with pytest.raises(ValueError, match="after its child"):
        trace.sum_outermost(np.array([1, -1], np.int64), np.zeros(2, np.int64), np.zeros(2, np.bool_))


def test_first_rows_of_numbers() -> None:
    assert trace.first_rows(np.array([2, 0, 2, 0], np.int32), 4).tolist() == [1, -1, 0, -1]
    with pytest.raises(ValueError, match="number"):
        trace.first_rows(np.array([4], np.int32), 4)

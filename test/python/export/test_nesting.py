"""Begins and ends follow the tree, whatever the rows' order says."""

import numpy as np
import pytest

from kperfir.errors import ExportError
from kperfir.export.nesting import event_order


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


def _events(parent: list[int], depth: list[int]) -> list[int]:
    begin, end = event_order(np.array(parent, np.int64), np.array(depth, np.int64))
    events = [0] * (2 * len(parent))
    for row in range(len(parent)):
        events[begin[row]] = row
        events[end[row]] = ~row
    return events


def test_children_of_an_empty_span_stay_inside_it() -> None:
    # Rows 1 and 2 begin in the same instant; row 3 is the child of row 1, but sorts behind row 2.
    assert _events([-1, 0, 0, 1], [0, 1, 1, 2]) == [0, 1, 3, ~3, ~1, 2, ~2, ~0]


@pytest.mark.parametrize("seed", range(20))
def test_order_equals_recursive_walk_for_random_forests(seed: int) -> None:
    rng = np.random.default_rng(seed)
    parent = [-1]
    for row in range(1, 60):
        parent.append(int(rng.integers(-1, row)))
    depth = [0] * len(parent)
    for row, owner in enumerate(parent):
        depth[row] = 0 if owner < 0 else depth[owner] + 1
    assert _events(parent, depth) == _walk(parent)


def test_no_spans_give_no_events() -> None:
    begin, end = event_order(np.zeros(0, np.int64), np.zeros(0, np.int64))
    assert len(begin) == len(end) == 0


def test_depth_that_contradicts_parent_is_refused() -> None:
    with pytest.raises(ExportError, match="not-nested"):
        event_order(np.array([-1, 0]), np.array([0, 2]))


@pytest.mark.parametrize("parent", [[1, -1], [-2, 0], [-1, 1]])
def test_parent_that_is_no_earlier_row_is_refused(parent: list[int]) -> None:
    with pytest.raises(ExportError, match="not-nested"):
        event_order(np.array(parent), np.array([0, 1]))

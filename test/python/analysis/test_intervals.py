"""Sets of cycles, against sets of integers."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kperfir.analysis.intervals import common, length, union

PAIRS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 12)), max_size=8)


def made(pairs: list[tuple[int, int]]):
    array = np.array(pairs, np.int64).reshape(-1, 2)
    return union(array[:, 0], array.sum(axis=1)), {c for start, size in pairs for c in range(start, start + size)}


@settings(max_examples=200, deadline=None)
@given(PAIRS, PAIRS)
def test_lengths_are_those_of_the_sets(first: list[tuple[int, int]], second: list[tuple[int, int]]) -> None:
    (a, truth_a), (b, truth_b) = made(first), made(second)
    assert length(a) == len(truth_a)
    assert common(a, b) == common(b, a) == len(truth_a & truth_b)

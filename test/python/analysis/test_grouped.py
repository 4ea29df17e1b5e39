"""Figures of groups against pandas' groupby."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kperfir.analysis.grouped import Groups, group_by, number

ROWS = st.lists(
    st.tuples(
        st.sampled_from("abc"), st.integers(-3, 3), st.integers(0, 1 << 50), st.booleans(), st.integers(0, 2)
    ),
    min_size=1,
    max_size=60,
)  # fmt: skip


def table(rows: list[tuple[str, int, int, bool, int]]) -> tuple[pd.DataFrame, Groups, pd.DataFrame]:
    """Rows, their groups by letter and number, and pandas' key of each group in the order of ours."""
    frame = pd.DataFrame(rows, columns=["letter", "number", "cycles", "counted", "part"])
    frame["letter"] = frame["letter"].astype("category")
    groups = group_by(frame["letter"], frame["number"])
    return frame, groups, frame[["letter", "number"]].iloc[groups.first]


@given(ROWS)
def test_groups_are_those_of_pandas(rows: list[tuple[str, int, int, bool, int]]) -> None:
    frame, groups, keys = table(rows)
    index = pd.MultiIndex.from_frame(keys.astype({"letter": object}))
    by = frame.astype({"letter": object}).groupby(["letter", "number"])
    cycles, counted = frame["cycles"].to_numpy(), frame["counted"].to_numpy()
    assert groups.sizes.tolist() == by.size()[index].tolist()
    assert groups.sum(cycles).tolist() == by["cycles"].sum()[index].tolist()
    assert groups.sum(counted).tolist() == by["counted"].sum()[index].tolist()
    assert groups.min(cycles).tolist() == by["cycles"].min()[index].tolist()
    assert groups.max(cycles).tolist() == by["cycles"].max()[index].tolist()
    assert groups.first.tolist() == by.apply(lambda rows: rows.index[0])[index].tolist()


@given(ROWS)
def test_quantiles_are_of_the_rows_that_count(rows: list[tuple[str, int, int, bool, int]]) -> None:
    frame, groups, keys = table(rows)
    got = groups.quantiles(frame["cycles"].to_numpy(), frame["counted"].to_numpy(), (0.5, 0.95, 1.0))
    for place, (letter, value) in enumerate(keys.itertuples(index=False)):
        cycles = frame.loc[(frame["letter"] == letter) & (frame["number"] == value) & frame["counted"], "cycles"]
        expected = [cycles.quantile(at) for at in (0.5, 0.95, 1.0)]
        assert got[:, place] == pytest.approx(expected, nan_ok=True)


@given(ROWS)
def test_spread_is_over_the_parts_with_a_row_that_counts(rows: list[tuple[str, int, int, bool, int]]) -> None:
    frame, groups, keys = table(rows)
    got = groups.spread(frame["cycles"].to_numpy(), number(frame["part"].to_numpy()), frame["counted"].to_numpy())
    for place, (letter, value) in enumerate(keys.itertuples(index=False)):
        mine = frame[(frame["letter"] == letter) & (frame["number"] == value) & frame["counted"]]
        sums = mine.groupby("part")["cycles"].sum()
        expected = sums.std(ddof=0) / sums.mean() if len(sums) and sums.mean() else 0.0
        assert got[place] == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_sums_past_what_floats_hold_are_exact() -> None:
    large = (1 << 60) + 1
    assert number(np.array([0, 1, 0])).sum(np.array([large, 7, 1])).tolist() == [large + 1, 7]


def test_keys_of_any_size_are_told_apart() -> None:
    far = np.array([-(1 << 62), 1 << 62, -(1 << 62), 0])
    groups = number(far, np.array([1 << 40, 0, 1 << 40, 5]), far)
    assert groups.count == 3
    assert groups.number[0] == groups.number[2]


def test_no_rows_are_no_groups() -> None:
    groups = number(np.zeros(0, np.int64))
    assert groups.count == 0
    assert groups.sum(np.zeros(0, np.int64)).tolist() == groups.max(np.zeros(0, np.int64)).tolist() == []


@pytest.mark.parametrize(("low", "extent"), [(300, 3), (0, 128), (-5, 128), (1 << 20, 1 << 15), (1 << 40, 256)])
def test_small_ranges_may_lie_anywhere(low: int, extent: int) -> None:
    """Such as the lines of a kernel far down in its file."""
    values = np.array([low, low + extent - 1, low, low + 1])
    assert number(values).number[[0, 2]].tolist() == [0, 0]
    assert number(values, values).count == 3

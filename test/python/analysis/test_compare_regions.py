"""Two captures compared: bands and verdicts worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from kperfir.analysis.compare import COLUMNS, compare_regions
from kperfir.analysis.student import student

REGIONS = {"k": ("kernel", 0), "loop k.py:3": ("loop", 1), "load k.py:4": ("load", 2), "load k.py:5": ("load", 2)}


def spans(*rows: tuple[str, int, int, int], kernel: str = "k", regions: dict[str, Any] = REGIONS) -> pd.DataFrame:
    """Complete executions from (name, launch, cta, cycles)."""
    names = list(regions)
    frame = pd.DataFrame(rows, columns=["name", "launch", "cta", "duration_cycles"])
    return frame.assign(
        kernel=kernel,
        kind=[regions[name][0] for name in frame["name"]],
        depth=[regions[name][1] for name in frame["name"]],
        region=[names.index(name) for name in frame["name"]],
        complete=True,
    )


def by_name(before: pd.DataFrame, after: pd.DataFrame, threshold: float = 0.02) -> pd.DataFrame:
    return compare_regions(before, after, threshold).set_index("name")


def test_change_beyond_the_noise_of_launches_has_a_verdict() -> None:
    before = spans(*(("k", launch, 0, cycles) for launch, cycles in enumerate((98, 100, 102))))
    after = spans(*(("k", launch, 0, cycles) for launch, cycles in enumerate((118, 120, 122))))
    row = by_name(before, after).loc["k"]
    # Each error is 2 / sqrt(3); the band is 4.303 * sqrt(2 * 4 / 3) / 100.
    assert row["change"] == pytest.approx(0.2)
    assert row["band"] == pytest.approx(4.303 * math.sqrt(8 / 3) / 100)
    assert (row["blocks"], row["verdict"]) == (3, "slower")
    assert by_name(after, before).loc["k", "verdict"] == "faster"
    noisy = spans(*(("k", launch, 0, cycles) for launch, cycles in enumerate((90, 120, 150))))
    assert by_name(before, noisy).loc["k", "verdict"] == "same"


def test_ctas_are_the_blocks_of_few_launches() -> None:
    before = spans(*(("k", 0, cta, 100 + cta) for cta in range(4)), *(("k", 1, cta, 100 + cta) for cta in range(4)))
    row = by_name(before, before).loc["k"]
    assert (row["blocks"], row["change"], row["verdict"]) == (8, 0.0, "same")
    assert row["count_before"] == 4
    one = spans(("k", 0, 0, 100))
    row = by_name(one, spans(("k", 0, 0, 101))).loc["k"]
    assert (row["blocks"], row["band"], row["verdict"]) == (1, 0.02, "same")
    assert by_name(one, spans(("k", 0, 0, 103))).loc["k", "verdict"] == "slower"
    assert by_name(one, spans(("k", 0, 0, 103)), threshold=0.05).loc["k", "verdict"] == "same"


def test_executions_of_one_block_are_no_samples_of_their_own() -> None:
    """A thousand executions in one CTA say no more than their mean."""
    many = spans(*(("load k.py:4", 0, 0, 50 + n % 2) for n in range(1000)))
    row = by_name(many, many).loc["load k.py:4"]
    assert (row["blocks"], row["band"]) == (1, 0.02)


def test_regions_of_moved_lines_are_paired_in_order() -> None:
    moved = {"k": ("kernel", 0), "loop k.py:9": ("loop", 1), "load k.py:10": ("load", 2), "load k.py:11": ("load", 2)}
    before = spans(*((name, 0, 0, 100 + n) for n, name in enumerate(REGIONS)))
    after = spans(*((name, 0, 0, 200 + n) for n, name in enumerate(moved)), regions=moved)
    table = by_name(before, after)
    assert table["name_before"].to_dict() == dict(zip(moved, REGIONS, strict=True))
    assert (table["verdict"] == "slower").all()
    assert table["mean_before"].tolist() == [100, 101, 102, 103]


def test_what_only_one_capture_has_is_added_or_removed() -> None:
    before = spans(("k", 0, 0, 100), ("load k.py:4", 0, 0, 10), ("load k.py:5", 0, 0, 10))
    other = {"k": ("kernel", 0), "load k.py:4": ("load", 2), "dot k.py:6": ("dot", 2)}
    after = spans(("k", 0, 0, 100), ("load k.py:4", 0, 0, 10), ("dot k.py:6", 0, 0, 10), regions=other)
    table = by_name(before, after)
    assert table["verdict"].to_dict() == {
        "k": "same", "load k.py:4": "same", "dot k.py:6": "added", "load k.py:5": "removed",
    }  # fmt: skip
    assert np.isnan(table.loc["dot k.py:6", "change"])


def test_incomplete_executions_say_nothing() -> None:
    before = spans(("k", 0, 0, 100), ("k", 1, 0, 7))
    before.loc[1, "complete"] = False
    row = by_name(before, spans(("k", 0, 0, 100))).loc["k"]
    assert (row["mean_before"], row["verdict"]) == (100, "same")
    assert by_name(before.iloc[1:], before).loc["k", "verdict"] == "unknown"


def test_kernels_are_kept_apart() -> None:
    before = pd.concat([spans(("k", 0, 0, 100)), spans(("k", 1, 0, 10), kernel="other")], ignore_index=True)
    after = pd.concat([spans(("k", 0, 0, 100)), spans(("k", 1, 0, 20), kernel="other")], ignore_index=True)
    table = compare_regions(before, after)
    assert table[["kernel", "verdict"]].to_numpy().tolist() == [["k", "same"], ["other", "slower"]]


def test_no_spans_give_no_rows() -> None:
    empty = spans(("k", 0, 0, 100)).iloc[:0]
    assert list(compare_regions(empty, empty)) == COLUMNS
    assert compare_regions(empty, spans(("k", 0, 0, 1)))["verdict"].tolist() == ["added"]


def test_points_of_students_distribution_are_right() -> None:
    """By Simpson's rule over its density, from 0 to the point: 47.5 %."""
    for freedom in (1, 2, 5, 12, 30):
        scale = math.gamma((freedom + 1) / 2) / (math.sqrt(freedom * math.pi) * math.gamma(freedom / 2))
        x = np.linspace(0, student(freedom), 20001)
        density = scale * (1 + x**2 / freedom) ** (-(freedom + 1) / 2)
        area = (x[1] - x[0]) / 3 * (density[0] + density[-1] + 4 * density[1:-1:2].sum() + 2 * density[2:-1:2].sum())
        assert area == pytest.approx(0.475, abs=2e-4)

"""Region statistics against sums worked out by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import pytest

from kperfir.analysis.occupancy import cta_cycles, sm_occupancy
from kperfir.analysis.regions import region_statistics
from kperfir.analysis.self_time import self_cycles
from kperfir.analysis.warp_lag import warp_lag
from kperfir.timeline import load
from support.synthetic import CaptureShape, write_matmul_capture

if TYPE_CHECKING:
    from pathlib import Path
from support.toy_timeline import SPAN_COLUMNS, SPAN_DTYPES, toy_timeline


def _spans(*rows: tuple[int, int, str, str, int, int, int, int]) -> pd.DataFrame:
    """Rows of (cta, warp, name, kind, line, parent, start, end), of kernel k on SM 0."""
    defaults = {
        "launch": 0, "kernel": "k", "cta_x": 0, "cta_y": 0, "cta_z": 0, "sm": 0, "role": "default", "region": 0,
        "file": "k.py", "iteration": -1, "complete": True,
    }  # fmt: skip
    records = []
    for cta, warp, name, kind, line, parent, start, end in rows:
        depth = 0 if parent < 0 else int(records[parent]["depth"]) + 1
        records.append(
            {
                **defaults, "cta": cta, "warp": warp, "name": name, "kind": kind, "line": line, "parent": parent,
                "depth": depth, "start_cycles": start, "end_cycles": end, "duration_cycles": end - start,
                "start_ns": float(start), "duration_ns": float(end - start),
                "region": ["k", "loop", "iteration", "load"].index(name),
            }
        )  # fmt: skip
    return pd.DataFrame(records, columns=list(SPAN_COLUMNS)).astype(SPAN_DTYPES)


@pytest.fixture
def spans() -> pd.DataFrame:
    return _spans(
        (0, 0, "k", "kernel", 1, -1, 0, 100),
        (0, 0, "loop", "loop", 2, 0, 10, 90),
        (0, 0, "iteration", "iteration", 2, 1, 10, 50),
        (0, 0, "load", "load", 3, 2, 20, 50),
        (0, 0, "iteration", "iteration", 2, 1, 50, 90),
        (0, 0, "load", "load", 3, 4, 50, 60),
        (0, 1, "k", "kernel", 1, -1, 0, 200),
        (0, 1, "load", "load", 3, 6, 20, 100),
    )


# One CTA of two warps lives for 200 cycles.
CYCLES = {"k": 400}


def test_self_time_is_what_children_leave(spans: pd.DataFrame) -> None:
    assert self_cycles(spans).tolist() == [20, 0, 10, 30, 30, 10, 120, 80]


def test_statistics_by_region(spans: pd.DataFrame) -> None:
    table = region_statistics(spans, CYCLES).set_index("name")
    assert list(table.index) == ["k", "loop", "iteration", "load"]
    assert table["count"].tolist() == [2, 1, 2, 3]
    assert table["total_cycles"].tolist() == [300, 80, 80, 120]
    assert table["self_cycles"].tolist() == [140, 0, 40, 120]
    assert table.loc["load", "mean_cycles"] == 40
    assert table.loc["load", "p50_cycles"] == 30
    assert table.loc["load", "p95_cycles"] == pytest.approx(75)  # 30 + 0.9 * (80 - 30)
    assert table.loc["load", "max_cycles"] == 80
    assert table["share"].tolist() == [300 / 400, 80 / 400, 80 / 400, 120 / 400]
    assert table.loc["load", "self_share"] == 120 / 400
    # Warp 0 spends 40 cycles in load, warp 1 spends 80: mean 60, standard deviation 20.
    assert table["warp_spread"].tolist() == [50 / 150, 0, 0, 20 / 60]


def test_statistics_by_line_do_not_count_an_iteration_and_its_loop(spans: pd.DataFrame) -> None:
    table = region_statistics(spans, CYCLES, by="line").set_index("line")
    assert table.loc[2, "total_cycles"] == 80
    assert table.loc[2, "count"] == 1
    assert table.loc[2, "self_cycles"] == 40


def test_statistics_by_kind(spans: pd.DataFrame) -> None:
    table = region_statistics(spans, CYCLES, by="kind").set_index("kind")
    assert table.loc["load", "total_cycles"] == 120
    assert set(table.index) == {"kernel", "loop", "iteration", "load"}


def test_incomplete_span_counts_for_total_but_not_for_mean(spans: pd.DataFrame) -> None:
    spans.loc[7, "complete"] = False
    load = region_statistics(spans, CYCLES).set_index("name").loc["load"]
    assert load["count"] == 3
    assert load["incomplete"] == 1
    assert load["total_cycles"] == 120
    assert load["mean_cycles"] == 20


def test_region_without_complete_span_has_no_mean(spans: pd.DataFrame) -> None:
    spans["complete"] = spans["name"] != "loop"
    loop = region_statistics(spans, CYCLES).set_index("name").loc["loop"]
    assert loop["incomplete"] == loop["count"] == 1
    assert pd.isna(loop["mean_cycles"])


@pytest.mark.parametrize("by", ["region", "line", "kind"])
def test_self_times_add_up_to_the_kernels(by: str) -> None:
    timeline = toy_timeline()
    table = region_statistics(timeline.spans, {"matmul": 1.0}, by)
    roots = timeline.spans[timeline.spans["parent"] < 0]["duration_cycles"].sum()
    assert table["self_cycles"].sum() == roots


def test_no_spans_give_no_rows() -> None:
    timeline = toy_timeline()
    assert region_statistics(timeline.spans.iloc[:0], {}).empty
    assert sm_occupancy(timeline.spans.iloc[:0]).empty


def test_cta_lives_from_first_start_to_last_end(spans: pd.DataFrame) -> None:
    assert cta_cycles(spans)[["cta", "start_cycles", "end_cycles"]].to_numpy().tolist() == [[0, 0, 200]]


def test_lag_of_the_slowest_warp(spans: pd.DataFrame) -> None:
    assert warp_lag(spans)[["cta", "warp", "lag_cycles"]].to_numpy().tolist() == [[0, 1, 100]]


def test_occupancy_of_one_sm() -> None:
    # Two CTAs overlap for 10 cycles, then 20 idle cycles, then one more CTA.
    spans = _spans(
        (0, 0, "k", "kernel", 1, -1, 0, 30),
        (1, 0, "k", "kernel", 1, -1, 20, 50),
        (2, 0, "k", "kernel", 1, -1, 70, 100),
    )
    (row,) = sm_occupancy(spans).to_dict("records")
    assert row["ctas"] == 3
    assert row["cycles"] == 100
    assert row["busy_share"] == 0.8
    assert row["mean_resident"] == 0.9
    assert row["max_resident"] == 2


def test_statistics_by_region_agree_with_the_summary(tmp_path: Path) -> None:
    write_matmul_capture(tmp_path / "x.kpf", CaptureShape(launches=2, specialised=True, words_per_warp=60))
    timeline = load(tmp_path / "x.kpf")
    summary = timeline.summary()
    table = region_statistics(timeline.spans, timeline.kernel_cycles)
    shared = [name for name in table.columns if name in summary.columns]
    assert {"count", "self_cycles", "p95_cycles", "share", "warp_spread"} <= set(shared)
    pd.testing.assert_frame_equal(
        table[shared].astype({"name": "str"}),
        summary[shared].astype({"name": "str"}),
        check_dtype=False,
        check_categorical=False,
    )

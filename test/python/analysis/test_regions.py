"""Region statistics against sums worked out by hand."""

from __future__ import annotations

import pandas as pd
import pytest

from kperfir.analysis.combine import combine
from kperfir.analysis.occupancy import sm_occupancy
from kperfir.analysis.regions import region_statistics
from kperfir.analysis.self_time import self_cycles
from kperfir.analysis.warp_time import cta_cycles, slowest_warp
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


@pytest.fixture
def tracks() -> pd.DataFrame:
    return pd.DataFrame({"launch": [0, 0], "cta": [0, 0], "warp": [0, 1]})


def test_self_time_is_what_children_leave(spans: pd.DataFrame) -> None:
    assert self_cycles(spans).tolist() == [20, 0, 10, 30, 30, 10, 120, 80]


def test_statistics_by_region(spans: pd.DataFrame, tracks: pd.DataFrame) -> None:
    table = region_statistics(spans, tracks).set_index("name")
    assert list(table.index) == ["k", "loop", "iteration", "load"]
    assert table["count"].tolist() == [2, 1, 2, 3]
    assert table["total_cycles"].tolist() == [300, 80, 80, 120]
    assert table["self_cycles"].tolist() == [140, 0, 40, 120]
    assert table.loc["load", "mean_cycles"] == 40
    assert table.loc["load", "p50_cycles"] == 30
    assert table.loc["load", "p95_cycles"] == pytest.approx(75)  # 30 + 0.9 * (80 - 30)
    assert table.loc["load", "max_cycles"] == 80
    # The CTA lives 200 cycles and has two warps.
    assert table["share"].tolist() == [300 / 400, 80 / 400, 80 / 400, 120 / 400]
    assert table.loc["load", "self_share"] == 120 / 400
    # Warp 0 spends 40 cycles in load, warp 1 spends 80.
    assert table["warp_spread"].tolist() == [0.5, 0, 0, 0.5]


def test_statistics_by_line_do_not_count_an_iteration_and_its_loop(spans: pd.DataFrame, tracks: pd.DataFrame) -> None:
    table = region_statistics(spans, tracks, by="line").set_index("line")
    assert table.loc[2, "total_cycles"] == 80
    assert table.loc[2, "count"] == 1
    assert table.loc[2, "self_cycles"] == 40


def test_statistics_by_kind(spans: pd.DataFrame, tracks: pd.DataFrame) -> None:
    table = region_statistics(spans, tracks, by="kind").set_index("kind")
    assert table.loc["load", "total_cycles"] == 120
    assert set(table.index) == {"kernel", "loop", "iteration", "load"}


def test_incomplete_span_counts_for_total_but_not_for_mean(spans: pd.DataFrame, tracks: pd.DataFrame) -> None:
    spans.loc[7, "complete"] = False
    load = region_statistics(spans, tracks).set_index("name").loc["load"]
    assert load["count"] == 3
    assert load["incomplete"] == 1
    assert load["total_cycles"] == 120
    assert load["mean_cycles"] == 20


def test_region_without_complete_span_has_no_mean(spans: pd.DataFrame, tracks: pd.DataFrame) -> None:
    spans["complete"] = spans["name"] != "loop"
    loop = region_statistics(spans, tracks).set_index("name").loc["loop"]
    assert loop["incomplete"] == loop["count"] == 1
    assert pd.isna(loop["mean_cycles"])


@pytest.mark.parametrize("by", ["region", "line", "kind"])
def test_self_times_add_up_to_the_kernels(by: str) -> None:
    timeline = toy_timeline()
    table = region_statistics(timeline.spans, timeline.tracks, by)
    roots = timeline.spans[timeline.spans["parent"] < 0]["duration_cycles"].sum()
    assert table["self_cycles"].sum() == roots


def test_no_spans_give_no_rows() -> None:
    timeline = toy_timeline()
    assert region_statistics(timeline.spans.iloc[:0], timeline.tracks.iloc[:0]).empty
    assert sm_occupancy(timeline.spans.iloc[:0]).empty


def test_cta_lives_from_first_start_to_last_end(spans: pd.DataFrame) -> None:
    ctas = cta_cycles(spans)
    assert ctas[["cta", "cycles"]].to_numpy().tolist() == [[0, 200]]


def test_slowest_warp_and_its_lag(spans: pd.DataFrame) -> None:
    assert slowest_warp(spans).to_numpy().tolist() == [[0, 0, 1, 100]]


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


def test_captures_are_combined_without_mixing_launches() -> None:
    captures = [toy_timeline(seed=seed) for seed in range(3)]
    tables = combine(captures)
    assert tables.launches["launch"].tolist() == list(range(6))
    assert len(tables.spans) == sum(len(capture.spans) for capture in captures)
    assert tables.spans["name"].dtype == "category"
    nested = tables.spans[tables.spans["parent"] >= 0]
    parents = tables.spans.loc[nested["parent"]]
    assert (parents["launch"].to_numpy() == nested["launch"].to_numpy()).all()
    alone = sum(region_statistics(c.spans, c.tracks)["total_cycles"].sum() for c in captures)
    assert region_statistics(tables.spans, tables.tracks)["total_cycles"].sum() == alone

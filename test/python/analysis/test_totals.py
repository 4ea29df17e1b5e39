"""What is added up without a table of spans is, to the last bit, what the table adds up to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest

from kperfir.analysis.compare import compare_regions
from kperfir.analysis.heat import source_heat
from kperfir.analysis.occupancy import cta_cycles, sm_occupancy
from kperfir.analysis.regions import KEYS, region_statistics, totals_statistics
from kperfir.analysis.wait_time import wait_of_warps
from kperfir.analysis.warp_lag import warp_lag
from kperfir.report.model import Request, build
from kperfir.timeline import load
from support.synthetic import CaptureShape, write_matmul_capture

if TYPE_CHECKING:
    from pathlib import Path

    from kperfir.timeline import Timeline

SHAPES = {
    "several launches": CaptureShape(launches=3, ctas=9),
    "ring that lapped": CaptureShape(strategy="ring", words_per_warp=48, iterations=20, launches=2),
    "specialised, saturated": CaptureShape(launches=2, specialised=True, words_per_warp=60),
    "CTAs left out": CaptureShape(ctas=6, left_out=2),
    "no launch": CaptureShape(launches=0),
}
COUNT_KEYS = ["launch", "cta", "warp", "region"]


@pytest.fixture(params=SHAPES)
def timeline(request: pytest.FixtureRequest, tmp_path: Path) -> Timeline:
    write_matmul_capture(tmp_path / "x.kpf", SHAPES[request.param])
    return load(tmp_path / "x.kpf")


def test_rows_are_sums_of_spans(timeline: Timeline) -> None:
    rows, spans = timeline.totals.rows, timeline.spans
    spans = spans.assign(done=np.where(spans["complete"], spans["duration_cycles"], 0))
    groups = spans.groupby(COUNT_KEYS, sort=False)
    expected = groups.agg(
        count=("region", "size"),
        complete_count=("complete", "sum"),
        duration_cycles=("duration_cycles", "sum"),
        complete_cycles=("done", "sum"),
        start_cycles=("start_cycles", "min"),
        end_cycles=("end_cycles", "max"),
        depth=("depth", "min"),
        name=("name", "first"),
        role=("role", "first"),
    ).reset_index()
    shared = list(expected.columns)
    pd.testing.assert_frame_equal(
        rows[shared].astype({"name": str, "role": str}),
        expected.astype({"name": str, "role": str}),
        check_dtype=False,
    )
    nested = rows[rows["parent"] >= 0]
    around = rows.loc[nested["parent"], COUNT_KEYS[:3]].to_numpy()
    assert (around == nested[COUNT_KEYS[:3]].to_numpy()).all()
    assert (rows["depth"].to_numpy()[nested["parent"]] + 1 == nested["depth"]).all()


@pytest.mark.parametrize("by", KEYS)
def test_statistics_equal_those_of_spans(timeline: Timeline, by: str) -> None:
    found = totals_statistics(timeline.totals, timeline.kernel_cycles, by)
    expected = region_statistics(timeline.spans, timeline.kernel_cycles, by)
    # Of floats alone the sum depends on the order; cycles are integers.
    np.testing.assert_allclose(found.pop("mean_ns"), expected.pop("mean_ns"), rtol=1e-12)
    pd.testing.assert_frame_equal(found, expected, check_exact=True)


@pytest.mark.parametrize("table", [sm_occupancy, cta_cycles, warp_lag, wait_of_warps, source_heat])
def test_tables_that_add_up_take_totals_for_spans(timeline: Timeline, table: object) -> None:
    assert callable(table)
    pd.testing.assert_frame_equal(table(timeline.totals.rows), table(timeline.spans), check_exact=True)


def test_comparison_equals_that_of_spans(timeline: Timeline, tmp_path: Path) -> None:
    write_matmul_capture(tmp_path / "y.kpf", CaptureShape(launches=3, ctas=5, seed=1))
    other = load(tmp_path / "y.kpf")
    found = compare_regions(timeline.totals.rows, other.totals.rows)
    pd.testing.assert_frame_equal(found, compare_regions(timeline.spans, other.spans), check_exact=True)


def test_totals_are_the_same_after_the_spans(timeline: Timeline) -> None:
    assert len(timeline.spans) == timeline.totals.rows["count"].sum()
    again = load(*timeline.metadata["files"])
    pd.testing.assert_frame_equal(timeline.totals.rows, again.totals.rows)
    assert {key: sorted(each) for key, each in timeline.totals.durations.items()} == {
        key: sorted(each) for key, each in again.totals.durations.items()
    }


def test_large_report_makes_no_spans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_matmul_capture(tmp_path / "x.kpf", CaptureShape())
    monkeypatch.setattr("kperfir.analysis.correction.MOST_SPANS", 10)
    timeline = load(tmp_path / "x.kpf")
    monkeypatch.setattr(type(timeline), "spans", property(lambda _: pytest.fail("spans were made")))
    report = build(timeline, Request(findings=False))
    assert report["kernels"][0]["rows"]

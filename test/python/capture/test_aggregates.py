"""`Timeline.aggregates`: the same table from sums as from records of the same execution; what needs records says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import kperfir
from kperfir.analysis.regions import region_statistics
from kperfir.analysis.registry import ANALYSES
from kperfir.analysis.sums import sums_statistics
from kperfir.capture.aggregates import AGGREGATE_COLUMNS, BUCKET_COLUMNS, bucket_of
from kperfir.cli.main import main
from kperfir.errors import UsageError
from kperfir.export import FORMATS, write_file
from kperfir.report.agent import MOST_BYTES
from support.synthetic import CaptureShape, write_matmul_capture

if TYPE_CHECKING:
    from pathlib import Path

    from kperfir.timeline import Timeline

SHAPE: dict[str, Any] = {"ctas": 3, "launches": 2, "specialised": True, "words_per_warp": 4096}


@pytest.fixture
def sums(tmp_path: Path) -> Path:
    """A capture of sums."""
    path = tmp_path / "sums.kpf"
    write_matmul_capture(path, CaptureShape(**SHAPE, strategy="aggregate"))
    return path


@pytest.fixture
def records(tmp_path: Path) -> Timeline:
    """The same execution, recorded."""
    path = tmp_path / "records.kpf"
    write_matmul_capture(path, CaptureShape(**SHAPE))
    return kperfir.load(path)


def test_table_is_the_one_that_records_give(sums: Path, records: Timeline) -> None:
    found = kperfir.load(sums).aggregates
    pd.testing.assert_frame_equal(found, records.aggregates)
    assert list(found.columns) == list(AGGREGATE_COLUMNS)
    assert found["count"].sum() == len(records.spans)
    assert (found[list(BUCKET_COLUMNS)].sum(axis=1) == found["count"]).all()
    assert not found.duplicated(["launch", "cta", "warp", "region"]).any()
    loads = found[found["kind"] == "async_copy"]
    durations = records.spans.loc[records.spans["kind"] == "async_copy", "duration_cycles"]
    assert loads["total_cycles"].sum() == durations.sum()
    assert loads["max_cycles"].max() == durations.max()


def test_table_of_an_empty_capture_has_all_columns(tmp_path: Path) -> None:
    path = tmp_path / "x.kpf"
    write_matmul_capture(path, CaptureShape(launches=0, strategy="aggregate"))
    timeline = kperfir.load(path)
    assert list(timeline.aggregates.columns) == list(AGGREGATE_COLUMNS)
    assert len(timeline.aggregates) == len(timeline.summary()) == 0


@pytest.mark.parametrize("by", ["region", "line", "kind"])
def test_statistics_are_those_of_spans(by: str, sums: Path, records: Timeline) -> None:
    timeline = kperfir.load(sums)
    found = sums_statistics(timeline.aggregates, timeline.kernel_cycles, by)
    expected = region_statistics(records.spans, timeline.kernel_cycles, by)
    shared = [name for name in expected.columns if name in found.columns and found[name].notna().all()]
    assert {"count", "total_cycles", "self_cycles", "mean_cycles", "max_cycles", "share", "warp_spread"} <= set(shared)
    pd.testing.assert_frame_equal(found[shared], expected[shared], check_dtype=False, check_categorical=False)


def test_summary_knows_what_sums_know(sums: Path, records: Timeline) -> None:
    found, expected = kperfir.load(sums).summary(), records.summary()
    assert list(found.columns) == list(expected.columns)
    for name in (
        "name",
        "kind",
        "count",
        "total_cycles",
        "self_cycles",
        "mean_cycles",
        "min_cycles",
        "max_cycles",
        "warps",
    ):
        assert found[name].tolist() == expected[name].tolist(), name
    assert found[["wait_cycles", "p50_cycles", "p95_cycles"]].isna().all(axis=None)


def test_deviation_is_that_of_single_executions(sums: Path, records: Timeline) -> None:
    found = kperfir.load(sums).aggregates
    spans = records.spans.groupby(["launch", "cta", "warp", "region"])["duration_cycles"]
    np.testing.assert_allclose(found["std_cycles"], spans.std(ddof=0).to_numpy(), rtol=1e-6, atol=1e-6)


def test_buckets_are_powers_of_two() -> None:
    cycles = np.array([0, 1, 2, 3, 4, 1023, 1024, (1 << 32) - 1, 1 << 40])
    assert bucket_of(cycles).tolist() == [0, 0, 1, 1, 2, 9, 10, 31, 31]


@pytest.mark.parametrize("table", ["spans", "stamps", "marks", "flows", "corrected"])
def test_tables_of_single_executions_are_refused(table: str, sums: Path) -> None:
    with pytest.raises(UsageError) as caught:
        getattr(kperfir.load(sums), table)
    assert caught.value.code == "needs-records"
    assert "matmul_kernel" in caught.value.where
    assert "TRITON_KPERF_STRATEGY=saturate" in caught.value.fix


@pytest.mark.parametrize("analysis", ANALYSES)
def test_analyses_are_refused(analysis: str, sums: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(sums), "--analysis", analysis]) == 2
    assert "[needs-records]" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [("advise",), ("report", "--html", "x.html"), ("compare", "{0}")])
def test_commands_that_need_records_are_refused(
    arguments: tuple[str, ...], sums: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(sums.parent)
    verb, *rest = (argument.format(sums) for argument in arguments)
    assert main([verb, str(sums), *rest]) == 2
    assert "[needs-records]" in capsys.readouterr().err


def test_report_shows_sums(sums: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(sums)]) == 0
    text = capsys.readouterr().out
    assert "executions were summed up on the device" in text
    assert all(word in text for word in ("histogram", "std", "2^5 ", "dot kernel.py:24"))
    assert "p95" not in text


def test_digest_says_what_is_not_known(sums: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(sums), "--for-agent"]) == 0
    text = capsys.readouterr().out
    assert "Sums alone were recorded" in text
    assert "warps wait" not in text
    assert len(text.encode()) <= MOST_BYTES


@pytest.mark.parametrize("name", FORMATS)
def test_exports_hold_the_table_or_are_refused(name: str, sums: Path) -> None:
    timeline, out = kperfir.load(sums), sums.with_suffix(".out")
    if name not in ("csv", "parquet"):
        with pytest.raises(UsageError, match="needs-records"):
            write_file([timeline], out, name)
        assert not out.exists()
        return
    write_file([timeline], out, name)
    back = pd.read_csv(out) if name == "csv" else pq.read_table(out).to_pandas()
    assert back["count"].tolist() == timeline.aggregates["count"].tolist()
    write_file([timeline, timeline], out, name)
    back = pd.read_csv(out) if name == "csv" else pq.read_table(out).to_pandas()
    assert back["capture"].tolist() == [0] * len(timeline.aggregates) + [1] * len(timeline.aggregates)


def test_captures_of_both_kinds_are_reported_by_their_sums(sums: Path, records: Timeline) -> None:
    both = kperfir.load(sums, records.captures[0].path)
    assert both.has_only_sums
    assert both.aggregates["count"].sum() == 2 * records.aggregates["count"].sum()
    assert set(both.aggregates["launch"]) == {0, 1, 2, 3}


def test_notebook_shows_sums(sums: Path) -> None:
    text = kperfir.load(sums)._repr_html_()
    assert "dot kernel.py:24" in text
    assert "nan" not in text

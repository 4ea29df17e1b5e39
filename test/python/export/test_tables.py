"""CSV and Parquet give the span table back."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from kperfir.errors import ExportError
from kperfir.export import FORMATS, csv, tables, write_file
from support.toy_timeline import ToyTimeline, toy_timeline

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True, params=[1 << 18, 100])
def _chunk_size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "ROWS_PER_CHUNK", request.param)


@pytest.fixture
def timeline() -> ToyTimeline:
    return toy_timeline()


VALUE_COLUMNS = {"value_type": "category", "value_i64": "Int64", "value_u64": "UInt64", "value_f64": "Float64"}


def check_values(read: pd.DataFrame, timeline: ToyTimeline) -> None:
    """Exact, with their types, in the rows of the marks that carry one and nowhere else."""
    carrying = timeline.marks[timeline.marks["value"].notna()]
    assert read.index[read["value_type"].notna()].tolist() == carrying["span"].tolist()
    found = read.loc[carrying["span"], list(VALUE_COLUMNS)]
    assert found["value_type"].tolist() == carrying["value_type"].tolist()
    numbers = found.drop(columns="value_type")
    assert (numbers.notna().sum(axis=1) == 1).all()
    assert read[numbers.columns].notna().to_numpy().sum() == len(carrying)
    column = [f"value_{'f' if t[0] == 'f' else 'u' if t == 'u64' else 'i'}64" for t in carrying["value_type"]]
    values = [row[name] for name, row in zip(column, numbers.to_dict("records"), strict=True)]
    assert values == carrying["value"].tolist()


def test_csv_spells_values_as_pandas_does(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    numbers = np.concatenate(
        [
            rng.random(2000) * 10.0 ** rng.integers(-8, 20, 2000), -rng.random(200) * 1e6, np.arange(200.0),
            [0.0, -0.0, np.nan, np.inf, -np.inf, 1e-4, 9.99e-5, 1e10, 1e15, 1e16, 5e-324, 2.0**53],
        ]
    )  # fmt: skip
    texts = np.array(["x", 'a,"b', "two\nlines", "", "é"], object)[np.arange(len(numbers)) % 5]
    table = pd.DataFrame(
        {
            "float": numbers, "a,b": pd.Categorical(np.where(numbers > 9, None, texts)), "flag": numbers > 1,
            "integer": rng.integers(-(1 << 63), (1 << 63) - 1, len(numbers)),
            "few": pd.arrays.IntegerArray(np.arange(len(numbers)), numbers < 5),
            "some": pd.arrays.FloatingArray(numbers.copy(), numbers < 5),
        }
    )  # fmt: skip
    for chunks in ([table, table[5:9]], [table[:0]]):
        monkeypatch.setattr("kperfir.export.csv.span_chunks", lambda _, chunks=chunks: iter(chunks))
        out = io.BytesIO()
        csv.write([], out)
        expected = [chunk.to_csv(index=False, header=n == 0, lineterminator="\n") for n, chunk in enumerate(chunks)]
        assert out.getvalue().decode() == "".join(expected)


def test_csv_round_trip_is_exact(timeline: ToyTimeline, tmp_path: Path) -> None:
    path = tmp_path / "spans.csv"
    write_file([timeline], path)
    read = pd.read_csv(path, dtype=VALUE_COLUMNS).astype(timeline.spans.dtypes.to_dict())
    spans = read.drop(columns=list(VALUE_COLUMNS))
    pd.testing.assert_frame_equal(spans, timeline.spans, check_exact=True, check_categorical=False)
    check_values(read, timeline)


def test_parquet_round_trip_is_exact(timeline: ToyTimeline, tmp_path: Path) -> None:
    path = tmp_path / "spans.parquet"
    write_file([timeline], path)
    read = pd.read_parquet(path)
    spans = read.drop(columns=list(VALUE_COLUMNS))
    pd.testing.assert_frame_equal(spans, timeline.spans, check_exact=True, check_categorical=False)
    assert {name: str(read[name].dtype) for name in VALUE_COLUMNS} == VALUE_COLUMNS
    check_values(read, timeline)
    (capture,) = json.loads(pq.read_schema(path).metadata[b"kperfir"])
    assert capture["notes"] == timeline.notes
    assert capture["metadata"]["host"] == "toy"
    assert [launch["launch"] for launch in capture["launches"]] == [0, 1]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_several_captures_are_told_apart_and_parents_stay_right(suffix: str, tmp_path: Path) -> None:
    captures = [toy_timeline(seed=0, launches=1), toy_timeline(seed=1, launches=1, ctas=3)]
    path = tmp_path / f"two.{suffix}"
    write_file(captures, path)
    read = pd.read_csv(path) if suffix == "csv" else pd.read_parquet(path)
    assert read["capture"].value_counts(sort=False).tolist() == [len(c.spans) for c in captures]
    second = read[read["capture"] == 1]
    nested = second[second["parent"] >= 0]
    parents = read.loc[nested["parent"]]
    assert (parents["capture"] == 1).all()
    assert (parents["depth"].to_numpy() == nested["depth"].to_numpy() - 1).all()
    assert (parents["start_cycles"].to_numpy() <= nested["start_cycles"].to_numpy()).all()


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_no_spans_still_give_the_columns(timeline: ToyTimeline, suffix: str, tmp_path: Path) -> None:
    empty = ToyTimeline(timeline.spans.iloc[:0], timeline.tracks.iloc[:0], timeline.launches, {}, [])
    path = tmp_path / f"none.{suffix}"
    write_file([empty], path)
    read = pd.read_csv(path) if suffix == "csv" else pd.read_parquet(path)
    assert list(read.columns) == [*timeline.spans.columns, *VALUE_COLUMNS]


def test_unknown_suffix_lists_the_formats(timeline: ToyTimeline, tmp_path: Path) -> None:
    with pytest.raises(ExportError) as caught:
        write_file([timeline], tmp_path / "t.xyz")
    assert caught.value.code == "unknown-format"
    assert all(name in caught.value.expected for name in FORMATS)


def test_failed_export_leaves_the_old_file(timeline: ToyTimeline, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("old")
    with pytest.raises(AttributeError):
        write_file([timeline, None], path)  # type: ignore[list-item]
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_unwritable_path_is_one_error(timeline: ToyTimeline, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="write-failed"):
        write_file([timeline], tmp_path / "absent" / "t.csv")

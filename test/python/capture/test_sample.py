"""Details of captures of very many spans are those of some CTAs: which ones, that they are right, that it is said."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest

from kperfir import load
from kperfir.cli.main import main
from kperfir.report.html import page
from support.synthetic import CaptureShape, write_matmul_capture

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from kperfir.timeline import Timeline

KEYS = ["launch", "cta"]
SHAPE = CaptureShape(ctas=24, sms=6)


@pytest.fixture
def sampled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[CaptureShape, float], Timeline]:
    """Write a capture, of whose spans a sample has room for this share."""

    def make(shape: CaptureShape, share: float) -> Timeline:
        write_matmul_capture(tmp_path / "x.kpf", shape)
        spans = int(load(tmp_path / "x.kpf").totals.rows["count"].sum())
        monkeypatch.setattr("kperfir.capture.sample.MOST_SPANS", spans - 1)
        monkeypatch.setattr("kperfir.capture.sample.SAMPLE_SPANS", spans * share)
        return load(tmp_path / "x.kpf")

    return make


@pytest.mark.parametrize(
    "shape", [SHAPE, CaptureShape(ctas=12, sms=4, launches=3, specialised=True, left_out=2)], ids=["one", "several"]
)
def test_spans_of_a_sample_are_those_of_its_ctas(
    sampled: Callable[[CaptureShape, float], Timeline], shape: CaptureShape
) -> None:
    timeline = sampled(shape, 0.5)
    details = timeline.details
    assert set(details.spans["launch"]) == set(range(shape.launches))
    chosen = pd.MultiIndex.from_frame(details.spans[KEYS].drop_duplicates())
    assert len(chosen) < shape.ctas * shape.launches
    all_of_them = timeline.spans[pd.MultiIndex.from_frame(timeline.spans[KEYS]).isin(chosen)]
    columns = [name for name in all_of_them if name != "parent"]
    expected = all_of_them[columns].reset_index(drop=True)
    pd.testing.assert_frame_equal(details.spans[columns], expected, check_exact=True, check_categorical=False)
    pd.testing.assert_frame_equal(details.launches, timeline.launches)


def test_sample_is_of_whole_sms(sampled: Callable[[CaptureShape, float], Timeline]) -> None:
    timeline = sampled(SHAPE, 0.4)
    spans = timeline.details.spans
    assert spans["sm"].nunique() == 2
    assert spans.groupby("sm")["cta"].nunique().tolist() == [4, 4]
    assert timeline.details.sample is not None
    assert timeline.details.sample.described == "8 of 24 CTAs, on 2 of 6 SMs"


def test_sample_of_one_large_sm_is_of_some_of_its_ctas(sampled: Callable[[CaptureShape, float], Timeline]) -> None:
    spans = sampled(CaptureShape(ctas=24, sms=1), 0.3).details.spans
    assert spans["cta"].nunique() == 7
    assert np.diff(spans["cta"].unique()).max() > 1  # Not the first few, which the device runs cold.


def test_every_launch_has_a_cta_in_the_sample(sampled: Callable[[CaptureShape, float], Timeline]) -> None:
    spans = sampled(CaptureShape(ctas=4, launches=5), 0.01).details.spans
    assert spans.groupby("launch")["cta"].nunique().tolist() == [1] * 5


def test_few_spans_are_all_looked_at(tmp_path: Path) -> None:
    write_matmul_capture(tmp_path / "x.kpf", SHAPE)
    timeline = load(tmp_path / "x.kpf")
    assert timeline.details is timeline


def test_reports_say_that_findings_are_of_some_ctas_and_figures_are_not(
    sampled: Callable[[CaptureShape, float], Timeline],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    sampled(SHAPE, 0.4)
    file = str(tmp_path / "x.kpf")

    def answer(*words: str) -> str:
        assert main([words[0], file, *words[1:]]) == 0
        return capsys.readouterr().out

    said = "findings rest on 8 of 24 CTAs, on 2 of 6 SMs"
    sample = json.loads(answer("report", "--json"))
    assert sample["notes"][0].startswith(said)
    assert said in answer("report", "--for-agent")
    assert said in answer("advise", "--json")
    assert said not in answer("report")
    html = page(load(file))
    assert "which work hides behind which, are of 8 of 24 CTAs" in html
    monkeypatch.undo()
    whole = json.loads(answer("report", "--json"))
    assert whole["notes"] == sample["notes"][1:]
    for kernel, expected in zip(sample["kernels"], whole["kernels"], strict=True):
        assert expected.pop("findings")
        assert kernel.pop("findings")
        assert kernel == expected


def test_large_reports_make_spans_of_the_sample_alone(
    sampled: Callable[[CaptureShape, float], Timeline], monkeypatch: pytest.MonkeyPatch
) -> None:
    timeline = sampled(SHAPE, 0.4)
    spans = type(timeline).spans.fget
    assert spans

    def of_sample(self: Timeline) -> pd.DataFrame:
        assert self.sample, "all spans were made"
        table: pd.DataFrame = spans(self)
        return table

    monkeypatch.setattr("kperfir.analysis.correction.MOST_SPANS", 10)
    monkeypatch.setattr(type(timeline), "spans", property(of_sample))
    assert "findings rest on" in page(timeline)

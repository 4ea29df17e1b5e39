"""Analyses and advice take any capture: dropped records, rings, one CTA or many, roles, no loop iterations at all."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from kperfir.advice.advise import advise
from kperfir.analysis.registry import ANALYSES
from kperfir.timeline import load
from support.synthetic import CaptureShape, write_matmul_capture

if TYPE_CHECKING:
    from pathlib import Path

SHAPES = {
    "whole": CaptureShape(),
    "roles": CaptureShape(specialised=True, launches=2),
    "dropped": CaptureShape(words_per_warp=40),
    "ring": CaptureShape(words_per_warp=40, strategy="ring", specialised=True),
    "one warp": CaptureShape(ctas=1, warps=1, sms=1),
    "no iteration": CaptureShape(iterations=0),
    "one iteration": CaptureShape(iterations=1, ctas=9, sms=4),
    "a GPU": CaptureShape(simulated=False, ctas=7),
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_every_analysis_and_rule_takes_it(shape: CaptureShape, tmp_path: Path) -> None:
    write_matmul_capture(tmp_path / "x.kpf", shape)
    timeline = load(tmp_path / "x.kpf")
    for name, analysis in ANALYSES.items():
        table = analysis.run(timeline)
        assert "kernel" in table.columns, name
        assert table.index.equals(type(table.index)(range(len(table)))), name
    advice = advise(timeline)
    json.dumps(advice.to_dict(), allow_nan=False)
    for finding in advice.findings:
        assert 1 <= finding.speedup <= finding.bound * (1 + 1e-9), finding.rule
        assert finding.places, finding.rule


def test_same_capture_gives_same_advice(tmp_path: Path) -> None:
    write_matmul_capture(tmp_path / "x.kpf", CaptureShape(specialised=True, ctas=9))
    first, second = (json.dumps(advise(load(tmp_path / "x.kpf")).to_dict()) for _ in range(2))
    assert first == second

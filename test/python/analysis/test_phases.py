"""Phases of kernels, on timelines worked out by hand."""

from __future__ import annotations

from kperfir.analysis.phases import phases
from support.hand_made import Warp, at, hand_made, loop


def cycles_of(*loops, end: int) -> dict[str, float]:
    timeline = hand_made([Warp([at("kernel", 0, end, *loops)])])
    return phases(timeline.spans).set_index("phase")["cycles"].to_dict()


def test_loop_fills_runs_and_drains() -> None:
    # 50 before; 300, then three of 100 (109 is within a tenth of the median), then 150; 40 after.
    found = cycles_of(loop(50, [(size, []) for size in (300, 100, 109, 100, 150)]), end=849)
    assert found == {"prologue": 50, "fill": 300, "steady": 309, "drain": 150, "between": 0, "epilogue": 40}


def test_what_is_between_loops_is_neither_prologue_nor_epilogue() -> None:
    found = cycles_of(loop(10, [(100, [])] * 2), loop(250, [(60, [])] * 3, line=9), end=450)
    assert found == {"prologue": 10, "fill": 0, "steady": 380, "drain": 0, "between": 40, "epilogue": 20}


def test_inner_loops_are_part_of_the_outer_ones_iterations() -> None:
    inner = loop(0, [(20, [])] * 3, line=9)
    timeline = hand_made([Warp([at("kernel", 0, 200, loop(0, [(100, [inner])] * 2))])])
    table = phases(timeline.spans).set_index("phase")
    assert table.loc["steady", "cycles"] == 200
    assert table.loc["steady", "iterations"] == 2
    assert table["share"].sum() == 1

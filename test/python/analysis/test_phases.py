"""Phases of kernels, on timelines worked out by hand."""

from __future__ import annotations

import random

import pytest

from kperfir.analysis.phases import phases
from support.calls import calls_of
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


def test_roles_are_apart_and_each_is_a_mean_over_its_warps() -> None:
    # Warps without a loop count for nothing; a loop that starts anew in the next warp is that warp's.
    filled = loop(300, [(30, []), (10, []), (10, []), (10, [])])
    warps = [
        Warp([at("kernel", 0, 200, loop(20, [(50, [])] * 2))], cta=0),
        Warp([at("kernel", 0, 10)], cta=0, warp=1),
        Warp([at("kernel", 0, 400, loop(40, [(100, [])] * 2), filled)], cta=1),
        Warp([at("kernel", 5, 105, loop(5, [(100, [])]))], cta=1, warp=1, role="loads"),
    ]  # fmt: skip
    table = phases(hand_made(warps).spans)
    assert list(dict.fromkeys(table["role"])) == ["default", "loads"]
    default = table[table["role"] == "default"].set_index("phase")
    assert default["cycles"].to_dict() == {
        "prologue": 30, "fill": 15, "steady": 165, "drain": 0, "between": 30, "epilogue": 60
    }  # fmt: skip
    assert default["iterations"].to_dict() == {
        "prologue": 0, "fill": 0.5, "steady": 3.5, "drain": 0, "between": 0, "epilogue": 0
    }  # fmt: skip
    assert default["share"].sum() == pytest.approx(1)
    loads = table[table["role"] == "loads"].set_index("phase")["cycles"]
    assert loads.to_dict() == {"prologue": 0, "fill": 0, "steady": 100, "drain": 0, "between": 0, "epilogue": 0}


def test_work_does_not_go_warp_by_warp() -> None:
    dice = random.Random(0)
    few, many = (
        hand_made(
            [
                Warp([at("kernel", 0, 9999, loop(9, [(dice.randrange(50, 99), [])] * 4))], cta=cta, warp=warp)
                for cta in range(ctas)
                for warp in range(2)
            ]
        ).spans
        for ctas in (10, 100)
    )
    assert calls_of(lambda: phases(many)) < 1.5 * calls_of(lambda: phases(few))


def test_iterations_that_are_not_recorded_are_no_epilogue() -> None:
    # A loop of 100 to 900, of whose eight iterations the third and the sixth are recorded.
    some = [at("iteration", 300, 400, line=2, iteration=2), at("iteration", 600, 700, line=2, iteration=5)]
    found = cycles_of(at("loop", 100, 900, *some, line=2), end=950)
    assert found == {
        "prologue": 100, "fill": 0, "steady": 200, "drain": 0, "unrecorded": 600, "between": 0, "epilogue": 50
    }  # fmt: skip

"""The overlap of kinds of work, on a timeline worked out by hand."""

from __future__ import annotations

import random

import pytest

from kperfir.analysis.overlap import FRAMES, IN_FLIGHT, WAITING, overlap_matrix
from kperfir.analysis.wait_time import WAIT_KINDS
from support.calls import calls_of
from support.hand_made import HandMade, Warp, at, hand_made

# A copy is issued in 0..10 and under way until the wait ends at 60. A dot runs in 20..50 in the same warp, the wait is
# 50..60. Another warp has a dot in 40..80.
TIMELINE = hand_made(
    [
        Warp(
            [
                at(
                    "kernel",
                    0,
                    100,
                    at("async_copy", 0, 10, tag="c"),
                    at("dot", 20, 50),
                    at("async_wait", 50, 60, tag="w"),
                )
            ]
        ),
        Warp([at("kernel", 0, 100, at("dot", 40, 80))], warp=1),
    ],
    arrows=[("c", "w")],
)


def test_shares_are_of_the_time_of_the_row() -> None:
    table = overlap_matrix(TIMELINE.spans, TIMELINE.flows).set_index("activity")
    assert table["cycles"].to_dict() == {
        "async_copy": 10, "dot": 60, "async_wait": 10, "async_copy in flight": 60, "waiting": 10
    }  # fmt: skip
    flight = table.loc["async_copy in flight"]
    assert flight["dot"] == pytest.approx(40 / 60)  # Hidden behind products: 20..60.
    assert flight["waiting"] == pytest.approx(10 / 60)
    assert table.loc["dot", "async_copy in flight"] == pytest.approx(40 / 60)
    assert table.loc["async_wait", "dot"] == 1.0  # The other warp multiplies while this one waits.
    assert flight["alone"] == pytest.approx(10 / 60)  # 10..20: neither issue nor product.


def test_ctas_do_not_overlap_each_other() -> None:
    warps = [Warp([at("kernel", 0, 50, at(kind, 10, 20))], cta=cta) for cta, kind in enumerate(("load", "dot"))]
    timeline = hand_made(warps)
    table = overlap_matrix(timeline.spans, timeline.flows).set_index("activity")
    assert table.loc["load", "dot"] == 0


def test_nothing_recorded_is_an_empty_table() -> None:
    timeline = hand_made([])
    assert overlap_matrix(timeline.spans, timeline.flows).empty


def _random_timeline(seed: int, ctas: int) -> HandMade:
    """Two launches of CTAs with two warps; not each CTA has each kind, some regions take no time, copies fly."""
    dice = random.Random(seed)
    warps, arrows = [], []
    for number in range(2 * ctas):
        launch, cta = divmod(number, ctas)
        for warp in range(2):
            now = start = dice.randrange(1000)
            regions = []
            for turn in range(dice.randrange(1, 8)):
                end = now + dice.randrange(12)
                tag = f"{number} {warp} {turn}"
                regions.append(
                    at(dice.choice(["load", "dot", "async_copy", "async_wait", "barrier"]), now, end, tag=tag)
                )
                now = end + dice.randrange(6)
            copies = [region.tag for region in regions if region.kind == "async_copy"]
            arrows += [(tag, regions[-1].tag) for tag in copies]
            warps.append(Warp([at("kernel", start, now, *regions)], cta=cta, warp=warp, launch=launch))
    return hand_made(warps, arrows=arrows)


def _cycles(timeline: HandMade) -> dict[str, set[tuple[int, int, int]]]:
    """Launch, CTA and cycle of each activity, one by one."""
    found: dict[str, set[tuple[int, int, int]]] = {}
    for table, suffix in ((timeline.spans, ""), (timeline.flows, IN_FLIGHT)):
        for row in table.to_dict("records"):
            cycles = {(row["launch"], row["cta"], now) for now in range(row["start_cycles"], row["end_cycles"])}
            names = [row["kind"] + suffix, *([WAITING] if row["kind"] in WAIT_KINDS and not suffix else [])]
            for name in names:
                found.setdefault(name, set()).update(cycles)
    return {name: cycles for name, cycles in found.items() if name not in FRAMES}


@pytest.mark.parametrize("seed", range(4))
def test_matrix_is_that_of_counting_each_cycle(seed: int) -> None:
    timeline = _random_timeline(seed, ctas=12)
    table = overlap_matrix(timeline.spans, timeline.flows).set_index("activity")
    cycles = _cycles(timeline)
    assert set(table.index) == set(cycles)
    for name, own in cycles.items():
        assert table.loc[name, "cycles"] == len(own)
        for other, its in cycles.items():
            assert table.loc[name, other] == pytest.approx(len(own & its) / len(own))
        working = [its for other, its in cycles.items() if other in ("load", "dot", "async_copy") and other != name]
        assert table.loc[name, "alone"] == pytest.approx(len(own.difference(*working)) / len(own))


def test_work_does_not_go_cta_by_cta() -> None:
    few, many = (_random_timeline(0, ctas) for ctas in (10, 100))
    assert calls_of(lambda: overlap_matrix(many.spans, many.flows)) < 1.5 * calls_of(
        lambda: overlap_matrix(few.spans, few.flows)
    )

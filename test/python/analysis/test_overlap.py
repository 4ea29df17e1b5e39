"""The overlap of kinds of work, on a timeline worked out by hand."""

from __future__ import annotations

import pytest

from kperfir.analysis.overlap import overlap_matrix
from support.hand_made import Warp, at, hand_made

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

"""Bubbles of a pipelined loop, on a timeline worked out by hand."""

from __future__ import annotations

import pytest

from kperfir.analysis.bubbles import bubbles_by_iteration, pipeline_bubbles
from support.hand_made import Warp, at, hand_made, loop

# Four iterations of 200 cycles. Each waits 100 for a copy that the one before issued, then 20 for a barrier.
BODY = [
    at("async_wait", 0, 100, line=3, tag="w"),
    at("barrier", 100, 120, line=4),
    at("async_copy", 150, 160, line=5, tag="c"),
]  # fmt: skip
TIMELINE = hand_made(
    [Warp([at("kernel", 0, 1000, loop(100, [(200, BODY)] * 4))])], arrows=[("c0", "w1"), ("c1", "w2"), ("c2", "w3")]
)


def test_bubbles_name_stage_and_cause() -> None:
    table = pipeline_bubbles(TIMELINE.spans, TIMELINE.flows)
    assert table["name"].tolist() == ["async_wait k.py:3", "barrier k.py:4"]
    assert table["stage"].tolist() == [0, 1]
    assert table["cause"].tolist() == ["async_copy k.py:5", ""]
    assert table["bubble_cycles"].tolist() == [400, 80]
    assert table["iteration_share"].tolist() == pytest.approx([0.5, 0.1])
    assert table["waited"].tolist() == [1.0, 0.0]  # 20 cycles are what a barrier takes.
    assert set(table["loop"]) == {"loop k.py:2"}


def test_each_iteration_has_its_bubbles() -> None:
    bodies = [(100, [at("async_wait", 0, 60)]), (80, [at("async_wait", 0, 20)])]
    timeline = hand_made([Warp([at("kernel", 0, 300, loop(0, bodies))], warp=warp) for warp in range(2)])
    table = bubbles_by_iteration(timeline.spans)
    assert table[["iteration", "count", "mean_cycles", "wait_cycles"]].values.tolist() == [
        [0, 2, 100, 60],
        [1, 2, 80, 20],
    ]
    assert table["wait_share"].tolist() == pytest.approx([0.6, 0.25])


def test_a_kernel_without_a_loop_has_no_bubbles() -> None:
    timeline = hand_made([Warp([at("kernel", 0, 100, at("async_wait", 0, 60))])])
    assert pipeline_bubbles(timeline.spans, timeline.flows).empty
    assert bubbles_by_iteration(timeline.spans).empty

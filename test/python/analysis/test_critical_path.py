"""Critical path and slack, on timelines worked out by hand."""

from __future__ import annotations

import pytest

from kperfir.analysis.critical_path import BETWEEN, _chain_of_ctas, critical_path, critical_steps
from support.calls import calls_of
from support.hand_made import Warp, at, hand_made


def steps_of(timeline) -> list[tuple[str, int, int, str]]:
    table = critical_steps(timeline.spans, timeline.flows)
    return list(table[["name", "start_cycles", "end_cycles", "via"]].itertuples(index=False, name=None))


def test_path_goes_through_the_copy_that_was_waited_for() -> None:
    # The copy is issued in 0..10, a dot takes 10..60, the wait 60..200: the copy was under way for 190.
    regions = [
        at("async_copy", 0, 10, tag="c"),
        at("dot", 10, 60),
        at("async_wait", 60, 200, tag="w"),
        at("dot", 200, 240),
    ]
    timeline = hand_made([Warp([at("kernel", 0, 240, *regions)])], arrows=[("c", "w")])
    assert steps_of(timeline) == [
        ("async_copy k.py:1", 0, 10, "async_copy"),
        ("async_copy k.py:1 in flight", 10, 200, "order"),
        ("dot k.py:1", 200, 240, "cta"),
    ]
    table = critical_path(timeline.spans, timeline.flows).set_index("name")
    assert table.loc["async_copy k.py:1 in flight", "share"] == pytest.approx(190 / 240)
    # The wait shrinks to 40: the copy is what counts, so the first dot has 140 - 40 = 100 to spare.
    dots = table.loc["dot k.py:1"]
    assert (dots["least_slack_cycles"], dots["mean_slack_cycles"]) == (0, 50)
    assert table.loc["async_copy k.py:1", "least_slack_cycles"] == 0
    assert table["cycles"].sum() == 240


def test_a_wait_that_found_its_copy_done_is_work_like_any_other() -> None:
    regions = [at("async_copy", 0, 10, tag="c"), at("dot", 10, 160), at("async_wait", 160, 180, tag="w")]
    timeline = hand_made([Warp([at("kernel", 0, 180, *regions)])], arrows=[("c", "w")])
    assert [name for name, *_ in steps_of(timeline)] == ["async_copy k.py:1", "dot k.py:1", "async_wait k.py:1"]


def test_path_goes_to_the_last_warp_at_a_barrier() -> None:
    # Warp 1 comes at 150, warp 0 has waited since 50: 100 cycles less 40 are its slack.
    warps = [
        [at("load", 0, met, line=line), at("barrier", met, 160, line=5), at("store", 160, end)]
        for line, met, end in [(3, 50, 200), (4, 150, 170)]
    ]
    made = [Warp([at("kernel", 0, inside[-1].end, *inside)], warp=warp) for warp, inside in enumerate(warps)]
    timeline = hand_made(made)
    assert steps_of(timeline) == [
        ("load k.py:4", 0, 150, "barrier"), ("barrier k.py:5", 150, 160, "order"), ("store k.py:1", 160, 200, "cta")
    ]  # fmt: skip
    slack = critical_path(timeline.spans, timeline.flows).set_index("name")["least_slack_cycles"]
    assert slack["load k.py:4"] == 0
    assert slack["load k.py:3"] == 70


def test_path_goes_to_the_role_that_arrived() -> None:
    # The producer waits for a free buffer until 130; the consumer's dot ended at 120.
    warps = [
        (0, "consumer", at("wgmma", 20, 120), at("mbarrier_wait", 120, 280, tag="w"), at("wgmma", 280, 300)),
        (4, "producer", at("mbarrier_wait", 10, 130), at("tma", 130, 150, tag="t")),
    ]
    made = [Warp([at("kernel", 0, inside[-1].end, *inside)], warp=warp, role=role) for warp, role, *inside in warps]
    timeline = hand_made(made, arrows=[("t", "w")])
    assert steps_of(timeline) == [
        ("k", 0, 20, "order"), ("wgmma k.py:1", 20, 120, "arrival"), ("mbarrier_wait k.py:1", 120, 130, "order"),
        ("tma k.py:1", 130, 150, "tma"), ("tma k.py:1 in flight", 150, 280, "order"), ("wgmma k.py:1", 280, 300, "cta"),
    ]  # fmt: skip


def test_path_goes_on_to_the_cta_before_on_the_same_sm() -> None:
    warps = [
        Warp([at("kernel", 0, 100)], cta=0, sm=0), Warp([at("kernel", 0, 180)], cta=1, sm=1),
        Warp([at("kernel", 120, 250)], cta=2, sm=0),
    ]  # fmt: skip
    assert steps_of(hand_made(warps)) == [("k", 0, 100, "cta"), (BETWEEN, 100, 120, "cta"), ("k", 120, 250, "cta")]


def test_chain_of_ctas_is_one_walk_back_on_one_sm() -> None:
    # Two slots of SM 0: CTA 2k in k*10 .. k*10+9, and beside it CTA 2k+1, which ends 3 earlier; SM 1 ends before it.
    def spans_of(turns: int):
        warps = [Warp([at("kernel", 0, 1)], cta=2 * turns, sm=1)]
        for turn in range(turns):
            warps.append(Warp([at("kernel", 10 * turn, 10 * turn + 9)], cta=2 * turn))
            warps.append(Warp([at("kernel", 10 * turn, 10 * turn + 6)], cta=2 * turn + 1))
        return hand_made(warps).spans

    few, many = spans_of(5), spans_of(50)
    assert _chain_of_ctas(few) == [0, 2, 4, 6, 8]
    assert calls_of(lambda: _chain_of_ctas(many)) < 1.5 * calls_of(lambda: _chain_of_ctas(few))


def test_of_ctas_that_end_together_the_smaller_number_is_on_the_chain_and_none_twice() -> None:
    times = [(10, 10), (0, 10), (5, 10), (10, 20)]
    warps = [Warp([at("kernel", start, end)], cta=cta) for cta, (start, end) in enumerate(times)]
    assert _chain_of_ctas(hand_made(warps).spans) == [1, 0, 3]

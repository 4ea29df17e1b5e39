"""The paper's models, on timelines worked out by hand."""

from __future__ import annotations

import pytest

from kperfir.analysis.models import swp_model, ws_model
from support.hand_made import HandMade, Warp, at, hand_made, loop

ITERATIONS = 8


def pipelined(length: int, wait: int) -> HandMade:
    """Iterations of `length`: `wait` of waiting, 50 of products, the issue of the copy that the next one waits for."""
    body = [
        at("async_wait", 0, wait, tag="w"),
        at("dot", wait, wait + 50),
        at("async_copy", wait + 50, wait + 60, tag="c"),
    ]
    arrows = [(f"c{number}", f"w{number + 1}") for number in range(ITERATIONS - 1)]
    kernel = at("kernel", 0, 100 + ITERATIONS * length, loop(100, [(length, body)] * ITERATIONS))
    return hand_made([Warp([kernel])], arrows=arrows)


def test_exposed_loads_set_the_pace() -> None:
    # Of 340 cycles 240 wait, 40 of which any wait takes: T_comp = 140. From issue (290 in) to the end of the next wait:
    # 50 + 240 = 290. One tile is under way: delta = 140 - 430 < 0, an iteration takes 290 + 140.
    (row,) = swp_model(*_tables(pipelined(340, 240))).to_dict("records")
    assert (row["iterations"], row["slots"]) == (ITERATIONS, 1)
    assert (row["comp_cycles"], row["load_cycles"], row["wait_cycles"]) == (140, 290, 200)
    assert row["delta_cycles"] == -290
    assert row["predicted_cycles"] == 430
    assert row["seen_cycles"] == 340
    assert row["error"] == pytest.approx(430 / 340 - 1)


def test_hidden_loads_leave_the_time_of_the_work() -> None:
    # The wait takes what any wait takes. Nothing was waited for, so the least flight is the bound: 130 of 200 cycles.
    body = [at("async_wait", 0, 40, tag="w"), at("dot", 40, 100), at("async_copy", 110, 120, tag="c")]
    arrows = [(f"c{number}", f"w{number + 2}") for number in range(ITERATIONS - 2)]
    timeline = hand_made([Warp([at("kernel", 0, 1600, loop(0, [(200, body)] * ITERATIONS))])], arrows=arrows)
    (row,) = swp_model(*_tables(timeline)).to_dict("records")
    assert row["slots"] == 2
    assert row["load_cycles"] == 330  # From 110 to 40 of the iteration after the next.
    assert row["delta_cycles"] == 2 * 200 - (330 + 200)
    assert row["predicted_cycles"] == 265


def test_copy_issued_before_the_wait_is_one_more_under_way() -> None:
    body = [at("async_copy", 0, 10, tag="c"), at("async_wait", 20, 120, tag="w"), at("dot", 120, 180)]
    arrows = [(f"c{number}", f"w{number}") for number in range(ITERATIONS)]
    timeline = hand_made([Warp([at("kernel", 0, 1600, loop(0, [(200, body)] * ITERATIONS))])], arrows=arrows)
    (row,) = swp_model(*_tables(timeline)).to_dict("records")
    assert row["slots"] == 1
    assert row["load_cycles"] == 120
    assert row["predicted_cycles"] == 120 + 140


def test_warp_specialised_kernel_is_its_critical_path() -> None:
    # The producer works 20 of each 300, the consumer 140 after waits of 160 (40 of them the wait's own): T_comp = 180.
    # A copy issued at 10..30 of the producer's iteration is there at 160 of the consumer's: 150. One buffer:
    # delta = 180 - 330 < 0, so 330 an iteration. First data at 100 + 160, 8 iterations, 60 after the loop.
    consumer = loop(100, [(300, [at("mbarrier_wait", 0, 160, tag="w"), at("wgmma", 160, 300)])] * ITERATIONS)
    producer = loop(100, [(300, [at("tma", 10, 30, tag="t"), at("mbarrier_wait", 30, 300)])] * ITERATIONS, line=9)
    end = 100 + 300 * ITERATIONS
    warps = [
        Warp([at("kernel", 0, end + 60, consumer)], role="consumer"),
        Warp([at("kernel", 0, end, producer)], warp=4, role="producer"),
    ]
    timeline = hand_made(warps, arrows=[(f"t{number}", f"w{number}") for number in range(ITERATIONS)])
    (row,) = ws_model(*_tables(timeline), {(0, 0): 1}).to_dict("records")
    assert (row["consumer"], row["producer"], row["iterations"]) == ("consumer", "producer", ITERATIONS)
    assert row["predicted_cycles"] == 260 + 330 * ITERATIONS + 60
    assert row["seen_cycles"] == end + 60
    # With two buffers the work of the consumer is what counts.
    (row,) = ws_model(*_tables(timeline), {(0, 0): 2}).to_dict("records")
    assert row["predicted_cycles"] == 260 + 180 * ITERATIONS + 60


def test_kernels_without_copies_have_no_model() -> None:
    timeline = hand_made([Warp([at("kernel", 0, 100, loop(0, [(50, [at("load", 0, 10)])] * 2))])])
    assert swp_model(*_tables(timeline)).empty
    assert ws_model(*_tables(timeline)).empty


def _tables(timeline: HandMade):
    return timeline.spans, timeline.flows

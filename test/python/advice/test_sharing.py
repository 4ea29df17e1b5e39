"""Rules on what warps share: each where it applies, with its figures worked out, and where it does not."""

from __future__ import annotations

import pytest

from support.fired import fired
from support.hand_made import HandMade, Node, Warp, at, hand_made, loop

TRIPS = 10


def meeting(*arrivals: int) -> HandMade:
    """A warp per arrival at a barrier that ends at 420, in a CTA of 1000."""
    warps = [
        Warp([at("kernel", 0, 1000, at("barrier", arrival, 420, line=7))], warp=warp)
        for warp, arrival in enumerate(arrivals)
    ]
    return hand_made(warps)


def test_warps_that_wait_for_one_want_even_work() -> None:
    # Mean arrival 200, last 400, first 100.
    (finding,) = fired(meeting(100, 100, 400, 200), "balance-warps")
    assert finding.figure("slowest_warp") == 2
    assert finding.figure("late_share") == pytest.approx(0.2)
    assert finding.speedup == pytest.approx(1 / 0.8)
    assert finding.bound == pytest.approx(1 / 0.7)


# The warps of each of four sub-cores come one after the other, those of all sub-cores alike.
QUEUED = meeting(*(100 + 100 * (warp // 4) for warp in range(16)))


@pytest.mark.parametrize("timeline", [meeting(400, 401), meeting(100), QUEUED], ids=["together", "alone", "queued"])
def test_warps_that_come_together_are_well(timeline: HandMade) -> None:
    assert not fired(timeline, "balance-warps")


def body(*inside, length: int = 200, **known) -> HandMade:
    """A loop of ten iterations with these regions in each, and nothing else."""
    return hand_made([Warp([at("kernel", 0, length * TRIPS, loop(0, [(length, list(inside))] * TRIPS))])], **known)


def test_barriers_in_loops_cost() -> None:
    # Two of 20 in each 200.
    (finding,) = fired(body(at("barrier", 0, 20), at("barrier", 100, 120)), "fewer-barriers")
    assert finding.figure("barrier_share") == pytest.approx(0.2)
    assert (finding.speedup, finding.bound) == (pytest.approx(1 / 0.9), pytest.approx(1 / 0.8))


def test_barriers_outside_loops_do_not() -> None:
    timeline = hand_made([Warp([at("kernel", 0, 200, at("barrier", 0, 50), loop(60, [(50, [])] * 2))])])
    assert not fired(timeline, "fewer-barriers")


@pytest.mark.parametrize("rest", [(), (at("compute", 380, 400),)])
def test_waits_of_small_steps_want_bigger_ones(rest: tuple[Node, ...]) -> None:
    # Of 400, a wait of 60, one of 300 that counts as 80, and 20 in no region of an operation. Half of it goes in steps
    # of twice the size; at most half of all but the product.
    regions = (at("async_wait", 0, 60), at("dot", 60, 80), at("async_wait", 80, 380, line=2), *rest)
    (finding,) = fired(body(*regions, length=400, facts={"constants": {"BK": 32}}), "bigger-step")
    assert finding.figure("fixed_cycles") == 160
    assert finding.change.settings == {"BK": 64}
    assert finding.speedup == pytest.approx(1 / (1 - 0.2))
    assert finding.bound == pytest.approx(400 / 210)


@pytest.mark.parametrize(("operation", "fixed"), [("tt.addptr", 160), ("arith.subf", 60), ("math.exp2", 60)])
def test_arithmetic_on_the_tile_grows_with_it(operation: str, fixed: int) -> None:
    regions = (at("async_wait", 0, 60), at("dot", 60, 300), at("compute", 300, 400, line=3))
    timeline = body(*regions, length=400, operations={"compute k.py:3": operation})
    (finding,) = fired(timeline, "bigger-step")
    assert finding.figure("fixed_cycles") == fixed


def test_big_steps_are_left_alone() -> None:
    assert not fired(body(at("async_wait", 0, 60), at("dot", 60, 980), length=1000), "bigger-step")


def test_reduction_in_each_iteration_wants_one_at_the_end() -> None:
    # 50 of 200; nine of ten go.
    (finding,) = fired(body(at("load", 0, 10), at("reduce", 20, 70)), "reduce-after-loop")
    assert finding.speedup == pytest.approx(1 / (1 - 0.25 * 0.9))
    assert finding.bound == pytest.approx(1 / 0.75)


def test_reduction_that_waits_for_a_load_counts_for_what_it_takes_itself() -> None:
    # 400 of 500, of which 250 at most are the reduction.
    (finding,) = fired(body(at("load", 0, 10), at("reduce", 50, 450, line=3), length=500), "reduce-after-loop")
    assert finding.speedup == pytest.approx(1 / (1 - 0.5 * 0.9))
    assert finding.bound == pytest.approx(1 / 0.2)


def test_reduction_of_a_value_that_goes_round_stays() -> None:
    assert not fired(body(at("reduce", 0, 50)), "reduce-after-loop")


def test_reduction_beside_products_stays() -> None:
    assert not fired(body(at("reduce", 0, 50), at("dot", 50, 100)), "reduce-after-loop")


def test_atomics_that_queue_want_to_be_spread() -> None:
    # 10, 30 and 60 of 200: the fastest took 10, so 20 and 50 are the queue.
    inside = [at("atomic", 0, 10, line=3), at("atomic", 50, 80, line=3), at("atomic", 100, 160, line=3)]
    (finding,) = fired(hand_made([Warp([at("kernel", 0, 200, *inside)])]), "spread-atomics")
    assert finding.figure("queue_share") == pytest.approx(0.35)
    assert (finding.speedup, finding.bound) == (pytest.approx(1 / 0.65), pytest.approx(1 / 0.5))
    # The same in a launch of 2000, of whose end 300 are the queue: 1630 and 1600 are left.
    (finding,) = fired(hand_made([Warp([at("kernel", 0, 200, *inside)])], cycles=2000), "spread-atomics")
    assert finding.figure("drain_share") == pytest.approx(0.15)
    assert (finding.speedup, finding.bound) == (pytest.approx(2000 / 1630), pytest.approx(2000 / 1600))


def test_ctas_that_did_not_record_are_no_queue_of_atomics() -> None:
    # One CTA of 400 recorded, 200 of 100000 cycles: when the others ran is not known.
    inside = [at("atomic", 0, 10, line=3), at("atomic", 50, 80, line=3), at("atomic", 100, 160, line=3)]
    timeline = hand_made([Warp([at("kernel", 0, 200, *inside)])], cycles=100_000, ctas_total=400)
    (finding,) = fired(timeline, "spread-atomics")
    assert finding.figure("drain_share") == 0
    assert (finding.speedup, finding.bound) == (pytest.approx(1 / 0.65), pytest.approx(1 / 0.5))


def test_only_launches_that_recorded_every_cta_have_a_queue_of_atomics() -> None:
    # Two launches of 2000: of the first 1800 are beyond its only CTA, 300 of them the queue; the second misses CTAs.
    inside = [at("atomic", 0, 10, line=3), at("atomic", 50, 80, line=3), at("atomic", 100, 160, line=3)]
    warps = [Warp([at("kernel", 0, 200, *inside)], launch=launch) for launch in range(2)]
    timeline = hand_made(warps, cycles=2000)
    timeline.launches["ctas_total"] = [1, 8]
    (finding,) = fired(timeline, "spread-atomics")
    assert finding.figure("drain_share") == pytest.approx(300 / 4000)
    assert finding.speedup == pytest.approx(4000 / (4000 - 300 - 0.35 * 2200))


def test_ctas_that_did_not_record_do_not_hide_what_is_found() -> None:
    timeline = hand_made([Warp([at("kernel", 0, 200, loop(0, [(100, [at("barrier", 0, 20)])] * 2))])],
                         cycles=10_000, ctas_total=50)  # fmt: skip
    (finding,) = fired(timeline, "fewer-barriers")
    assert finding.bound == pytest.approx(1 / 0.8)


def test_atomics_that_pass_freely_stay() -> None:
    inside = [at("atomic", 100 * n, 100 * n + 10, line=3) for n in range(2)]
    assert not fired(hand_made([Warp([at("kernel", 0, 200, *inside)])]), "spread-atomics")


def test_products_that_run_alone_want_company() -> None:
    # 80 of 200 in products, 120 in other work: at most 80 less, expected half of that.
    (finding,) = fired(body(at("wgmma", 0, 80), at("reduce", 80, 120)), "overlap-products")
    assert (finding.figure("product_cycles"), finding.figure("other_cycles")) == (80, 120)
    assert (finding.speedup, finding.bound) == (pytest.approx(200 / 160), pytest.approx(200 / 120))


def test_one_of_two_products_is_expected_to_have_company() -> None:
    # Each takes 40: half of one of them.
    (finding,) = fired(body(at("wgmma", 0, 40), at("reduce", 40, 120), at("wgmma", 120, 160)), "overlap-products")
    assert finding.figure("products") == 2
    assert (finding.speedup, finding.bound) == (pytest.approx(200 / 180), pytest.approx(200 / 120))


def test_products_of_two_roles_have_company() -> None:
    inside = [at("wgmma", 0, 80), at("reduce", 80, 120)]
    warps = [
        Warp([at("kernel", 0, 2000, loop(0, [(200, inside)] * TRIPS))], warp=4 * number, role=f"consumer{number}")
        for number in range(2)
    ]
    assert not fired(hand_made(warps), "overlap-products")

"""Rules on the grid: each on a timeline where it applies, with its figures worked out, and where it does not."""

from __future__ import annotations

import pytest

from support.fired import fired
from support.hand_made import HandMade, Node, Warp, at, hand_made, loop


def ctas(*places: tuple[int, int, int], **capture) -> HandMade:
    """CTAs as (SM, start, end), whose warps only compute."""
    warps = [Warp([at("kernel", start, end)], cta=cta, sm=sm) for cta, (sm, start, end) in enumerate(places)]
    return hand_made(warps, **capture)


def looping(before: int, trips: int, after: int) -> Node:
    """A kernel with a loop of iterations of 100."""
    end = before + 100 * trips + after
    return at(
        "kernel", 0, end, at("prologue", 0, before), loop(before, [(100, [])] * trips), at("epilogue", end - after, end)
    )


def few(trips: int, sms: int) -> HandMade:
    return hand_made([Warp([looping(100, trips, 100)])], sm_count=sms)


def test_idle_sms_want_the_loop_split() -> None:
    # 8 SMs, one CTA, but four iterations at least for each part: 3 parts of 12. The loop is 1200 of 1400.
    (finding,) = fired(few(12, 8), "fill-device")
    assert finding.figure("loop_share") == pytest.approx(12 / 14)
    assert finding.speedup == pytest.approx(1400 / (200 + 400))
    assert finding.bound == pytest.approx(3)


@pytest.mark.parametrize("timeline", [few(4, 8), few(12, 1), few(12, 0)], ids=["short loop", "full", "unknown device"])
def test_a_device_that_is_full_or_a_loop_that_is_short_stays(timeline: HandMade) -> None:
    assert not fired(timeline, "fill-device")


def test_last_wave_that_is_a_quarter_full() -> None:
    # 4 SMs, 5 CTAs of 100: 1.25 waves take 2. Tiles of half the size need ceil(2.5) / 2 = 1.5.
    timeline = ctas(*((sm, 0, 100) for sm in range(4)), (0, 100, 200))
    (finding,) = fired(timeline, "last-wave")
    assert finding.figure("waves") == 1.25
    assert finding.speedup == pytest.approx(2 / 1.5)
    assert finding.bound == pytest.approx(2 / 1.25)
    assert "1/2 of the size" in finding.change.what


@pytest.mark.parametrize(
    "timeline",
    [ctas((0, 0, 100), (1, 0, 100), (0, 100, 200), (1, 100, 200)), ctas((0, 0, 100))],
    ids=["full", "one wave"],
)
def test_waves_that_are_full_are_well(timeline: HandMade) -> None:
    assert not fired(timeline, "last-wave")


def test_uneven_ctas_leave_a_tail() -> None:
    # SM 0 works 400, SM 1 100: an idle end of 300 of 800. Half a mean CTA per SM, 125 of 400, is left.
    (finding,) = fired(ctas((0, 0, 400), (1, 0, 100)), "balance-sms")
    assert finding.figure("tail_share") == pytest.approx(0.375)
    assert finding.figure("longest_cta_cycles") == 400
    assert finding.bound == pytest.approx(1 / (1 - 0.375))
    assert finding.speedup == pytest.approx(1 / (1 - (0.375 - 0.3125)))


def test_ends_of_some_ctas_are_not_the_tail_of_the_launch() -> None:
    assert not fired(ctas((0, 0, 400), (1, 0, 100), ctas_total=8), "balance-sms")


def test_even_ctas_have_no_tail() -> None:
    assert not fired(ctas((0, 0, 400), (1, 0, 400)), "balance-sms")


def in_waves(before: int, trips: int, after: int, *, waves: int) -> HandMade:
    node = looping(before, trips, after)
    return hand_made([Warp([node])], ctas_total=waves, sm_count=1, launch_facts={"ctas_per_sm": 1})


def test_ends_of_ctas_in_waves_want_a_persistent_grid() -> None:
    # 200 of 1000 are before and after the loop; half of that can be hidden.
    (finding,) = fired(in_waves(120, 8, 80, waves=3), "shorten-ends")
    assert finding.figure("ends_share") == pytest.approx(0.2)
    assert finding.speedup == pytest.approx(1000 / 900)
    assert finding.bound == pytest.approx(1000 / 800)
    assert {place.kind for place in finding.places} == {"prologue", "epilogue"}


@pytest.mark.parametrize(
    "timeline", [in_waves(120, 8, 80, waves=1), in_waves(20, 18, 20, waves=3)], ids=["one wave", "short ends"]
)
def test_ends_that_nothing_could_hide_stay(timeline: HandMade) -> None:
    assert not fired(timeline, "shorten-ends")


def resident(wait: int, limiter: str, *, held: int = 1) -> HandMade:
    kernel = at("kernel", 0, 1000, at("mbarrier_wait", 0, wait))
    facts = {"ctas_per_sm": held, "occupancy_limiter": limiter}
    return hand_made([Warp([kernel])], ctas_total=8, sm_count=1, launch_facts=facts, facts={"shared_bytes": 1 << 16})


def test_waiting_ctas_want_company() -> None:
    # One customer works 0.4 and waits 0.6: X(1) = 1, Q(1) = 0.4. X(2) = 2 / (0.6 + 0.4 * 1.4). At most 1 / 0.4.
    (finding,) = fired(resident(600, "shared memory"), "raise-occupancy")
    assert finding.speedup == pytest.approx(2 / (0.6 + 0.56))
    assert finding.bound == pytest.approx(2)
    assert "shared memory" in finding.change.what
    (finding,) = fired(resident(600, "registers"), "raise-occupancy")
    assert "registers" in finding.change.what


@pytest.mark.parametrize(
    "timeline",
    [resident(50, "registers"), resident(600, "warps"), resident(600, "grid")],
    ids=["busy", "warps", "grid"],
)
def test_ctas_that_work_or_cannot_be_more_are_left_alone(timeline: HandMade) -> None:
    assert not fired(timeline, "raise-occupancy")

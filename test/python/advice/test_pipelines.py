"""Rules on loads in loops: each on a timeline where it applies, with its figures worked out, and where it does not."""

from __future__ import annotations

import pytest

from support.fired import fired
from support.hand_made import RECORD_BYTES, HandMade, Warp, at, hand_made, loop

TRIPS = 10


def copying(length: int, wait: int, *, apart: int = 1, **capture) -> HandMade:
    """Iterations that wait, multiply for 50 and issue the copy that is waited for `apart` iterations later."""
    body = [
        at("async_wait", 0, wait, tag="w"),
        at("dot", wait, wait + 50),
        at("async_copy", wait + 50, wait + 60, tag="c"),
    ]
    arrows = [(f"c{number}", f"w{number + apart}") for number in range(TRIPS - apart)]
    kernel = at("kernel", 0, TRIPS * length, loop(0, [(length, body)] * TRIPS))
    return hand_made([Warp([kernel])], arrows=arrows, **capture)


def test_copies_that_are_waited_for_want_more_stages() -> None:
    # 340 an iteration, 240 of it waiting: T_comp = 100 + 40, T_load = 50 + 240. Round trip 430: 3 tiles leave 143, that
    # is within 15 % of 140. Expected: nine of ten iterations take 143.3 instead of 340; bound: all take 140.
    timeline = copying(340, 240, facts={"num_stages": 2, "shared_bytes": 4096})
    (finding,) = fired(timeline, "deepen-pipeline")
    assert finding.change.settings == {"num_stages": 4}
    assert finding.figure("slots_wanted") == 3
    assert finding.figure("wait_cycles") == 200
    assert finding.speedup == pytest.approx(1 / (1 - 0.9 * (340 - 430 / 3) / 340))
    assert finding.bound == pytest.approx(340 / 140)
    assert finding.places[0].region == "async_wait k.py:1"
    assert finding.verify == "kperfir whatif --set num_stages=4 SCRIPT"


def test_buffers_between_warps_are_the_constexpr_of_that_number() -> None:
    consumer = loop(0, [(300, [at("mbarrier_wait", 0, 240, tag="w"), at("wgmma", 240, 300)])] * TRIPS)
    producer = loop(0, [(300, [at("tma", 0, 20, tag="t"), at("mbarrier_wait", 20, 300)])] * TRIPS, line=9)
    warps = [
        Warp([at("kernel", 0, 3000, consumer)], role="consumer"),
        Warp([at("kernel", 0, 3000, producer)], warp=4, role="producer"),
    ]
    arrows = [(f"t{number}", f"w{number}") for number in range(TRIPS)]
    facts = {"num_stages": 3, "constants": {"S": 1, "BM": 64}}
    (finding,) = fired(hand_made(warps, arrows=arrows, buffers=1, facts=facts), "deepen-pipeline")
    # T_comp = 100, T_load = 240: (240 + 100) / 3 = 113 is near enough.
    assert finding.change.settings == {"S": 3}
    facts["constants"] = {"S": 1, "T": 1}
    (finding,) = fired(hand_made(warps, arrows=arrows, buffers=1, facts=facts), "deepen-pipeline")
    assert finding.change.settings == {}  # Which of the two it is, is not known.


@pytest.mark.parametrize(("shared_bytes", "wanted"), [(50 << 10, 3), (70 << 10, 2), (100 << 10, None)])
def test_no_more_tiles_than_shared_memory_has_room_for(shared_bytes: int, wanted: int | None) -> None:
    # 163 KiB on sm_80: three times 50, twice 70, once 100.
    timeline = copying(
        340, 240, facts={"num_stages": 2, "shared_bytes": shared_bytes + RECORD_BYTES, "target": "cuda:80"}
    )
    found = [finding.figure("slots_wanted") for finding in fired(timeline, "deepen-pipeline")]
    assert found == ([wanted] if wanted else [])


@pytest.mark.parametrize(
    "timeline", [copying(140, 40), copying(144, 44, apart=3)], ids=["nothing is waited for", "enough under way"]
)
def test_copies_that_are_there_in_time_want_nothing(timeline: HandMade) -> None:
    assert not fired(timeline, "deepen-pipeline")


def loading(*, stages: int = 1, **kinds: int) -> HandMade:
    """Iterations of 400: load 10, a wait of 190 in the store to shared memory, load from there 50, dot 100, 50 more."""
    body = [
        at("load", 0, 10, line=4),
        at("local_store", 10, 200, line=kinds.get("line", 4)),
        at("local_load", 200, 250, line=4),
        at("dot", 250, 350, line=5),
    ]
    kernel = at("kernel", 0, 400 * TRIPS, loop(0, [(400, body)] * TRIPS))
    return hand_made([Warp([kernel])], facts={"num_stages": stages})


def test_loads_that_are_waited_for_at_once_want_stages() -> None:
    # T_load = 200, T_comp = 400 - 190 + 80 = 290: an iteration takes max(290, 245). Bound: 190 less of 400.
    (finding,) = fired(loading(), "pipeline-loop")
    assert finding.change.settings == {"num_stages": 3}
    assert (finding.figure("stall_cycles"), finding.figure("load_cycles")) == (190, 200)
    assert finding.speedup == pytest.approx(1 / (1 - 0.9 * 110 / 400))
    assert finding.bound == pytest.approx(400 / 210)
    assert [place.kind for place in finding.places] == ["local_store", "load"]


def test_loop_that_the_compiler_would_not_pipeline_has_no_setting() -> None:
    (finding,) = fired(loading(stages=3), "pipeline-loop")
    assert finding.change.settings == {}
    assert "did not pipeline" in finding.change.what


@pytest.mark.parametrize("timeline", [loading(line=9), copying(340, 240)], ids=["other data", "already asynchronous"])
def test_loops_that_do_not_wait_for_loads_are_left_alone(timeline: HandMade) -> None:
    assert not fired(timeline, "pipeline-loop")


def attention(*, barriers: int) -> HandMade:
    """Consumer: wait 340, product 60, other work 100, product 100. Producer: two copies, 20 each, into one buffer."""
    waits = [at("mbarrier_wait", 0, 340, tag="w", line=3)]
    if barriers == 2:
        waits.append(at("mbarrier_wait", 400, 410, tag="v", line=6))
    body = [*waits, at("wgmma", 340, 400, line=4), at("reduce", 410, 490, line=5), at("wgmma", 500, 600, line=7)]
    body.sort(key=lambda node: node.start)
    copies = [
        at("tma", 0, 20, line=10, tag="k"),
        at("tma", 20, 40, line=11, tag="t"),
        at("mbarrier_wait", 40, 600, line=9),
    ]
    warps = [
        Warp([at("kernel", 0, 600 * TRIPS, loop(0, [(600, body)] * TRIPS))], role="consumer"),
        Warp([at("kernel", 0, 600 * TRIPS, loop(0, [(600, copies)] * TRIPS, line=8))], warp=4, role="producer"),
    ]
    arrows = [
        pair for n in range(TRIPS) for pair in ((f"k{n}", f"w{n}"), (f"t{n}", f"w{n}" if barriers == 1 else f"v{n}"))
    ]
    return hand_made(warps, arrows=arrows, buffers=1)


def test_copies_that_share_a_barrier_want_their_own() -> None:
    # T_comp = 300, T_load = (340 + 320) / 2 = 330. A buffer is held for a product of 100 at most: max(300, 430).
    (finding,) = fired(attention(barriers=1), "split-barrier")
    assert finding.figure("load_cycles") == 330
    assert finding.figure("longest_product_cycles") == 100
    assert finding.speedup == pytest.approx(1 / (1 - 0.9 * 170 / 600))
    assert finding.bound == pytest.approx(600 / 300)


def test_copies_with_barriers_of_their_own_are_right_already() -> None:
    assert not fired(attention(barriers=2), "split-barrier")


def issuing(target: str, cycles: int, product: str = "dot") -> HandMade:
    """Iterations of 200 whose warp issues copies for `cycles`, waits 20 and multiplies 60."""
    body = [at("tma", 0, cycles), at("mbarrier_wait", 110, 130), at(product, 130, 190)]
    kernel = at("kernel", 0, 200 * TRIPS, loop(0, [(200, body)] * TRIPS))
    return hand_made([Warp([kernel])], facts={"target": target})


# 100 of 200 are issues, of which handing buffers back takes 60; asynchronous products may hide the half. The wait: 20.
@pytest.mark.parametrize(("product", "saved"), [("dot", 40), ("wgmma", 20)])
def test_issue_of_copies_could_be_another_warps(product: str, saved: int) -> None:
    (finding,) = fired(issuing("cuda:90", 100, product), "specialise-warps")
    assert finding.speedup == pytest.approx(200 / (200 - saved))
    assert finding.bound == pytest.approx(200 / 80)


@pytest.mark.parametrize(
    "timeline", [issuing("cuda:80", 100), issuing("cuda:90", 60)], ids=["no producer warps", "short"]
)
def test_issue_stays_where_it_costs_little_or_there_is_no_other(timeline: HandMade) -> None:
    assert not fired(timeline, "specialise-warps")

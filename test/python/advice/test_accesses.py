"""Rules on how accesses meet memory, which rest on what layouts predict."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from kperfir.capture.accesses import ACCESS_COLUMNS
from support.fired import fired
from support.hand_made import HandMade, Warp, at, hand_made, loop


def predicted(timeline: HandMade, kind: str, **figures: Any) -> HandMade:
    """The timeline with a prediction for its regions of a kind."""
    row = timeline.spans[timeline.spans["kind"] == kind].iloc[0]
    known = {
        "launch": 0, "kernel": "k", "region": int(row["region"]), "name": str(row["name"]), "kind": kind, "place": 0,
        "instruction": "", "bytes": 4, "requests": 1, "copies": 1, "bound": "exact", "why": "", **figures,
    }  # fmt: skip
    timeline.accesses = pd.DataFrame([known], columns=list(ACCESS_COLUMNS))
    return timeline


def shared(warps: int, *, cost: int = 64) -> HandMade:
    """A CTA of 1000 cycles whose warps read shared memory once, for 300 cycles."""
    roots = [Warp([at("kernel", 0, 1000, at("local_load", 100, 400))], warp=warp) for warp in range(warps)]
    return predicted(hand_made(roots), "local_load", op="ttg.local_load", space="shared", cost=cost, ideal=4)


def test_wavefronts_of_all_warps_are_what_conflicts_cost() -> None:
    # Four warps with 60 wavefronts too many each, one a cycle: 240 of 1000.
    (finding,) = fired(shared(4), "avoid-bank-conflicts")
    assert finding.figure("predicted_degree") == 16
    assert finding.figure("conflict_share") == pytest.approx(0.24)
    assert finding.speedup == pytest.approx(1 / 0.76)
    assert finding.bound == pytest.approx(1 / 0.7)
    assert finding.places[0].kind == "local_load"


@pytest.mark.parametrize("timeline", [shared(4, cost=4), shared(1, cost=12)], ids=["no conflict", "little"])
def test_accesses_without_conflicts_and_those_that_cost_little_are_fine(timeline: HandMade) -> None:
    assert not fired(timeline, "avoid-bank-conflicts")


def global_load(*, run: int, cost: int = 32) -> HandMade:
    """Ten iterations of 100 cycles; a load takes 20 of each, and the iteration waits 60 for its value."""
    body = [at("load", 10, 30, line=5), at("reduce", 30, 50, line=6)]
    timeline = hand_made([Warp([at("kernel", 0, 1000, loop(0, [(100, body)] * 10))])])
    return predicted(timeline, "load", op="tt.load", space="global", cost=cost, ideal=4, run_bytes=run)


def test_loads_that_lanes_do_not_share_cost_their_time_and_the_wait() -> None:
    # 80 of each iteration, 7 of 8 of that.
    (finding,) = fired(global_load(run=64), "coalesce-accesses")
    assert finding.figure("predicted_degree") == 8
    assert finding.figure("access_share") == pytest.approx(0.8)
    assert finding.speedup == pytest.approx(1 / 0.3)
    assert finding.bound == 8


def test_lines_too_many_cost_a_cycle_each() -> None:
    # 95 sectors of 4 bytes each, a line each instead of one: 94 of each iteration, at most 91 / 95 of all.
    (finding,) = fired(global_load(run=4, cost=95), "coalesce-accesses")
    assert finding.speedup == pytest.approx(1 / (1 - 0.94))
    assert finding.bound == pytest.approx(95 / 4)


def test_loads_that_lanes_share_or_of_which_nothing_is_known_are_left_alone() -> None:
    assert not fired(global_load(run=128, cost=4), "coalesce-accesses")
    unknown = global_load(run=4)
    unknown.accesses = unknown.accesses.assign(cost=float("nan"), bound="unknown")
    assert not fired(unknown, "coalesce-accesses")


def narrow(*, warps: int = 4, ctas: int = 1, lines: int = 40, width: int = 2) -> HandMade:
    """CTAs of 1000 cycles on one SM, whose warps load once: 8 requests for the same 16 sectors."""
    roots = [
        Warp([at("kernel", 0, 1000, at("load", 100, 150))], warp=warp, cta=cta) for cta in range(ctas)
        for warp in range(warps)
    ]  # fmt: skip
    figures = {"bytes": width, "requests": 8, "cost": 128, "ideal": 16, "run_bytes": 2, "lines": lines, "touched": 16}
    return predicted(hand_made(roots), "load", op="tt.load", space="global", **figures)


def test_requests_for_the_same_sectors_could_be_one() -> None:
    # 36 of 40 lines too many for each of 4 warps, a cycle each: 144 of 1000. The unit is busy for 16 %.
    (finding,) = fired(narrow(), "widen-accesses")
    assert finding.speedup == pytest.approx(1 / (1 - 0.144))
    assert finding.bound == pytest.approx(10)
    assert (finding.figure("requests"), finding.figure("unit_share")) == (8, pytest.approx(0.16))
    assert not fired(narrow(), "coalesce-accesses")


def test_work_of_other_ctas_hides_narrow_requests_until_the_unit_is_full() -> None:
    (hidden,) = fired(narrow(ctas=4), "widen-accesses")
    assert hidden.speedup == pytest.approx(1 / (1 - 0.144))
    # 8 CTAs of 4 warps with 40 lines each need more cycles than there are: 9 of 10 go.
    (full,) = fired(narrow(ctas=8), "widen-accesses")
    assert full.speedup == pytest.approx(10, rel=0.1)


def test_requests_as_wide_as_there_are_cannot_be_wider() -> None:
    assert not fired(narrow(width=16), "widen-accesses")


def test_lanes_that_lie_apart_are_apart_however_often_they_come_back() -> None:
    rows = narrow(lines=128)
    assert not fired(rows, "widen-accesses")
    assert fired(rows, "coalesce-accesses")


def test_accesses_of_captures_that_do_not_count_lines_are_taken_for_apart() -> None:
    old = narrow()
    old.accesses = old.accesses.assign(lines=float("nan"), touched=float("nan"))
    assert not fired(old, "widen-accesses")
    assert fired(old, "coalesce-accesses")

"""Rules on layouts."""

from __future__ import annotations

import pytest

from support.fired import fired
from support.hand_made import Warp, at, hand_made, loop


def conversion(cycles: int, *, in_loop: bool = True):
    """A kernel of 1000 cycles with ten iterations of 100, each with a conversion of `cycles`."""
    body = [at("convert_layout", 10, 10 + cycles, line=5)] if in_loop else []
    return hand_made([Warp([at("kernel", 0, 1000, loop(0, [(100, body)] * 10))])], cycles=1250)


def test_conversions_in_a_loop_are_found() -> None:
    # 10 x 20 of 1000 cycles are 20 %. CTAs are there for 1000 of 1250 cycles: 1 / (1 - 0.8 * 0.2).
    (finding,) = fired(conversion(20), "convert-layout")
    assert finding.figure("convert_share") == pytest.approx(0.2)
    assert finding.bound == pytest.approx(1 / 0.84)
    assert finding.speedup == pytest.approx(1 / 0.84)
    assert [(place.region, place.line) for place in finding.places] == [("convert_layout k.py:5", 5)]
    assert finding.places[0].share == pytest.approx(0.2)


@pytest.mark.parametrize("timeline", [conversion(2), conversion(0, in_loop=False)], ids=["short", "none"])
def test_conversions_that_cost_little_are_not(timeline) -> None:
    assert not fired(timeline, "convert-layout")

"""Heat of source lines, on a timeline worked out by hand."""

from __future__ import annotations

import pytest

from kperfir.analysis.heat import source_heat
from support.hand_made import Warp, at, hand_made


def test_heat_is_time_that_no_inner_region_takes() -> None:
    inner = [at("load", 10, 30, line=4), at("async_wait", 40, 80, line=4), at("dot", 80, 90, line=5)]
    table = source_heat(hand_made([Warp([at("kernel", 0, 100, *inner)])]).spans).set_index("line")
    assert table["self_cycles"].to_dict() == {1: 30, 4: 60, 5: 10}
    assert table["wait_cycles"].to_dict() == {1: 0, 4: 40, 5: 0}
    assert table["heat"].to_dict() == pytest.approx({1: 0.3, 4: 0.6, 5: 0.1})
    assert table.loc[4, "kinds"] == "load, async_wait"

"""Confidence of region durations, on a timeline worked out by hand."""

from __future__ import annotations

import math

import pytest

from kperfir.analysis.confidence import region_confidence
from support.hand_made import Warp, at, hand_made


def loads(*durations: tuple[int, ...]):
    """A CTA per tuple, with a load of each duration."""
    warps = []
    for cta, sizes in enumerate(durations):
        regions = [at("load", 1000 * place, 1000 * place + size) for place, size in enumerate(sizes)]
        warps.append(Warp([at("kernel", 0, 9000, *regions)], cta=cta))
    table = region_confidence(hand_made(warps).spans)
    return table.set_index("kind").loc["load"]


def test_ctas_are_what_counts() -> None:
    # Means of the CTAs: 100, 120, 140. Their deviation is 20, the error 20 / sqrt(3), Student's point for 2 is 4.303.
    row = loads((100, 100), (110, 130), (140,))
    half = 4.303 * 20 / math.sqrt(3)
    assert (row["count"], row["ctas"]) == (5, 3)
    assert row["mean_cycles"] == pytest.approx(120)
    assert (row["low_cycles"], row["high_cycles"]) == pytest.approx((120 - half, 120 + half))
    assert (row["min_cycles"], row["p50_cycles"], row["max_cycles"]) == (100, 110, 140)
    assert row["std_cycles"] == pytest.approx(math.sqrt((2 * 16**2 + 6**2 + 14**2 + 24**2) / 5))


def test_one_cta_has_no_interval() -> None:
    row = loads((100, 120))
    assert row["mean_cycles"] == 110
    assert math.isnan(row["low_cycles"])

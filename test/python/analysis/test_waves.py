"""Waves, tail and imbalance, on timelines worked out by hand."""

from __future__ import annotations

import pytest

from kperfir.analysis.waves import waves
from support.hand_made import Warp, at, hand_made


def cta(number: int, sm: int, start: int, end: int) -> Warp:
    return Warp([at("kernel", start, end)], cta=number, sm=sm)


# Two SMs with a place each, three CTAs of 100: one SM has two of them.
UNEVEN = hand_made([cta(0, 0, 0, 100), cta(1, 1, 0, 100), cta(2, 0, 100, 200)])


def test_a_last_wave_that_is_not_full() -> None:
    (row,) = waves(UNEVEN.spans, UNEVEN.launches).to_dict("records")
    assert (row["ctas"], row["sms"], row["sms_used"], row["ctas_per_sm"]) == (3, 2, 2, 1)
    assert row["waves"] == 1.5
    assert row["wave_fill"] == 0.75
    assert row["sm_busy"] == pytest.approx(300 / 400)
    assert row["imbalance"] == pytest.approx(200 / 150)
    assert row["tail_cycles"] == 100
    assert row["tail_share"] == pytest.approx(100 / 400)
    assert row["cta_spread"] == 0


def test_device_says_how_much_there_is_room_for() -> None:
    (row,) = waves(UNEVEN.spans, UNEVEN.launches, sms=8, ctas_per_sm={0: 2}).to_dict("records")
    assert row["waves"] == pytest.approx(3 / 16)
    assert row["wave_fill"] == pytest.approx(3 / 16)
    assert row["sm_busy"] == pytest.approx(300 / 1600)
    assert row["sms_used"] == 2


def test_what_depends_on_ctas_that_did_not_record_is_not_known() -> None:
    some = hand_made([cta(0, 0, 0, 100), cta(2, 0, 100, 200)], ctas_total=6)
    (row,) = waves(some.spans, some.launches).to_dict("records")
    unknown = ("sms_used", "waves", "wave_fill", "sm_busy", "imbalance", "tail_cycles", "tail_share")
    assert all(row[name] != row[name] for name in unknown)
    assert (row["ctas"], row["cta_spread"]) == (6, 0)
    (row,) = waves(some.spans, some.launches, sms=2, ctas_per_sm={0: 1}).to_dict("records")
    assert (row["waves"], row["wave_fill"]) == (3, 1)
    assert row["sms_used"] != row["sms_used"]

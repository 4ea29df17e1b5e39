"""Cycles to nanoseconds: the fit recovers the true axis to within what it states."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from kperfir.runtime.clock import Anchors, Slope, estimate_slope, fit_clock

Moment = tuple[int, float]  # SM, true time in ns


class Device:
    """SMs that count at `hz` from origins of their own, and a timer that steps by `step_ns`."""

    def __init__(self, *, hz: float, step_ns: int, seed: int, sms: int = 4) -> None:
        self.rng = random.Random(seed)
        self.hz, self.step_ns = hz, step_ns
        self.origin = [self.rng.randrange(1 << 50) for _ in range(sms)]
        self.timer_origin = self.rng.randrange(1 << 60)

    def clock(self, sm: int, true_ns: float) -> int:
        return self.origin[sm] + int(true_ns * self.hz / 1e9)

    def timer(self, true_ns: float) -> int:
        return (self.timer_origin + int(true_ns)) // self.step_ns * self.step_ns

    def anchors(self, ctas: int, *, length_ns: float, launch_ns: float = 0.0) -> tuple[Anchors, list[Moment]]:
        """Anchors of CTAs that start one after the other, and for each anchor its SM and true time."""
        starts, ends = [], []
        free = [launch_ns + self.rng.uniform(0, 900) for _ in self.origin]
        for cta in range(ctas):
            sm = cta % len(self.origin)
            end = free[sm] + length_ns * self.rng.uniform(0.8, 1.2)
            starts.append((sm, free[sm]))
            ends.append((sm, end))
            free[sm] = end + self.rng.uniform(0, 300)
        truth = starts + ends
        table = {
            "recorded": np.ones(ctas, np.uint8),
            "sm": np.array([sm for sm, _ in starts], np.int32),
            "start_clock": np.array([self.clock(*at) for at in starts], np.int64),
            "end_clock": np.array([self.clock(*at) for at in ends], np.int64),
            "start_ns": np.array([self.timer(ns) for _, ns in starts], np.int64),
            "end_ns": np.array([self.timer(ns) for _, ns in ends], np.int64),
        }
        return Anchors.of(table), truth


@pytest.mark.parametrize("step_ns", [1, 32, 1024])
@pytest.mark.parametrize("ctas", [4, 40, 400])
def test_fit_is_within_its_uncertainty_of_the_truth(step_ns: int, ctas: int) -> None:
    for seed in range(20):
        device = Device(hz=1.755e9, step_ns=step_ns, seed=seed)
        anchors, truth = device.anchors(ctas, length_ns=200_000)
        fit = fit_clock(anchors)
        assert fit is not None
        assert fit.clock_hz == pytest.approx(1.755e9, rel=0.02)
        assert fit.uncertainty_ns <= 1.6 * step_ns + 2
        sm = np.array([sm for sm, _ in truth])
        clock = np.array([device.clock(*at) for at in truth])
        error = fit.to_ns(sm, clock) - np.array([ns for _, ns in truth])
        # 0 is the earliest start as fitted, so only differences of times are claimed.
        assert np.ptp(error) <= 2 * fit.uncertainty_ns
        assert fit.to_ns(anchors.sm, anchors.clock).min() == pytest.approx(0.0, abs=1e-6)


def test_timer_step_is_found_from_many_anchors_and_assumed_coarse_for_few() -> None:
    device = Device(hz=1e9, step_ns=32, seed=1)
    assert device.anchors(40, length_ns=5000)[0].resolution_ns == 32
    assert device.anchors(1, length_ns=500_000, launch_ns=7)[0].resolution_ns == 1024


def test_fit_borrows_a_slope_when_the_launch_is_short() -> None:
    device = Device(hz=1.4e9, step_ns=1024, seed=3)
    long = estimate_slope(device.anchors(100, length_ns=1_000_000)[0])
    assert long is not None
    short, _ = device.anchors(4, length_ns=1500, launch_ns=1e9)
    own = estimate_slope(short)
    assert own is None or own.uncertainty > 0.1
    fit = fit_clock(short, others=long, nominal_hz=1e9)
    assert fit is not None
    assert fit.clock_hz == pytest.approx(1.4e9, rel=1e-3)
    nominal = fit_clock(short, nominal_hz=1.38e9)
    assert nominal is not None
    assert nominal.clock_hz == pytest.approx(1.38e9)


def test_fit_prefers_an_exact_slope() -> None:
    anchors, _ = Device(hz=1.4e9, step_ns=1, seed=3).anchors(40, length_ns=100_000)
    fit = fit_clock(anchors, others=Slope(1e9 / 1.41e9, 0.0))
    assert fit is not None
    assert fit.clock_hz == pytest.approx(1.41e9)


def test_fit_says_that_it_knows_nothing_when_there_is_no_time_base() -> None:
    table = {name: np.array([5], np.int64) for name in ("start_clock", "start_ns", "end_clock", "end_ns")}
    table |= {"recorded": np.ones(1, np.uint8), "sm": np.zeros(1, np.int32)}
    fit = fit_clock(Anchors.of(table))
    assert fit is not None
    assert math.isinf(fit.uncertainty_ns)
    assert fit.to_ns(np.array([0]), np.array([12])).tolist() == [7.0]
    table["recorded"][0] = 0
    assert fit_clock(Anchors.of(table)) is None


def test_fit_survives_a_timer_that_goes_back() -> None:
    """Seen on hardware whose timer is adjusted; the fit is then poor and says so."""
    anchors, _ = Device(hz=1e9, step_ns=32, seed=5).anchors(20, length_ns=10_000)
    timer = anchors.timer_ns.copy()
    timer[len(timer) // 2 :] -= 1_000_000
    fit = fit_clock(Anchors(anchors.sm, anchors.clock, timer, 32), nominal_hz=1e9)
    assert fit is not None
    assert fit.uncertainty_ns > 100_000

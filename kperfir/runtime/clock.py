"""From clock cycles to nanoseconds, with the uncertainty stated.

    fit = fit_clock(Anchors.of(ctas, resolution_ns=None), nominal_hz=1.41e9)
    ns = fit.to_ns(sm, clock)

Every CTA reads its SM's clock and the global timer at its start and at its end. All SMs of a launch count at one
rate, each from an origin of its own, so the fit has one slope per launch and one offset per SM. Extending 32-bit
stamps to 64 bits is lib/Record/ClockUnwrap.h.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

# What the global timer may step by at worst, where too few anchors are there to see it.
_COARSE_NS = 1024
_ENOUGH_ANCHORS = 16
# A slope less certain than this is not used if there is a better source.
_GOOD_SLOPE = 0.01


@dataclass(frozen=True, slots=True)
class Anchors:
    """Pairs of clock and timer readings of one launch, two per CTA; all arrays of shape (n,), dtype int64.

    Attributes:
        sm: SM of the reading.
        clock: Its cycle counter.
        timer_ns: The global timer.
        resolution_ns: Step of the timer.
    """

    sm: NDArray[np.int64]
    clock: NDArray[np.int64]
    timer_ns: NDArray[np.int64]
    resolution_ns: int

    @classmethod
    def of(cls, ctas: dict[str, NDArray[Any]], *, resolution_ns: int | None = None) -> Anchors:
        """Collect the anchors of the recorded CTAs; find the timer's step from them unless it is given."""
        kept = ctas["recorded"].astype(np.bool_)
        timer = np.concatenate([ctas[name][kept].astype(np.int64) for name in ("start_ns", "end_ns")])
        clock = np.concatenate([ctas[name][kept].astype(np.int64) for name in ("start_clock", "end_clock")])
        sm = np.tile(ctas["sm"][kept].astype(np.int64), 2)
        return cls(sm, clock, timer, resolution_ns or _timer_step(timer))


@dataclass(frozen=True, slots=True)
class Slope:
    """Nanoseconds per cycle; `uncertainty` is relative."""

    ns_per_cycle: float
    uncertainty: float


@dataclass(frozen=True, slots=True)
class ClockFit:
    """The time axis of a launch: 0 ns is the earliest start anchor.

    Attributes:
        slope: The rate of all SMs.
        sms: Ids of the SMs, ascending, shape (m,).
        clock_origin: Per SM, the cycle at which `ns_origin` holds, shape (m,), dtype int64.
        ns_origin: Per SM, ns after the earliest start anchor, shape (m,), dtype float64.
        start_timer_ns: The global timer at 0 ns.
        uncertainty_ns: No time of an anchor is further from the fit than this, the timer's step included.
    """

    slope: Slope
    sms: NDArray[np.int64]
    clock_origin: NDArray[np.int64]
    ns_origin: NDArray[np.float64]
    start_timer_ns: int
    uncertainty_ns: float

    @property
    def clock_hz(self) -> float:
        return 1e9 / self.slope.ns_per_cycle

    def to_ns(self, sm: NDArray[Any], clock: NDArray[np.int64]) -> NDArray[np.float64]:
        """Times, launch-relative, of cycles of the given SMs; shapes (n,)."""
        clock_origin, ns_origin = self.origins(sm)
        # Differences first, in integers: counters near 2^62 have no fractions left in a float.
        return ns_origin + (clock - clock_origin) * self.slope.ns_per_cycle

    def origins(self, sm: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """`clock_origin` and `ns_origin` of the given SMs; shapes (n,)."""
        index = np.searchsorted(self.sms, sm)
        return self.clock_origin[index], self.ns_origin[index]


def estimate_slope(anchors: Anchors) -> Slope | None:
    """The rate that the anchors alone give; None if they span no time."""
    if len(anchors.clock) == 0:
        return None
    _, index = np.unique(anchors.sm, return_inverse=True)
    clock = _centred(anchors.clock, index)
    timer = _centred(anchors.timer_ns, index)
    spread = float(clock @ clock)
    if spread == 0.0:
        return None
    ns_per_cycle = float(clock @ timer) / spread
    if ns_per_cycle <= 0.0:
        return None
    # Each reading is wrong by up to a step, so the ends of the longest span may be wrong by one together.
    longest_ns = float(np.ptp(clock)) * ns_per_cycle
    return Slope(ns_per_cycle, anchors.resolution_ns / longest_ns)


def fit_clock(anchors: Anchors, *, others: Slope | None = None, nominal_hz: float | None = None) -> ClockFit | None:
    """Fit the time axis of a launch.

    Args:
        anchors: Those of the launch.
        others: A slope from elsewhere, used if it is the more certain: that of other launches of the process, for a
            launch that is too short to have a good one, or the exact one of a simulated device.
        nominal_hz: Clock of the device as stated, the last resort.

    Returns:
        None if no CTA recorded anything. If nothing gives a slope, one cycle is one ns and the uncertainty is infinite.
    """
    if len(anchors.clock) == 0:
        return None
    slope = _choose(estimate_slope(anchors), others, nominal_hz)
    sms, index = np.unique(anchors.sm, return_inverse=True)
    start = int(anchors.timer_ns.min())
    counts = np.bincount(index)
    clock_origin = np.full(len(sms), np.iinfo(np.int64).max)
    np.minimum.at(clock_origin, index, anchors.clock)
    since = (anchors.clock - clock_origin[index]) * slope.ns_per_cycle
    seen = (anchors.timer_ns - start).astype(np.float64)
    ns_origin = np.bincount(index, seen - since) / counts
    residual = float(np.abs(seen - since - ns_origin[index]).max())
    # The earliest anchor defines 0 after the fit, so that no CTA starts before it.
    ns_origin -= float((ns_origin[index] + since).min())
    uncertainty = float("inf") if slope.uncertainty == float("inf") else residual + anchors.resolution_ns / 2
    return ClockFit(slope, sms, clock_origin, ns_origin, start, uncertainty)


def better(first: Slope | None, second: Slope | None) -> Slope | None:
    """The slope that is known more exactly."""
    if first is None or second is None:
        return first or second
    return first if first.uncertainty <= second.uncertainty else second


def _choose(own: Slope | None, others: Slope | None, nominal_hz: float | None) -> Slope:
    best = better(own, others)
    if best is not None and (best.uncertainty <= _GOOD_SLOPE or not nominal_hz):
        return best
    if nominal_hz:
        return Slope(1e9 / nominal_hz, best.uncertainty if best is not None else 1.0)
    return Slope(1.0, float("inf"))


def _centred(values: NDArray[np.int64], index: NDArray[np.intp]) -> NDArray[np.float64]:
    """Values less the mean of their group, exact for large counters."""
    base = np.full(index.max() + 1, np.iinfo(np.int64).max)
    np.minimum.at(base, index, values)
    small = (values - base[index]).astype(np.float64)
    return small - (np.bincount(index, small) / np.bincount(index))[index]


def _timer_step(timer_ns: NDArray[np.int64]) -> int:
    """The largest step that all readings are multiples of, after the first."""
    if len(timer_ns) == 0:
        return _COARSE_NS
    step = int(np.gcd.reduce(timer_ns - timer_ns.min()))
    if len(timer_ns) < _ENOUGH_ANCHORS or step == 0:
        step = min(step or _COARSE_NS, _COARSE_NS)
    return step

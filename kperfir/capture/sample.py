"""Some of the CTAs of large launches, for what needs single spans and would take minutes and gigabytes of all of them.

    chosen = choose_ctas(launches)      # None: there are few enough spans for all of them

A sample is all CTAs of some SMs, so that what follows each other on an SM still does; where one SM has more spans than
the sample, some of its CTAs. Which ones is the same each time, and tied to no regular pattern of the grid. Every launch
has at least one CTA in it. Who shows figures of a sample says so, with `Sample.described`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from kperfir.capture.tables import DecodedLaunch
    from kperfir.runtime.clock import ClockFit

    Rows = NDArray[np.int64]

MOST_SPANS = 1_000_000  # Up to so many, details are of all of them.
SAMPLE_SPANS = 400_000
_SCATTER = 2_654_435_761  # 2^32 over the golden ratio: multiples, modulo 2^32, lie far from those before.


@dataclass(frozen=True, slots=True)
class Sample:
    """Which CTAs of the launches of a timeline are looked at.

    Attributes:
        rows: By launch, rows of the CTAs among those that the capture holds.
        fits: By launch, the time axis that all its CTAs gave.
        described: Such as ``413 of 6,400 CTAs, on 7 of 108 SMs``.
    """

    rows: dict[int, Rows]
    fits: dict[int, ClockFit | None]
    described: str


def choose_ctas(launches: Sequence[DecodedLaunch]) -> Sample | None:
    """Choose whole CTAs with about `SAMPLE_SPANS` spans together; None if there are `MOST_SPANS` spans or fewer."""
    counts = [_spans_of_ctas(launch) for launch in launches]
    total = sum(int(spans.sum()) for spans in counts)
    if total <= MOST_SPANS:
        return None
    rows, ctas, sms = {}, [0, 0], [0, 0]
    for launch, spans in zip(launches, counts, strict=True):
        sm = launch.decoded.ctas["sm"]
        rows[launch.number] = _choose(sm, spans, SAMPLE_SPANS * (int(spans.sum()) / total))
        for number, held in enumerate((rows[launch.number], np.flatnonzero(spans))):
            ctas[number] += len(held)
            sms[number] = len(np.unique(sm[held]))
    places = f", on {sms[0]:,} of {sms[1]:,} SMs" if len(launches) == 1 else ""
    fits = {launch.number: launch.fit for launch in launches}
    return Sample(rows, fits, f"{ctas[0]:,} of {ctas[1]:,} CTAs{places}")


def _spans_of_ctas(launch: DecodedLaunch) -> Rows:
    tracks = launch.decoded.tracks
    spans = np.zeros(len(launch.cta_ids), np.int64)
    np.add.at(spans, tracks["cta"], tracks["spans"])
    return spans


def _choose(sm: NDArray[np.int32], spans: Rows, room: float) -> Rows:
    """The rows of the CTAs of as many SMs as there is room for, or of CTAs of one SM."""
    held = np.flatnonzero(spans)
    names, place = np.unique(sm[held], return_inverse=True)
    order = _scattered(len(names))
    taken = _fitting(np.bincount(place, spans[held], minlength=len(names))[order], room)
    if taken:
        return held[np.isin(place, order[:taken])]
    of_first = held[place == order[0]] if len(held) else held
    order = _scattered(len(of_first))
    return np.sort(of_first[order[: max(1, _fitting(spans[of_first][order], room))]])


def _scattered(count: int) -> Rows:
    """The numbers below `count`, such that the first few, however many, lie all over them."""
    return np.argsort(np.arange(1, count + 1, dtype=np.uint64) * _SCATTER % (1 << 32), kind="stable")


def _fitting(sizes: NDArray[np.number], room: float) -> int:
    """How many of `sizes` there is room for, from the first on."""
    return int(np.searchsorted(np.cumsum(sizes), room, side="right"))

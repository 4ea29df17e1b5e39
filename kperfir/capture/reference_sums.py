"""Sums of executions in plain Python: what a kernel with strategy ``aggregate`` keeps, and a slow decoder of it.

The oracle of lib/Record/SumsReader.cpp and the model for passes/Aggregation.cpp: lib/Record/FORMAT.md, line by line. It
shares no code with them. Not used by the product; `kperfir.capture.reference` is the same for records.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kperfir.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kperfir.capture.layout import BufferLayout, Event

MASK = 0xFFFFFFFF
WIDE_MASK = 0xFFFFFFFFFFFFFFFF
BLOCK_WORDS = 40
BUCKETS = 32
SLACK_CYCLES = 1 << 30


@dataclass(slots=True)
class ReferenceSums:
    """What is known of the executions of one region by one warp. Words of the block, in their order."""

    open: int = 0
    begin: int = 0
    least_inverted: int = 0
    most: int = 0
    total: int = 0
    squares: int = 0
    buckets: tuple[int, ...] = (0,) * BUCKETS

    def add(self, cycles: int) -> None:
        """Count an execution."""
        self.least_inverted = max(self.least_inverted, cycles ^ MASK)
        self.most = max(self.most, cycles)
        self.total = (self.total + cycles) & WIDE_MASK
        self.squares = (self.squares + cycles * cycles) & WIDE_MASK
        bucket = max(cycles.bit_length() - 1, 0)
        self.buckets = tuple((n + (index == bucket)) & MASK for index, n in enumerate(self.buckets))

    @property
    def least(self) -> int:
        return self.least_inverted ^ MASK

    @property
    def count(self) -> int:
        return sum(self.buckets)

    @property
    def knows_squares(self) -> bool:
        return self.total * self.most <= WIDE_MASK

    def words(self) -> list[int]:
        """The block."""
        wide = [half for value in (self.total, self.squares) for half in (value & MASK, value >> 32)]
        return [self.open, self.begin, self.least_inverted, self.most, *wide, *self.buckets]

    @classmethod
    def read(cls, words: Sequence[int]) -> ReferenceSums:
        """From a block."""
        wide = words[4] | words[5] << 32, words[6] | words[7] << 32
        return cls(words[0], words[1], words[2], words[3], *wide, buckets=tuple(words[8:BLOCK_WORDS]))


class SummingWarp:
    """One warp's segment while the kernel runs. `ReferenceWarp` does the same with records."""

    def __init__(self, layout: BufferLayout) -> None:
        self.layout = layout
        self.sums = [ReferenceSums() for _ in layout.regions]

    def frame(self, frame_id: int, clocks: Sequence[int], values: Sequence[int] = ()) -> None:
        """Execute one frame; `clocks` are the raw values of its stamps. What its marks carry is lost."""
        del values
        for slot, clock in enumerate(clocks):
            self.stamp((frame_id, slot), clock, clock)

    def stamp(self, place: tuple[int, int], clock: int, later: int) -> None:
        """Execute a stamp by frame and slot; what begins after something ended begins when it is `later`."""
        frame_id, slot = place
        now = clock & MASK
        for event in self.layout.frames[frame_id].stamps[slot]:
            if self._end_iterations(event, now) or event.edge == "end":
                clock = later
            self._event(event, clock & MASK if event.edge == "start" else now)

    def words(self) -> list[int]:
        """The segment as copied out: header and data."""
        return [4 * self.layout.words_per_warp, 0, 0, 0, *(word for sums in self.sums for word in sums.words())]

    def _end_iterations(self, event: Event, clock: int) -> bool:
        """End iterations that `event` ends; whether there are such, open or not."""
        loop = event.region if event.edge == "end" else self.layout.regions[event.region].parent
        ended = [r.id for r in self.layout.regions if r.kind == "iteration" and r.is_every and r.parent == loop]
        for region in ended:
            if self.sums[region].open:
                self._end(region, clock)
        return bool(ended)

    def _event(self, event: Event, clock: int) -> None:
        regions = self.layout.regions
        if event.edge == "end":
            self._end(event.region, clock)
        elif event.edge == "mark":
            self.sums[event.region].add(0)
        else:
            sums = self.sums[event.region]
            sums.begin = clock
            region = regions[event.region]
            sums.open = int(region.kind == "iteration" and region.is_every)

    def _end(self, region: int, clock: int) -> None:
        self.sums[region].add((clock - self.sums[region].begin) & MASK)
        self.sums[region].open = 0


def read_sums(layout: BufferLayout, segment: Sequence[int], cycles: int, cta: int) -> dict[int, ReferenceSums]:
    """The sums of the regions that a warp executed, by region.

    Args:
        layout: Of strategy aggregate.
        segment: Words of the warp, its header first.
        cycles: How long the CTA ran.
        cta: Its linear id, for errors.
    """
    _require(segment[0] in (0, 4 * layout.words_per_warp) and segment[1:4] == (0, 0, 0), cta, "a header of sums")
    if segment[0] == 0:
        return {}
    found = {}
    for region in range(len(layout.regions)):
        begin = 4 + region * BLOCK_WORDS
        sums = ReferenceSums.read(segment[begin : begin + BLOCK_WORDS])
        _require(sums.open == 0, cta, "iterations that ended")
        if sums.count == 0:
            nothing = not (sums.least_inverted or sums.most or sums.total or sums.squares)
            _require(nothing, cta, "no sums without an execution")
            continue
        _check(sums, cycles, cta)
        found[region] = sums
    return found


def _check(sums: ReferenceSums, cycles: int, cta: int) -> None:
    met = [power for power, executions in enumerate(sums.buckets) if executions]
    extremes = [max(value.bit_length() - 1, 0) for value in (sums.least, sums.most)]
    _require(sums.least <= sums.most and extremes == [met[0], met[-1]], cta, "least and most in the outer buckets")
    _require(cycles >= 1 << 31 or sums.most <= cycles + SLACK_CYCLES, cta, "an execution within the CTA")
    _require(sums.count * sums.least <= sums.total <= sums.count * sums.most, cta, "a sum of such executions")
    squares = sums.least * sums.total <= sums.squares <= sums.most * sums.total
    _require(squares or not sums.knows_squares, cta, "squares of such executions")


def _require(condition: bool, cta: int, expected: str) -> None:  # noqa: FBT001
    if not condition:
        raise CaptureError("corrupt-buffer", where=f"CTA {cta}", expected=expected)

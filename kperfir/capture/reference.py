"""The encoding in plain Python: what a kernel writes, and a slow decoder of it.

    warp = ReferenceWarp(layout)
    warp.frame(0, [clock])                    # what instrumented code does
    data = encode_cta(layout, header, [warp])
    cta = decode_cta(layout, data)            # what lib/Record/Decoder.cpp does, slowly

This is the oracle of the native decoder and the model for the compiler: docs/contracts.md, sections 1 and 2, line by
line. It shares no code with lib/Record. Not used by the product.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, floor
from typing import TYPE_CHECKING

from kperfir.capture.reference_sums import ReferenceSums, SummingWarp, read_sums
from kperfir.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kperfir.capture.layout import BufferLayout, Event

MAGIC = 0x4B504631
TAG_BASE = 0x4B500000
HEADER_WORDS = 16
SEGMENT_HEADER_WORDS = 4
MASK = 0xFFFFFFFF

# A stamp this far outside the CTA's anchors cannot be one, if the anchors are less than 2^31 cycles apart.
SLACK_CYCLES = 1 << 30


class ReferenceWarp:
    """One warp's segment while the kernel runs: cursor, limit, tags, laps, in bytes from the first data word.

    Args:
        layout: Layout of the kernel.
        sampled: False in a CTA or lane that stores nothing.
        stale: What the data words hold before the kernel; length ``words_per_warp``. Zeros if absent.
    """

    def __init__(self, layout: BufferLayout, *, sampled: bool = True, stale: Sequence[int] | None = None) -> None:
        self.layout = layout
        self.memory = list(stale) if stale is not None else [0] * layout.words_per_warp
        self.limit = 4 * (layout.words_per_warp - layout.max_frame_words) if sampled else -1
        self.cursor = self.records = self.lap_end = self.laps = 0

    def frame(self, frame_id: int, clocks: Sequence[int], values: Sequence[int] = ()) -> None:
        """Execute one frame; `clocks` are the raw values of its stamps, `values` the words that its marks carry."""
        if self.layout.tag_first:
            self._store_with_tag_first(frame_id, clocks, values)
            return
        size = self.layout.frames[frame_id].words
        fits = self.cursor <= self.limit
        word = self.cursor // 4
        if fits:
            padding = [0] * (size - len(clocks) - len(values) - 1)
            words = [*clocks, *values, *padding, TAG_BASE | frame_id]
            self.memory[word : word + size] = [each & MASK for each in words]
        self.records = (self.records + len(clocks)) & MASK
        if self.layout.ring:
            self.cursor += 4 * size
            if self.cursor > self.limit:
                self.lap_end = self.cursor
                self.laps = (self.laps + 1) & MASK
                self.cursor = 0
        elif fits:
            self.cursor += 4 * size

    def _store_with_tag_first(self, frame_id: int, clocks: Sequence[int], values: Sequence[int]) -> None:
        """The cursor stops at the limit; behind it there is room for what is not kept, which is not copied out."""
        self.records = (self.records + len(clocks)) & MASK
        if self.limit < 0:
            return
        words = [TAG_BASE | frame_id, *clocks, *values]
        word, size = self.cursor // 4, self.layout.frames[frame_id].words
        for at, value in zip(range(word, self.limit // 4), words, strict=False):
            self.memory[at] = value & MASK
        self.cursor = min(self.cursor + 4 * size, self.limit)

    def words(self) -> list[int]:
        """The segment as copied out: header and data."""
        return [self.cursor, self.records, self.lap_end, self.laps, *self.memory]


@dataclass(frozen=True, slots=True)
class CtaHeader:
    """Anchors and position of a CTA. Clocks in cycles of the SM, timers in ns."""

    ctaid: tuple[int, int, int] = (0, 0, 0)
    sm: int = 0
    start_clock: int = 0
    start_ns: int = 0
    end_clock: int = 0
    end_ns: int = 0


def encode_cta(layout: BufferLayout, header: CtaHeader, warps: Sequence[ReferenceWarp | SummingWarp]) -> bytes:
    """The bytes of one CTA's share of the buffer; length ``layout.cta_bytes``."""
    words = [MAGIC, layout.hash, *header.ctaid, header.sm]
    for value in (header.start_clock, header.start_ns, header.end_clock, header.end_ns):
        words += [value & MASK, value >> 32]
    words += [0, 0]
    for warp in warps:
        words += warp.words()
    return struct.pack(f"<{len(words)}I", *words)


@dataclass(slots=True)
class ReferenceSpan:
    """One execution of a region, or a mark. `parent` is an index into the track's spans, or -1."""

    region: int
    depth: int
    parent: int
    iteration: int
    start: int
    end: int
    complete: bool


@dataclass(frozen=True, slots=True)
class ReferenceMark:
    """A mark that was passed: index of its span, and the bits of what it carries, 0 if nothing."""

    span: int
    value: int


@dataclass(frozen=True, slots=True)
class ReferenceStamp:
    """One clock value: where it was stored, what it says. `clock` is unwrapped to 64 bits.

    `values`: the words that the marks among its events carry.
    """

    frame: int
    slot: int
    word: int
    raw: int
    clock: int
    values: tuple[int, ...] = ()


@dataclass(slots=True)
class ReferenceTrack:
    """What one warp recorded. `orphan_ends` counts ends whose start was overwritten.

    `sums`: by region, where executions were summed up; then `records` counts these.
    """

    warp: int
    records: int
    dropped: int
    laps: int
    stamps: list[ReferenceStamp]
    spans: list[ReferenceSpan] = field(default_factory=list)
    marks: list[ReferenceMark] = field(default_factory=list)
    orphan_ends: int = 0
    sums: dict[int, ReferenceSums] = field(default_factory=dict)

    @property
    def prefix_lost(self) -> bool:
        """A ring has overwritten the first stamps."""
        return self.laps > 0 and self.dropped > 0


@dataclass(frozen=True, slots=True)
class ReferenceCta:
    """A decoded CTA. `recorded` is False if the magic was never written; then there are no tracks."""

    recorded: bool
    header: CtaHeader
    tracks: list[ReferenceTrack]


def decode_cta(
    layout: BufferLayout, data: bytes, cta: int = 0, grid: tuple[int, int, int] = (0xFFFFFFFF, 1, 1)
) -> ReferenceCta:
    """Decode one CTA's share of a buffer. `cta` is its linear id in a launch of `grid` CTAs.

    Raises:
        CaptureError: ``corrupt-buffer`` if anything in it contradicts the layout or itself.
    """
    if len(data) != layout.cta_bytes:
        raise CaptureError("size-mismatch", found=f"{len(data)} bytes", expected=f"{layout.cta_bytes} bytes")
    words = struct.unpack(f"<{len(data) // 4}I", data)
    wide = [words[i] | words[i + 1] << 32 for i in range(6, 14, 2)]
    header = CtaHeader((words[2], words[3], words[4]), words[5], *wide)
    if words[0] == 0:
        return ReferenceCta(recorded=False, header=header, tracks=[])
    _require(words[0] == MAGIC and words[1] == layout.hash, cta, "magic and layout hash")
    _require(words[14] == words[15] == 0, cta, "reserved words 0")
    x, y, z = header.ctaid
    _require(x < grid[0] and y < grid[1] and z < grid[2], cta, "a CTA of the grid")
    _require(x + grid[0] * (y + grid[1] * z) == cta and header.sm < 1 << 31, cta, "the CTA whose share it is")
    _require(max(wide) <= 1 << 62 and header.end_clock >= header.start_clock, cta, "end clock after start clock")
    tracks = []
    for warp in range(layout.total_warps):
        begin = HEADER_WORDS + warp * (SEGMENT_HEADER_WORDS + layout.words_per_warp)
        segment = words[begin : begin + SEGMENT_HEADER_WORDS + layout.words_per_warp]
        if layout.aggregate:
            sums = read_sums(layout, segment, header.end_clock - header.start_clock, cta)
            executions = sum(each.count for each in sums.values())
            tracks.append(ReferenceTrack(warp, executions, 0, 0, [], sums=sums))
            continue
        track = _walk(layout, segment, warp, cta)
        _unwrap(track, header, cta)
        _Replay(layout, track, cta).run()
        tracks.append(track)
    return ReferenceCta(recorded=True, header=header, tracks=tracks)


def _require(condition: bool, cta: int, expected: str) -> None:  # noqa: FBT001
    if not condition:
        raise CaptureError("corrupt-buffer", where=f"CTA {cta}", expected=expected)


def _walk(layout: BufferLayout, segment: Sequence[int], warp: int, cta: int) -> ReferenceTrack:
    """Find the frames from the tags, backwards from the cursor, and check the counters."""
    cursor, records, lap_end, laps = segment[:4]
    memory = segment[4:]
    size = 4 * layout.words_per_warp
    limit = size - 4 * layout.max_frame_words
    _require(cursor % 4 == 0 and lap_end % 4 == 0, cta, "aligned cursors")
    _require(cursor <= (limit if layout.ring or layout.tag_first else size), cta, "a cursor inside the segment")
    _require((laps == 0) == (lap_end == 0) and (layout.ring or laps == 0), cta, "laps only in a ring that lapped")
    _require(laps == 0 or limit < lap_end <= size, cta, "a lap that ended because no frame was sure to fit")

    def back(end: int, low: int, floor: int) -> list[tuple[int, int]]:
        """The frames that end at `end` and before, oldest first, as (begin word, frame id); they begin at `low` or
        later.

        None may begin before `floor`.
        """
        found: list[tuple[int, int]] = []
        while end > low:
            tag = memory[end - 1]
            frame_id = tag - TAG_BASE
            _require(0 <= frame_id < len(layout.frames), cta, f"a tag in word {end - 1} of warp {warp}")
            begin = end - layout.frames[frame_id].words
            _require(begin >= floor, cta, f"a frame inside the segment, before word {end} of warp {warp}")
            if begin < low:
                break
            found.insert(0, (begin, frame_id))
            end = begin
        return found

    current, cut = _forth(layout, segment, cta) if layout.tag_first else (back(cursor // 4, 0, 0), 0)
    previous = back(lap_end // 4, cursor // 4, 0) if laps else []
    stamps = [stamp for begin, frame_id in previous + current for stamp in _stamps_of(layout, memory, begin, frame_id)]
    _require(records >= len(stamps) + cut, cta, "no more stamps than were executed")
    may_drop = laps > 0 if layout.ring else cursor == limit if layout.tag_first else cursor > limit
    _require(may_drop or records == len(stamps), cta, "no drop where every frame fitted")
    if laps:
        shares = [Fraction(len(frame.stamps), frame.words) for frame in layout.frames]
        lap_min = ceil((limit // 4 + 1) * min(shares))
        lap_max = floor(layout.words_per_warp * max(shares))
        earlier = records - sum(len(layout.frames[frame_id].stamps) for _, frame_id in current)
        if laps * lap_max + len(stamps) <= MASK:
            _require(laps * lap_min <= earlier <= laps * lap_max, cta, "a number of records that so many laps can hold")
    return ReferenceTrack(warp, records, records - len(stamps), laps, stamps)


def _forth(layout: BufferLayout, segment: Sequence[int], cta: int) -> tuple[list[tuple[int, int]], int]:
    """The frames before the cursor, which begin with their tags, as (word of the first stamp, frame id); and how many
    stamps the one has that the end of the segment cuts.
    """
    end, memory = segment[0] // 4, segment[4:]
    frames: list[tuple[int, int]] = []
    begin = 0
    while begin < end:
        frame_id = memory[begin] - TAG_BASE
        _require(0 <= frame_id < len(layout.frames), cta, f"a tag in word {begin}")
        frame = layout.frames[frame_id]
        if begin + frame.words > end:
            _require(end == layout.words_per_warp - layout.max_frame_words, cta, f"a whole frame in word {begin}")
            return frames, len(frame.stamps)
        frames.append((begin + 1, frame_id))
        begin += frame.words
    return frames, 0


def _stamps_of(layout: BufferLayout, memory: Sequence[int], begin: int, frame_id: int) -> list[ReferenceStamp]:
    """The stamps of a frame, each with the words of its marks' values, which follow all stamps."""
    stamps = []
    at = begin + len(layout.frames[frame_id].stamps)
    for slot, events in enumerate(layout.frames[frame_id].stamps):
        words = sum(layout.regions[event.region].value_words for event in events)
        raw = memory[begin + slot]
        stamps.append(ReferenceStamp(frame_id, slot, begin + slot, raw, 0, tuple(memory[at : at + words])))
        at += words
    return stamps


def _signed(value: int) -> int:
    value &= MASK
    return value - (1 << 32) if value >> 31 else value


def _unwrap(track: ReferenceTrack, header: CtaHeader, cta: int) -> None:
    """Give every stamp its 64-bit clock: from the start anchor on, or back from the end anchor if a prefix is lost."""
    if not track.stamps:
        return
    raw = [stamp.raw for stamp in track.stamps]
    clocks = [0] * len(raw)
    if track.prefix_lost:
        clocks[-1] = header.end_clock + _signed(raw[-1] - header.end_clock)
        for i in reversed(range(len(raw) - 1)):
            clocks[i] = clocks[i + 1] - ((raw[i + 1] - raw[i]) & MASK)
    else:
        clocks[0] = header.start_clock + _signed(raw[0] - header.start_clock)
        for i in range(1, len(raw)):
            clocks[i] = clocks[i - 1] + ((raw[i] - raw[i - 1]) & MASK)
    if header.end_clock - header.start_clock < 1 << 31:
        low, high = header.start_clock - SLACK_CYCLES, header.end_clock + SLACK_CYCLES
        near = all(low <= clock <= high for clock in clocks)
        _require(near, cta, f"clocks of warp {track.warp} near the CTA's anchors")
    track.stamps[:] = [
        ReferenceStamp(s.frame, s.slot, s.word, s.raw, clock, s.values)
        for s, clock in zip(track.stamps, clocks, strict=True)
    ]


class _Replay:
    """Turn the events of one track into spans. The open spans form a stack that follows the region tree."""

    def __init__(self, layout: BufferLayout, track: ReferenceTrack, cta: int) -> None:
        self.layout = layout
        self.track = track
        self.cta = cta
        self.open: list[int] = []  # Indices into track.spans.
        self.in_gap = False  # The innermost open span ends with the next event.
        self.iterations: list[int] = []  # Per open span: iterations begun so far, or -1 if that is unknown.

    def run(self) -> None:
        first = True
        for stamp in self.track.stamps:
            words = list(stamp.values)
            for event in self.layout.frames[stamp.frame].stamps[stamp.slot]:
                if first and self.track.prefix_lost:
                    self.reopen_ancestors(event, stamp.clock)
                if self.in_gap:
                    self.close(stamp.clock)
                self.in_gap = event.edge == "gap"
                if event.edge == "end":
                    self.end(event.region, stamp.clock, first=first)
                else:
                    self.start(event.region, stamp.clock)
                    if event.edge == "mark":
                        self.mark(event.region, words)
                        self.close(stamp.clock)
                first = False
        while self.open:
            self.top.complete = False
            self.top.end = self.track.stamps[-1].clock
            self.open.pop()

    @property
    def top(self) -> ReferenceSpan:
        return self.track.spans[self.open[-1]]

    def region_of_top(self) -> int:
        return self.top.region if self.open else -1

    def kind(self, region: int) -> str:
        return self.layout.regions[region].kind

    def reopen_ancestors(self, event: Event, clock: int) -> None:
        """The start of every region around the first event is lost, but known to have happened."""
        chain: list[int] = []
        region = self.layout.regions[event.region].parent
        while region >= 0:
            chain.insert(0, region)
            region = self.layout.regions[region].parent
        for region in chain:
            self.push(region, clock, iteration=-1, complete=False)
            self.iterations[-1] = -1

    def start(self, region: int, clock: int) -> None:
        parent = self.layout.regions[region].parent
        top = self.region_of_top()
        if top >= 0 and self.kind(top) == "iteration" and self.layout.regions[top].parent == parent:
            self.close(clock)
            top = self.region_of_top()
        _require(top == parent, self.cta, f"start of region {region} inside its parent {parent}, not {top}")
        if self.kind(region) == "iteration":
            iteration = self.iterations[-1]
            if iteration >= 0:
                self.iterations[-1] += 1
                iteration = self.layout.regions[region].first + self.layout.regions[region].step * iteration
        elif self.open and self.kind(top) != "loop":
            iteration = self.top.iteration
        else:
            iteration = -1
        self.push(region, clock, iteration=iteration, complete=True)

    def mark(self, region: int, words: list[int]) -> None:
        value = 0
        for index in range(self.layout.regions[region].value_words):
            value |= words.pop(0) << 32 * index
        self.track.marks.append(ReferenceMark(self.open[-1], value))

    def push(self, region: int, clock: int, *, iteration: int, complete: bool) -> None:
        parent = self.open[-1] if self.open else -1
        self.open.append(len(self.track.spans))
        self.iterations.append(0)
        self.track.spans.append(ReferenceSpan(region, len(self.open) - 1, parent, iteration, clock, clock, complete))

    def end(self, region: int, clock: int, *, first: bool) -> None:
        top = self.region_of_top()
        if top >= 0 and self.kind(top) == "iteration" and self.layout.regions[top].parent == region:
            self.close(clock)
            top = self.region_of_top()
        if top == region:
            self.close(clock)
            return
        _require(self.track.prefix_lost and first, self.cta, f"end of region {top}, not of {region}")
        self.track.orphan_ends += 1

    def close(self, clock: int) -> None:
        self.top.end = clock
        self.open.pop()
        self.iterations.pop()

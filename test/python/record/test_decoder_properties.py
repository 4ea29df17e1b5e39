"""decode(encode(x)) == x, for random programs, and the native decoder equals the reference decoder."""

from __future__ import annotations

import contextlib
import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from kperfir.capture.decode import DecodedBuffer, RawBuffer, decode_buffer
from kperfir.capture.reference import ReferenceCta, ReferenceTrack, decode_cta
from kperfir.errors import CaptureError
from support.programs import CtaRun, CtaSetting, Plan, WarpRun, run_cta
from support.random_programs import random_plan

if TYPE_CHECKING:
    from kperfir.capture.layout import BufferLayout

PROGRAMS = 300
GRID = (3, 2, 2)
CTA = 7  # (1, 0, 1) in GRID
CTAID = (1, 0, 1)

Row = tuple[Any, ...]


def decode_native(layout: BufferLayout, data: bytes) -> DecodedBuffer:
    raw = RawBuffer(np.array([CTA], np.uint32), np.frombuffer(data, np.uint8), GRID)
    decoded = decode_buffer(layout, raw, want=("spans", "stamps"))
    without = decode_buffer(layout, raw, want=("spans",))
    assert all(np.array_equal(decoded.spans[name], without.spans[name]) for name in decoded.spans)
    totals = decode_buffer(layout, raw, want=("totals",))
    assert not len(totals.spans["region"])
    assert all(np.array_equal(decoded.tracks[name], totals.tracks[name]) for name in decoded.tracks)
    assert all(np.array_equal(decoded.marks[name], totals.marks[name]) for name in ("region", "value"))
    assert_totals(totals, decoded)
    return decoded


def assert_totals(totals: DecodedBuffer, decoded: DecodedBuffer) -> None:
    """What `totals` says is what the spans of `decoded` add up to."""
    track = np.repeat(np.arange(len(decoded.tracks["spans"])), decoded.tracks["spans"]).tolist()
    sums: dict[tuple[int, int], list[int]] = {}
    done: dict[int, list[int]] = {}
    for of, region, start, end, complete in zip(
        track, *(decoded.spans[name].tolist() for name in ("region", "start", "end", "complete")), strict=True
    ):
        row = sums.setdefault((of, region), [0, 0, 0, 0, start, end])
        row[:4] = row[0] + 1, row[1] + complete, row[2] + end - start, row[3] + complete * (end - start)
        row[5] = max(row[5], end)
        if complete:
            done.setdefault(region, []).append(end - start)
    names = ("track", "region", "count", "complete", "cycles", "complete_cycles", "start", "end")
    assert rows(totals.totals, *names) == [(*key, *row) for key, row in sums.items()]
    assert {region: each.tolist() for region, each in enumerate(totals.durations) if len(each)} == done


def decode_reference(layout: BufferLayout, data: bytes) -> ReferenceCta:
    return decode_cta(layout, data, CTA, GRID)


def rows(table: dict[str, np.ndarray], *names: str) -> list[Row]:
    return list(zip(*(table[name].tolist() for name in names), strict=True))


def assert_equal(native: DecodedBuffer, reference: ReferenceCta) -> None:
    header = reference.header
    assert native.ctas["recorded"].tolist() == [reference.recorded]
    times = (header.start_clock, header.start_ns, header.end_clock, header.end_ns)
    if reference.recorded:
        assert rows(native.ctas, "x", "y", "z", "sm") == [(*header.ctaid, header.sm)]
        assert rows(native.ctas, "start_clock", "start_ns", "end_clock", "end_ns") == [times]
    tracks = reference.tracks
    assert rows(native.tracks, "warp", "stamps", "spans", "records", "dropped", "laps", "orphan_ends") == [
        (t.warp, len(t.stamps), len(t.spans), t.records, t.dropped, t.laps, t.orphan_ends) for t in tracks
    ]
    ends = [(t.stamps[0].clock, t.stamps[-1].clock) if t.stamps else (header.start_clock,) * 2 for t in tracks]
    assert rows(native.tracks, "first_clock", "last_clock") == ends
    stamps = [stamp for track in tracks for stamp in track.stamps]
    assert rows(native.stamps, "frame", "slot", "raw", "clock") == [(s.frame, s.slot, s.raw, s.clock) for s in stamps]
    expected, base = [], 0
    for track in tracks:
        for s in track.spans:
            parent = s.parent + base if s.parent >= 0 else -1
            expected.append((s.region, s.depth, parent, s.iteration, s.start, s.end, s.complete))
        base += len(track.spans)
    assert rows(native.spans, "region", "depth", "parent", "iteration", "start", "end", "complete") == expected
    marks, base = [], 0
    for track in tracks:
        marks += [(mark.span + base, mark.value) for mark in track.marks]
        base += len(track.spans)
    assert rows(native.marks, "span", "value") == marks


def assert_prefix(track: ReferenceTrack, truth: WarpRun) -> None:
    """Nothing before the first stamp is lost: spans are the true ones, cut off after the last stamp."""
    kept = len(track.stamps)
    assert [(s.frame, s.slot, s.clock) for s in track.stamps] == truth.stamps[:kept]
    expected = []
    for span in truth.spans:
        if span.first_stamp < kept:
            complete = span.last_stamp < kept
            end = span.end if complete else truth.stamps[kept - 1][2]
            expected.append((span.region, span.depth, span.parent, span.iteration, span.start, end, complete))
    assert [(s.region, s.depth, s.parent, s.iteration, s.start, s.end, s.complete) for s in track.spans] == expected
    assert [(mark.span, mark.value) for mark in track.marks] == [
        (span, value) for span, value in truth.marks if truth.spans[span].first_stamp < kept
    ]


def assert_suffix(plan: Plan, track: ReferenceTrack, truth: WarpRun) -> None:
    """A ring lapped: what started later is as it was, what was open is cut at the first stamp."""
    kept = len(track.stamps)
    assert kept > 0
    assert [(s.frame, s.slot, s.clock) for s in track.stamps] == truth.stamps[-kept:]
    first = len(truth.stamps) - kept
    frame, slot, cut = truth.stamps[first]
    edge, region = plan.frames[frame][slot][0]
    parents = [r["parent"] for r in plan.regions]
    ended = [region] if edge == "end" else []
    loop = region if edge == "end" else parents[region]
    ended += [r["id"] for r in plan.regions if r["kind"] == "iteration" and r["parent"] == loop]
    ended += [r["id"] for r in plan.regions if r["kind"] == "compute"]  # Gaps.
    # A region that the first event ends is not open any more; its start, or the whole of it, is lost.
    was_open = [s for s in truth.spans if s.first_stamp < first <= s.last_stamp]
    gone = [s for s in was_open if s.region in ended and s.last_stamp == first]
    reopened = [(s.region, s.depth, cut, s.end, False) for s in was_open if s not in gone]
    later = [(s.region, s.depth, s.start, s.end, True) for s in truth.spans if s.first_stamp >= first]
    assert [(s.region, s.depth, s.start, s.end, s.complete) for s in track.spans] == reopened + later
    assert track.orphan_ends == (edge == "end")
    kept_marks = [
        (truth.spans[span].start, value) for span, value in truth.marks if truth.spans[span].first_stamp >= first
    ]
    assert [(track.spans[mark.span].start, mark.value) for mark in track.marks] == kept_marks
    known = [s.iteration for s in truth.spans if s.first_stamp >= first]
    for span, iteration in zip(track.spans[len(reopened) :], known, strict=True):
        assert span.iteration in (iteration, -1)
        if span.parent >= 0 and track.spans[span.parent].complete:
            parent_kind = plan.regions[track.spans[span.parent].region]["kind"]
            assert span.iteration == iteration or track.spans[span.parent].iteration == -1 != parent_kind


def check(plan: Plan, layout: BufferLayout, run: CtaRun) -> int:
    reference = decode_reference(layout, run.data)
    assert_equal(decode_native(layout, run.data), reference)
    for track, truth in zip(reference.tracks, run.warps, strict=True):
        assert track.records == len(truth.stamps)
        assert track.dropped == len(truth.stamps) - len(track.stamps)
        if track.prefix_lost:
            assert_suffix(plan, track, truth)
        else:
            assert_prefix(track, truth)
    return sum(track.laps for track in reference.tracks)


@pytest.mark.parametrize("strategy", ["saturate", "ring"])
@pytest.mark.parametrize("block", range(6))
def test_decode_returns_what_was_executed_for_random_programs(strategy: str, block: int) -> None:
    runs = laps = 0
    for seed in range(block, PROGRAMS, 6):
        rng = random.Random(seed)
        plan = random_plan(rng)
        align = rng.choice((1, 2, 4))
        tag_first = strategy == "saturate" and rng.random() < 0.7
        biggest = plan.max_frame_words(align)
        for words in sorted({biggest, biggest + 1, 2 * biggest, 3 * biggest + 1, max(biggest, 64), 1024}):
            layout = plan.layout(strategy=strategy, words_per_warp=words, frame_align=align, tag_first=tag_first)
            setting = CtaSetting(CTAID, sm=seed % 5, start_clock=rng.randint(0, 1 << 40), skew=9)
            run = run_cta(plan, layout, random.Random(seed), setting)
            laps += check(plan, layout, run)
            runs += 1
    assert runs > 150
    assert strategy == "saturate" or laps > 1000


@pytest.mark.parametrize("strategy", ["saturate", "ring"])
@pytest.mark.parametrize("before_wrap", [0, 1, 100, 5000, 1 << 31])
def test_decode_extends_clocks_when_they_wrap(strategy: str, before_wrap: int) -> None:
    for seed in range(25):
        rng = random.Random(seed)
        plan = random_plan(rng, max_gap=rng.choice((50, 1 << 20)))
        layout = plan.layout(strategy=strategy, words_per_warp=rng.choice((1, 40, 512)))
        setting = CtaSetting(CTAID, start_clock=(rng.randint(1, 3) << 32) - before_wrap, skew=rng.choice((0, 60)))
        check(plan, layout, run_cta(plan, layout, rng, setting))


@pytest.mark.parametrize("strategy", ["saturate", "ring"])
def test_decode_extends_clocks_when_a_kernel_outlasts_their_range(strategy: str) -> None:
    """Gaps of nearly 2^32 cycles, one warp: many wraps in one kernel."""
    from support.programs import Loop, Region, Role, Work, plan_program

    long = Region("load", [Work(1 << 29, (1 << 32) - 99)])
    plan = plan_program([Role("default", 1, [Region("kernel", [Loop([long, Work(1, 1 << 31)], trips=(20,))])])])
    for words in (8, 30, 512):
        layout = plan.layout(strategy=strategy, words_per_warp=words)
        run = run_cta(plan, layout, random.Random(words), CtaSetting(CTAID, start_clock=12345))
        assert run.header.end_clock - run.header.start_clock > 3 << 32
        check(plan, layout, run)


def test_decode_keeps_whole_frames_when_clocks_look_like_tags_where_the_buffer_ends() -> None:
    """Every word of the frame that is cut is the tag of a frame that would fit what is left."""
    cut = 0
    for seed in range(200):
        rng = random.Random(seed)
        plan = random_plan(rng, max_gap=1)
        words = rng.randint(2, 5) * plan.max_frame_words() + rng.randint(0, 3)
        layout = plan.layout(strategy="saturate", words_per_warp=words)
        setting = CtaSetting(CTAID, start_clock=0x4B500000 + rng.randint(-20, 3), skew=rng.choice((0, 9)))
        run = run_cta(plan, layout, rng, setting)
        check(plan, layout, run)
        for track, truth in zip(decode_reference(layout, run.data).tracks, run.warps, strict=True):
            cut += 0 < len(track.stamps) < len(truth.stamps)
    assert cut > 100


def test_decode_finds_nothing_when_a_cta_never_recorded() -> None:
    plan = random_plan(random.Random(1))
    layout = plan.layout(strategy="saturate", words_per_warp=64)
    decoded = decode_native(layout, bytes(layout.cta_bytes))
    assert rows(decoded.ctas, "recorded", "started") == [(0, 0)]
    assert len(decoded.tracks["warp"]) == len(decoded.spans["region"]) == 0


def test_decode_reports_a_cta_that_did_not_finish() -> None:
    plan = random_plan(random.Random(1))
    layout = plan.layout(strategy="saturate", words_per_warp=64)
    run = run_cta(plan, layout, random.Random(1), CtaSetting(CTAID, start_clock=77))
    decoded = decode_native(layout, bytes(4) + run.data[4:])
    assert rows(decoded.ctas, "recorded", "started") == [(0, 1)]
    assert len(decoded.tracks["warp"]) == 0


def outcome(layout: BufferLayout, data: bytes) -> tuple[DecodedBuffer | None, ReferenceCta | None]:
    """What the two decoders return; None where one refuses."""
    native = reference = None
    with contextlib.suppress(CaptureError):
        reference = decode_reference(layout, data)
    with contextlib.suppress(CaptureError):
        native = decode_native(layout, data)
    if native is None:
        with pytest.raises(CaptureError) as caught:
            decode_native(layout, data)
        error = caught.value
        assert (error.code, bool(error.found), bool(error.expected)) == ("corrupt-buffer", True, True)
        assert f"CTA {CTA}" in error.where
    return native, reference


@pytest.mark.parametrize("strategy", ["saturate", "ring"])
def test_decode_refuses_exactly_what_the_reference_refuses_when_words_are_corrupt(strategy: str) -> None:
    """Flipped bits, copied words, plausible tags and cursors: an error, or what the reference makes of it."""
    refused = accepted = 0
    for seed in range(120):
        rng = random.Random(seed)
        plan = random_plan(rng)
        align = rng.choice((1, 1, 4))
        tag_first = strategy == "saturate" and seed % 3 > 0
        layout = plan.layout(
            strategy=strategy, words_per_warp=rng.choice((1, 20, 100)), frame_align=align, tag_first=tag_first
        )
        run = run_cta(plan, layout, rng, CtaSetting(CTAID, start_clock=1 << 33))
        for _ in range(15):
            data = corrupt(rng, run.data, len(plan.frames))
            native, reference = outcome(layout, data)
            if reference is None:
                assert native is None
                refused += 1
            else:
                assert native is not None
                assert_equal(native, reference)
                accepted += data != run.data
    assert refused > 300
    assert accepted > 50  # Most of them clocks, which may have any value near the anchors.


def corrupt(rng: random.Random, data: bytes, frames: int) -> bytes:
    words = np.frombuffer(data, np.uint32).copy()
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randrange(len(words))
        if rng.random() < 0.3:
            at = rng.choice([i for i in range(len(words)) if words[i]])
        choice = rng.random()
        if choice < 0.4:
            words[at] ^= np.uint32(1 << rng.randrange(32))
        elif choice < 0.6:
            words[at] = words[rng.randrange(len(words))]
        elif choice < 0.8:
            words[at] = 0x4B500000 + rng.randint(0, frames)
        else:
            words[at] = rng.choice((0, 1, 3, 4, 8, 0xFFFFFFFF, 0x80000000, 4 * rng.randrange(200)))
    return words.tobytes()


def test_decode_survives_noise_in_every_word() -> None:
    """Right magic and hash, all else random, with cursors in range: the walk meets every kind of wrong word."""
    for seed in range(300):
        rng = random.Random(seed)
        plan = random_plan(random.Random(seed % 20))
        strategy = rng.choice(("saturate", "ring"))
        tag_first = strategy == "saturate" and seed % 2 == 0
        layout = plan.layout(strategy=strategy, words_per_warp=32, tag_first=tag_first)
        run = run_cta(plan, layout, random.Random(seed), CtaSetting(CTAID))
        words = np.frombuffer(run.data, np.uint32).copy()
        for at in range(16, len(words)):
            tag = 0x4B500000 + rng.randint(0, len(plan.frames))
            words[at] = rng.choice((rng.getrandbits(32), tag, 4 * rng.randrange(40)))
        native, reference = outcome(layout, words.tobytes())
        assert (native is None) == (reference is None)
        if native is not None:
            assert_equal(native, reference)

"""Sums of executions: what a kernel keeps of random programs is what happened, and both decoders read the same."""

from __future__ import annotations

import contextlib
import random
from typing import TYPE_CHECKING

import numpy as np
import pytest

from kperfir.capture.decode import DecodedBuffer, RawBuffer, decode_buffer
from kperfir.capture.reference import ReferenceCta, decode_cta
from kperfir.capture.reference_sums import BUCKETS, ReferenceSums
from kperfir.errors import CaptureError
from support.programs import CtaRun, CtaSetting, Loop, Region, Role, Work, plan_program, run_cta
from support.random_programs import random_plan

if TYPE_CHECKING:
    from kperfir.capture.layout import BufferLayout

GRID = (3, 2, 2)
CTA = 7  # (1, 0, 1) in GRID
CTAID = (1, 0, 1)

Row = tuple[int, ...]


def native(layout: BufferLayout, data: bytes) -> DecodedBuffer:
    return decode_buffer(layout, RawBuffer(np.array([CTA], np.uint32), np.frombuffer(data, np.uint8), GRID))


def rows(decoded: DecodedBuffer) -> list[Row]:
    sums, tracks = decoded.sums, decoded.tracks
    buckets = sums["buckets"].reshape(-1, BUCKETS).tolist()
    columns = (tracks["warp"][sums["track"]], *(sums[name] for name in ("region", "count", "least", "most", "sum")))
    more = (sums["squares"], sums["knows_squares"])
    return [(*row, *of_row) for row, of_row in zip(zip(*columns, *more, strict=True), buckets, strict=True)]


def reference_rows(cta: ReferenceCta) -> list[Row]:
    return [_row(track.warp, region, sums) for track in cta.tracks for region, sums in track.sums.items()]


def true_rows(run: CtaRun) -> list[Row]:
    """From the spans that the programs keep aside."""
    found = []
    for warp, truth in enumerate(run.warps):
        sums: dict[int, ReferenceSums] = {}
        for span in truth.spans:
            sums.setdefault(span.region, ReferenceSums()).add((span.end - span.start) & 0xFFFFFFFF)
        found += [_row(warp, region, sums[region]) for region in sorted(sums)]
    return found


def _row(warp: int, region: int, sums: ReferenceSums) -> Row:
    return (
        warp, region, sums.count, sums.least, sums.most, sums.total, sums.squares, sums.knows_squares, *sums.buckets,
    )  # fmt: skip


def check(layout: BufferLayout, run: CtaRun) -> int:
    decoded, reference = native(layout, run.data), decode_cta(layout, run.data, CTA, GRID)
    assert rows(decoded) == reference_rows(reference) == true_rows(run)
    tracks = decoded.tracks
    assert tracks["records"].tolist() == [len(truth.spans) for truth in run.warps]
    assert not any(tracks[name].any() for name in ("stamps", "spans", "dropped", "laps", "orphan_ends"))
    assert len(decoded.spans["region"]) == len(decoded.marks["span"]) == 0
    return len(true_rows(run))


@pytest.mark.parametrize("before_wrap", [None, 0, 1, 5000])
def test_sums_are_those_of_what_was_executed_for_random_programs(before_wrap: int | None) -> None:
    """With loops that run zero times, early returns out of loops, and iterations that are left out."""
    found = 0
    for seed in range(40):
        rng = random.Random(seed)
        plan = random_plan(rng, max_gap=rng.choice((50, 1 << 20)), gaps=False)
        if not plan.regions:
            continue
        start = rng.randint(0, 1 << 40) if before_wrap is None else (rng.randint(1, 3) << 32) - before_wrap
        layout = plan.layout(strategy="aggregate", words_per_warp=1)
        found += check(layout, run_cta(plan, layout, random.Random(seed), CtaSetting(CTAID, start_clock=start, skew=9)))
    assert found > 900


def test_sums_of_squares_that_may_have_wrapped_are_not_known() -> None:
    long = Region("load", [Work(1 << 31, (1 << 32) - 99)])
    plan = plan_program(
        [Role("default", 1, [Region("kernel", [Loop([long], trips=(20,)), Region("store", [Work()])])])]
    )
    layout = plan.layout(strategy="aggregate", words_per_warp=1)
    run = run_cta(plan, layout, random.Random(1), CtaSetting(CTAID, start_clock=12345))
    check(layout, run)
    decoded = native(layout, run.data)
    known = dict(zip(decoded.sums["region"].tolist(), decoded.sums["knows_squares"].tolist(), strict=True))
    names = {region.id: region.kind for region in layout.regions}
    assert {names[region]: bool(knows) for region, knows in known.items()}["load"] is False
    assert {names[region]: bool(knows) for region, knows in known.items()}["store"] is True


def test_warps_that_recorded_nothing_have_no_sums() -> None:
    plan = random_plan(random.Random(3), gaps=False)
    layout = plan.layout(strategy="aggregate", words_per_warp=1)
    words = np.frombuffer(run_cta(plan, layout, random.Random(3), CtaSetting(CTAID)).data, np.uint32).copy()
    words[16:] = 0
    decoded = native(layout, words.tobytes())
    assert rows(decoded) == []
    assert decoded.tracks["records"].tolist() == [0] * layout.total_warps


def test_decode_refuses_exactly_what_the_reference_refuses_when_words_are_corrupt() -> None:
    refused = accepted = 0
    for seed in range(40):
        rng = random.Random(seed)
        plan = random_plan(rng, gaps=False)
        if not plan.regions:
            continue
        layout = plan.layout(strategy="aggregate", words_per_warp=1)
        run = run_cta(plan, layout, rng, CtaSetting(CTAID, start_clock=1 << 33))
        for _ in range(15):
            words = np.frombuffer(run.data, np.uint32).copy()
            for at in rng.choices([i for i in range(len(words)) if words[i]], k=rng.choice((1, 1, 2))):
                words[at] = rng.choice((words[at] ^ np.uint32(1 << rng.randrange(32)), 0, 1, 0xFFFFFFFF))
            expected = None
            with contextlib.suppress(CaptureError):
                expected = reference_rows(decode_cta(layout, words.tobytes(), CTA, GRID))
            if expected is not None:
                assert rows(native(layout, words.tobytes())) == expected
                accepted += 1
                continue
            with pytest.raises(CaptureError) as caught:
                native(layout, words.tobytes())
            error = caught.value
            assert (error.code, bool(error.found), bool(error.expected)) == ("corrupt-buffer", True, True)
            assert f"CTA {CTA}" in error.where
            refused += 1
    assert refused > 200
    assert accepted > 50  # Beginnings of executions, which nothing depends on any more.

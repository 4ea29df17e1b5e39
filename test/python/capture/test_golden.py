"""Captures of every format version stay readable and say what they said."""

from __future__ import annotations

import pytest

import kperfir
from support.golden import FOLDER

CAPTURES = sorted(FOLDER.glob("*.kpf"))


def dump(timeline: kperfir.Timeline) -> str:
    """A line per launch, warp and span; under 200 lines."""
    lines = []
    for row in timeline.launches.itertuples(index=False):
        ctas = f"{row.ctas_recorded}/{row.ctas_total} CTAs"
        lines.append(f"launch {row.launch} {row.kernel} {ctas}, {row.dropped} dropped")
    for row in timeline.tracks.itertuples(index=False):
        counts = f"{row.stamps} of {row.records} records, {row.laps} laps"
        lines.append(f"track {row.launch} {row.cta} sm{row.sm} {row.warp} {row.role}: {counts}")
    for row in timeline.spans.itertuples():
        mark = "" if row.complete else " incomplete"
        when = f"[{row.start_cycles}, {row.end_cycles}] {row.start_ns:9.2f} ns {'  ' * row.depth}"
        what = f"{row.name} iteration {row.iteration} parent {row.parent}{mark}"
        lines.append(f"{row.Index:3} cta {row.cta} warp {row.warp} {when}{what}")
    lines += [note.replace(str(timeline.metadata["files"][0]), "FILE") for note in timeline.notes]
    return "\n".join(lines) + "\n"


def test_there_is_a_capture_of_each_version() -> None:
    assert {path.name.split("-")[0] for path in CAPTURES} == {"v1"}


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_golden_capture_reads_as_it_did(path) -> None:
    expected = path.with_suffix(".txt").read_text()
    assert dump(kperfir.load(path)) == expected

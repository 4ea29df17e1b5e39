"""A .pftrace read back by Perfetto's own trace_processor equals the timeline."""

from __future__ import annotations

import dataclasses
import io
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

from kperfir import load
from kperfir.errors import ExportError
from kperfir.export import pftrace
from support.synthetic import CaptureShape, write_matmul_capture
from support.toy_timeline import CLOCK_HZ, ToyTimeline, grid_timeline, toy_timeline
from support.trace_processor import OpenTrace, open_trace
from support.trace_slices import COLUMNS, launch_offsets, slices_of_timeline, slices_of_trace

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from kperfir.timeline import Timeline


@pytest.fixture(scope="module")
def timeline() -> ToyTimeline:
    return toy_timeline(launches=3, ctas=9)


@pytest.fixture(scope="module", params=[{}, {"specialised": True}, {"strategy": "ring", "words_per_warp": 60}], ids=str)
def captured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Timeline:
    """The timeline of a .kpf file."""
    path = tmp_path_factory.mktemp("capture") / "matmul.kpf"
    write_matmul_capture(path, CaptureShape(ctas=12, launches=2, **request.param))
    return load(path)


@pytest.fixture(scope="module")
def trace(timeline: ToyTimeline, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenTrace]:
    path = tmp_path_factory.mktemp("trace") / "toy.pftrace"
    _write(timeline, path)
    with open_trace(path) as opened:
        yield opened


def _write(timeline: ToyTimeline | Timeline, path: Path) -> None:
    with path.open("wb") as out:
        pftrace.write([timeline], out)


def test_trace_processor_finds_no_problem(trace: OpenTrace) -> None:
    assert trace.problems() == []


def test_every_span_is_a_slice_with_its_parent_and_arguments(timeline: ToyTimeline, trace: OpenTrace) -> None:
    actual = slices_of_trace(trace)
    assert len(actual) == len(timeline.spans)
    pd.testing.assert_frame_equal(actual, slices_of_timeline(timeline, launch_offsets(trace)))


def test_capture_file_becomes_the_same_slices(captured: Timeline, tmp_path: Path) -> None:
    path = tmp_path / "matmul.pftrace"
    _write(captured, path)
    with open_trace(path) as trace:
        assert trace.problems() == []
        pd.testing.assert_frame_equal(slices_of_trace(trace), slices_of_timeline(captured, launch_offsets(trace)))


def test_every_warp_of_every_cta_is_an_outermost_slice(timeline: ToyTimeline, trace: OpenTrace) -> None:
    actual = trace.sql(
        """
        select extract_arg(arg_set_id, 'debug.cta') cta, extract_arg(arg_set_id, 'debug.cta_x') cta_x,
          extract_arg(arg_set_id, 'debug.cta_y') cta_y, extract_arg(arg_set_id, 'debug.cta_z') cta_z,
          extract_arg(arg_set_id, 'debug.warp') warp, extract_arg(arg_set_id, 'debug.role') role,
          extract_arg(arg_set_id, 'debug.records') records, extract_arg(arg_set_id, 'debug.dropped') dropped
        from slice where depth = 0 and category = 'cta' and name = 'CTA ' || extract_arg(arg_set_id, 'debug.cta')
        """
    )
    places = timeline.spans.drop_duplicates(["launch", "cta"])[["launch", "cta", "cta_x", "cta_y", "cta_z"]]
    expected = timeline.tracks.merge(places, on=["launch", "cta"])
    columns = list(actual.columns)
    types = {name: "str" if name == "role" else "int64" for name in columns}
    pd.testing.assert_frame_equal(
        actual.astype(types).sort_values(columns, ignore_index=True),
        expected[columns].astype(types).sort_values(columns, ignore_index=True),
    )


def test_launch_slices_carry_the_launch_table_and_the_notes(timeline: ToyTimeline, trace: OpenTrace) -> None:
    for launch in timeline.launches.itertuples(index=False):
        args = trace.sql(
            "select flat_key, display_value from slice join args using (arg_set_id)"
            f" where extract_arg(arg_set_id, 'debug.offset_ns') is not null"
            f" and extract_arg(arg_set_id, 'debug.launch') = {launch.launch}"
        )
        values = dict(zip(args["flat_key"], args["display_value"], strict=True))
        assert values["debug.grid_x"] == "3"
        assert values["debug.chip"] == "A100"
        assert values["debug.simulated"] == "true"
        assert values["debug.dropped"] == str(launch.dropped)
        notes = args.loc[args["flat_key"].str.startswith("debug.notes"), "display_value"].tolist()
        assert notes == timeline.notes


def test_tracks_are_capture_launch_sm_lane_in_explicit_order(trace: OpenTrace) -> None:
    tracks = trace.sql(
        """
        select t.id, t.name, t.parent_id, extract_arg(source_arg_set_id, 'sibling_order_rank') rank,
          extract_arg(source_arg_set_id, 'child_ordering') ordering from track t
        """
    ).set_index("id")
    assert set(tracks["ordering"]) == {"explicit"}
    (top,) = tracks[tracks["parent_id"].isna()].itertuples()
    assert top.name == "kperfir: A100 (simulated) · host toy pid 42"

    def children(parent: int) -> list[str]:
        rows = tracks[tracks["parent_id"] == parent]
        assert rows["rank"].is_unique
        return rows.sort_values("rank")["name"].tolist()

    assert children(top.Index) == [f"launch {number}: matmul" for number in range(3)]
    launch = tracks[tracks["name"] == "launch 1: matmul"].index[0]
    assert children(launch) == ["SM 0", "SM 1"]
    sm = tracks[tracks["parent_id"] == launch].index[0]
    assert children(sm) == [
        f"slot {slot} · warp {warp} ({role})" for slot in range(2) for warp, role in enumerate(("producer", "consumer"))
    ]


def test_launches_follow_each_other_in_time(trace: OpenTrace) -> None:
    launches = trace.sql(
        "select ts, dur from slice where extract_arg(arg_set_id, 'debug.offset_ns') is not null order by ts"
    )
    ends = launches["ts"] + launches["dur"]
    assert (launches["ts"].to_numpy()[1:] > ends.to_numpy()[:-1]).all()


def test_times_between_two_nanoseconds_do_not_break_nesting(tmp_path: Path) -> None:
    # At 2 GHz half of all times are in the middle of two nanoseconds, and an end is computed otherwise than the start
    # of the span behind it.
    timeline = toy_timeline(launches=2, ctas=9)
    noise = np.random.default_rng(0).uniform(-1e-7, 1e-7, (2, len(timeline.spans)))
    cycles = np.rint(timeline.spans["start_ns"] * CLOCK_HZ / 1e9)
    spans = timeline.spans.assign(
        start_ns=cycles / 2 + noise[0], duration_ns=timeline.spans["duration_cycles"] / 2 + noise[1]
    )
    timeline = dataclasses.replace(timeline, spans=spans)
    path = tmp_path / "half.pftrace"
    _write(timeline, path)
    with open_trace(path) as trace:
        assert trace.problems() == []
        actual, expected = slices_of_trace(trace), slices_of_timeline(timeline, launch_offsets(trace))
    times = ["ts", "dur"]
    order = [name for name in COLUMNS if name not in times]
    actual, expected = (frame.sort_values([*order, *times], ignore_index=True) for frame in (actual, expected))
    pd.testing.assert_frame_equal(actual.drop(columns=times), expected.drop(columns=times))
    assert (actual[times] - expected[times]).abs().to_numpy().max() <= 1


def test_spans_that_do_not_nest_in_time_are_refused() -> None:
    timeline = toy_timeline(launches=1)
    spans = timeline.spans.copy()
    spans.loc[2, "duration_ns"] += 50.0
    with pytest.raises(ExportError, match="not-nested"):
        pftrace.write([dataclasses.replace(timeline, spans=spans)], io.BytesIO())


def test_warp_without_spans_is_a_bare_slice(tmp_path: Path) -> None:
    timeline = toy_timeline(launches=1)
    spans = timeline.spans[timeline.spans["cta"] < 5]
    spans = spans[: spans.index[(spans["cta"] == 4) & (spans["warp"] == 0)].max() + 1]  # CTA 4 lost its last warp.
    path = tmp_path / "bare.pftrace"
    _write(dataclasses.replace(timeline, spans=spans), path)
    with open_trace(path) as trace:
        assert trace.problems() == []
        ctas = trace.sql("select name, count(*) n from slice where category = 'cta' group by name order by name")
    assert ctas["name"].tolist() == [f"CTA {cta}" for cta in range(5)]  # Nothing is known of when CTA 5 ran.
    assert ctas["n"].tolist() == [2] * 5


def test_packed_packets_equal_protobuf_packets(timeline: ToyTimeline) -> None:
    out = io.BytesIO()
    pftrace.write([timeline], out)
    parsed = Trace.FromString(out.getvalue())
    # Minimal varints in field order: serialising what was parsed gives the same bytes, so no field number drifted.
    assert parsed.SerializeToString(deterministic=True) == out.getvalue()
    begins = [p for p in parsed.packet if p.track_event.type == TrackEvent.TYPE_SLICE_BEGIN]
    ends = [p for p in parsed.packet if p.track_event.type == TrackEvent.TYPE_SLICE_END]
    instants = [p for p in parsed.packet if p.track_event.type == TrackEvent.TYPE_INSTANT]
    assert len(begins) == len(ends)
    assert len(instants) == (timeline.spans["kind"] == "mark").sum()


def test_marks_carry_their_values(timeline: ToyTimeline, tmp_path: Path) -> None:
    path = tmp_path / "marks.pftrace"
    _write(timeline, path)
    names = {}
    values: dict[int, object] = {}
    for packet in Trace.FromString(path.read_bytes()).packet:
        names.update({entry.iid: entry.name for entry in packet.interned_data.debug_annotation_names})
        if packet.track_event.type == TrackEvent.TYPE_INSTANT:
            annotations = {names[entry.name_iid]: entry for entry in packet.track_event.debug_annotations}
            value = annotations.get("value")
            kind = value.WhichOneof("value") if value else None
            start = annotations["start_cycles"].int_value
            values[start] = (kind, getattr(value, kind) if kind else None)
    expected = {}
    for row in timeline.marks.itertuples():
        kind = {int: "int_value", float: "double_value", type(None): None}[type(row.value)]
        expected[row.cycles] = ("uint_value" if row.value == (1 << 63) + 5 else kind, row.value)
    assert len(expected) > 6
    assert values == expected


def test_packets_do_not_depend_on_chunk_size(timeline: ToyTimeline, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, chunked = io.BytesIO(), io.BytesIO()
    pftrace.write([timeline], whole)
    monkeypatch.setattr(pftrace, "EVENTS_PER_CHUNK", 7)
    pftrace.write([timeline], chunked)
    assert whole.getvalue() == chunked.getvalue()


def test_large_grid_has_as_many_tracks_as_the_hardware_holds_warps(tmp_path: Path) -> None:
    sms, resident = 108, 4
    timeline = grid_timeline(ctas=100_000, sms=sms, resident=resident)
    path = tmp_path / "grid.pftrace"
    _write(timeline, path)
    with open_trace(path) as trace:
        assert trace.problems() == []
        tracks = trace.sql("select count(*) n from track")["n"][0]
        # Capture, launch, SMs and lanes. Rounding to whole nanoseconds makes no CTA overlap the next.
        assert tracks == 1 + 1 + sms + sms * resident
        slices = trace.sql("select count(*) n, sum(depth) deep from slice")
        assert slices["n"][0] == 1 + 3 * 100_000
        assert slices["deep"][0] == (1 + 2) * 100_000


def test_several_captures_are_several_groups(tmp_path: Path) -> None:
    captures = [toy_timeline(seed=seed, launches=1) for seed in range(2)]
    path = tmp_path / "two.pftrace"
    with path.open("wb") as out:
        pftrace.write(captures, out)
    with open_trace(path) as trace:
        assert trace.problems() == []
        assert trace.sql("select count(*) n from track where parent_id is null")["n"][0] == 2
        spans = trace.sql("select count(*) n from slice where category not in ('cta')")["n"][0]
        assert spans == sum(len(capture.spans) for capture in captures)


def test_launch_without_spans_still_has_its_slice(timeline: ToyTimeline, tmp_path: Path) -> None:
    empty = ToyTimeline(timeline.spans.iloc[:0], timeline.tracks.iloc[:0], timeline.launches, timeline.metadata, [])
    path = tmp_path / "empty.pftrace"
    _write(empty, path)
    with open_trace(path) as trace:
        assert trace.sql("select count(*) n from slice")["n"][0] == 3

"""The Chrome JSON export is valid JSON, and Perfetto reads the timeline's spans from it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from kperfir.export import write_file
from support.toy_timeline import ToyTimeline, toy_timeline
from support.trace_processor import open_trace

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def timeline() -> ToyTimeline:
    return toy_timeline(launches=2, ctas=6)


@pytest.fixture(scope="module")
def path(timeline: ToyTimeline, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("chrome") / "toy.json"
    write_file([timeline], path)
    return path


def test_events_are_valid_json_with_one_event_per_row(timeline: ToyTimeline, path: Path) -> None:
    trace = json.loads(path.read_text())
    events = trace["traceEvents"]
    marks = int((timeline.spans["kind"] == "mark").sum())
    assert sum(event["ph"] == "i" for event in events) == marks
    carried = [event["args"].get("value") for event in events if event["ph"] == "i"]
    expected = ["inf" if value == float("inf") else value for value in timeline.marks["value"]]
    assert sorted(map(repr, carried)) == sorted(map(repr, expected))
    begins = [event for event in events if event["ph"] == "B"]
    assert len(begins) == sum(event["ph"] == "E" for event in events)
    assert len(begins) == len(timeline.spans) + len(timeline.tracks) - marks
    assert trace["otherData"]["captures"][0]["notes"] == timeline.notes
    processes = {event["args"]["name"] for event in events if event.get("name") == "process_name"}
    assert processes == {f"matmul launch {n} on A100 (simulated) · SM {sm}" for n in range(2) for sm in range(2)}


def test_trace_processor_reads_the_spans(timeline: ToyTimeline, path: Path) -> None:
    with open_trace(path) as trace:
        assert trace.problems() == []
        actual = trace.sql(
            """
            select name, extract_arg(arg_set_id, 'args.start_cycles') start_cycles, dur,
              extract_arg(arg_set_id, 'args.duration_cycles') duration_cycles,
              coalesce(extract_arg(arg_set_id, 'args.iteration'), -1) iteration,
              extract_arg(arg_set_id, 'args.source') source, depth
            from slice where category != 'cta'
            """
        )
    spans = timeline.spans
    start = np.rint(spans["start_ns"])
    expected = spans.assign(
        dur=np.rint(spans["start_ns"] + spans["duration_ns"]) - start,
        source=spans["file"].astype(str) + ":" + spans["line"].astype(str),
        depth=spans["depth"] + 1,
    )
    columns = ["name", "start_cycles", "duration_cycles", "iteration", "depth", "source"]
    keyed = [frame.astype({"name": "str"}).sort_values([*columns, "dur"]) for frame in (actual, expected)]
    for column in columns:
        assert keyed[0][column].tolist() == keyed[1][column].tolist(), column
    # Perfetto truncates microseconds to whole nanoseconds.
    assert np.abs(keyed[0]["dur"].to_numpy() - keyed[1]["dur"].to_numpy()).max() <= 1

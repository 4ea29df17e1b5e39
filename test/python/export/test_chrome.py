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


def test_arrows_lead_forward_between_the_slices_of_their_flow(timeline: ToyTimeline, path: Path) -> None:
    """Tied as the format says: to the innermost slice that is open where the event stands in the file."""
    sides: dict[str, dict[int, tuple[float, int, str]]] = {"s": {}, "f": {}}
    open_slices: dict[int, list[dict[str, object]]] = {}
    for event in json.loads(path.read_text())["traceEvents"]:
        stack = open_slices.setdefault(event["tid"], [])
        if event["ph"] == "B":
            stack.append(event)
        elif event["ph"] == "E":
            stack.pop()
        elif event["ph"] in sides:
            assert event["ts"] >= stack[-1]["ts"]
            around = stack[-1]["args"]["start_cycles"]
            assert event["id"] not in sides[event["ph"]], "an id is used twice"
            sides[event["ph"]][event["id"]] = (event["ts"], around, stack[-1]["cat"])
    assert sides["s"].keys() == sides["f"].keys()
    assert len(sides["s"]) == len(timeline.flows) > 10
    assert all(sides["f"][number][0] >= start for number, (start, *_) in sides["s"].items())
    starts = timeline.spans["start_cycles"].to_numpy()
    expected = zip(starts[timeline.flows["from_span"]], starts[timeline.flows["to_span"]], strict=True)
    assert sorted((a[1], sides["f"][n][1]) for n, a in sides["s"].items()) == sorted(expected)
    assert {kind for *_, kind in sides["s"].values()} == {"load"}
    assert {kind for *_, kind in sides["f"].values()} == {"async_wait"}


def test_waits_are_marked(timeline: ToyTimeline, path: Path) -> None:
    begins = [event for event in json.loads(path.read_text())["traceEvents"] if event["ph"] == "B"]
    spans = [event for event in begins if event["cat"] != "cta"]
    assert {event["cat"] for event in spans if event["args"].get("wait")} == {"async_wait"}
    marked = {event["args"]["start_cycles"] for event in spans if event["args"].get("wait")}
    waits = timeline.spans[timeline.spans["kind"] == "async_wait"]
    assert marked == set(waits["start_cycles"])
    loops = sum(event["args"].get("wait_cycles", 0) for event in spans if event["cat"] == "loop")
    assert loops == waits["duration_cycles"].sum() > 0


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

"""The speedscope export: the file format's rules hold, and every span is there."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from kperfir.export import write_file
from support.toy_timeline import ToyTimeline, toy_timeline

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def timeline() -> ToyTimeline:
    return toy_timeline(launches=2, ctas=6)


@pytest.fixture(scope="module")
def written(timeline: ToyTimeline, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("speedscope") / "toy.speedscope.json"
    write_file([timeline], path)
    content: dict[str, Any] = json.loads(path.read_text())
    return content


def test_profiles_are_balanced_and_never_go_back(written: dict[str, Any]) -> None:
    assert written["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = written["shared"]["frames"]
    for profile in written["profiles"]:
        assert (profile["type"], profile["unit"]) == ("evented", "nanoseconds")
        times = [event["at"] for event in profile["events"]]
        assert times == sorted(times)
        assert (times[0], times[-1]) == (profile["startValue"], profile["endValue"])
        stack = []
        for event in profile["events"]:
            assert 0 <= event["frame"] < len(frames)
            if event["type"] == "O":
                stack.append(event["frame"])
            else:
                assert stack.pop() == event["frame"]
        assert stack == []


def test_every_span_is_there_with_its_source_and_marks_are_not(written: dict[str, Any], timeline: ToyTimeline) -> None:
    frames = written["shared"]["frames"]
    opened = Counter(
        frames[event["frame"]]["name"]
        for profile in written["profiles"]
        for event in profile["events"]
        if event["type"] == "O"
    )
    spans = timeline.spans[timeline.spans["kind"] != "mark"]
    expected = Counter(spans["name"].astype(str)) + Counter(f"CTA {cta}" for cta in timeline.tracks["cta"])
    assert opened == expected
    assert {"name": "load mm.py:15", "file": "/src/mm.py", "line": 15} in frames
    assert len({json.dumps(frame) for frame in frames}) == len(frames)


def test_a_profile_is_a_lane_of_a_launch(written: dict[str, Any]) -> None:
    names = [profile["name"] for profile in written["profiles"]]
    assert len(set(names)) == len(names) == 2 * 2 * 2 * 2  # Launches, SMs, slots, warps.
    assert names[0] == "matmul launch 0 (simulated): SM 0 slot 0 warp 0 (producer)"


def test_several_captures_share_their_frames_and_empty_ones_have_no_profile(
    timeline: ToyTimeline, tmp_path: Path
) -> None:
    empty = ToyTimeline(timeline.spans.iloc[:0], timeline.tracks.iloc[:0], timeline.launches, {}, [])
    write_file([timeline, timeline, empty], tmp_path / "both", "speedscope")
    both = json.loads((tmp_path / "both").read_text())
    assert len(both["profiles"]) == 32
    names = [frame["name"] for frame in both["shared"]["frames"]]
    assert len(names) == len(set(names))

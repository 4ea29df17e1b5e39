"""Write timelines for https://www.speedscope.app: a profile per lane, with times in whole nanoseconds.

Owns that mapping. A lane is what one warp of one place on an SM ran, one CTA after the other, as in the other traces;
speedscope adds up what is called the same. It has no events without length, so marks are left out.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kperfir.export.drawing import LaunchDrawing, launch_drawings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from kperfir.timeline import Timeline

SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def write(timelines: Sequence[Timeline], out: BinaryIO) -> None:
    """Write all `timelines` into one file; frames, which are regions, are shared among them."""
    frames = _Frames()
    out.write(f'{{"$schema":{json.dumps(SCHEMA)},"exporter":"kperfir","profiles":['.encode())
    separator = "\n"
    for timeline in timelines:
        for drawing in launch_drawings(timeline):
            for profile in _profiles(drawing, frames):
                out.write((separator + profile).encode())
                separator = ",\n"
    out.write(b'\n],"shared":' + json.dumps({"frames": frames.listed}).encode() + b"}\n")


class _Frames:
    """The regions, each once: number and description."""

    def __init__(self) -> None:
        self.listed: list[dict[str, Any]] = []
        self._numbers: dict[tuple[str, str, int], int] = {}

    def number(self, name: str, file: str, line: int) -> int:
        key = (name, file, line)
        if key not in self._numbers:
            self._numbers[key] = len(self.listed)
            place = {"file": file, "line": line} if file else {}
            self.listed.append({"name": name, **place})
        return self._numbers[key]


def _profiles(drawing: LaunchDrawing, frames: _Frames) -> Iterator[str]:
    """The JSON of each lane."""
    rows, frame = len(drawing.lane), _frames_of_rows(drawing, frames)
    lane = drawing.lane[drawing.events % max(rows, 1)]
    # A lane's CTAs follow each other in the walk, so its events do.
    borders = np.flatnonzero(np.diff(lane)) + 1
    for events in np.split(drawing.events, borders):
        row, is_end = events % max(rows, 1), events >= rows
        lasts = ~drawing.instant[row]
        row, is_end = row[lasts], is_end[lasts]
        if len(row):
            time_ns = np.where(is_end, drawing.end_ns[row], drawing.start_ns[row])
            profile = {
                "type": "evented",
                "name": _name(drawing, int(drawing.lane[row[0]])),
                "unit": "nanoseconds",
                "startValue": int(time_ns[0]),
                "endValue": int(time_ns[-1]),
            }
            begin = json.dumps(profile, separators=(",", ":")).removesuffix("}")
            yield f'{begin},"events":[{_events(is_end, frame[row], time_ns)}]}}'


def _frames_of_rows(drawing: LaunchDrawing, frames: _Frames) -> NDArray[np.int64]:
    spans = drawing.spans
    places = spans.drop_duplicates("region")[["region", "name", "file", "line"]].itertuples(index=False, name=None)
    of_region = {int(region): frames.number(str(name), str(file), int(line)) for region, name, file, line in places}
    numbers = np.zeros(max(of_region, default=-1) + 1, np.int64)
    numbers[list(of_region)] = list(of_region.values())
    ctas = np.array([frames.number(f"CTA {cta}", "", 0) for cta in drawing.lanes.roots["cta"]], np.int64)
    return np.concatenate([ctas, numbers[spans["region"].to_numpy()]])


def _events(is_end: NDArray[np.bool_], frame: NDArray[np.int64], time_ns: NDArray[np.int64]) -> str:
    """JSON of the events of a lane."""
    types = pa.array(["O", "C"]).take(pa.array(is_end.view(np.int8)))
    of, at = (pa.array(values).cast(pa.string()) for values in (frame, time_ns))
    events = pc.binary_join_element_wise('{"type":"', types, '","frame":', of, ',"at":', at, "}", "")
    text: str = pc.binary_join(pa.ListArray.from_arrays([0, len(events)], events), ",")[0].as_py()
    return text


def _name(drawing: LaunchDrawing, lane: int) -> str:
    launch, place = drawing.launch, drawing.lanes.lanes.iloc[lane]
    simulated = " (simulated)" if launch["simulated"] else ""
    where = f"SM {place['sm']} slot {place['slot']} warp {place['warp']} ({place['role']})"
    return f"{launch['kernel']} launch {launch['launch']}{simulated}: {where}"

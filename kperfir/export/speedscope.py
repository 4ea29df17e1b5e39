"""Write timelines for https://www.speedscope.app: a profile per lane, with times in whole nanoseconds.

Owns that mapping. A lane is what one warp of one place on an SM ran, one CTA after the other, as in the other traces;
speedscope adds up what is called the same. It has no events without length, so marks are left out.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from kperfir.export.drawing import LaunchDrawing, launch_drawings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
                out.write((separator + json.dumps(profile, separators=(",", ":"))).encode())
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


def _profiles(drawing: LaunchDrawing, frames: _Frames) -> Iterator[dict[str, Any]]:
    rows, spans = len(drawing.lane), drawing.spans
    of_region = {
        int(region): frames.number(str(name), str(file), int(line))
        for region, name, file, line in spans.drop_duplicates("region")[["region", "name", "file", "line"]].itertuples(
            index=False, name=None
        )
    }
    frame = np.r_[
        [frames.number(f"CTA {cta}", "", 0) for cta in drawing.lanes.roots["cta"]],
        [of_region[region] for region in spans["region"].tolist()],
    ].astype(np.int64)
    order = drawing.events
    order = order[~drawing.instant[order % rows]] if rows else order
    row, is_end = order % max(rows, 1), order >= rows
    time_ns = np.where(is_end, drawing.end_ns[row], drawing.start_ns[row])
    lane = drawing.lane[row]
    # A lane's CTAs follow each other in the walk, so its events do.
    for events in np.split(np.arange(len(order)), np.flatnonzero(np.diff(lane)) + 1):
        if len(events):
            listed = zip(is_end[events].tolist(), frame[row[events]].tolist(), time_ns[events].tolist(), strict=True)
            yield {
                "type": "evented",
                "name": _name(drawing, int(lane[events[0]])),
                "unit": "nanoseconds",
                "startValue": int(time_ns[events[0]]),
                "endValue": int(time_ns[events[-1]]),
                "events": [{"type": "C" if ends else "O", "frame": of, "at": at} for ends, of, at in listed],
            }


def _name(drawing: LaunchDrawing, lane: int) -> str:
    launch, place = drawing.launch, drawing.lanes.lanes.iloc[lane]
    simulated = " (simulated)" if launch["simulated"] else ""
    where = f"SM {place['sm']} slot {place['slot']} warp {place['warp']} ({place['role']})"
    return f"{launch['kernel']} launch {launch['launch']}{simulated}: {where}"

"""Write timelines as Chrome trace events (.json), for tools that do not read Perfetto's own format.

The format has two levels of tracks: a process is an SM of a launch, a thread is a lane. Owns that mapping. Times are
microseconds with three decimals, hence whole nanoseconds; launches follow each other as in the .pftrace, and arrows
lead from the start of the slice that issued asynchronous work to the end of the one that waited for it.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from kperfir.export.drawing import LaunchDrawing, launch_drawings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kperfir.timeline import Timeline

EVENTS_PER_CHUNK = 1 << 14


def write(timelines: Sequence[Timeline], out: BinaryIO) -> None:
    """Write all `timelines` into one JSON object, ``traceEvents`` with an event per line."""
    about = {"captures": [{"metadata": timeline.metadata, "notes": timeline.notes} for timeline in timelines]}
    out.write(b'{"displayTimeUnit":"ns","otherData":' + json.dumps(about, default=str).encode() + b',"traceEvents":[')
    separator = "\n"
    for chunk in _event_chunks(timelines):
        out.write((separator + ",\n".join(chunk)).encode())
        separator = ",\n"
    out.write(b"\n]}\n")


def _event_chunks(timelines: Sequence[Timeline]) -> Iterator[list[str]]:
    # Readers take thread numbers to be unique beyond their process, and 0 to be the idle thread.
    processes, threads, arrows = 0, 1, 0
    for timeline in timelines:
        for drawing in launch_drawings(timeline):
            lanes = drawing.lanes.lanes
            if lanes.empty:
                continue
            sm_number = lanes["sm"].rank(method="dense").astype(int).to_numpy()
            process = processes + sm_number
            thread = threads + np.arange(len(lanes))
            processes, threads = int(process.max()), threads + len(lanes)
            label = f"{timeline.placement.label} · " if timeline.placement else ""
            yield _track_events(drawing, label, process, thread)
            yield from _slice_events(drawing, process, thread, arrows)
            arrows += len(drawing.flows)


def _track_events(drawing: LaunchDrawing, label: str, process: np.ndarray, thread: np.ndarray) -> list[str]:
    """Names and order of the processes (SMs) and threads (lanes)."""
    launch = drawing.launch
    simulated = " (simulated)" if launch["simulated"] else ""
    title = f"{label}{launch['kernel']} launch {launch['launch']} on {launch['chip']}{simulated}"
    events = []
    for lane, row in enumerate(drawing.lanes.lanes.itertuples(index=False)):
        place = {"ph": "M", "pid": int(process[lane]), "tid": int(thread[lane])}
        facts: dict[str, dict[str, Any]] = {
            "process_name": {"name": f"{title} · SM {row.sm}"},
            "process_sort_index": {"sort_index": int(process[lane])},
            "thread_name": {"name": f"slot {row.slot} · warp {row.warp} ({row.role})"},
            "thread_sort_index": {"sort_index": lane},
        }
        events += [json.dumps({**place, "name": name, "args": args}) for name, args in facts.items()]
    return events


def _slice_events(
    drawing: LaunchDrawing, process: np.ndarray, thread: np.ndarray, first_arrow: int
) -> Iterator[list[str]]:
    """Begins and ends in the order of a walk over the tree, with the arrows that leave and reach them.

    Not complete events: readers turn microseconds into whole nanoseconds, start and duration each with a rounding
    error, and then drop slices that seem to overlap.
    """
    order = drawing.events
    rows = len(drawing.lane)
    arrows = _Arrows(drawing, first_arrow)
    for first in range(0, len(order), EVENTS_PER_CHUNK):
        events = order[first : first + EVENTS_PER_CHUNK]
        row = events % rows
        described = np.empty(len(events), object)
        is_end = events >= rows
        is_cta = events < len(drawing.lanes.roots)
        is_span = ~is_end & ~is_cta
        described[is_end] = '"ph":"E"'
        described[is_cta] = _describe_ctas(drawing, events[is_cta])
        described[is_span] = _describe_spans(drawing, events[is_span])
        time_ns = np.where(is_end, drawing.end_ns[row], drawing.start_ns[row])
        lane = drawing.lane[row]
        places = [
            f'"pid":{pid},"tid":{tid},"ts":{ns // 1000}.{ns % 1000:03d}}}'
            for pid, tid, ns in zip(process[lane].tolist(), thread[lane].tolist(), time_ns.tolist(), strict=True)
        ]
        written = [f"{{{text},{place}" for text, place in zip(described, places, strict=True)]
        # An arrow is tied to the innermost slice that is open where it stands.
        for at in np.flatnonzero(is_span & arrows.leaves[row]):
            written[at] = ",\n".join([written[at], *arrows.texts("from_row", row[at], places[at])])
        for at in np.flatnonzero(is_end & arrows.arrives[row]):
            written[at] = ",\n".join([*arrows.texts("to_row", row[at], places[at]), written[at]])
        yield written


class _Arrows:
    """The arrows of a launch; `leaves` and `arrives` say which rows of the drawing have any."""

    def __init__(self, drawing: LaunchDrawing, first: int) -> None:
        self.leaves, self.arrives = (np.zeros(len(drawing.lane), np.bool_) for _ in range(2))
        self._of_row: dict[tuple[str, int], list[str]] = {}
        ids = range(first, first + len(drawing.flows))
        for side, phase, has in (("from_row", '"ph":"s"', self.leaves), ("to_row", '"ph":"f","bp":"e"', self.arrives)):
            rows = drawing.flows[side].to_numpy(np.int64)
            has[rows] = True
            for number, row, kind in zip(ids, rows.tolist(), drawing.flows["kind"], strict=True):
                text = f'{phase},"id":{number},"cat":"flow","name":{json.dumps(kind)}'
                self._of_row.setdefault((side, row), []).append(text)

    def texts(self, side: str, row: int, place: str) -> list[str]:
        """The events of the arrows of a row at one `side`, ``from_row`` or ``to_row``."""
        return [f"{{{text},{place}" for text in self._of_row[side, int(row)]]


def _describe_ctas(drawing: LaunchDrawing, rows: np.ndarray) -> list[str]:
    names = ("cta", "cta_x", "cta_y", "cta_z", "warp", "records", "dropped", "role")
    roots = drawing.lanes.roots.iloc[rows]
    return [
        f'"ph":"B","name":"CTA {row[0]}","cat":"cta","args":{json.dumps(dict(zip(names, row, strict=True)))}'
        for row in zip(*(roots[name].tolist() for name in names), strict=True)
    ]


def _describe_spans(drawing: LaunchDrawing, rows: np.ndarray) -> list[str]:
    index = rows - len(drawing.lanes.roots)
    spans = drawing.spans.iloc[index]
    regions = spans["region"].to_numpy()
    heads: dict[int, str] = {}
    firsts = spans.drop_duplicates("region")
    for region, name, kind, file, line in firsts[["region", "name", "kind", "file", "line"]].itertuples(index=False):
        source = json.dumps(f"{file}:{line}")
        phase = '"ph":"i","s":"t"' if kind == "mark" else '"ph":"B"'
        heads[region] = f'{phase},"name":{json.dumps(name)},"cat":{json.dumps(kind)},"args":{{"source":{source}'
    columns = (regions, *(spans[name] for name in ("iteration", "start_cycles", "duration_cycles", "complete")))
    waits = (
        (',"wait":true' if is_wait else "") + (f',"wait_cycles":{cycles}' if cycles else "")
        for is_wait, cycles in zip(drawing.is_wait[index].tolist(), drawing.wait_cycles[index].tolist(), strict=True)
    )
    values = ("" if value is None else f',"value":{_json_number(value)}' for value in drawing.values[index])
    return [
        heads[region]
        + (f',"iteration":{iteration}' if iteration >= 0 else "")
        + value
        + wait
        + f',"start_cycles":{start},"duration_cycles":{duration}'
        + ("}" if complete else ',"incomplete":true}')
        for (region, iteration, start, duration, complete), value, wait in zip(
            zip(*(c.tolist() for c in columns), strict=True), values, waits, strict=True
        )
    ]


def _json_number(value: float) -> str:
    """JSON has no infinities and no NaN: those are texts."""
    return json.dumps(value if math.isfinite(value) else str(value))

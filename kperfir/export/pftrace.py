"""Write timelines as a Perfetto trace (.pftrace).

    capture (device, "simulated") > launch > SM > lane (CTA slot, warp) : CTA slice > region slices

Owns what a timeline looks like in Perfetto. Rare packets come from the protobuf library (`pftrace_packets`), slices
from native code (lib/Trace/Slices.h); both write one packet sequence per capture. Timestamps are whole nanoseconds; a
launch starts at its own `offset_ns` (an argument of its slice), because launches are timed relative to their start.
Raw cycles are arguments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from kperfir._native import trace

from kperfir.export.drawing import LaunchDrawing, launch_drawings
from kperfir.export.pftrace_packets import ARGUMENTS, ROOT_ARGUMENTS, PacketWriter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from kperfir.timeline import Timeline

EVENTS_PER_CHUNK = 1 << 15


def write(timelines: Sequence[Timeline], out: BinaryIO) -> None:
    """Write all `timelines` into one trace; each becomes a group of tracks of its own."""
    for number, timeline in enumerate(timelines):
        packets = PacketWriter(out, timeline, sequence=number + 1)
        for drawing in launch_drawings(timeline):
            _write_launch(packets, drawing)


def _write_launch(packets: PacketWriter, drawing: LaunchDrawing) -> None:
    launch_track = packets.launch(drawing)
    lane_tracks = packets.lanes(launch_track, drawing.lanes.lanes)
    packets.intern_ctas(drawing.lanes.roots["cta"].unique())
    writer = trace.SliceWriter(
        rows={**_columns(drawing), "values": _values(drawing), "flows": _flows(drawing, packets.sequence)},
        regions=_regions(packets, drawing),
        roots=_roots(packets, drawing, lane_tracks),
        sequence={
            "id": packets.sequence,
            "cta_category": packets.cta_category_iid,
            "offset": drawing.offset_ns,
            "arguments": [packets.annotation_iid(name) for name in ARGUMENTS],
        },
    )
    for first in range(0, len(drawing.events), EVENTS_PER_CHUNK):
        packets.raw(writer.write(first, min(first + EVENTS_PER_CHUNK, len(drawing.events))).data)


def _columns(drawing: LaunchDrawing) -> dict[str, NDArray[Any]]:
    """Events, times of all rows, and what is known of each span."""
    spans = drawing.spans
    return {
        "events": drawing.events,
        "start": drawing.times[0],
        "end": drawing.times[1],
        "wait_cycles": drawing.wait_cycles,
        **{
            name: np.ascontiguousarray(spans[name], dtype)
            for name, dtype in (
                ("region", np.int32),
                ("iteration", np.int64),
                ("start_cycles", np.int64),
                ("duration_cycles", np.int64),
                ("complete", np.bool_),
            )
        },
    }


def _regions(packets: PacketWriter, drawing: LaunchDrawing) -> dict[str, NDArray[Any]]:
    """What all spans of a region share, by region: ids of what stands for it, and what it is."""
    numbers = drawing.spans["region"].to_numpy()
    first = trace.first_rows(np.ascontiguousarray(numbers, np.int32), int(numbers.max(initial=-1)) + 1)
    used = first >= 0
    spans = drawing.spans.iloc[first[used]]
    known = {
        "kind": packets.kind_iids(spans["kind"]),
        "name": packets.region_name_iids(spans["name"]),
        "source": packets.source_iids(spans),
        "is_wait": drawing.is_wait[first[used]],
        "is_instant": drawing.is_instant[first[used]],
    }
    table = {name: np.zeros(len(first), values.dtype) for name, values in known.items()}
    for name, values in known.items():
        table[name][used] = values
    return table


def _roots(packets: PacketWriter, drawing: LaunchDrawing, lane_tracks: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
    """What is known of the slice of each warp of each CTA."""
    roots = drawing.lanes.roots
    return {
        "numbers": np.ascontiguousarray(roots[list(ROOT_ARGUMENTS)], np.int64).reshape(-1),
        "role": packets.role_iids(roots["role"]),
        "name": packets.cta_name_iids(roots["cta"].to_numpy()),
        "track": lane_tracks[roots["lane"].to_numpy()],
    }


def _values(drawing: LaunchDrawing) -> dict[str, NDArray[Any]]:
    """What marks carry: the row, how its bits are meant, and the bits."""
    marks = drawing.marks[drawing.marks["value"].notna()]
    rows = marks["index"].to_numpy(np.int64) + len(drawing.lanes.roots)
    coded = [_coded(value) for value in marks["value"]]
    return {
        "row": rows,
        "kind": np.array([kind for kind, _ in coded], np.int64),
        "bits": np.array([bits for _, bits in coded], np.uint64),
    }


def _coded(value: float) -> tuple[int, int]:
    if isinstance(value, float):
        return trace.DOUBLE, int(np.float64(value).view(np.uint64))
    return (trace.SIGNED, value % (1 << 64)) if value < 1 << 63 else (trace.UNSIGNED, value)


def _flows(drawing: LaunchDrawing, sequence: int) -> dict[str, NDArray[np.int64]]:
    """Arrows: the rows they leave and reach, and ids that no other capture of the trace has."""
    flows = drawing.flows
    return {
        "from_row": flows["from_row"].to_numpy(np.int64),
        "to_row": flows["to_row"].to_numpy(np.int64),
        "id": (flows.index.to_numpy(np.int64) + 1) | sequence << 40,
    }

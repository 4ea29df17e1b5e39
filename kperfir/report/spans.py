"""The spans of a launch as columns that a browser turns into typed arrays; page/data.js reads them.

Rows are sorted by layer, that is by lane and depth, then by time. The rows of a layer never overlap, so both their
starts and their ends ascend, and a binary search finds what is in view.
"""

from __future__ import annotations

import base64
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kperfir.export.drawing import LaunchDrawing

CTA = {"kernel": "", "name": "CTA", "kind": "cta", "file": "", "line": 0}
_INCOMPLETE, _INSTANT = 1, 2


class RegionTable:
    """The regions of all launches, each once: what the page refers to by number. Number 0 is the slice of a CTA."""

    def __init__(self) -> None:
        self.listed: list[dict[str, Any]] = [CTA]
        self._numbers: dict[tuple[str, str, str], int] = {}

    def number(self, kernel: str, region: dict[str, Any]) -> int:
        key = (kernel, str(region["name"]), str(region["kind"]))
        if key not in self._numbers:
            self._numbers[key] = len(self.listed)
            place = {"file": str(region["file"]), "line": int(region["line"])}
            self.listed.append({"kernel": kernel, "name": key[1], "kind": key[2], **place})
        return self._numbers[key]


@dataclass(frozen=True, slots=True)
class PackedLaunch:
    """`header` says what `payload` (base64 of deflated columns, one after the other, little-endian) holds."""

    header: dict[str, Any]
    payload: str


def pack_launch(drawing: LaunchDrawing, regions: RegionTable) -> PackedLaunch:
    """Pack one launch; times count from where the launch starts on the axis."""
    spans, roots = drawing.spans, drawing.lanes.roots
    root_count, first_ns = len(roots), drawing.extent_ns[0]
    depth = np.r_[np.zeros(root_count, np.int64), spans["depth"].to_numpy() + 1]
    order = np.lexsort((np.arange(len(depth)), drawing.start_ns, depth, drawing.lane))
    start = (drawing.start_ns - first_ns)[order]
    clock = {
        "start": np.diff(start, prepend=0),  # Deltas deflate to a third; modulo 2^32, so their sign is no matter.
        "duration": (drawing.end_ns - drawing.start_ns)[order],
        "cycles": np.r_[np.zeros(root_count, np.int64), spans["duration_cycles"].to_numpy()][order],
    }
    wide = drawing.extent_ns[1] - first_ns >= 1 << 32 or int(clock["cycles"].max(initial=0)) >= 1 << 32
    if wide:
        clock["start"] = start
    iteration = np.r_[roots["cta"].to_numpy(), spans["iteration"].to_numpy()]
    flags = drawing.instant * _INSTANT
    flags[root_count:] |= ~spans["complete"].to_numpy() * _INCOMPLETE
    columns: list[tuple[str, NDArray[Any]]] = [
        *((name, values.astype("<f8" if wide else "<u4")) for name, values in clock.items()),
        ("iteration", iteration[order].astype("<i4")),
        ("region", _region_numbers(drawing, regions)[order].astype("<u4")),
        ("flags", flags[order].astype("u1")),
    ]
    header = {
        "rows": len(order),
        "deltas": not wide,
        "columns": [[name, values.dtype.str] for name, values in columns],
        "duration_ns": drawing.extent_ns[1] - first_ns,
        "lanes": drawing.lanes.lanes.to_dict("split")["data"],  # sm, slot, warp, role
        "layers": _layers(drawing.lane[order], depth[order]),
        "flows": _flows(drawing, order),
        "values": _values(drawing, order),
    }
    packed = zlib.compress(b"".join(_shuffled(values) for _, values in columns), 6)
    return PackedLaunch(header, base64.b64encode(packed).decode())


def _region_numbers(drawing: LaunchDrawing, regions: RegionTable) -> NDArray[np.int64]:
    spans = drawing.spans
    first = spans.drop_duplicates("region")[["region", "name", "kind", "file", "line"]].to_dict("records")
    numbers = np.zeros(max((int(row["region"]) for row in first), default=-1) + 1, np.int64)
    for row in sorted(first, key=lambda row: int(row["region"])):
        numbers[int(row["region"])] = regions.number(str(drawing.launch["kernel"]), row)
    result: NDArray[np.int64] = np.r_[np.zeros(len(drawing.lanes.roots), np.int64), numbers[spans["region"].to_numpy()]]
    return result


def _layers(lane: NDArray[np.int64], depth: NDArray[np.int64]) -> list[list[int]]:
    """``[lane, depth, first row, rows]`` of each stretch."""
    if not len(lane):
        return []
    first = np.flatnonzero(np.r_[True, (np.diff(lane) != 0) | (np.diff(depth) != 0)])
    counts = np.diff(np.r_[first, len(lane)])
    layers: list[list[int]] = np.column_stack([lane[first], depth[first], first, counts]).tolist()
    return layers


def _flows(drawing: LaunchDrawing, order: NDArray[np.int64]) -> list[list[int]]:
    """``[from row, to row]`` of each arrow."""
    position = np.empty(len(order), np.int64)
    position[order] = np.arange(len(order))
    ends = drawing.flows[["from_row", "to_row"]].to_numpy(np.int64)
    rows: list[list[int]] = position[ends].tolist()
    return rows


def _values(drawing: LaunchDrawing, order: NDArray[np.int64]) -> list[list[Any]]:
    """``[row, value]`` of each mark that carries one. As text: a browser's numbers do not hold each 64-bit integer."""
    values = np.r_[np.full(len(drawing.lanes.roots), None, object), drawing.values][order]
    return [[row, str(value)] for row, value in enumerate(values.tolist()) if value is not None]


def _shuffled(values: NDArray[Any]) -> bytes:
    """The lowest bytes of all values, then the next ones: what deflates well."""
    return values.view(np.uint8).reshape(len(values), values.dtype.itemsize).T.tobytes()

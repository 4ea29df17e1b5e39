"""The tables of a Timeline, column by column, from decoded launches.

Owns names, order and dtypes of the columns (docs/timeline.md). Which launches there are, and when to
decode them, is `kperfir.timeline`'s business.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from kperfir.capture.decode import DecodedBuffer, decode_buffer
from kperfir.capture.laps import read_buffer

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from numpy.typing import NDArray

    from kperfir.capture.layout import BufferLayout, Region
    from kperfir.capture.reader import LaunchRecord
    from kperfir.runtime.clock import ClockFit

    Table = dict[str, NDArray[Any]]

SPAN_COLUMNS = (
    "launch", "kernel", "cta", "cta_x", "cta_y", "cta_z", "sm", "warp", "role", "region", "name", "kind", "file",
    "line", "depth", "parent", "iteration", "start_cycles", "end_cycles", "duration_cycles", "start_ns",
    "duration_ns", "complete",
)  # fmt: skip
TRACK_COLUMNS = ("launch", "cta", "sm", "warp", "role", "stamps", "records", "dropped", "laps")
MARK_COLUMNS = (
    "launch", "kernel", "cta", "sm", "warp", "role", "region", "name", "file", "line", "iteration", "cycles", "ns",
    "value", "value_type", "span",
)  # fmt: skip
STAMP_COLUMNS = ("launch", "cta", "sm", "warp", "frame", "slot", "clock_raw", "clock")


@dataclass(frozen=True, slots=True)
class DecodedLaunch:
    """A launch of a timeline and its decoded buffer. `number` is its launch id in the timeline; `fit` its time axis.

    `cta_ids`: linear ids of the rows of ``decoded.ctas``.
    """

    number: int
    record: LaunchRecord
    cta_ids: NDArray[np.uint32]
    decoded: DecodedBuffer
    fit: ClockFit | None = None

    @property
    def layout(self) -> BufferLayout:
        return self.record.kernel.layout


def decode_launch(
    number: int, record: LaunchRecord, want: Collection[str], chosen: NDArray[np.int64] | None = None
) -> DecodedLaunch:
    """Read and decode one launch: the tables that `decode_buffer` is to make, of all CTAs or of these rows of them."""
    raw = read_buffer(record, chosen)
    decoded = decode_buffer(record.kernel.layout, raw, want=want, where=record.where)
    _sort_spans(decoded)
    return DecodedLaunch(number, record, raw.ids, decoded)


def build_spans(launches: Sequence[DecodedLaunch]) -> pd.DataFrame:
    """One row per execution of a region, sorted by (launch, cta, warp, start_cycles, depth).

    Takes the spans out of `launches`: their memory is the table's from now on.
    """
    parts = [_span_part(launch) for launch in launches]
    columns = concatenate(parts, _SPAN_DTYPES)
    base = 0
    rows = [len(part["parent"]) for part in parts]
    for count in rows:
        if base:
            parent = columns["parent"][base : base + count]
            parent[parent >= 0] += base
        base += count
    categories = {
        "kernel": category([(launch.record.kernel.name, count) for launch, count in zip(launches, rows, strict=True)]),
        "role": coded(launches, parts, "role", lambda layout: layout.role_names),
        "name": coded(launches, parts, "region", of_regions(lambda region: region.name)),
        "kind": coded(launches, parts, "region", of_regions(lambda region: region.kind)),
        "file": coded(launches, parts, "region", of_regions(lambda region: region.file)),
    }
    for launch in launches:
        launch.decoded.spans.clear()
    return frame({**columns, **categories}, SPAN_COLUMNS)


def cta_cycles(launch: DecodedLaunch) -> NDArray[np.int64]:
    """How long each recorded CTA ran: from its first anchor or stamp to its last stamp, whichever warp's that is.

    The end anchor comes after part of what recording takes at a CTA's end. It counts where no stamp tells of the end:
    no region of the whole kernel is recorded, or its end was dropped.
    """
    ctas, tracks, layout = launch.decoded.ctas, launch.decoded.tracks, launch.layout
    start, end = ctas["start_clock"].copy(), np.full(len(ctas["recorded"]), np.iinfo(np.int64).min)
    np.minimum.at(start, tracks["cta"], tracks["first_clock"])
    np.maximum.at(end, tracks["cta"], tracks["last_clock"])
    stamps = np.zeros(len(end), np.int64)
    np.add.at(stamps, tracks["cta"], tracks["stamps"])
    lost = np.zeros(len(end), np.int64)
    if layout.strategy != "ring":
        np.add.at(lost, tracks["cta"], tracks["dropped"])
    is_told = (stamps > 0) & (lost == 0) & any(region.kind == "kernel" for region in layout.regions)
    end = np.where(is_told, end, np.maximum(end, ctas["end_clock"]))
    cycles: NDArray[np.int64] = (end - start)[ctas["recorded"] == 1]
    return cycles


def recording_warps(launch: DecodedLaunch) -> int:
    """How many warps of each CTA recorded in this launch: neither those that the settings leave out, nor idle ones."""
    tracks = launch.decoded.tracks
    return len(np.unique(tracks["warp"][tracks["records"] > 0]))


def build_tracks(launches: Sequence[DecodedLaunch]) -> pd.DataFrame:
    """One row per warp of each recorded CTA."""
    parts = [_track_part(launch) for launch in launches]
    role = coded(launches, parts, "role", lambda layout: layout.role_names)
    return frame({**concatenate(parts, _TRACK_DTYPES), "role": role}, TRACK_COLUMNS)


def build_marks(launches: Sequence[DecodedLaunch], spans: pd.DataFrame) -> pd.DataFrame:
    """One row per mark that was passed, in the order of `spans`, which are those of the same launches.

    ``value`` holds a Python int or float, or None where a mark carries nothing: what it holds is exact.
    """
    rows, values, types = [np.empty(0, np.int64)], [np.empty(0, object)], [np.empty(0, object)]
    base = 0
    for launch in launches:
        marks, regions = launch.decoded.marks, launch.layout.regions
        row = marks["span"] + base
        kinds = np.array([region.value for region in regions], object)[spans["region"].to_numpy()[row]]
        order = np.argsort(row, kind="stable")
        rows.append(row[order])
        values.append(read_values(marks["value"], kinds)[order])
        types.append(kinds[order])
        base += int(launch.decoded.tracks["spans"].sum())
    span = np.concatenate(rows)
    columns = spans.iloc[span].rename(columns={"start_cycles": "cycles", "start_ns": "ns"}).reset_index(drop=True)
    carried = {"value": np.concatenate(values), "value_type": np.concatenate(types)}
    return columns.assign(**carried, span=span)[list(MARK_COLUMNS)]


def build_mark_values(launches: Sequence[DecodedLaunch]) -> pd.DataFrame:
    """Kernel, name and value of each mark that was passed and carries one: `build_marks` without spans."""
    rows: dict[str, list[NDArray[Any]]] = {name: [np.empty(0, object)] for name in ("kernel", "name", "value")}
    for launch in launches:
        marks, regions = launch.decoded.marks, launch.layout.regions
        types = np.array([region.value for region in regions], object)[marks["region"]]
        carries = types != ""
        names = np.array([region.name for region in regions], object)[marks["region"][carries]]
        rows["kernel"].append(np.full(len(names), launch.record.kernel.name, object))
        rows["name"].append(names)
        rows["value"].append(read_values(marks["value"][carries], types[carries]))
    return pd.DataFrame({name: np.concatenate(parts) for name, parts in rows.items()})


def build_stamps(launches: Iterable[DecodedLaunch]) -> pd.DataFrame:
    """One row per stored clock value, in the order of execution of each warp."""
    return frame(concatenate([_stamp_part(launch) for launch in launches], _STAMP_DTYPES), STAMP_COLUMNS)


_SPAN_DTYPES: dict[str, str] = {
    **dict.fromkeys(("launch", "cta", "cta_x", "cta_y", "cta_z", "sm", "warp", "role", "region", "line"), "int32"),
    "depth": "int16",
    **dict.fromkeys(("parent", "iteration", "start_cycles", "end_cycles", "duration_cycles"), "int64"),
    **dict.fromkeys(("start_ns", "duration_ns"), "float64"),
    "complete": "bool",
}
_TRACK_DTYPES: dict[str, str] = {
    **dict.fromkeys(("launch", "cta", "sm", "warp", "role"), "int32"),
    **dict.fromkeys(("stamps", "records", "dropped", "laps"), "int64"),
}
_STAMP_DTYPES: dict[str, str] = {
    **dict.fromkeys(("launch", "cta", "sm", "warp", "frame", "slot"), "int32"),
    "clock_raw": "uint32",
    "clock": "int64",
}


def _span_part(launch: DecodedLaunch) -> Table:
    spans, ctas, tracks = launch.decoded.spans, launch.decoded.ctas, launch.decoded.tracks
    part = repeat_tracks(launch, tracks["spans"])
    start, duration = spans["start"], spans["end"] - spans["start"]
    lines = np.array([region.line for region in launch.layout.regions], np.int32)
    if launch.fit is None:
        start_ns, ns_per_cycle = np.zeros(len(duration)), 1.0
    else:
        ns_per_cycle = launch.fit.slope.ns_per_cycle
        origin_clock, origin_ns = launch.fit.origins(ctas["sm"][tracks["cta"]])
        # Differences first, in integers: counters near 2^62 have no fractions left in a float.
        start_ns = (start - np.repeat(origin_clock, tracks["spans"])) * ns_per_cycle
        start_ns += np.repeat(origin_ns, tracks["spans"])
    return {
        **part,
        **{f"cta_{axis}": np.repeat(ctas[axis][tracks["cta"]], tracks["spans"]) for axis in "xyz"},
        "region": spans["region"],
        "line": lines[spans["region"]],
        "depth": spans["depth"],
        "parent": spans["parent"],
        "iteration": spans["iteration"],
        "start_cycles": start,
        "end_cycles": spans["end"],
        "duration_cycles": duration,
        "start_ns": start_ns,
        "duration_ns": duration * ns_per_cycle,
        "complete": spans["complete"].view(np.bool_),
    }


def _track_part(launch: DecodedLaunch) -> Table:
    tracks = launch.decoded.tracks
    part = repeat_tracks(launch, np.ones(len(tracks["warp"]), np.int64))
    return {**part, **{name: tracks[name] for name in ("stamps", "records", "dropped", "laps")}}


def _stamp_part(launch: DecodedLaunch) -> Table:
    stamps = launch.decoded.stamps
    part = repeat_tracks(launch, launch.decoded.tracks["stamps"])
    place = {name: part[name] for name in ("launch", "cta", "sm", "warp")}
    return {
        **place,
        "frame": stamps["frame"],
        "slot": stamps["slot"],
        "clock_raw": stamps["raw"],
        "clock": stamps["clock"],
    }


def repeat_tracks(launch: DecodedLaunch, counts: NDArray[np.int64]) -> Table:
    """What is known per track, once for each of its `counts` rows. `role` is an index into the layout's roles."""
    tracks, ctas = launch.decoded.tracks, launch.decoded.ctas
    roles = np.array(launch.layout.role_of_warp(), np.int32)
    of_track = {
        "cta": launch.cta_ids.astype(np.int32)[tracks["cta"]],
        "sm": ctas["sm"][tracks["cta"]],
        "warp": tracks["warp"],
        "role": roles[tracks["warp"]],
    }
    repeated = {name: np.repeat(column, counts) for name, column in of_track.items()}
    return {"launch": np.full(len(repeated["cta"]), launch.number, np.int32), **repeated}


def _sort_spans(decoded: DecodedBuffer) -> None:
    """Put spans that start in the same cycle in the order of their depth; the decoder orders by start alone."""
    spans = decoded.spans
    if not len(spans["start"]):
        return
    track = np.repeat(np.arange(len(decoded.tracks["spans"])), decoded.tracks["spans"])
    order = by_start_and_depth(track, spans["start"], spans["depth"])
    if order is None:
        return
    new_row = new_rows(order)
    for name, column in spans.items():
        spans[name] = column[order]
    spans["parent"] = new_row[spans["parent"]]
    decoded.marks["span"] = new_row[decoded.marks["span"]]


def by_start_and_depth(
    track: NDArray[np.int64], start: NDArray[np.int64], depth: NDArray[np.int16]
) -> NDArray[np.intp] | None:
    """The order of rows that are in the order of their starts on each track; None if they are in it."""
    tied = (track[1:] == track[:-1]) & (start[1:] == start[:-1])
    if not np.any(tied & (depth[1:] < depth[:-1])):
        return None
    return np.lexsort((depth, start, track))


def new_rows(order: NDArray[np.intp]) -> NDArray[np.int64]:
    """Where each row is once they are in `order`; that of -1 is -1."""
    rows = np.empty(len(order) + 1, np.int64)
    rows[order] = np.arange(len(order))
    rows[-1] = -1
    return rows


# How to read the bits of what a mark carries.
_VALUE_DTYPES = {"i32": "int32", "u32": "uint32", "f32": "float32", "i64": "int64", "u64": "uint64", "f64": "float64"}


def read_values(bits: NDArray[np.uint64], types: NDArray[Any]) -> NDArray[Any]:
    """Python numbers from the `bits` of marks; None where `types` is empty."""
    values = np.full(len(bits), None, object)
    for name, dtype in _VALUE_DTYPES.items():
        chosen = types == name
        width = "uint32" if dtype.endswith("32") else "uint64"
        values[chosen] = bits[chosen].astype(width).view(dtype).tolist()
    return values


def of_regions(value: Callable[[Region], str]) -> Callable[[BufferLayout], list[str]]:
    return lambda layout: [value(region) for region in layout.regions]


def coded(
    launches: Sequence[DecodedLaunch], parts: Sequence[Table], key: str, values: Callable[[BufferLayout], list[str]]
) -> pd.Categorical:
    """A category whose value in each row is that of the layout's role or region that column `key` names."""
    codes: dict[str, int] = {}
    columns = []
    for launch, part in zip(launches, parts, strict=True):
        names = values(launch.layout)
        used = np.bincount(part[key], minlength=len(names)) > 0
        table = [codes.setdefault(name, len(codes)) if use else -1 for name, use in zip(names, used, strict=True)]
        columns.append((np.array(table, np.int32), part[key]))
    smallest = np.min_scalar_type(-max(len(codes), 1))  # What a category keeps its codes in.
    rows = [table.astype(smallest)[key] for table, key in columns]
    return pd.Categorical.from_codes(_joined(rows, smallest), categories=list(codes))


def category(runs: Sequence[tuple[str, int]]) -> pd.Categorical:
    """A category of runs of equal values."""
    codes: dict[str, int] = {}
    values = [codes.setdefault(value, len(codes)) for value, _ in runs]
    counts = [count for _, count in runs]
    return pd.Categorical.from_codes(np.repeat(np.array(values, np.int32), counts), categories=list(codes))


def _joined(parts: Sequence[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    """The parts as one array; the largest timelines are one launch, which is not copied."""
    return parts[0] if len(parts) == 1 else np.concatenate([*parts, np.empty(0, dtype)])


def concatenate(parts: Sequence[Table], dtypes: dict[str, str]) -> Table:
    return {
        name: _joined([part[name] for part in parts], dtype).astype(dtype, copy=False) for name, dtype in dtypes.items()
    }


def frame(columns: dict[str, Any], order: Sequence[str]) -> pd.DataFrame:
    return pd.DataFrame({name: columns[name] for name in order}, copy=False)

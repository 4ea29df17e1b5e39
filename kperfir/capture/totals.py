"""Executions added up by region and warp, without a table of them.

    totals = build_totals(launches)
    totals.rows       # shaped like `Timeline.spans`: a row stands for all executions of a region by a warp

Ten million spans take over a gigabyte; what a report shows of them are sums, extents and percentiles, and the nesting
of regions, which is the same for all executions. So what works on spans and only adds up works on these rows, too:
``parent`` is the row of the region around, ``duration_cycles`` a sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kperfir.capture import tables
from kperfir.capture.aggregates import depths_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from numpy.typing import NDArray

    from kperfir.capture.tables import DecodedLaunch

COLUMNS = (
    "launch", "kernel", "cta", "sm", "warp", "role", "region", "name", "kind", "file", "line", "depth", "parent",
    "start_cycles", "end_cycles", "duration_cycles", "count", "complete_count", "complete_cycles",
)  # fmt: skip
_DTYPES = {
    **dict.fromkeys(("launch", "cta", "sm", "warp", "role", "region", "line"), "int32"),
    "depth": "int16",
    **dict.fromkeys(COLUMNS[-7:], "int64"),
}


@dataclass(frozen=True, slots=True)
class Totals:
    """What all executions of regions come to.

    Attributes:
        rows: Columns `COLUMNS`, sorted by (launch, cta, warp, start_cycles, depth): ``start_cycles`` of the first
            execution, ``end_cycles`` of the last; ``duration_cycles`` of all ``count``, and ``complete_cycles`` of the
            ``complete_count`` that are complete.
        durations: Of the complete executions, by launch and region; in no order that means anything.
        ns_per_cycle: By launch.
    """

    rows: pd.DataFrame
    durations: dict[tuple[int, int], NDArray[np.int64]]
    ns_per_cycle: dict[int, float]


def build_totals(launches: Sequence[DecodedLaunch]) -> Totals:
    """Name what was decoded with ``totals``."""
    parts = [_part(launch) for launch in launches]
    columns = tables.concatenate(parts, _DTYPES)
    counts = [len(part["region"]) for part in parts]
    begin = 0
    for count in counts:
        parent = columns["parent"][begin : begin + count]
        parent[parent >= 0] += begin
        begin += count
    kernels = [(launch.record.kernel.name, count) for launch, count in zip(launches, counts, strict=True)]
    categories = {
        "kernel": tables.category(kernels),
        "role": tables.coded(launches, parts, "role", lambda layout: layout.role_names),
        "name": tables.coded(launches, parts, "region", tables.of_regions(lambda region: region.name)),
        "kind": tables.coded(launches, parts, "region", tables.of_regions(lambda region: region.kind)),
        "file": tables.coded(launches, parts, "region", tables.of_regions(lambda region: region.file)),
    }
    return Totals(
        tables.frame({**columns, **categories}, COLUMNS),
        {
            (launch.number, region): durations
            for launch in launches
            for region, durations in enumerate(launch.decoded.durations)
        },
        {launch.number: launch.fit.slope.ns_per_cycle if launch.fit else 1.0 for launch in launches},
    )


def _part(launch: DecodedLaunch) -> dict[str, NDArray[Any]]:
    totals = launch.decoded.totals
    depths = np.array(depths_of(launch.layout), np.int16)
    lines = np.array([region.line for region in launch.layout.regions], np.int32)
    order = tables.by_start_and_depth(totals["track"], totals["start"], depths[totals["region"]])
    parent = totals["parent"].copy()
    if order is not None:
        parent = tables.new_rows(order)[parent[order]]
        totals = {name: column[order] for name, column in totals.items()}
    region = totals["region"]
    tracks = len(launch.decoded.tracks["warp"])
    return {
        **tables.repeat_tracks(launch, np.bincount(totals["track"], minlength=tracks)),
        "region": region,
        "line": lines[region],
        "depth": depths[region],
        "parent": parent,
        "start_cycles": totals["start"],
        "end_cycles": totals["end"],
        "duration_cycles": totals["cycles"],
        "count": totals["count"],
        "complete_count": totals["complete"],
        "complete_cycles": totals["complete_cycles"],
    }

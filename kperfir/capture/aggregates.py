"""The table of sums: a row per launch, CTA, warp and region that the warp executed.

    table = build_aggregates(launches, spans)

Of kernels that summed executions up (strategy ``aggregate``) it holds what the device counted; of others, the same is
computed from their spans. Owns names, order and dtypes of the columns (docs/timeline.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from kperfir._native import record

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from kperfir.capture.layout import BufferLayout
    from kperfir.capture.tables import DecodedLaunch

    Table = dict[str, NDArray[Any]]

BUCKET_COLUMNS = tuple(f"bucket_{power}" for power in range(record.BUCKETS))
_INTEGERS = {
    **dict.fromkeys(("launch", "cta", "sm", "warp", "region", "parent", "line"), "int32"),
    "depth": "int16",
    **dict.fromkeys(("count", "total_cycles", "min_cycles", "max_cycles", *BUCKET_COLUMNS), "int64"),
}
_TEXTS = ("kernel", "role", "name", "kind", "file")
AGGREGATE_COLUMNS = (
    "launch", "kernel", "cta", "sm", "warp", "role", "region", "parent", "depth", "name", "kind", "file", "line",
    "count", "total_cycles", "mean_cycles", "std_cycles", "min_cycles", "max_cycles", "squares_cycles2",
    *BUCKET_COLUMNS,
)  # fmt: skip


def build_aggregates(launches: Sequence[DecodedLaunch], spans: Callable[[int], pd.DataFrame]) -> pd.DataFrame:
    """Build the table, sorted by (launch, cta, warp, region).

    Args:
        launches: All of the timeline.
        spans: Rows of `Timeline.spans` that are of a launch, which recorded executions.
    """
    parts = [
        _described(launch, _device_sums(launch) if launch.layout.aggregate else _span_sums(spans(launch.number)))
        for launch in launches
    ]
    table = {
        name: np.concatenate([*(part[name] for part in parts), np.empty(0, _dtype(name))]) for name in AGGREGATE_COLUMNS
    }
    frame = pd.DataFrame(table, copy=False)
    return frame.astype(_INTEGERS | dict.fromkeys(_TEXTS, "category"))


def bucket_of(cycles: NDArray[np.int64]) -> NDArray[np.int64]:
    """The power of two of each duration: k where 2^k <= cycles < 2^(k + 1); 0 cycles are in bucket 0."""
    exponents: NDArray[np.int64] = np.frexp(np.maximum(cycles, 1).astype(np.float64))[1].astype(np.int64) - 1
    return np.minimum(exponents, record.BUCKETS - 1)


def _dtype(name: str) -> str:
    return "object" if name in _TEXTS else _INTEGERS.get(name, "float64")


def _device_sums(launch: DecodedLaunch) -> Table:
    """What the device counted; ``squares`` are nan where they may have wrapped."""
    sums, tracks, ctas = launch.decoded.sums, launch.decoded.tracks, launch.decoded.ctas
    row = tracks["cta"][sums["track"]]
    return {
        "cta": launch.cta_ids.astype(np.int32)[row],
        "sm": ctas["sm"][row],
        "warp": tracks["warp"][sums["track"]],
        "region": sums["region"],
        "count": sums["count"],
        "total_cycles": sums["sum"].astype(np.int64),
        "min_cycles": sums["least"],
        "max_cycles": sums["most"],
        "squares_cycles2": np.where(sums["knows_squares"] == 1, sums["squares"].astype(np.float64), np.nan),
        "buckets": sums["buckets"].reshape(-1, record.BUCKETS),
    }


def _span_sums(spans: pd.DataFrame) -> Table:
    """The same, from the spans of a launch that are complete."""
    spans = spans[spans["complete"]]
    keys = ["cta", "warp", "region"]
    order = np.lexsort([spans[key].to_numpy() for key in reversed(keys)])
    sorted_keys = {key: spans[key].to_numpy()[order] for key in keys}
    cycles = spans["duration_cycles"].to_numpy()[order]
    changes = np.zeros(len(order), np.bool_)
    changes[:1] = True
    for column in sorted_keys.values():
        changes[1:] |= column[1:] != column[:-1]
    first = np.flatnonzero(changes)
    group = np.cumsum(changes) - 1
    total, most = _reduce(np.add, cycles, first), _reduce(np.maximum, cycles, first)
    squares = _reduce(np.add, cycles.astype(np.uint64) ** np.uint64(2), first).astype(np.float64)
    buckets = np.bincount(group * record.BUCKETS + bucket_of(cycles), minlength=len(first) * record.BUCKETS)
    return {
        **{key: column[first] for key, column in sorted_keys.items()},
        "sm": spans["sm"].to_numpy()[order][first],
        "count": np.diff(np.append(first, len(order))),
        "total_cycles": total,
        "min_cycles": _reduce(np.minimum, cycles, first),
        "max_cycles": most,
        "squares_cycles2": np.where(total.astype(np.float64) * most < 2.0**64, squares, np.nan),
        "buckets": buckets.reshape(-1, record.BUCKETS),
    }


def _reduce(operation: np.ufunc, values: NDArray[Any], first: NDArray[np.int64]) -> NDArray[Any]:
    return np.asarray(operation.reduceat(values, first)) if len(first) else values[:0]


def _described(launch: DecodedLaunch, sums: Table) -> Table:
    """`sums` with what the layout says of its regions and warps, and with means and deviations."""
    layout, region, count = launch.layout, sums["region"], sums["count"]
    buckets = sums.pop("buckets")
    mean = sums["total_cycles"] / np.maximum(count, 1)
    variance = sums["squares_cycles2"] / np.maximum(count, 1) - mean**2
    roles = np.array(layout.role_names, object)[np.array(layout.role_of_warp(), np.int32)]
    return {
        **sums,
        "launch": np.full(len(count), launch.number, np.int32),
        "kernel": np.full(len(count), launch.record.kernel.name, object),
        "role": roles[sums["warp"]],
        "depth": np.array(depths_of(layout), np.int16)[region],
        **{
            name: np.array([getattr(each, name) for each in layout.regions], _dtype(name))[region]
            for name in ("parent", "name", "kind", "file", "line")
        },
        "mean_cycles": mean,
        "std_cycles": np.sqrt(np.maximum(variance, 0.0)),
        **{name: buckets[:, power].astype(np.int64) for power, name in enumerate(BUCKET_COLUMNS)},
    }


def depths_of(layout: BufferLayout) -> list[int]:
    """How many regions are around each region."""
    depths: list[int] = []
    for region in layout.regions:  # Parents come first.
        depths.append(0 if region.parent < 0 else depths[region.parent] + 1)
    return depths

"""The table of `Timeline.summary`: where the time goes, and how unevenly warps share it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kperfir.analysis.grouped import group_by, number
from kperfir.analysis.self_time import self_cycles
from kperfir.analysis.wait_time import wait_cycles

if TYPE_CHECKING:
    import pandas as pd

SUMMARY_COLUMNS = [
    "kernel", "region", "name", "kind", "file", "line", "count", "incomplete", "total_cycles", "self_cycles",
    "wait_cycles", "mean_cycles", "p50_cycles", "p95_cycles", "min_cycles", "max_cycles", "share", "self_share",
    "wait_share", "warps", "warp_min_cycles", "warp_max_cycles", "warp_spread",
]  # fmt: skip


def summarise(
    spans: pd.DataFrame, tracks: np.ndarray[Any, np.dtype[np.int64]], kernel_cycles: dict[str, int]
) -> pd.DataFrame:
    """The columns of `Timeline.summary`, which says what they are.

    Args:
        spans: As `Timeline.spans`.
        tracks: For each, the row of its warp in `Timeline.tracks`.
        kernel_cycles: Per kernel, what shares are shares of.
    """
    groups = group_by(spans["kernel"], spans["name"], spans["kind"])
    duration, complete = spans["duration_cycles"].to_numpy(), spans["complete"].to_numpy()
    of_region = ["kernel", "region", "name", "kind", "file", "line"]
    table = spans[of_region].iloc[groups.first].reset_index(drop=True)
    executions = groups.sum(complete)
    table["count"], table["incomplete"] = groups.sizes, groups.sizes - executions
    for name, cycles in (("total", duration), ("self", self_cycles(spans)), ("wait", wait_cycles(spans))):
        table[f"{name}_cycles"] = groups.sum(cycles)
    with np.errstate(invalid="ignore"):
        table["mean_cycles"] = groups.sum(np.where(complete, duration, 0)) / executions
    quantiles = groups.quantiles(duration, complete, (0.5, 0.95, 0.0, 1.0))
    table["p50_cycles"], table["p95_cycles"], table["min_cycles"], table["max_cycles"] = quantiles
    busy = table["kernel"].astype(object).map(kernel_cycles).to_numpy(np.float64)
    for name, part in (("share", "total"), ("self_share", "self"), ("wait_share", "wait")):
        table[name] = np.divide(table[f"{part}_cycles"], busy, out=np.zeros(len(table)), where=busy != 0)
    warps = number(groups.number, tracks)
    totals, region = warps.sum(duration), groups.number[warps.first]
    per_warp = number(region)
    table["warps"] = per_warp.sizes
    table["warp_min_cycles"], table["warp_max_cycles"] = per_warp.min(totals), per_warp.max(totals)
    table["warp_spread"] = groups.spread(duration, number(tracks), np.ones(len(spans), np.bool_))
    rank = table["kernel"].astype(object).map({kernel: row for row, kernel in enumerate(kernel_cycles)})
    order = np.lexsort((table["name"].astype(str), table["region"], rank))
    return table.iloc[order].reset_index(drop=True)[SUMMARY_COLUMNS]

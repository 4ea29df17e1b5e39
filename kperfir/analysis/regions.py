"""Statistics per region, source line or kind: where the time of a kernel goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from kperfir.analysis.self_time import self_cycles
from kperfir.analysis.wait_time import wait_cycles
from kperfir.analysis.warp_spread import warp_spread

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

KEYS = {
    "region": ("kernel", "name", "kind"),  # A name that is used in several places is one region here.
    "line": ("kernel", "file", "line"),
    "kind": ("kernel", "kind"),
}


def region_statistics(spans: pd.DataFrame, kernel_cycles: Mapping[str, float], by: str = "region") -> pd.DataFrame:
    """One row per group, kernels in the order of `kernel_cycles`, groups in program order.

    A span inside another of its own group (an iteration on the line of its loop) counts for neither count nor total,
    so no cycle counts twice. A span that lacks its end counts for the total, up to the last that is known of its warp,
    but not for mean and percentiles.

    Args:
        spans: As `Timeline.spans`.
        kernel_cycles: Per kernel, the lifetimes of its CTAs summed over their warps: what a share is a share of.
        by: Key of `KEYS`.

    Returns:
        The columns of ``KEYS[by]``, by region also ``file`` and ``line`` (of the first), then ``depth`` (of the
        outermost span), ``count``, ``incomplete`` (of count),
        ``total_cycles``, ``self_cycles``, ``wait_cycles`` (of the total, see `wait_time`; the rest is work),
        ``mean_cycles``, ``p50_cycles``, ``p95_cycles``, ``max_cycles``, ``mean_ns``, ``share``, ``self_share`` and
        ``wait_share`` (1.0 is all warps all the time), ``warp_spread`` (see `warp_spread`).
        By region they agree with `Timeline.summary`.
    """
    keys = list(KEYS[by])
    # Grouping by a number, not by five columns, again and again.
    group = spans.groupby(keys, observed=True, sort=False).ngroup().to_numpy()
    all_spans = spans.groupby(group)
    outermost_rows = _outermost(spans["parent"].to_numpy(), group)
    outermost, outermost_group = spans[outermost_rows], group[outermost_rows]
    counted = outermost.groupby(outermost_group)
    complete_rows = outermost["complete"].to_numpy()
    complete = outermost[complete_rows].groupby(outermost_group[complete_rows])

    shown = [*keys, "file", "line"] if by == "region" else keys
    table = all_spans[shown].first().join(all_spans[["region", "depth"]].min())
    table["count"] = counted.size()
    table["incomplete"] = table["count"] - counted["complete"].sum()
    table["total_cycles"] = counted["duration_cycles"].sum()
    table["self_cycles"] = pd.Series(self_cycles(spans), spans.index).groupby(group).sum()
    table["wait_cycles"] = pd.Series(wait_cycles(spans)[outermost_rows]).groupby(outermost_group).sum()
    durations = complete["duration_cycles"]
    table["mean_cycles"] = durations.mean()
    table["p50_cycles"] = durations.quantile(0.5)
    table["p95_cycles"] = durations.quantile(0.95)
    table["max_cycles"] = durations.max()
    table["mean_ns"] = complete["duration_ns"].mean()
    table["warp_spread"] = warp_spread(outermost, outermost_group)
    kernels = table["kernel"].astype(object)
    lifetime = kernels.map(dict(kernel_cycles)).astype("float64")
    table["share"] = table["total_cycles"] / lifetime
    table["self_share"] = table["self_cycles"] / lifetime
    table["wait_share"] = table["wait_cycles"] / lifetime
    rank = kernels.map({kernel: number for number, kernel in enumerate(kernel_cycles)}).to_numpy()
    table = table.iloc[np.lexsort((table["region"], rank))].reset_index(drop=True)
    return table[
        [
            *shown, "depth", "count", "incomplete", "total_cycles", "self_cycles", "wait_cycles", "mean_cycles",
            "p50_cycles", "p95_cycles", "max_cycles", "mean_ns", "share", "self_share",
            "wait_share", "warp_spread",
        ]
    ]  # fmt: skip


def kernel_cycles_of(summary: pd.DataFrame) -> dict[str, float]:
    """What the shares in a `Timeline.summary` are shares of: per kernel, CTA lifetimes summed over warps."""
    cycles: dict[str, float] = {}
    for kernel, rows in summary.groupby("kernel", observed=True, sort=False):
        largest = rows.sort_values("share", na_position="first").iloc[-1]
        cycles[str(kernel)] = largest["total_cycles"] / largest["share"] if largest["share"] > 0 else float("nan")
    return cycles


def outermost_rows(spans: pd.DataFrame, by: str) -> NDArray[np.bool_]:
    """Rows of `spans` that count for their group: those in no other span of it."""
    group = spans.groupby(list(KEYS[by]), observed=True, sort=False).ngroup().to_numpy()
    return _outermost(spans["parent"].to_numpy(), group)


def _outermost(parent: NDArray[np.int64], group: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Rows none of whose ancestors is in their group."""
    outermost = np.ones(len(parent), np.bool_)
    rows = np.flatnonzero(parent >= 0)
    ancestor = parent[rows]
    while len(rows):
        outermost[rows[group[ancestor] == group[rows]]] = False
        ancestor = parent[ancestor]
        rows, ancestor = rows[ancestor >= 0], ancestor[ancestor >= 0]
    return outermost

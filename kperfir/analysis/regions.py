"""Statistics per region, source line or kind: where the time of a kernel goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from kperfir.analysis.self_time import self_cycles
from kperfir.analysis.warp_time import warp_cycles, warp_spread

if TYPE_CHECKING:
    from numpy.typing import NDArray

KEYS = {
    "region": ("kernel", "name", "kind", "file", "line"),
    "line": ("kernel", "file", "line"),
    "kind": ("kernel", "kind"),
}


def region_statistics(spans: pd.DataFrame, tracks: pd.DataFrame, by: str = "region") -> pd.DataFrame:
    """One row per group, in program order.

    A span inside another of its own group (an iteration on the line of its loop) counts for neither count nor total, so
    no cycle counts twice. A span that lacks its end counts for the total, up to the last that is known of its warp, but
    not for mean and percentiles.

    Args:
        spans: As `Timeline.spans`.
        tracks: As `Timeline.tracks`.
        by: Key of `KEYS`.

    Returns:
        The columns of ``KEYS[by]``, then ``depth`` (of the outermost span), ``count``, ``incomplete`` (of count),
        ``total_cycles``, ``self_cycles``, ``mean_cycles``, ``p50_cycles``, ``p95_cycles``, ``max_cycles``, ``mean_ns``,
        ``share`` and ``self_share`` (of the CTAs' time, summed over their warps: 1.0 is all warps all the time), and
        ``warp_spread`` (see `warp_time.warp_spread`).
    """
    keys = list(KEYS[by])
    groups = spans.groupby(keys, observed=True, sort=False)
    group = groups.ngroup().to_numpy()
    outermost = spans[_outermost(spans["parent"].to_numpy(), group)]
    complete = outermost[outermost["complete"]].groupby(keys, observed=True, sort=False)
    own = pd.Series(self_cycles(spans), spans.index).groupby(group).sum()
    first = groups[["region", "depth"]].min()

    table = first.join(
        outermost.groupby(keys, observed=True, sort=False).agg(
            count=("complete", "size"), complete=("complete", "sum"), total_cycles=("duration_cycles", "sum")
        )
    )
    table["incomplete"] = table["count"] - table["complete"]
    table["self_cycles"] = own.to_numpy()
    durations = complete["duration_cycles"]
    table["mean_cycles"] = durations.mean()
    table["p50_cycles"] = durations.quantile(0.5)
    table["p95_cycles"] = durations.quantile(0.95)
    table["max_cycles"] = durations.max()
    table["mean_ns"] = complete["duration_ns"].mean()
    table["warp_spread"] = warp_spread(outermost, keys)
    table = table.reset_index()
    lifetime = table["kernel"].map(warp_cycles(spans, tracks)).astype(float).replace(0.0, np.nan)
    table["share"] = (table["total_cycles"] / lifetime).fillna(0.0)
    table["self_share"] = (table["self_cycles"] / lifetime).fillna(0.0)
    table = table.sort_values(["kernel", "region"], kind="stable", ignore_index=True)
    return table[
        [
            *keys, "depth", "count", "incomplete", "total_cycles", "self_cycles", "mean_cycles", "p50_cycles",
            "p95_cycles", "max_cycles", "mean_ns", "share", "self_share", "warp_spread",
        ]
    ]  # fmt: skip


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

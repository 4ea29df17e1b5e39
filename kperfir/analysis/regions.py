"""Statistics per region, source line or kind: where the time of a kernel goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kperfir.analysis.grouped import Groups, group_by, number, tracks_of
from kperfir.analysis.self_time import self_cycles
from kperfir.analysis.wait_time import wait_cycles

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd
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
        ``wait_share`` (1.0 is all warps all the time), ``warp_spread`` (see `grouped.Groups.spread`).
        By region they agree with `Timeline.summary`.
    """
    keys = list(KEYS[by])
    groups = group_by(*(spans[key] for key in keys))
    outermost = _outermost(spans["parent"].to_numpy(), groups)
    complete = outermost & spans["complete"].to_numpy()
    duration = spans["duration_cycles"].to_numpy()

    shown = [*keys, "file", "line"] if by == "region" else keys
    table = spans[shown].iloc[groups.first].reset_index(drop=True)
    table["region"] = groups.min(spans["region"].to_numpy())
    table["depth"] = groups.min(spans["depth"].to_numpy())
    table["count"] = groups.sum(outermost)
    executions = groups.sum(complete)
    table["incomplete"] = table["count"] - executions
    table["total_cycles"] = groups.sum(np.where(outermost, duration, 0))
    table["self_cycles"] = groups.sum(self_cycles(spans))
    table["wait_cycles"] = groups.sum(np.where(outermost, wait_cycles(spans), 0))
    with np.errstate(invalid="ignore"):
        table["mean_cycles"] = groups.sum(np.where(complete, duration, 0)) / executions
        table["mean_ns"] = groups.sum(np.where(complete, spans["duration_ns"].to_numpy(), 0.0)) / executions
    at = (0.5, 0.95, 1.0)
    table["p50_cycles"], table["p95_cycles"], table["max_cycles"] = groups.quantiles(duration, complete, at)
    table["warp_spread"] = groups.spread(duration, tracks_of(spans), outermost)
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


def outermost_rows(spans: pd.DataFrame, by: str) -> NDArray[np.bool_]:
    """Rows of `spans` that count for their group: those in no other span of it."""
    return _outermost(spans["parent"].to_numpy(), group_by(*(spans[key] for key in KEYS[by])))


def _outermost(parent: NDArray[np.int64], groups: Groups) -> NDArray[np.bool_]:
    """Rows none of whose ancestors is in their group."""
    group = groups.number
    outermost = np.ones(len(parent), np.bool_)
    rows = np.flatnonzero(_may_nest(parent, groups) & (parent >= 0))
    ancestor = parent[rows]
    while len(rows):
        outermost[rows[group[ancestor] == group[rows]]] = False
        ancestor = parent[ancestor]
        rows, ancestor = rows[ancestor >= 0], ancestor[ancestor >= 0]
    return outermost


def _may_nest(parent: NDArray[np.int64], groups: Groups) -> NDArray[np.bool_]:
    """Which rows are of a group that some chain of parents leads back to; few are, and only they need a closer look."""
    group = groups.number
    pairs = number(np.where(parent >= 0, group[parent], -1), group)
    inside: dict[int, set[int]] = {}
    for row in pairs.first.tolist():
        if parent[row] >= 0:
            inside.setdefault(int(group[parent[row]]), set()).add(int(group[row]))
    nests = np.zeros(groups.count, np.bool_)
    for start in inside:
        reached: set[int] = set()
        waiting = list(inside[start])
        while waiting:
            reached.add(waiting[-1])
            waiting += inside.get(waiting.pop(), set()) - reached
        nests[start] = start in reached
    return nests[group]

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

    from kperfir.capture.totals import Totals

KEYS = {
    "region": ("kernel", "name", "kind"),  # A name that is used in several places is one region here.
    "line": ("kernel", "file", "line"),
    "kind": ("kernel", "kind"),
}
_QUANTILES = (0.5, 0.95, 1.0)


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
    groups = group_by(*(spans[key] for key in KEYS[by]))
    outermost = _outermost(spans["parent"].to_numpy(), groups)
    complete = outermost & spans["complete"].to_numpy()
    duration = spans["duration_cycles"].to_numpy()
    table = _of_groups(spans, groups, outermost, by)
    executions = groups.sum(complete)
    table["count"] = groups.sum(outermost)
    table["incomplete"] = table["count"] - executions
    with np.errstate(invalid="ignore"):
        table["mean_cycles"] = groups.sum(np.where(complete, duration, 0)) / executions
        table["mean_ns"] = groups.sum(np.where(complete, spans["duration_ns"].to_numpy(), 0.0)) / executions
    quantiles = groups.quantiles(duration, complete, _QUANTILES)
    table["p50_cycles"], table["p95_cycles"], table["max_cycles"] = quantiles
    return _with_shares(table, kernel_cycles, by)


def totals_statistics(totals: Totals, kernel_cycles: Mapping[str, float], by: str = "region") -> pd.DataFrame:
    """`region_statistics` of the same launches, from what their executions come to."""
    rows = totals.rows
    groups = group_by(*(rows[key] for key in KEYS[by]))
    outermost = _outermost(rows["parent"].to_numpy(), groups)
    table = _of_groups(rows, groups, outermost, by)
    count, executions, cycles = (
        groups.sum(np.where(outermost, rows[name].to_numpy(), 0))
        for name in ("count", "complete_count", "complete_cycles")
    )
    ns = rows["complete_cycles"].to_numpy() * rows["launch"].map(totals.ns_per_cycle).to_numpy(np.float64)
    table["count"], table["incomplete"] = count, count - executions
    with np.errstate(invalid="ignore"):
        table["mean_cycles"] = cycles / executions
        table["mean_ns"] = groups.sum(np.where(outermost, ns, 0.0)) / executions
    quantiles = _quantiles(totals, groups, outermost)
    table["p50_cycles"], table["p95_cycles"], table["max_cycles"] = quantiles
    return _with_shares(table, kernel_cycles, by)


def _quantiles(totals: Totals, groups: Groups, outermost: NDArray[np.bool_]) -> NDArray[np.float64]:
    """`_QUANTILES` of the durations of each group."""
    rows = totals.rows
    first = group_by(rows["launch"], rows["region"]).first
    parts: list[list[NDArray[np.int64]]] = [[] for _ in range(groups.count)]
    for row in first[outermost[first]].tolist():
        durations = totals.durations[int(rows["launch"].iat[row]), int(rows["region"].iat[row])]
        if len(durations):
            parts[groups.number[row]].append(durations)
    result = np.full((len(_QUANTILES), groups.count), np.nan)
    for group, of_group in enumerate(parts):
        if of_group:
            result[:, group] = np.quantile(np.concatenate(of_group), _QUANTILES)
    return result


def _of_groups(rows: pd.DataFrame, groups: Groups, outermost: NDArray[np.bool_], by: str) -> pd.DataFrame:
    """What adds up, of spans and of totals alike."""
    duration = rows["duration_cycles"].to_numpy()
    table = rows[_shown(by)].iloc[groups.first].reset_index(drop=True)
    table["region"] = groups.min(rows["region"].to_numpy())
    table["depth"] = groups.min(rows["depth"].to_numpy())
    table["total_cycles"] = groups.sum(np.where(outermost, duration, 0))
    table["self_cycles"] = groups.sum(self_cycles(rows))
    table["wait_cycles"] = groups.sum(np.where(outermost, wait_cycles(rows), 0))
    table["warp_spread"] = groups.spread(duration, tracks_of(rows), outermost)
    return table


def _with_shares(table: pd.DataFrame, kernel_cycles: Mapping[str, float], by: str) -> pd.DataFrame:
    kernels = table["kernel"].astype(object)
    lifetime = kernels.map(dict(kernel_cycles)).astype("float64")
    table["share"] = table["total_cycles"] / lifetime
    table["self_share"] = table["self_cycles"] / lifetime
    table["wait_share"] = table["wait_cycles"] / lifetime
    rank = kernels.map({kernel: number for number, kernel in enumerate(kernel_cycles)}).to_numpy()
    table = table.iloc[np.lexsort((table["region"], rank))].reset_index(drop=True)
    return table[
        [
            *_shown(by), "depth", "count", "incomplete", "total_cycles", "self_cycles", "wait_cycles", "mean_cycles",
            "p50_cycles", "p95_cycles", "max_cycles", "mean_ns", "share", "self_share",
            "wait_share", "warp_spread",
        ]
    ]  # fmt: skip


def _shown(by: str) -> list[str]:
    return [*KEYS[by], "file", "line"] if by == "region" else list(KEYS[by])


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

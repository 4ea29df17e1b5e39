"""Statistics per region, source line or kind from sums of executions, where single ones were not recorded.

    table = sums_statistics(timeline.aggregates, kernel_cycles, "region")

The same figures as `kperfir.analysis.regions` and `Timeline.summary` give of spans, as far as sums have them: waits,
percentiles and corrections need single executions, and are nan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from kperfir.analysis.regions import KEYS
from kperfir.capture.aggregates import BUCKET_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Mapping

_UNKNOWN = (
    "wait_cycles", "p50_cycles", "p95_cycles", "wait_share", "mean_ns", "corrected_cycles", "uncertainty_cycles",
)  # fmt: skip


def sums_statistics(aggregates: pd.DataFrame, kernel_cycles: Mapping[str, float], by: str = "region") -> pd.DataFrame:
    """One row per group, kernels in the order of `kernel_cycles`, groups in program order.

    A region inside another of its own group (an iteration on the line of its loop) counts for neither count nor total.

    Args:
        aggregates: `Timeline.aggregates`.
        kernel_cycles: Per kernel, the lifetimes of its CTAs summed over their warps: what a share is a share of.
        by: Key of `KEYS`.

    Returns:
        The columns of ``KEYS[by]``, by region also ``file`` and ``line``, then ``region``, ``depth``, ``count``,
        ``incomplete`` (0), ``total_cycles``, ``self_cycles``, ``mean_cycles``, ``std_cycles``, ``min_cycles``,
        ``max_cycles``, ``share``, ``self_share``, ``warps``, ``warp_min_cycles``, ``warp_max_cycles``,
        ``warp_spread``, ``histogram`` (a list: executions by the power of two of their cycles), and nan for the rest.
    """
    keys = list(KEYS[by])
    shown = [*keys, "file", "line"] if by == "region" else keys
    rows = aggregates.assign(self_cycles=_self_cycles(aggregates), outermost=_outermost(aggregates, keys))
    rank = {kernel: number for number, kernel in enumerate(kernel_cycles)}
    table = []
    for _, group in rows.groupby(keys, observed=True, sort=False):
        first, outer = group.iloc[0], group[group["outermost"]]
        figures = _figures(outer) | {"self_cycles": int(group["self_cycles"].sum())}
        lifetime = kernel_cycles[str(first["kernel"])]
        for share, cycles in (("share", "total_cycles"), ("self_share", "self_cycles")):
            figures[share] = figures[cycles] / lifetime if lifetime else 0.0
        place = {"region": int(group["region"].min()), "depth": int(group["depth"].min()), "incomplete": 0}
        table.append({**first[shown], **place, **figures, **dict.fromkeys(_UNKNOWN, float("nan"))})
    table.sort(key=lambda row: (rank[str(row["kernel"])], row["region"]))
    columns = [*shown, "region", "depth", "incomplete", *_FIGURES, "share", "self_share", *_UNKNOWN]
    return pd.DataFrame(table, columns=columns)


_FIGURES = (
    "count", "total_cycles", "self_cycles", "mean_cycles", "std_cycles", "min_cycles", "max_cycles", "warps",
    "warp_min_cycles", "warp_max_cycles", "warp_spread", "histogram",
)  # fmt: skip


def _figures(rows: pd.DataFrame) -> dict[str, Any]:
    count, total = int(rows["count"].sum()), int(rows["total_cycles"].sum())
    mean = total / count
    variance = rows["squares_cycles2"].sum(skipna=False) / count - mean**2
    of_warps = rows.groupby(["launch", "cta", "warp"], observed=True)["total_cycles"].sum()
    return {
        "count": count,
        "total_cycles": total,
        "mean_cycles": mean,
        "std_cycles": float(np.sqrt(np.maximum(variance, 0.0))),
        "min_cycles": int(rows["min_cycles"].min()),
        "max_cycles": int(rows["max_cycles"].max()),
        "warps": len(of_warps),
        "warp_min_cycles": int(of_warps.min()),
        "warp_max_cycles": int(of_warps.max()),
        "warp_spread": float(of_warps.std(ddof=0) / of_warps.mean()) if total else 0.0,
        "histogram": [int(executions) for executions in rows[list(BUCKET_COLUMNS)].sum()],
    }


def _self_cycles(aggregates: pd.DataFrame) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Of each row, its total less those of the regions directly inside it."""
    place = ["launch", "cta", "warp"]
    inside = aggregates.groupby([*place, "parent"], observed=True)["total_cycles"].sum()
    inside.index.names = [*place, "region"]
    keys = pd.MultiIndex.from_frame(aggregates[[*place, "region"]])
    taken = inside.reindex(keys).fillna(0).to_numpy().astype(np.int64)
    own: np.ndarray[Any, np.dtype[np.int64]] = aggregates["total_cycles"].to_numpy() - taken
    return own


def _outermost(aggregates: pd.DataFrame, keys: list[str]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Rows whose region is in no other region of its group."""
    regions = aggregates.drop_duplicates(["launch", "region"])
    group = dict(
        zip(
            zip(regions["launch"], regions["region"], strict=True),
            regions[keys].astype(object).itertuples(index=False, name=None),
            strict=True,
        )
    )
    parent = dict(zip(group, regions["parent"], strict=True))

    def is_outermost(launch: int, region: int) -> bool:
        above = parent[launch, region]
        while (launch, above) in group:
            if group[launch, above] == group[launch, region]:
                return False
            above = parent[launch, above]
        return True

    outermost = pd.Series({key: is_outermost(*key) for key in group}, dtype=bool)
    index = pd.MultiIndex.from_frame(aggregates[["launch", "region"]])
    return outermost.reindex(index).to_numpy(bool) if len(aggregates) else np.empty(0, np.bool_)

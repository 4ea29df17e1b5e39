"""Spread and confidence of the duration of each region.

Executions within a CTA are not independent of each other, CTAs nearly are. So with x_1 .. x_n the mean durations of a
region's complete executions in the n CTAs (of all launches) that executed it, m their mean and s their standard
deviation (n - 1)

    low, high = m -+ t * s / sqrt(n)

t the 97.5 % point of Student's distribution with n - 1 degrees of freedom: 95 % of such intervals hold the mean that
infinitely many CTAs would have. With one CTA there is no interval (NaN). ``std_cycles`` and the percentiles are over
single executions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kperfir.analysis.student import student

if TYPE_CHECKING:
    import pandas as pd

KEYS = ["kernel", "name", "kind"]
COLUMNS = [
    *KEYS, "file", "line", "count", "ctas", "mean_cycles", "low_cycles", "high_cycles", "std_cycles", "variation",
    "min_cycles", "p5_cycles", "p50_cycles", "p95_cycles", "max_cycles",
]  # fmt: skip


def region_confidence(spans: pd.DataFrame) -> pd.DataFrame:
    """One row per region that was executed completely, in program order.

    Args:
        spans: As `Timeline.spans`.

    Returns:
        ``kernel, name, kind, file, line, count``; ``ctas``, n above; ``mean_cycles``, m; ``low_cycles`` and
        ``high_cycles``; ``std_cycles``, of single executions, and ``variation``, that over their mean; percentiles.
    """
    complete = spans[spans["complete"]]
    groups = complete.groupby(KEYS, observed=True, sort=False)
    durations = groups["duration_cycles"]
    table = groups[["file", "line"]].first().join(groups["region"].min())
    table["count"] = groups.size()
    blocks = complete.groupby([*KEYS, "launch", "cta"], observed=True, sort=False)["duration_cycles"].mean()
    per_region = blocks.groupby(level=KEYS, observed=True, sort=False)
    table["ctas"] = per_region.size()
    table["mean_cycles"] = per_region.mean()
    error = per_region.std(ddof=1) / np.sqrt(table["ctas"])
    half = error * table["ctas"].map(lambda number: student(number - 1))
    table["low_cycles"], table["high_cycles"] = table["mean_cycles"] - half, table["mean_cycles"] + half
    table["std_cycles"] = durations.std(ddof=0)
    table["variation"] = (table["std_cycles"] / durations.mean()).fillna(0.0)
    for name, share in (("min", 0.0), ("p5", 0.05), ("p50", 0.5), ("p95", 0.95), ("max", 1.0)):
        table[f"{name}_cycles"] = durations.quantile(share)
    table = table.reset_index()
    rank = {kernel: number for number, kernel in enumerate(dict.fromkeys(complete["kernel"]))}
    order = np.lexsort((table["region"].to_numpy(), table["kernel"].map(rank).to_numpy()))
    return table.iloc[order].reset_index(drop=True)[COLUMNS]

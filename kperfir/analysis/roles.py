"""Work, wait and idle time of each role of warps.

For the warps of a role (a partition of a warp-specialised kernel, else all warps), summed over CTAs and launches:

    available = sum over its warps of the lifetime of their CTA, first start to last end of any warp
    wait      = cycles in regions that do nothing but wait (`kperfir.analysis.wait_time`)
    work      = cycles of the spans without a parent, less wait
    idle      = available - work - wait: the warp has not begun, has ended, or recorded nothing

so work, wait and idle add up to available.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kperfir.analysis.occupancy import cta_cycles
from kperfir.analysis.wait_time import wait_statistics

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = [
    "kernel", "role", "warps", "available_cycles", "work_cycles", "wait_cycles", "idle_cycles", "work_share",
    "wait_share", "idle_share",
]  # fmt: skip


def role_time(spans: pd.DataFrame) -> pd.DataFrame:
    """One row per kernel and role, in the order of the spans.

    Args:
        spans: As `Timeline.spans`.

    Returns:
        ``kernel, role``; ``warps``, of a CTA on average; the times of the formulae above in cycles; their shares of
        ``available_cycles``.
    """
    table = wait_statistics(spans, "role")
    lifetime = cta_cycles(spans)
    lifetime["available_cycles"] = lifetime["end_cycles"] - lifetime["start_cycles"]
    warps = spans.drop_duplicates(["launch", "cta", "warp"])[["launch", "cta", "kernel", "role"]]
    warps = warps.merge(lifetime[["launch", "cta", "available_cycles"]], on=["launch", "cta"])
    groups = warps.groupby(["kernel", "role"], observed=True)
    sums = groups["available_cycles"].sum().rename("available_cycles").to_frame()
    ctas = warps.drop_duplicates(["launch", "cta", "kernel", "role"]).groupby(["kernel", "role"], observed=True).size()
    sums["warps"] = groups.size() / ctas
    table = table.merge(sums.reset_index(), on=["kernel", "role"])
    table["idle_cycles"] = table["available_cycles"] - table["work_cycles"] - table["wait_cycles"]
    for part in ("work", "wait", "idle"):
        table[f"{part}_share"] = table[f"{part}_cycles"] / table["available_cycles"].where(
            table["available_cycles"] > 0
        )
    return table[COLUMNS]

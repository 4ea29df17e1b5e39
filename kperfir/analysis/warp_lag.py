"""How unevenly the warps of a CTA end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kperfir.analysis.grouped import group_by

if TYPE_CHECKING:
    import pandas as pd


def warp_lag(spans: pd.DataFrame) -> pd.DataFrame:
    """How long the warps of a CTA that share a role wait for the slowest of them.

    Args:
        spans: As `Timeline.spans`.

    Returns:
        One row per (launch, CTA, role): ``launch, kernel, cta, role, warp, lag_cycles``, the warp that ended last and
        how many cycles after the first.
    """
    keys = ["launch", "kernel", "cta", "role"]
    warps = group_by(*(spans[key] for key in [*keys, "warp"]))
    ends = spans[[*keys, "warp"]].iloc[warps.first].assign(end_cycles=warps.max(spans["end_cycles"].to_numpy()))
    ends = ends.sort_values([*keys, "warp"], ignore_index=True)
    groups = ends.groupby(keys, observed=True, sort=False)["end_cycles"]
    last = ends.loc[groups.idxmax()].reset_index(drop=True)
    lag = last["end_cycles"] - groups.min().to_numpy()
    return last[[*keys, "warp"]].assign(lag_cycles=lag)

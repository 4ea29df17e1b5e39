"""How unevenly warps share work: per region over all warps, and per CTA in when they end."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray


def warp_spread(spans: pd.DataFrame, group: NDArray[np.int64]) -> pd.Series:
    """Standard deviation over mean of the warps' total cycles in each group; 0 is even.

    A warp counts if it has a span in the group, so warps of other roles do not.

    Args:
        spans: As `Timeline.spans`.
        group: Number of each row's group, shape ``(rows,)``; the index of the result.
    """
    warp = spans.groupby(["launch", "cta", "warp"], sort=False).ngroup().to_numpy()
    per_warp = spans["duration_cycles"].groupby([group, warp]).sum()
    warps = per_warp.groupby(level=0)
    return (warps.std(ddof=0) / warps.mean()).fillna(0.0)


def warp_lag(spans: pd.DataFrame) -> pd.DataFrame:
    """How long the warps of a CTA that share a role wait for the slowest of them.

    Returns:
        One row per (launch, CTA, role): ``launch, kernel, cta, role, warp, lag_cycles``, the warp that ended last and
        how many cycles after the first.
    """
    keys = ["launch", "kernel", "cta", "role"]
    ends = spans.groupby([*keys, "warp"], observed=True)["end_cycles"].max().reset_index()
    groups = ends.groupby(keys, observed=True, sort=False)["end_cycles"]
    last = ends.loc[groups.idxmax()].reset_index(drop=True)
    lag = last["end_cycles"] - groups.min().to_numpy()
    return last[[*keys, "warp"]].assign(lag_cycles=lag)

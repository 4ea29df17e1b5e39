"""What regions are measured against: the time that the warps of a CTA live, and how unevenly they share a region."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Sequence


def cta_cycles(spans: pd.DataFrame) -> pd.DataFrame:
    """Lifetime of each CTA: ``launch, kernel, cta, sm, start_cycles, end_cycles, cycles``.

    From the first start to the last end of any of its warps, so it holds the time in which warps wait for the slowest.
    """
    grouped = spans.groupby(["launch", "cta"], sort=True, observed=True)
    ctas = grouped.agg(
        kernel=("kernel", "first"),
        sm=("sm", "first"),
        start_cycles=("start_cycles", "min"),
        end_cycles=("end_cycles", "max"),
    ).reset_index()
    return ctas.assign(cycles=ctas["end_cycles"] - ctas["start_cycles"])


def warp_cycles(spans: pd.DataFrame, tracks: pd.DataFrame) -> pd.Series:
    """Per kernel, the CTAs' lifetimes summed over their warps: what a region that fills all warps would take."""
    warps = tracks.groupby(["launch", "cta"]).size().rename("warps").reset_index()
    ctas = cta_cycles(spans).merge(warps, on=["launch", "cta"])
    return (ctas["cycles"] * ctas["warps"]).groupby(ctas["kernel"], observed=True).sum()


def warp_spread(spans: pd.DataFrame, by: Sequence[str]) -> pd.Series:
    """How unevenly the warps of a CTA spend time in each group of `by`: 0 is even, near 1 is one warp doing it all.

    In each CTA, slowest less fastest warp, of the warps that enter the group at all; summed over CTAs, as a share of
    the slowest warps' time.
    """
    per_warp = spans.groupby([*by, "launch", "cta", "warp"], observed=True)["duration_cycles"].sum()
    per_cta = per_warp.groupby([*by, "launch", "cta"], observed=True).agg(["min", "max"])
    sums = per_cta.groupby(list(by), observed=True).sum()
    return ((sums["max"] - sums["min"]) / sums["max"]).fillna(0.0)


def slowest_warp(spans: pd.DataFrame) -> pd.DataFrame:
    """Which warp of each CTA ended last, how many cycles after the first: ``launch, cta, warp, lag_cycles``."""
    ends = spans.groupby(["launch", "cta", "warp"], observed=True)["end_cycles"].max().reset_index()
    last = ends.loc[ends.groupby(["launch", "cta"])["end_cycles"].idxmax()].reset_index(drop=True)
    first = ends.groupby(["launch", "cta"])["end_cycles"].min().to_numpy()
    return pd.DataFrame(
        {
            "launch": last["launch"],
            "cta": last["cta"],
            "warp": last["warp"],
            "lag_cycles": last["end_cycles"] - first,
        }
    )

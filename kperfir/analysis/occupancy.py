"""How many CTAs the SMs held, and for how long they held none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from kperfir.analysis.grouped import group_by

if TYPE_CHECKING:
    from numpy.typing import NDArray


def cta_cycles(spans: pd.DataFrame) -> pd.DataFrame:
    """Where and when each CTA of `Timeline.spans`, or of `Timeline.totals`, ran: a row for each, by launch and CTA.

    Returns:
        ``launch, cta, kernel, sm``; ``start_cycles, end_cycles``, first start to last end of its warps, on the clock of
        its SM.
    """
    ctas = group_by(spans["launch"], spans["cta"])
    table = spans[["launch", "cta", "kernel", "sm"]].iloc[ctas.first]
    extent = {
        "start_cycles": ctas.min(spans["start_cycles"].to_numpy()),
        "end_cycles": ctas.max(spans["end_cycles"].to_numpy()),
    }
    return table.assign(**extent).sort_values(["launch", "cta"], ignore_index=True)


def sm_occupancy(spans: pd.DataFrame) -> pd.DataFrame:
    """One row per (launch, SM) that recorded a CTA.

    Returns:
        ``launch, kernel, sm, ctas``; ``cycles``, from the first start to the last end on the SM; ``busy_share``, the
        part of them in which a CTA was resident; ``mean_resident``, CTAs resident averaged over them; ``max_resident``.
        CTAs that recorded nothing are unknown here: with sampling, all but the counts are lower bounds.
    """
    rows = []
    for (launch, sm), ctas in cta_cycles(spans).groupby(["launch", "sm"], sort=True):
        start, end = ctas["start_cycles"].to_numpy(), ctas["end_cycles"].to_numpy()
        busy, area, most = _residency(start, end)
        cycles = int(end.max() - start.min())
        rows.append(
            {
                "launch": launch,
                "kernel": ctas["kernel"].iloc[0],
                "sm": sm,
                "ctas": len(ctas),
                "cycles": cycles,
                "busy_share": busy / cycles if cycles else 0.0,
                "mean_resident": area / cycles if cycles else 0.0,
                "max_resident": most,
            }
        )
    columns = ["launch", "kernel", "sm", "ctas", "cycles", "busy_share", "mean_resident", "max_resident"]
    return pd.DataFrame(rows, columns=columns)


def _residency(start: NDArray[np.int64], end: NDArray[np.int64]) -> tuple[int, int, int]:
    """Cycles with a CTA resident, CTA-cycles, and the most CTAs resident at once."""
    times = np.r_[start, end]
    change = np.r_[np.ones(len(start), np.int64), -np.ones(len(end), np.int64)]
    order = np.lexsort((change, times))  # A CTA that ends makes room for one that starts in the same cycle.
    resident = np.cumsum(change[order])
    length = np.diff(times[order])
    return int(length[resident[:-1] > 0].sum()), int((end - start).sum()), int(resident.max(initial=0))

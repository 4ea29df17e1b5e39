"""How evenly CTAs fill the SMs of a launch: waves, tail, imbalance.

With c CTAs of the grid, s SMs of the device and r the most CTAs that an SM holds at once (what the device says, else
the most that was seen)

    places    = s * r
    waves     = c / places
    wave_fill = waves / ceil(waves): 1.0 if the last wave is full

An SM is busy while it holds a CTA. With b_i the busy cycles of SM i, 0 for one without a CTA, and e_i the end of its
last CTA, t the length from the launch's first start to its last end

    imbalance  = max b_i / mean b_i, over the SMs that had a CTA
    sm_busy    = sum b_i / (s * t)
    tail       = t - (time until the first SM that had a CTA has none left), as cycles
    tail_share = sum over these SMs of (last end - e_i) / (number of them * t): what their idle end costs

Where CTAs of a launch are not recorded, it is not known which SMs they were on and when: how many SMs were used, how
busy they were, imbalance and tail are NaN, and so are waves, unless the device says how many SMs it has and how many
CTAs one holds.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pandas as pd

from kperfir.analysis.occupancy import cta_cycles, sm_occupancy

if TYPE_CHECKING:
    from collections.abc import Mapping

COLUMNS = [
    "launch", "kernel", "ctas", "sms", "sms_used", "ctas_per_sm", "waves", "wave_fill", "sm_busy", "imbalance",
    "tail_cycles", "tail_share", "cta_spread",
]  # fmt: skip
_OF_WHOLE = ("sm_busy", "imbalance", "tail_cycles", "tail_share")
_NAN = float("nan")


def waves(
    spans: pd.DataFrame, launches: pd.DataFrame, sms: int = 0, ctas_per_sm: Mapping[int, int] | None = None
) -> pd.DataFrame:
    """One row per launch that recorded a CTA.

    Args:
        spans: As `Timeline.spans`, or the rows of `Timeline.totals`.
        launches: As `Timeline.launches`.
        sms: SMs of the device; if 0, those that were seen.
        ctas_per_sm: By launch, how many CTAs an SM can hold; where not given, the most that one did.

    Returns:
        ``launch, kernel``; ``ctas`` of the grid, ``sms``, ``sms_used``, ``ctas_per_sm``; the figures above, lengths in
        cycles; ``cta_spread``, standard deviation over mean of the CTAs' cycles.
    """
    ctas = cta_cycles(spans)
    ctas["cycles"] = ctas["end_cycles"] - ctas["start_cycles"]
    occupancy = sm_occupancy(spans)
    totals = launches.set_index("launch")["ctas_total"]
    rows = []
    for launch, own in ctas.groupby("launch", sort=True):
        seen = occupancy[occupancy["launch"] == launch]
        number = int(totals.get(launch, len(own)))
        whole = len(own) >= number
        held = (ctas_per_sm or {}).get(int(launch), 0) or (int(seen["max_resident"].max()) if whole else 0)
        all_sms = max(sms, len(seen)) if sms or whole else 0
        full = number / (all_sms * held) if held and all_sms else _NAN
        mean = own["cycles"].mean()
        rows.append(
            {
                "launch": launch, "kernel": str(own["kernel"].iloc[0]), "ctas": number, "sms": all_sms,
                "sms_used": len(seen) if whole else _NAN, "ctas_per_sm": held, "waves": full,
                "wave_fill": full / math.ceil(full) if full > 0 else _NAN,
                **(_ends(own, seen, all_sms) if whole else dict.fromkeys(_OF_WHOLE, _NAN)),
                "cta_spread": own["cycles"].std(ddof=0) / mean if mean > 0 else 0.0,
            }
        )  # fmt: skip
    return pd.DataFrame(rows, columns=COLUMNS)


def _ends(ctas: pd.DataFrame, occupancy: pd.DataFrame, sms: int) -> dict[str, float]:
    """How evenly the SMs of a launch work, and how they end; see the module's formulae."""
    busy = occupancy["cycles"] * occupancy["busy_share"]
    ends = ctas.groupby("sm")["end_cycles"].max()
    length = int(ctas["end_cycles"].max() - ctas["start_cycles"].min())
    return {
        "sm_busy": busy.sum() / (sms * length) if length else 0.0,
        "imbalance": busy.max() / busy.mean() if busy.mean() > 0 else 1.0,
        "tail_cycles": int(ends.max() - ends.min()),
        "tail_share": (ends.max() - ends).sum() / (len(ends) * length) if length else 0.0,
    }

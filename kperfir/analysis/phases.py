"""How the time of a CTA divides into what comes before its loops, the loops filling, steady and draining, and after.

Per launch, CTA and warp, with the loops that lie in no other loop:

    prologue = from the warp's first start to the first iteration's start
    between  = from one loop's last iteration to the next loop's first
    epilogue = from the last iteration's end to the warp's last end

Within a loop let m be the median duration of its iterations. Iterations before the first that takes at most
(1 + `TOLERANCE`) * m fill the pipeline, those after the last such one drain it, the others are steady. The time of the
loop around its iterations belongs to where it lies.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from kperfir.analysis.bubbles import iteration_of

TOLERANCE = 0.1
PHASES = ("prologue", "fill", "steady", "drain", "between", "epilogue")
COLUMNS = ["kernel", "role", "phase", "cycles", "share", "iterations"]


def phases(spans: pd.DataFrame) -> pd.DataFrame:
    """One row per kernel, role and phase; roles without a loop are left out.

    Args:
        spans: As `Timeline.spans`.

    Returns:
        ``kernel, role, phase`` (of `PHASES`); ``cycles`` of a warp on average; ``share``, of the sum of the phases;
        ``iterations`` of a warp on average, of the loops that lie in no other.
    """
    around = iteration_of(spans)
    outer = spans[(spans["kind"] == "iteration").to_numpy() & (around < 0)]
    ends = spans.groupby(["launch", "cta", "warp"]).agg(first=("start_cycles", "min"), last=("end_cycles", "max"))
    rows = []
    for (launch, cta, warp), own in outer.groupby(["launch", "cta", "warp"], sort=False):
        first, last = ends.loc[(launch, cta, warp)]
        parts = _phases_of_warp(own, int(first), int(last))
        place = {"kernel": str(own["kernel"].iloc[0]), "role": str(own["role"].iloc[0])}
        rows += [{**place, "phase": name, "cycles": parts[name][0], "iterations": parts[name][1]} for name in PHASES]
    if not rows:
        return pd.DataFrame(columns=COLUMNS)
    table = pd.DataFrame(rows).groupby(["kernel", "role", "phase"], sort=False).mean().reset_index()
    table["share"] = table["cycles"] / table.groupby(["kernel", "role"], sort=False)["cycles"].transform("sum")
    return table[COLUMNS]


def _phases_of_warp(iterations: pd.DataFrame, first: int, last: int) -> dict[str, tuple[float, int]]:
    """Cycles and iterations of each phase."""
    start, end = iterations["start_cycles"].to_numpy(), iterations["end_cycles"].to_numpy()
    loops = np.flatnonzero(np.r_[True, np.diff(iterations["parent"].to_numpy()) != 0])
    cycles = dict.fromkeys(PHASES, 0.0)
    counts = dict.fromkeys(PHASES, 0)
    cycles["prologue"], cycles["epilogue"] = float(start[0] - first), float(last - end[-1])
    cycles["between"] = float((start[loops[1:]] - end[loops[1:] - 1]).sum())
    for begin, stop in zip(loops, [*loops[1:], len(start)], strict=True):
        durations = end[begin:stop] - start[begin:stop]
        even = np.flatnonzero(durations <= (1 + TOLERANCE) * np.median(durations))
        bounds = (begin, begin + even[0], begin + even[-1] + 1, stop)
        for name, low, high in zip(("fill", "steady", "drain"), bounds, bounds[1:], strict=False):
            if high > low:
                cycles[name] += float(end[high - 1] - start[low])
                counts[name] += int(high - low)
    return {name: (cycles[name], counts[name]) for name in PHASES}

"""Wait time apart from work time: what warps spend in regions that do nothing but wait.

A span of one of `WAIT_KINDS` is a wait, all of it. With d its duration, the wait of any span s is

    wait(s) = d(s)                                   if s is a wait
    wait(s) = sum of wait(c) over its children c     else
    work(s) = d(s) - wait(s)

so each cycle of a warp is work or wait once, and those of a span are those of its parts. Seen is only what waits in a
region of its own: where hardware holds an instruction back until its operands are there (a value that a load has not
brought yet), that is work of the region in which it is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from kperfir._native import trace

from kperfir.analysis.grouped import group_by

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Cycles = NDArray[np.int64]
    Rows = NDArray[np.int64]

WAIT_KINDS = ("async_wait", "barrier", "mbarrier_wait", "wgmma_wait")
LEVELS = {"kernel": ("kernel",), "role": ("kernel", "role"), "warp": ("kernel", "role", "warp")}


def wait_cycles(spans: pd.DataFrame, parent: Rows | None = None) -> Cycles:
    """Cycles of each span that its warp waits in, by the formula above.

    Args:
        spans: As `Timeline.spans`.
        parent: For each, its parent's row among them, which is an earlier one, or -1; default: as the column says,
            which counts the rows of the whole table.
    """
    parent = spans["parent"].to_numpy() if parent is None else parent
    duration = np.ascontiguousarray(spans["duration_cycles"], np.int64)
    return trace.sum_outermost(np.ascontiguousarray(parent, np.int64), duration, is_wait(spans))


def outermost_waits(spans: pd.DataFrame) -> NDArray[np.bool_]:
    """Rows that are waits and lie in no other wait: what to add up."""
    parent, waits = spans["parent"].to_numpy(), is_wait(spans)
    outer = waits.copy()
    rows = np.flatnonzero(waits)
    above = parent[rows]
    while len(rows):
        known = above >= 0
        rows, above = rows[known], above[known]
        outer[rows[waits[above]]] = False
        above = parent[above]
    return outer


def is_wait(spans: pd.DataFrame) -> NDArray[np.bool_]:
    """Rows whose kind is one of `WAIT_KINDS`."""
    kinds = pd.Categorical(spans["kind"])
    mask: NDArray[np.bool_] = np.append(kinds.categories.isin(WAIT_KINDS), False)[kinds.codes]
    return mask


def wait_statistics(spans: pd.DataFrame, by: str = "kernel") -> pd.DataFrame:
    """Work and wait of whole kernels, of roles (partitions) or of warps, over all CTAs and launches.

    Args:
        spans: As `Timeline.spans`.
        by: Key of `LEVELS`. Of several CTAs, warps of the same number and role are taken together.

    Returns:
        The columns of ``LEVELS[by]``; ``cycles``, the durations of the spans without a parent; ``work_cycles`` and
        ``wait_cycles``, which add up to that; and ``<kind>_cycles`` for each of `WAIT_KINDS`, which add up to
        ``wait_cycles``. Rows are in the order of the spans.
    """
    return rolled_up(wait_of_warps(spans), by)


def wait_of_warps(spans: pd.DataFrame) -> pd.DataFrame:
    """`wait_statistics` by warp, of which those by role and by kernel are sums."""
    keys = list(LEVELS["warp"])
    counted = outermost_waits(spans)
    outer = counted.copy()
    counted |= spans["parent"].to_numpy() < 0
    rows = spans[[*keys, "kind", "parent", "duration_cycles"]][counted]
    duration, outer = rows["duration_cycles"].to_numpy(), outer[counted]
    groups = group_by(*(rows[key] for key in keys))
    table = rows[keys].iloc[groups.first]
    table["cycles"] = groups.sum(np.where(rows["parent"].to_numpy() < 0, duration, 0))
    wait = groups.sum(np.where(outer, duration, 0))
    table["work_cycles"], table["wait_cycles"] = table["cycles"] - wait, wait
    for kind in WAIT_KINDS:
        table[f"{kind}_cycles"] = groups.sum(np.where(outer & (rows["kind"] == kind).to_numpy(), duration, 0))
    return table.sort_index().reset_index(drop=True)


def rolled_up(warps: pd.DataFrame, by: str) -> pd.DataFrame:
    """What `wait_of_warps` says, summed over the warps of a role or of a kernel."""
    return (
        warps.drop(columns=[*set(LEVELS["warp"]) - set(LEVELS[by])])
        .groupby(list(LEVELS[by]), observed=True, sort=False)
        .sum()
        .reset_index()
    )

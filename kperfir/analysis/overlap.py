"""Which kinds of work run at the same time in a CTA: how much of a load is hidden behind matrix products, say.

An activity of a CTA is the set of cycles in which at least one of its warps is in a region of a kind, or in which
asynchronous work of that kind is under way: ``<kind> in flight``, from its issue to the end of the wait that completed
it (`Timeline.flows`), an upper bound of the time that it really takes. For activities A and B

    share(A, B) = sum over CTAs of |A and B|  /  sum over CTAs of |A|

is the part of A's time in which B was active too: 1.0 on the diagonal; share(async_copy in flight, dot) is how much of
the copies ran behind products. ``waiting`` is any region that does nothing but wait; share(A, waiting) says how much
of A some warp waits through. ``alone`` is the part of A in which no other activity of the table (in-flight ones and
waiting left out) was under way.

Regions that are made of others (kernel, loop, iteration, prologue, epilogue, call, user) are no activities.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from kperfir.analysis.intervals import common, length, union
from kperfir.analysis.wait_time import WAIT_KINDS

if TYPE_CHECKING:
    from kperfir.analysis.intervals import Intervals

FRAMES = ("kernel", "loop", "iteration", "prologue", "epilogue", "call", "user", "mark")
IN_FLIGHT = " in flight"
WAITING = "waiting"


def overlap_matrix(spans: pd.DataFrame, flows: pd.DataFrame) -> pd.DataFrame:
    """One row per kernel and activity, kinds in the order of their first region.

    Args:
        spans: As `Timeline.spans`.
        flows: As `Timeline.flows`.

    Returns:
        ``kernel, activity``; ``cycles``, of the activity over all CTAs; ``alone``; then a column per activity with
        share(row, column). NaN where a kernel lacks the activity of the column.
    """
    parts = []
    for kernel, own in spans.groupby("kernel", observed=True, sort=False):
        leaves = own[~own["kind"].isin(FRAMES)]
        launches = own["launch"].unique()
        parts.append(_of_kernel(str(kernel), leaves, flows[flows["launch"].isin(launches)]))
    table = (
        pd.concat(parts, ignore_index=True)
        if parts
        else pd.DataFrame(columns=["kernel", "activity", "cycles", "alone"])
    )
    return table


def _of_kernel(kernel: str, leaves: pd.DataFrame, flows: pd.DataFrame) -> pd.DataFrame:
    kinds = [str(kind) for kind in dict.fromkeys(leaves.sort_values("region", kind="stable")["kind"])]
    flying = [f"{kind}{IN_FLIGHT}" for kind in dict.fromkeys(flows["kind"].astype(str))]
    names = [*kinds, *flying, *([WAITING] if any(kind in WAIT_KINDS for kind in kinds) else [])]
    both, alone = np.zeros((len(names), len(names))), np.zeros(len(names))
    flights = dict(iter(flows.groupby(["launch", "cta"], sort=False)))
    for key, cta in leaves.groupby(["launch", "cta"], sort=False):
        sets = _activities(cta, flights.get(key))
        working = [name for name in sets if name in kinds and name not in WAIT_KINDS]
        for row, name in enumerate(names):
            if name not in sets:
                continue
            for column, other in enumerate(names):
                if other in sets:
                    both[row, column] += common(sets[name], sets[other])
            others = [sets[other] for other in working if other != name]
            alone[row] += length(sets[name]) - common(sets[name], _together(others))
    cycles = np.diag(both)
    shares = np.divide(both, cycles[:, None], out=np.zeros_like(both), where=cycles[:, None] > 0)
    parts = np.divide(alone, cycles, out=np.zeros_like(alone), where=cycles > 0)
    table = pd.DataFrame({"kernel": kernel, "activity": names, "cycles": cycles.astype(np.int64), "alone": parts})
    return pd.concat([table, pd.DataFrame(shares, columns=names)], axis=1)


def _activities(cta: pd.DataFrame, flights: pd.DataFrame | None) -> dict[str, Intervals]:
    sets = {str(kind): _set(rows) for kind, rows in cta.groupby("kind", observed=True, sort=False)}
    waits = cta[cta["kind"].isin(WAIT_KINDS)]
    if len(waits):
        sets[WAITING] = _set(waits)
    if flights is not None:
        sets |= {f"{kind}{IN_FLIGHT}": _set(rows) for kind, rows in flights.groupby("kind", observed=True, sort=False)}
    return sets


def _set(rows: pd.DataFrame) -> Intervals:
    return union(rows["start_cycles"].to_numpy(), rows["end_cycles"].to_numpy())


def _together(sets: list[Intervals]) -> Intervals:
    if not sets:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    return union(np.concatenate([each[0] for each in sets]), np.concatenate([each[1] for each in sets]))

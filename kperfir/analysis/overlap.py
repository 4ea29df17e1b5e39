"""Which kinds of work run at the same time in a CTA: how much of a load is hidden behind matrix products, say.

An activity of a CTA is the set of cycles in which at least one of its warps is in a region of a kind, or in which
asynchronous work of that kind is under way: ``<kind> in flight``, from its issue to the end of the wait that completed
it (`Timeline.flows`), an upper bound of the time that it really takes. For activities A and B

    share(A, B) = sum over CTAs of |A and B|  /  sum over CTAs of |A|

is the part of A's time in which B was active too: 1.0 on the diagonal; share(async_copy in flight, dot) is how much of
the copies ran behind products. ``waiting`` is any region that does nothing but wait; share(A, waiting) says how much
of A some warp waits through. ``alone`` is the part of A in which no other activity of the table (in-flight ones and
waiting left out) was under way.

Regions that are made of others (kernel, loop, iteration, prologue, epilogue, call, user, between) are no activities.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from kperfir.analysis.intervals import common, exactly_one, length, together, union
from kperfir.analysis.wait_time import WAIT_KINDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kperfir.analysis.intervals import Intervals

FRAMES = ("kernel", "loop", "iteration", "prologue", "epilogue", "call", "user", "mark", "between")
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
    spans = spans[["launch", "kernel", "cta", "region", "kind", "start_cycles", "end_cycles"]]
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
    regions = leaves[["region", "kind"]].drop_duplicates().sort_values("region", kind="stable")
    kinds = [str(kind) for kind in dict.fromkeys(regions["kind"])]
    flying = [f"{kind}{IN_FLIGHT}" for kind in dict.fromkeys(flows["kind"].astype(str))]
    names = [*kinds, *flying, *([WAITING] if any(kind in WAIT_KINDS for kind in kinds) else [])]
    sets = _activities(leaves, flows)
    both = np.zeros((len(names), len(names)))
    for row, name in enumerate(names):
        for column in range(row, len(names)):
            both[row, column] = both[column, row] = common(sets[name], sets[names[column]])
    alone = _alone(names, sets, [kind for kind in kinds if kind not in WAIT_KINDS])
    cycles = np.diag(both)
    shares = np.divide(both, cycles[:, None], out=np.zeros_like(both), where=cycles[:, None] > 0)
    parts = np.divide(alone, cycles, out=np.zeros_like(alone), where=cycles > 0)
    table = pd.DataFrame({"kernel": kernel, "activity": names, "cycles": cycles.astype(np.int64), "alone": parts})
    return pd.concat([table, pd.DataFrame(shares, columns=names)], axis=1)


def _activities(leaves: pd.DataFrame, flows: pd.DataFrame) -> dict[str, Intervals]:
    """The cycles of each activity, of all CTAs on one axis."""
    leaves, flows = _on_one_axis(leaves, flows)
    sets = {str(kind): _set(rows) for kind, rows in leaves.groupby("kind", observed=True, sort=False)}
    sets[WAITING] = _set(leaves[leaves["kind"].isin(WAIT_KINDS)])
    kinds = flows["kind"].astype(str)
    return sets | {f"{kind}{IN_FLIGHT}": _set(flows[kinds == kind]) for kind in dict.fromkeys(kinds)}


def _on_one_axis(leaves: pd.DataFrame, flows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Kinds and cycles with the CTAs one after the other, so that a set of all of them is one set: none touch.

    Flights of CTAs without a region keep their row and get no time.
    """
    both = pd.concat([each[["launch", "cta", "kind", "start_cycles", "end_cycles"]] for each in (leaves, flows)])
    cta = both.groupby(["launch", "cta"], sort=False).ngroup().to_numpy()
    start, end = both["start_cycles"].to_numpy(np.int64), both["end_cycles"].to_numpy(np.int64)
    ctas = int(cta.max(initial=-1)) + 1
    first, last = np.full(ctas, np.iinfo(np.int64).max), np.full(ctas, np.iinfo(np.int64).min)
    np.minimum.at(first, cta, start)
    np.maximum.at(last, cta, end)
    shift = np.r_[0, np.cumsum(last - first + 1)][:-1] - first
    known = np.zeros(ctas, bool)
    known[cta[: len(leaves)]] = True
    end = np.where(known[cta], end, start)
    placed = both[["kind"]].assign(start_cycles=start + shift[cta], end_cycles=end + shift[cta])
    return placed.iloc[: len(leaves)], placed.iloc[len(leaves) :]


def _alone(names: list[str], sets: dict[str, Intervals], working: list[str]) -> NDArray[np.float64]:
    """Cycles of each activity in which no other that works was under way."""
    any_of_them, one_of_them = (combine([sets[name] for name in working]) for combine in (together, exactly_one))
    return np.array(
        [
            common(sets[name], one_of_them) if name in working else length(sets[name]) - common(sets[name], any_of_them)
            for name in names
        ],
        np.float64,
    )


def _set(rows: pd.DataFrame) -> Intervals:
    return union(rows["start_cycles"].to_numpy(), rows["end_cycles"].to_numpy())

"""How much later each stamp of a launch came because of records: the trace replayed without what they cost.

    late(stamp) = late(cause) + cost(stamp)

The cause of a stamp is what its warp had to wait for: mostly its own stamp before, and then `cost` is what records took
between the two. A wait ends when what it waits for is there, however late the warp itself came to it: its cause is then
where that was asked for, or, where warps meet, the stamp with which the last of them came. Causes are earlier than what
they cause, so the stamps are a forest, and each is as late as its path from the root adds up to.

Which stamps are causes is decided here for what crosses warps or follows flows; what a record costs, and loads and
copies of the warp itself, belong to `correction`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kperfir.analysis.grouped import number

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]

# In these warps may meet: in a reduction over several of them, for instance, there is a barrier.
MEETING_KINDS = ("barrier", "reduce", "scan")
# Warps that come within this of each other show nothing.
LEAST_LAG_CYCLES = 16
# A wait of a kind that is shorter may be the instruction's own time.
FLOW_WAITS = {"mbarrier_wait": 100, "wgmma_wait": 44}


def delays(cause: Integers, cost: Integers) -> Integers:
    """By how much each stamp is late.

    Args:
        cause: For each, the stamp that it could not come before, or -1. They must not go round in circles.
        cost: How much later than that one it is.
    """
    # Each step goes twice as far along all paths at once.
    late, ahead = cost.copy(), cause.copy()
    rows = np.flatnonzero(ahead >= 0)
    while len(rows):
        beyond = ahead[rows]
        late[rows] += late[beyond]
        ahead[rows] = ahead[beyond]
        rows = rows[ahead[rows] >= 0]
    return late


def meetings(spans: pd.DataFrame, clock: Integers, first: Integers, last: Integers) -> tuple[Integers, Integers]:
    """Stamps with which warps go on that have met others, and for each the one with which the last of these came.

    Warps meet in a region if none has ever left it before all had come, in all of its executions by a CTA, and some
    came late enough to tell.

    Args:
        spans: Of one launch.
        clock: Of its stamps.
        first: The stamp with which each span begins, or -1.
        last: The one with which it ends.
    """
    own = np.flatnonzero(spans["kind"].isin(MEETING_KINDS).to_numpy() & (first >= 0) & (last == first + 1))
    if not len(own):
        return own, own
    table = spans.iloc[own]
    cta, warp, region = (table[name].to_numpy().astype(np.int64) for name in ("cta", "warp", "region"))
    came, left = first[own], last[own]
    turns = number(cta, region, _turns(number(cta, warp, region).number))
    last_came, first_left = turns.max(clock[came]), turns.min(clock[left])
    lag = last_came - turns.min(clock[came])
    regions = number(region)
    of_turn = regions.number[turns.first]
    apart, seen = np.zeros(regions.count, bool), np.zeros(regions.count, np.int64)
    np.logical_or.at(apart, of_turn, first_left < last_came)
    np.maximum.at(seen, of_turn, lag)
    meets = (~apart & (seen >= LEAST_LAG_CYCLES))[regions.number]
    latest = np.full(turns.count, -1, np.int64)
    is_latest = clock[came] == last_came[turns.number]
    latest[turns.number[is_latest]] = came[is_latest]
    source = latest[turns.number]
    meets &= (source != came) & (clock[source] < clock[left])
    return left[meets], source[meets]


def flow_ends(spans: pd.DataFrame, flows: pd.DataFrame, clock: Integers, last: Integers) -> tuple[Integers, Integers]:
    """Stamps with which waits for asynchronous work end, and for each the one at which the last of it was issued.

    Args:
        spans: Of one launch.
        flows: `Timeline.flows`; those of other launches are left out.
        clock: Of the launch's stamps.
        last: The stamp with which each span ends, or -1.
    """
    begin = int(spans.index[0]) if len(spans) else 0
    issue, wait = (flows[name].to_numpy() - begin for name in ("from_span", "to_span"))
    known = (issue >= 0) & (issue < len(spans)) & (wait >= 0) & (wait < len(spans))
    issue, wait = issue[known], wait[known]
    kind, duration = spans["kind"].astype(str).to_numpy()[wait], spans["duration_cycles"].to_numpy()[wait]
    waited = np.zeros(len(wait), bool)
    for name, least in FLOW_WAITS.items():
        waited |= (kind == name) & (duration >= least)
    source, end = last[issue[waited]], last[wait[waited]]
    there = (source >= 0) & (end >= 0)
    source, end = source[there], end[there]
    order = np.lexsort((clock[source], end))
    source, end = source[order], end[order]
    is_last = np.append(end[1:] != end[:-1], True)[: len(end)] & (clock[source] < clock[end])
    return end[is_last], source[is_last]


def _turns(group: Integers) -> Integers:
    """For each row, how many rows of its group come before it."""
    order = np.argsort(group, kind="stable")
    sizes = np.bincount(group)
    turn = np.empty(len(group), np.int64)
    turn[order] = np.arange(len(group)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return turn

"""How the time of a CTA divides into what comes before its loops, the loops filling, steady and draining, and after.

Per launch, CTA and warp, with the loops that lie in no other loop:

    prologue = from the warp's first start to the first iteration's start
    between  = from one loop's last iteration to the next loop's first
    epilogue = from the last iteration's end to the warp's last end

Within a loop let m be the median duration of its iterations. Iterations before the first that takes at most
(1 + `TOLERANCE`) * m fill the pipeline, those after the last such one drain it, the others are steady. The time of the
loop around its iterations belongs to where it lies.

Iterations follow each other, and the loop ends with the last one. Where not each is recorded (a selection, a budget of
room), what lies between those that are, before one that is not the first and behind the last one, is

    unrecorded = time of the loop that no recorded iteration takes
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from kperfir.analysis.bubbles import iteration_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Rows = NDArray[np.int64]
    Cycles = NDArray[np.int64]

TOLERANCE = 0.1
PHASES = ("prologue", "fill", "steady", "drain", "unrecorded", "between", "epilogue")
COLUMNS = ["kernel", "role", "phase", "cycles", "share", "iterations"]


def phases(spans: pd.DataFrame) -> pd.DataFrame:
    """One row per kernel, role and phase; roles without a loop are left out.

    Args:
        spans: As `Timeline.spans`.

    Returns:
        ``kernel, role, phase`` (of `PHASES`; ``unrecorded`` only where there is some); ``cycles`` of a warp on average;
        ``share``, of the sum of the phases;
        ``iterations`` of a warp on average, of the loops that lie in no other.
    """
    around = iteration_of(spans)
    outer = np.flatnonzero((spans["kind"] == "iteration").to_numpy() & (around < 0))
    if not len(outer):
        return pd.DataFrame(columns=COLUMNS)
    ids = spans[["launch", "cta", "warp"]].to_numpy(np.int64)
    warps = _runs(ids)
    first = np.minimum.reduceat(spans["start_cycles"].to_numpy(), warps)
    last = np.maximum.reduceat(spans["end_cycles"].to_numpy(), warps)
    begin = _runs(ids[outer])
    own = np.searchsorted(warps, outer[begin], side="right") - 1
    iterations = spans.iloc[outer]
    cycles, counts = _phases_of_warps(iterations, _around(spans, iterations), begin, (first[own], last[own]))
    places = iterations.iloc[begin][["kernel", "role"]].astype({"kernel": str, "role": str}).reset_index(drop=True)
    if not cycles["unrecorded"].any():
        del cycles["unrecorded"]
    parts = [
        places.assign(phase=phase, cycles=cycles[phase], iterations=counts.get(phase, 0))
        for phase in PHASES
        if phase in cycles
    ]
    of_warps = pd.concat(parts).sort_index(kind="stable")  # By warp, then by phase.
    table = of_warps.groupby(["kernel", "role", "phase"], sort=False).mean().reset_index()
    table["share"] = table["cycles"] / table.groupby(["kernel", "role"], sort=False)["cycles"].transform("sum")
    return table[COLUMNS]


def _around(spans: pd.DataFrame, iterations: pd.DataFrame) -> tuple[Cycles, Cycles]:
    """Of each iteration, when its loop started, if iterations before it may be missing, and when it ended."""
    parent = iterations["parent"].to_numpy()
    start, end = iterations["start_cycles"].to_numpy(), iterations["end_cycles"].to_numpy()
    loop_start, loop_end = (spans[edge].to_numpy()[parent] for edge in ("start_cycles", "end_cycles"))
    missing = (parent >= 0) & (iterations["iteration"].to_numpy() > 0)
    return np.where(missing, loop_start, start), np.where(parent >= 0, np.maximum(loop_end, end), end)


def _phases_of_warps(
    iterations: pd.DataFrame, around: tuple[Cycles, Cycles], warps: Rows, ends: tuple[Cycles, Cycles]
) -> tuple[dict[str, Cycles], dict[str, Rows]]:
    """Per warp the cycles of each phase, and the iterations of those that have some.

    Args:
        iterations: Those that lie in no other, of all warps.
        around: For each, when its loop started and ended.
        warps: Row of the first of each warp.
        ends: When each warp started and ended.
    """
    first, last = ends
    start, end = iterations["start_cycles"].to_numpy(), iterations["end_cycles"].to_numpy()
    stops = np.append(warps[1:], len(start))
    warp = np.repeat(np.arange(len(warps)), stops - warps)
    loops = _runs(np.column_stack([warp, iterations["parent"].to_numpy()]))
    of_loop = warp[loops]
    inner = np.flatnonzero(of_loop[1:] == of_loop[:-1]) + 1  # Loops with another before them in their warp.
    begin, finish = around[0][loops], around[1][np.append(loops[1:], len(start)) - 1]
    taken = np.concatenate([[0], np.cumsum(end - start)])  # By the iterations before each.
    inside = taken[np.append(loops[1:], len(start))] - taken[loops]
    cycles = {
        "prologue": around[0][warps] - first,
        "between": np.bincount(of_loop[inner], begin[inner] - finish[inner - 1], len(warps)),
        "epilogue": last - around[1][stops - 1],
        "unrecorded": np.bincount(of_loop, finish - begin - inside, len(warps)),
    }
    counts = {}
    bounds = _steady_bounds(end - start, loops)
    for name, low, high in zip(("fill", "steady", "drain"), bounds, bounds[1:], strict=False):
        cycles[name] = np.bincount(of_loop, taken[high] - taken[low], len(warps))
        counts[name] = np.bincount(of_loop, high - low, len(warps))
    return cycles, counts


def _steady_bounds(durations: Cycles, loops: Rows) -> tuple[Rows, Rows, Rows, Rows]:
    """Per loop its first iteration, the first and the end of the steady ones, and its end."""
    stops = np.append(loops[1:], len(durations))
    loop = np.repeat(np.arange(len(loops)), stops - loops)
    ordered = durations[np.lexsort((durations, loop))]
    middle = loops + stops
    median = (ordered[(middle - 1) // 2] + ordered[middle // 2]) / 2
    rows = np.arange(len(durations))
    even = durations <= (1 + TOLERANCE) * median[loop]
    from_row = np.minimum.reduceat(np.where(even, rows, len(rows)), loops)
    to_row = np.maximum.reduceat(np.where(even, rows, -1), loops) + 1
    return loops, from_row, to_row, stops


def _runs(keys: Rows) -> Rows:
    """The first row of each run of equal rows."""
    changes = (keys[1:] != keys[:-1]).any(axis=1)
    rows: Rows = np.flatnonzero(np.r_[True, changes])
    return rows

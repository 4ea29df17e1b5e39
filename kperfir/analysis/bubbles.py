"""Pipeline bubbles: the waits in the iterations of a loop, by the place in the iteration and by iteration.

A bubble is an execution of a region that does nothing but wait, inside an iteration and in no other wait. Its stage is
its place among the regions of the iteration that wait, 0 first. Its cause is the asynchronous work that it waited for:
the region of the last issue that `Timeline.flows` leads to it. A wait that finds its work done takes some cycles too
(up to `IDLE_CYCLES` here): what is longer was spent waiting.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from kperfir.analysis.wait_time import outermost_waits

if TYPE_CHECKING:
    from numpy.typing import NDArray

# A wait on an mbarrier whose phase is over takes about 30 cycles on an H100, cp.async.wait_group 5; and the stamps.
IDLE_CYCLES = 40
STAGE_COLUMNS = [
    "kernel", "loop", "role", "stage", "name", "kind", "file", "line", "cause", "count", "bubble_cycles",
    "mean_cycles", "iteration_share", "waited",
]  # fmt: skip
ITERATION_COLUMNS = ["kernel", "loop", "role", "iteration", "count", "mean_cycles", "wait_cycles", "wait_share"]


def pipeline_bubbles(spans: pd.DataFrame, flows: pd.DataFrame) -> pd.DataFrame:
    """One row per waiting region of a loop, the costliest first within its kernel.

    Args:
        spans: As `Timeline.spans`.
        flows: As `Timeline.flows`.

    Returns:
        ``kernel, loop`` (name of the innermost loop), ``role, stage, name, kind, file, line``; ``cause``, name of the
        region that issued what was waited for, empty if not known; ``count``; ``bubble_cycles``, total;
        ``mean_cycles``; ``iteration_share``, of the time of the loop's iterations in that role; ``waited``, the share
        of executions that took longer than `IDLE_CYCLES`.
    """
    bubbles = _bubbles(spans)
    if bubbles.empty:
        return pd.DataFrame(columns=STAGE_COLUMNS)
    latest = flows.sort_values("start_cycles", kind="stable").drop_duplicates("to_span", keep="last")
    names = spans["name"].astype(object).to_numpy()[latest["from_span"].to_numpy(np.int64)]
    cause = dict(zip(latest["to_span"].tolist(), names.tolist(), strict=True))
    bubbles["cause"] = [cause.get(row, "") for row in bubbles["row"].tolist()]
    bubbles["waited"] = bubbles["duration_cycles"] > IDLE_CYCLES
    keys = ["kernel", "loop", "role", "name", "kind"]
    groups = bubbles.groupby(keys, sort=False)
    table = groups.agg(
        stage=("stage", "median"), file=("file", "first"), line=("line", "first"), cause=("cause", _most),
        count=("row", "size"), bubble_cycles=("duration_cycles", "sum"), mean_cycles=("duration_cycles", "mean"),
        waited=("waited", "mean"),
    ).reset_index()  # fmt: skip
    whole = _iterations(spans).groupby(["kernel", "loop", "role"], sort=False)["duration_cycles"].sum()
    table = table.merge(whole.rename("whole").reset_index(), on=["kernel", "loop", "role"])
    table["iteration_share"] = table["bubble_cycles"] / table["whole"]
    table["stage"] = table["stage"].astype(int)
    order = {kernel: number for number, kernel in enumerate(dict.fromkeys(spans["kernel"].astype(str)))}
    table = table.assign(rank=table["kernel"].map(order))
    table = table.sort_values(["rank", "bubble_cycles"], ascending=[True, False], kind="stable", ignore_index=True)
    return table[STAGE_COLUMNS]


def bubbles_by_iteration(spans: pd.DataFrame) -> pd.DataFrame:
    """One row per loop, role and index of the iteration, over all executions of the loop.

    Args:
        spans: As `Timeline.spans`, rows numbered from 0.

    Returns:
        ``kernel, loop, role, iteration``; ``count``, executions; ``mean_cycles``, of one; ``wait_cycles``, of these on
        average in bubbles; ``wait_share``.
    """
    iterations = _iterations(spans)
    if iterations.empty:
        return pd.DataFrame(columns=ITERATION_COLUMNS)
    bubbles = _bubbles(spans)
    waits = bubbles.groupby("iteration_row")["duration_cycles"].sum() if len(bubbles) else pd.Series(dtype="int64")
    iterations["wait"] = iterations["row"].map(waits).fillna(0)
    groups = iterations.groupby(["kernel", "loop", "role", "iteration"], sort=False)
    table = groups.agg(
        count=("row", "size"), mean_cycles=("duration_cycles", "mean"), wait_cycles=("wait", "mean")
    ).reset_index()  # fmt: skip
    table["wait_share"] = (table["wait_cycles"] / table["mean_cycles"].where(table["mean_cycles"] > 0)).fillna(0.0)
    return table.sort_values(["kernel", "loop", "role", "iteration"], kind="stable", ignore_index=True)[
        ITERATION_COLUMNS
    ]


def iteration_of(spans: pd.DataFrame) -> NDArray[np.int64]:
    """For each row of `spans`, numbered from 0, the row of the innermost iteration around it; -1 if there is none."""
    parent, is_iteration = spans["parent"].to_numpy(), (spans["kind"] == "iteration").to_numpy()
    above: NDArray[np.int64] = parent.copy()
    while True:
        climbs = (above >= 0) & ~is_iteration[above]
        if not climbs.any():
            return above
        above[climbs] = parent[above[climbs]]


def _bubbles(spans: pd.DataFrame) -> pd.DataFrame:
    around = iteration_of(spans)
    rows = np.flatnonzero(outermost_waits(spans) & (around >= 0))
    columns = ["kernel", "role", "name", "kind", "file", "line", "duration_cycles"]
    bubbles = spans.iloc[rows][columns].astype({key: object for key in ("kernel", "role", "name", "kind", "file")})
    bubbles = bubbles.reset_index(drop=True).assign(row=rows, iteration_row=around[rows])
    bubbles["loop"] = _loop_names(spans, around[rows])
    bubbles["stage"] = bubbles.groupby("iteration_row").cumcount()
    return bubbles


def _iterations(spans: pd.DataFrame) -> pd.DataFrame:
    rows = np.flatnonzero((spans["kind"] == "iteration").to_numpy())
    table = spans.iloc[rows][["kernel", "role", "iteration", "duration_cycles"]]
    table = table.astype({"kernel": object, "role": object}).reset_index(drop=True)
    return table.assign(row=rows, loop=_loop_names(spans, rows))


def _loop_names(spans: pd.DataFrame, iterations: NDArray[np.int64]) -> NDArray[np.object_]:
    """Name of the loop around each of these rows; of the iteration itself where the loop was not recorded."""
    parent = spans["parent"].to_numpy()[iterations]
    names = spans["name"].astype(object).to_numpy()
    loops: NDArray[np.object_] = np.where(parent >= 0, names[parent], names[iterations])
    return loops


def _most(names: pd.Series) -> str:
    counts = names[names != ""].value_counts()
    return str(counts.index[0]) if len(counts) else ""

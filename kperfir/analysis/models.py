"""The two models of the KPerfIR paper (OSDI'25, section 5), from what was measured, next to what was seen.

For a loop whose iterations wait for asynchronous copies, times of one iteration of one role:

    T_iter = median duration of an iteration
    T_wait = median time of its waits that a copy completed, each less `bubbles.IDLE_CYCLES`, what waiting itself takes
    T_comp = T_iter - T_wait
    T_load = median time from a copy's issue to its completion, of the copies that were waited for (whose wait took more
             than twice `IDLE_CYCLES`); the least of all, an upper bound, if none was
    N      = tiles that the loop keeps under way (`slots`)

Software pipelining: with delta = N * T_comp - (T_load + T_comp),

    predicted iteration = T_comp                     if delta >= 0: loads are hidden
                          (T_load + T_comp) / N      else: a buffer's round trip is what counts

The paper has N_WG, the number of warp groups that take turns: 1 here, since T_comp is that of a warp.

Warp specialisation: the time of a CTA is that along its critical path, here

    predicted CTA = T_first + n * max(predicted iteration, T_producer) + T_rest

T_first is what the consumer takes from the CTA's start to its first data (the end of its first wait for a copy), n its
iterations, T_producer the work of the producer's iteration, T_rest what the consumer takes after the loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from kperfir.analysis.bubbles import IDLE_CYCLES, iteration_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Rows = NDArray[np.int64]

COPIES = ("async_copy", "tma")
SWP_COLUMNS = [
    "kernel", "loop", "role", "iterations", "slots", "load_cycles", "comp_cycles", "wait_cycles", "delta_cycles",
    "predicted_cycles", "seen_cycles", "error",
]  # fmt: skip
WS_COLUMNS = ["kernel", "consumer", "producer", "iterations", "predicted_cycles", "seen_cycles", "error"]


def swp_model(
    spans: pd.DataFrame, flows: pd.DataFrame, slots: Mapping[tuple[int, int], int] | None = None
) -> pd.DataFrame:
    """One row per kernel, loop and role whose iterations wait for asynchronous copies.

    Args:
        spans: As `Timeline.spans`.
        flows: As `Timeline.flows`.
        slots: By launch and number of the flow, its ``slots`` in the kernel's layout: buffers between warps.

    Returns:
        ``kernel, loop`` (name), ``role``; ``iterations`` of one execution; ``slots``, N; ``load_cycles``,
        ``comp_cycles``, ``wait_cycles``, ``delta_cycles``; ``predicted_cycles`` of an iteration; ``seen_cycles``,
        T_iter; ``error``, predicted / seen - 1.
    """
    around = iteration_of(spans)
    copies = flows[flows["kind"].isin(COPIES)].reset_index(drop=True)
    target = copies["to_span"].to_numpy(np.int64)
    names = {key: spans[key].astype(object).to_numpy() for key in ("kernel", "role", "name")}
    copies = copies.assign(iteration_row=around[target], kernel=names["kernel"][target], role=names["role"][target])
    rows = []
    for (kernel, role), of_role in copies.groupby(["kernel", "role"], sort=False):
        inside = of_role[of_role["iteration_row"] >= 0]
        above = spans["parent"].to_numpy()[inside["iteration_row"]]
        loop = np.where(above >= 0, names["name"][above], names["name"][inside["iteration_row"]])
        load = _load_cycles(of_role, spans)
        for name, own in inside.groupby(loop, sort=False):
            rows.append(
                {"kernel": kernel, "loop": name, "role": role, **_swp_row(own, load, spans, around, slots or {})}
            )
    return pd.DataFrame(rows, columns=SWP_COLUMNS)


def _load_cycles(copies: pd.DataFrame, spans: pd.DataFrame) -> float:
    """T_load: copies before a loop count too, they are the ones that are waited for most."""
    exposed = spans["duration_cycles"].to_numpy()[copies["to_span"]] > 2 * IDLE_CYCLES
    durations = copies["duration_cycles"]
    return float(durations[exposed].median() if exposed.any() else durations.min())


def _swp_row(
    copies: pd.DataFrame, load: float, spans: pd.DataFrame, around: Rows, slots: Mapping[tuple[int, int], int]
) -> dict[str, object]:
    duration, iteration = spans["duration_cycles"].to_numpy(), spans["iteration"].to_numpy()
    # All iterations of the loop in the role, also of warps whose waits no flow leads to.
    first = spans.iloc[int(copies["iteration_row"].iloc[0])]
    same = spans["kind"] == "iteration"
    for key in ("name", "kernel", "role"):
        same &= spans[key] == first[key]
    rows = np.flatnonzero(same.to_numpy())
    waits = copies.drop_duplicates("to_span")[["iteration_row", "to_span"]]
    excess = np.maximum(0, duration[waits["to_span"]] - IDLE_CYCLES)
    seen = float(np.median(duration[rows]))
    wait = float(pd.Series(excess).groupby(waits["iteration_row"].to_numpy()).sum().median())
    comp, depth = seen - wait, _slots(copies, spans, around, slots)
    delta = depth * comp - (load + comp)
    predicted = comp if delta >= 0 else (load + comp) / depth
    return {
        "iterations": int(iteration[rows].max()) + 1, "slots": depth, "load_cycles": load, "comp_cycles": comp,
        "wait_cycles": wait, "delta_cycles": delta, "predicted_cycles": predicted, "seen_cycles": seen,
        "error": predicted / seen - 1 if seen else float("nan"),
    }  # fmt: skip


def _slots(copies: pd.DataFrame, spans: pd.DataFrame, around: Rows, slots: Mapping[tuple[int, int], int]) -> int:
    """Tiles under way when a wait begins: between warps as the layout says.

    In a warp: how many iterations later a copy is waited for, and one more if it is issued before the iteration's wait.
    """
    own = copies[copies["from_warp"] == copies["to_warp"]]
    source, target = own["from_span"].to_numpy(np.int64), own["to_span"].to_numpy(np.int64)
    inside = around[source] >= 0
    source, target = source[inside], target[inside]
    if len(source):
        start, iteration = spans["start_cycles"].to_numpy(), spans["iteration"].to_numpy()
        issue, wait = around[source], around[target]
        before = start[source] - start[issue] < start[target] - start[wait]
        return max(1, int(np.median(iteration[wait] - iteration[issue] + before)))
    known = [slots.get((launch, flow), 0) for launch, flow in copies[["launch", "flow"]].drop_duplicates().to_numpy()]
    return max([1, *known])


def ws_model(
    spans: pd.DataFrame, flows: pd.DataFrame, slots: Mapping[tuple[int, int], int] | None = None
) -> pd.DataFrame:
    """One row per kernel in which a role brings the data that another one's loop waits for.

    Args and model: As `swp_model`.

    Returns:
        ``kernel, consumer, producer`` (roles); ``iterations`` of the consumer in a CTA; ``predicted_cycles`` of a CTA;
        ``seen_cycles``, median over the CTAs, of the consumer's warps; ``error``, predicted / seen - 1.
    """
    table = swp_model(spans, flows, slots)
    rows = [row for _, loop in table.iterrows() for row in _ws_rows(loop, spans, flows)]
    return pd.DataFrame(rows, columns=WS_COLUMNS)


def _ws_rows(loop: pd.Series, spans: pd.DataFrame, flows: pd.DataFrame) -> list[dict[str, object]]:
    roles = spans["role"].astype(object).to_numpy()
    mine = flows[flows["kind"].isin(COPIES) & (spans["kernel"].to_numpy()[flows["to_span"]] == loop["kernel"])]
    mine = mine[(roles[mine["to_span"]] == loop["role"]) & (roles[mine["from_span"]] != loop["role"])]
    consumer = spans[(spans["kernel"] == loop["kernel"]) & (spans["role"] == loop["role"])]
    iterations = consumer[(consumer["kind"] == "iteration") & _is_of(consumer, loop["loop"], spans)]
    if mine.empty or iterations.empty:
        return []
    producer = str(roles[mine["from_span"].iloc[-1]])
    work = _producer_work(spans[(spans["kernel"] == loop["kernel"]) & (spans["role"] == producer)], spans)
    warp = ["launch", "cta", "warp"]
    ends, steps = consumer.groupby(warp)["end_cycles"].max(), iterations.groupby(warp)
    begin = spans.groupby(["launch", "cta"])["start_cycles"].min()
    start = pd.Series([begin[launch, cta] for launch, cta, _ in ends.index], ends.index).reindex(steps.size().index)
    rest = (ends - steps["end_cycles"].max()).median()
    count = float(steps.size().median())
    first_data = mine.sort_values("end_cycles").drop_duplicates(["launch", "cta"])
    lead = (
        first_data["end_cycles"].to_numpy()
        - begin.loc[list(zip(first_data["launch"], first_data["cta"], strict=True))].to_numpy()
    )
    predicted = float(np.median(lead)) + count * max(loop["predicted_cycles"], work) + float(rest)
    seen = float((ends - start).median())
    return [
        {
            "kernel": loop["kernel"], "consumer": loop["role"], "producer": producer, "iterations": int(count),
            "predicted_cycles": predicted, "seen_cycles": seen, "error": predicted / seen - 1 if seen else float("nan"),
        }
    ]  # fmt: skip


def _is_of(rows: pd.DataFrame, loop: str, spans: pd.DataFrame) -> NDArray[np.bool_]:
    parent, names = rows["parent"].to_numpy(), spans["name"].astype(object).to_numpy()
    mask: NDArray[np.bool_] = np.where(parent >= 0, names[parent], rows["name"].astype(object).to_numpy()) == loop
    return mask


def _producer_work(own: pd.DataFrame, spans: pd.DataFrame) -> float:
    """Median time of the producer's iteration that it does not wait in."""
    from kperfir.analysis.wait_time import wait_cycles

    rows = own.index[(own["kind"] == "iteration").to_numpy()]
    if not len(rows):
        return 0.0
    return float(np.median(own["duration_cycles"].loc[rows].to_numpy() - wait_cycles(spans)[rows]))

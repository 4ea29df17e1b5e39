"""Advice on what warps share: barriers, reductions, atomics, matrix units, and what an iteration costs at least."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kperfir.advice.finding import Change, Figure, Finding
from kperfir.advice.loops import inside_loops
from kperfir.analysis.bubbles import IDLE_CYCLES
from kperfir.analysis.wait_time import WAIT_KINDS
from kperfir.code.residency import SUB_CORES

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

    from kperfir.advice.case import Case

LEAST_SHARE = 0.03
LEAST_FIXED = 0.1
LEAST_TRIPS = 4
# Five shuffles, and with several warps a barrier and five more: the longest that a reduction takes by itself.
REDUCE_CYCLES = 250
WARP_REDUCE_CYCLES = 125
# A way to L2 and back, and a warp's lanes one after the other there, with room for a few such in a region.
ATOMIC_CYCLES = 400
# Start of a launch, and copying its records to memory.
END_CYCLES = 1500
PRODUCTS = ("dot", "wgmma", "tcgen05")
_STEPS = ("BK", "BLOCK_K", "BLOCK_SIZE_K", "BLOCK_N", "BLOCK", "BLOCK_SIZE")


def balance_warps(case: Case) -> Iterator[Finding]:
    """Warps that come to a barrier early and wait for those with more to do.

    A sub-core is ready when the last of its warps comes. Were the work divided evenly, all would be at the mean of
    that: expected saves max - mean of each meeting, bound max - min.
    """
    meetings = _meetings(case.spans)
    if meetings.empty:
        return
    ctas = len(case.ctas)
    late = float((meetings["last"] - meetings["mean"]).sum()) / ctas / case.cta_cycles
    if late < LEAST_SHARE:
        return
    most = float((meetings["last"] - meetings["first"]).sum()) / ctas / case.cta_cycles
    slowest = int(meetings.groupby("slowest")["late"].sum().idxmax())
    yield Finding(
        rule="balance-warps",
        kernel=case.kernel,
        title=f"warps wait at barriers for warp {slowest}: work is unevenly divided",
        places=case.places(case.spans[case.spans["kind"] == "barrier"]),
        figures=(
            Figure("late_share", late, "share"),
            Figure("meetings", len(meetings) / ctas, "count"),
            Figure("slowest_warp", slowest, "count"),
        ),
        speedup=case.speedup(late),
        bound=case.speedup(most),
        basis="expected: the warps of all sub-cores are there at the mean time; bound: at the time of the first",
        change=Change(
            "divide the work evenly among warps (a layout that spreads rows, no branch on the warp or on masked rows), "
            "or move the barrier to where the early warps have something left to do"
        ),
    )


def fewer_barriers(case: Case) -> Iterator[Finding]:
    """Barriers in loops that cost time though all warps arrive together. Expected: half of them go, bound: all."""
    rows = case.spans[(case.spans["kind"] == "barrier").to_numpy() & inside_loops(case.spans)]
    if rows.empty:
        return
    share = float(np.minimum(rows["duration_cycles"], 2 * IDLE_CYCLES).sum()) / case.warp_cycles
    if share < LEAST_SHARE:
        return
    yield Finding(
        rule="fewer-barriers",
        kernel=case.kernel,
        title=f"barriers inside loops take {share:.0%} of the time beyond waiting for others",
        places=case.places(rows),
        figures=(Figure("barrier_share", share, "share"), Figure("barriers", case.executions(rows), "count")),
        speedup=case.speedup(share / 2),
        bound=case.speedup(share),
        basis="expected: half of the barriers go; bound: all",
        change=Change(
            "use two buffers in turn so that one barrier per iteration is enough, or let warps work on data of "
            "their own"
        ),
    )


def bigger_step(case: Case) -> Iterator[Finding]:
    """Iterations much of which takes as long whatever the tile: waits, and control and addresses between regions.

    fixed = min(duration, 2 * `IDLE_CYCLES`) of each wait, and in loops that reduce nothing what no region takes (else
    that is arithmetic on the tile), but for gaps that begin with arithmetic on data. With steps of twice the size there
    are half as many: expected saves half of it, bound half of all but the products.
    """
    for view in case.loops:
        waits = view.kinds(*WAIT_KINDS)
        if not len(waits) or view.kinds(*PRODUCTS, "load", "async_copy").empty or view.trips < LEAST_TRIPS:
            continue
        fixed = float(np.minimum(waits["duration_cycles"], 2 * IDLE_CYCLES).sum()) / len(view.rows)
        fixed += view.self_cycles if view.kinds("reduce", "scan").empty else 0.0
        if fixed < LEAST_FIXED * view.iteration_cycles:
            continue
        share = view.trips / case.cta_cycles
        yield Finding(
            rule="bigger-step",
            kernel=case.kernel,
            title=f"{fixed / view.iteration_cycles:.0%} of an iteration of {view.name} does not depend on the tile",
            places=case.places(waits),
            figures=(
                Figure("iteration_cycles", view.iteration_cycles, "cycles"),
                Figure("fixed_cycles", fixed, "cycles"),
                Figure("iterations", view.trips, "count"),
            ),
            speedup=case.speedup(fixed / 2 * share),
            bound=case.speedup((view.iteration_cycles - view.cycles(*PRODUCTS)) / 2 * share),
            basis="expected: half as many iterations, so half of that; bound: half of all but the products",
            change=_bigger(case),
        )


def reduce_after_loop(case: Case) -> Iterator[Finding]:
    """Reductions across threads in each iteration of a loop that loads and has no products: one after it may be enough.

    Where nothing is loaded, a value goes round that the reductions change, and each is needed. A reduction of what the
    iteration has loaded waits for it too, and that stays: it counts as `REDUCE_CYCLES` at most, or `WARP_REDUCE_CYCLES`
    in a CTA of one warp. Expected: all but one of n go; bound: all, with what they wait for.
    """
    for view in case.loops:
        reductions = view.kinds("reduce")
        per_trip = view.trips / case.cta_cycles / len(view.rows)
        if view.kinds("load", "async_copy", "local_load").empty or not view.kinds(*PRODUCTS).empty:
            continue
        most = WARP_REDUCE_CYCLES if case.facts.get("num_warps") == 1 else REDUCE_CYCLES
        share = float(reductions["duration_cycles"].clip(upper=most).sum()) * per_trip
        if share < LEAST_SHARE or view.trips < 2:
            continue
        yield Finding(
            rule="reduce-after-loop",
            kernel=case.kernel,
            title=f"each iteration of {view.name} reduces across threads, {share:.0%} of the time",
            places=case.places(reductions),
            figures=(
                Figure("reduce_share", share, "share"),
                Figure("reduce_cycles", float(reductions["duration_cycles"].mean()), "cycles"),
                Figure("iterations", view.trips, "count"),
            ),
            speedup=case.speedup(share * (1 - 1 / view.trips)),
            bound=case.speedup(float(reductions["duration_cycles"].sum()) * per_trip),
            basis="expected: one reduction instead of one per iteration; bound: none, nor what they wait for",
            change=Change(
                "if no iteration needs what the one before has reduced: accumulate a tile element by element in the "
                "loop, and reduce it once after the loop"
            ),
        )


def spread_atomics(case: Case) -> Iterator[Finding]:
    """Atomics that take longer than they do undisturbed: lanes and CTAs meet at the same addresses.

    Undisturbed is the least that was seen, or `ATOMIC_CYCLES` if that is less: where all queue, the fastest does too.
    Expected: all take that; bound: they take nothing. What a launch takes beyond its CTAs and `END_CYCLES` is the queue
    too: both save that. Where CTAs did not record, that part is not known, and none.
    """
    rows = case.spans[case.spans["kind"] == "atomic"]
    share = float(rows["duration_cycles"].sum()) / case.warp_cycles if len(rows) else 0.0
    if share < LEAST_SHARE:
        return
    least = rows.groupby("name", observed=True)["duration_cycles"].transform("min").clip(upper=ATOMIC_CYCLES)
    crowded = float((rows["duration_cycles"] - least).sum()) / case.warp_cycles
    times = case.times
    beyond = float((times["cycles"] - times["inside"]).sum()) - END_CYCLES * int(times["whole"].sum())
    drain = max(0.0, beyond) / max(1.0, float(times["cycles"].sum()))
    yield Finding(
        rule="spread-atomics",
        kernel=case.kernel,
        title=f"atomics take {share:.0%} of the time, {crowded:.0%} of it in a queue behind others",
        places=case.places(rows),
        figures=(
            Figure("atomic_share", share, "share"),
            Figure("queue_share", crowded, "share"),
            Figure("drain_share", drain, "share"),
            Figure("atomics", case.executions(rows), "count"),
        ),
        speedup=1 / (1 / case.speedup(crowded) - drain),
        bound=1 / (1 / case.speedup(share) - drain),
        basis=f"expected: each takes what the fastest took, {ATOMIC_CYCLES} at most; bound: nothing",
        change=Change(
            "reduce in the CTA first and do one atomic per CTA, or spread the targets (a copy per SM, summed "
            "afterwards)"
        ),
    )


def overlap_products(case: Case) -> Iterator[Finding]:
    """Loops that wait for each asynchronous product before they go on with other work, one group of warps to an SM.

    P is the time in products and waits for them, n their number in an iteration, C the time of the rest of its work.
    Overlapped, max(P, C) is left: bound saves min(P, C). Expected: one of the n products is under way during other
    work, and half of it is hidden, as its warps are busy with issuing the other half: min(P / n, C) / 2.
    """
    roles = [view.role for view in case.loops if not view.kinds("wgmma", "wgmma_wait").empty]
    if len(set(roles)) != 1 or int(case.waves["ctas_per_sm"]) != 1:
        return
    for view in case.loops:
        products = view.cycles("wgmma", "wgmma_wait")
        waits = view.cycles(*(kind for kind in WAIT_KINDS if kind != "wgmma_wait"))
        other = view.iteration_cycles - products - waits
        issued = max(1.0, len(view.kinds("wgmma")) / len(view.rows))
        whole = min(products, other) * view.trips / case.cta_cycles
        saved = min(products / issued, other) / 2 * view.trips / case.cta_cycles
        if view.kinds("reduce", "convert_layout").empty or not products or saved < LEAST_SHARE:
            continue
        yield Finding(
            rule="overlap-products",
            kernel=case.kernel,
            title=f"products of {view.name} run while nothing else does",
            places=case.places(view.kinds("wgmma", "wgmma_wait")),
            figures=(
                Figure("iteration_cycles", view.iteration_cycles, "cycles"),
                Figure("product_cycles", products, "cycles"),
                Figure("other_cycles", other, "cycles"),
                Figure("products", issued, "count"),
            ),
            speedup=case.speedup(saved),
            bound=case.speedup(whole),
            basis="expected: half of one product of an iteration is hidden; bound: all products, or all other work",
            change=Change(
                "keep a product under way while other work runs: two groups of consumer warps that take turns, or an "
                "asynchronous wgmma whose wait comes after the softmax of the tile before"
            ),
        )


def _meetings(spans: pd.DataFrame) -> pd.DataFrame:
    """When the sub-cores of a role's warps were ready at each execution of a barrier: ``first, mean, last, slowest``.

    Warps that share a sub-core come one after the other however evenly they have been given work: each sub-core is as
    late as the last of its warps. ``slowest`` is the last warp of all.
    """
    rows = spans[spans["kind"] == "barrier"]
    keys = ["launch", "cta", "role", "name"]
    turn = rows.groupby([*keys, "warp"], observed=True, sort=False).cumcount()
    rows = rows.assign(turn=turn, unit=rows["warp"] % SUB_CORES)
    ready = rows.groupby([*keys, "turn", "unit"], observed=True, sort=False)["start_cycles"]
    latest = rows.loc[ready.idxmax().to_numpy()]
    groups = latest.groupby([*keys, "turn"], observed=True, sort=False)["start_cycles"]
    table = groups.agg(first="min", mean="mean", last="max", units="size")
    table["slowest"] = latest["warp"].reindex(groups.idxmax().to_numpy()).to_numpy()
    table["late"] = table["last"] - table["mean"]
    return table[table["units"] > 1].reset_index(drop=True)


def _bigger(case: Case) -> Change:
    constants = case.facts.get("constants", {})
    name = next((name for name in _STEPS if isinstance(constants.get(name), int)), "")
    if not name:
        return Change("take steps of twice the size")
    return Change(f"take steps of twice the size: {name}={2 * constants[name]}", {name: 2 * constants[name]})

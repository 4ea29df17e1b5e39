"""Advice on loads in loops: pipeline them, keep more under way, hand buffers back earlier, give them to a warp."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from kperfir.advice.finding import Change, Figure, Finding
from kperfir.analysis.bubbles import IDLE_CYCLES

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

    from kperfir.advice.case import Case
    from kperfir.advice.loops import LoopView

# A pipeline is deep enough where an iteration takes no more than this above its work.
ENOUGH = 1.15
LEAST_SHARE = 0.05
MOST_STAGES = 8
# The arrive that tells a producer warp that a buffer is free, and the threads that meet before it.
HAND_BACK_CYCLES = 60
# Shared memory that a CTA can have, by architecture: CUDA programming guide, technical specifications.
SHARED_BYTES = {80: 163 << 10, 86: 99 << 10, 87: 163 << 10, 89: 99 << 10, 90: 227 << 10, 100: 227 << 10, 120: 99 << 10}
PRODUCTS = ("dot", "wgmma", "tcgen05")


def deepen_pipeline(case: Case) -> Iterator[Finding]:
    """Loops that wait for copies, because too few of them are under way: delta < 0 in the paper's SWP model.

    With N tiles under way an iteration takes max(T_comp, (T_load + T_comp) / N); expected is that of the least N' that
    leaves at most `ENOUGH` * T_comp, bound is T_comp. Both replace the iteration that was seen; expected leaves the
    first as it is, whose tile is waited for in any case. N' is no more than shared memory has room for, if all of it is
    taken for tiles.
    """
    for _, row in case.pipelines.iterrows():
        view = _view(case, row)
        work, trip = row["comp_cycles"], row["load_cycles"] + row["comp_cycles"]
        waits = row["wait_cycles"] / case.cta_cycles * (view.trips if view else 0)
        if view is None or row["delta_cycles"] >= 0 or waits < LEAST_SHARE or work <= 0:
            continue
        depth = int(row["slots"])
        wanted = min(max(depth + 1, math.ceil(trip / (ENOUGH * work))), depth + MOST_STAGES, _room(case, depth))
        if wanted <= depth:
            continue
        after = max(work, trip / wanted)
        tiles = f"{depth} tile{'s' * (depth > 1)} under way"
        yield Finding(
            rule="deepen-pipeline",
            kernel=case.kernel,
            title=f"{view.name} waits for its copies: {tiles}, {wanted} hide the loads",
            places=case.places(view.kinds("async_wait", "mbarrier_wait")),
            figures=(
                Figure("iteration_cycles", row["seen_cycles"], "cycles"),
                Figure("wait_cycles", row["wait_cycles"], "cycles"),
                Figure("comp_cycles", work, "cycles"),
                Figure("load_cycles", row["load_cycles"], "cycles"),
                Figure("slots", depth, "count"),
                Figure("slots_wanted", wanted, "count"),
                Figure("shared_bytes", case.facts.get("shared_bytes", 0), "bytes"),
            ),
            speedup=_expected(case, view, row["seen_cycles"] - after),
            bound=case.speedup(_saved(case, view, row["seen_cycles"] - work)),
            basis=f"an iteration takes max(comp, (load + comp) / slots) = {after:,.0f} cycles with {wanted}; "
            "at least comp",
            change=_deeper(_depth_settings(case, view, depth, wanted), depth, wanted),
        )


def pipeline_loop(case: Case) -> Iterator[Finding]:
    """Loops that multiply what they have just loaded, without copies under way.

    The loaded value is needed by the local_store or convert_layout on the load's line: T_load is the mean of both
    together, T_comp the iteration less the stores and conversions, plus 2 * `IDLE_CYCLES` for the two waits that a
    pipelined iteration has. With three stages, two tiles are under way: max(T_comp, (T_load + T_comp) / 2).
    """
    for view in case.loops:
        loads, users = view.kinds("load"), view.kinds("local_store", "convert_layout")
        users = users[users["line"].isin(loads["line"].unique())]
        if view.kinds(*PRODUCTS).empty or not len(users) or len(view.kinds("async_copy", "tma")):
            continue
        per_trip = len(view.rows)
        stalls = users["duration_cycles"].sum() / per_trip
        places = len(loads["name"].unique())
        load = (loads["duration_cycles"].sum() / per_trip + stalls) / max(1, places)
        work = view.iteration_cycles - stalls + 2 * IDLE_CYCLES
        after = max(work, (load + work) / 2)
        if _saved(case, view, view.iteration_cycles - after) < LEAST_SHARE:
            continue
        yield Finding(
            rule="pipeline-loop",
            kernel=case.kernel,
            title=f"{view.name} loads, waits and then multiplies: no load is under way during a product",
            places=case.places(_rows(loads, users)),
            figures=(
                Figure("iteration_cycles", view.iteration_cycles, "cycles"),
                Figure("stall_cycles", stalls, "cycles"),
                Figure("load_cycles", load, "cycles"),
                Figure("num_stages", case.facts.get("num_stages") or 0, "count"),
            ),
            speedup=_expected(case, view, view.iteration_cycles - after),
            bound=case.speedup(_saved(case, view, stalls)),
            basis=f"an iteration takes max(comp, (load + comp) / 2) = {after:,.0f} cycles; bound: no stall at all",
            change=_begin_pipeline(case),
        )


def split_barrier(case: Case) -> Iterator[Finding]:
    """Several copies behind one barrier in a loop with several products: the first buffer could be handed back earlier.

    With a barrier for each operand, buffer i is held only for product i, which takes P_i: an iteration takes
    max(T_comp, max_i (T_load + P_i) / N). This is the KPerfIR paper's advice on flash attention: arrive earlier.
    """
    for _, row in case.pipelines.iterrows():
        view = _view(case, row)
        if view is None or row["delta_cycles"] >= 0 or row["comp_cycles"] <= 0:
            continue
        waits = view.kinds("mbarrier_wait")
        products = view.kinds("wgmma", "tcgen05").groupby("name", observed=True, sort=False)["duration_cycles"].mean()
        arriving = case.flows[case.flows["to_span"].isin(waits.index)]
        copies = case.spans["name"].astype(object).to_numpy()[arriving["from_span"].to_numpy()]
        if waits["name"].nunique() != 1 or len(products) < 2 or len(set(copies)) < 2:
            continue
        held = float(products.max())
        after = max(row["comp_cycles"], (row["load_cycles"] + held) / row["slots"])
        if _saved(case, view, row["seen_cycles"] - after) < LEAST_SHARE:
            continue
        yield Finding(
            rule="split-barrier",
            kernel=case.kernel,
            title=f"{len(set(copies))} copies of {view.name} share a barrier: buffers are held until the last product",
            places=case.places(_rows(waits, view.kinds("wgmma", "tcgen05"))),
            figures=(
                Figure("iteration_cycles", row["seen_cycles"], "cycles"),
                Figure("wait_cycles", row["wait_cycles"], "cycles"),
                Figure("load_cycles", row["load_cycles"], "cycles"),
                Figure("longest_product_cycles", held, "cycles"),
            ),
            speedup=_expected(case, view, row["seen_cycles"] - after),
            bound=case.speedup(_saved(case, view, row["seen_cycles"] - row["comp_cycles"])),
            basis=f"an iteration takes max(comp, (load + product) / slots) = {after:,.0f} cycles; at least comp",
            change=Change(
                "give each operand its own full and empty barrier, and arrive at an operand's empty barrier right "
                "after the product that read it: the producer loads it again while the rest of the iteration runs"
            ),
        )


def specialise_warps(case: Case) -> Iterator[Finding]:
    """Loops on sm_90 and later whose own warps issue the copies: a producer warp could.

    Issues cost nothing then, but handing a buffer back costs `HAND_BACK_CYCLES`: expected saves the difference; half of
    it where products are asynchronous, behind which issues may hide already. Bound: issues and the waits for them.
    """
    if _architecture(case) < 90 or len(case.spans["role"].unique()) > 1:
        return
    for view in case.loops:
        issues, waits = view.cycles("async_copy", "tma"), view.cycles("async_wait", "mbarrier_wait")
        gained = max(0.0, issues - HAND_BACK_CYCLES) / (1 if view.kinds("wgmma", "tcgen05").empty else 2)
        if view.kinds(*PRODUCTS).empty or _saved(case, view, gained) < LEAST_SHARE:
            continue
        yield Finding(
            rule="specialise-warps",
            kernel=case.kernel,
            title=f"warps that multiply in {view.name} spend {issues / view.iteration_cycles:.0%} of it issuing copies",
            places=case.places(view.kinds("async_copy", "tma")),
            figures=(
                Figure("iteration_cycles", view.iteration_cycles, "cycles"),
                Figure("issue_cycles", issues, "cycles"),
                Figure("wait_cycles", waits, "cycles"),
            ),
            speedup=case.speedup(_saved(case, view, gained)),
            bound=case.speedup(_saved(case, view, issues + waits)),
            basis=f"expected: the issues less {HAND_BACK_CYCLES} cycles for handing a buffer back, half of that behind "
            "asynchronous products; bound: the issues and the waits for them",
            change=Change(
                "specialise warps: tl.range(..., warp_specialize=True) with tensor descriptors, or a producer "
                "partition in Gluon, so that one warp issues the copies"
            ),
        )


def _view(case: Case, row: pd.Series) -> LoopView | None:
    return next((view for view in case.loops if (view.name, view.role) == (row["loop"], row["role"])), None)


def _saved(case: Case, view: LoopView, cycles: float) -> float:
    """Share of a CTA's time that `cycles` less in each iteration are."""
    return cycles * view.trips / case.cta_cycles if case.cta_cycles else 0.0


def _expected(case: Case, view: LoopView, cycles: float) -> float:
    """Speed-up if all iterations but the first take so much less: its tile is waited for however deep the pipeline."""
    return case.speedup(_saved(case, view, cycles) * (1 - 1 / view.trips))


def _room(case: Case, depth: int) -> int:
    """Tiles for which shared memory has room, each as large as those that are under way now."""
    limit, used = SHARED_BYTES.get(_architecture(case), 0), int(case.facts.get("shared_bytes") or 0)
    return limit * depth // used if limit and used else depth + MOST_STAGES


def _begin_pipeline(case: Case) -> Change:
    if (case.facts.get("num_stages") or 1) > 1:
        return Change(
            "the compiler did not pipeline the loop though num_stages asks for it: make the loads' addresses simple "
            "(no dependence on loaded values) and their types wide enough for asynchronous copies"
        )
    return Change("set num_stages=3, so that loads are asynchronous and two tiles are under way", {"num_stages": 3})


def _depth_settings(case: Case, view: LoopView, depth: int, wanted: int) -> dict[str, Any]:
    """The option or constexpr that says how many tiles are under way."""
    copies = case.flows[case.flows["to_span"].isin(view.inside.index) & case.flows["kind"].isin(["async_copy", "tma"])]
    stages = case.facts.get("num_stages")
    if (copies["from_warp"] == copies["to_warp"]).any():
        return {"num_stages": int(stages) + wanted - depth} if stages and stages > 1 else {}
    name = case.constant(depth)
    return {name: wanted} if name else {}


def _deeper(settings: dict[str, Any], depth: int, wanted: int) -> Change:
    tiles = f"{wanted} tiles under way instead of {depth}"
    if settings:
        words = ", ".join(f"{name}={value}" for name, value in settings.items())
        return Change(f"set {words}: {tiles}, if shared memory has room for them", settings)
    return Change(f"keep {tiles}: more stages or buffers, if shared memory has room for them")


def _architecture(case: Case) -> int:
    target = str(case.facts.get("target", ""))
    number = target.rpartition(":")[2]
    return int(number) if target.startswith("cuda:") and number.isdecimal() else 0


def _rows(*parts: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd

    return pd.concat(parts)

"""Advice on how accesses meet memory: bank conflicts, lanes that share no sectors, requests narrower than they need be.

All rules rest on what the compiler's layouts predict (`kperfir.analysis.accesses`), and say so in their figures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kperfir.advice.finding import Change, Figure, Finding
from kperfir.analysis.accesses import SECTOR_BYTES
from kperfir.analysis.intervals import length, union
from kperfir.analysis.self_time import self_cycles

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

    from kperfir.advice.case import Case

LEAST_SHARE = 0.03
LEAST_DEGREE = 1.5
# A load/store unit that serves lines for this share of the time is what the SM waits for.
BUSY_UNIT = 0.7
WIDEST_BYTES = 16  # Of a lane, in one request.
SECTORS_PER_LINE = 4


def avoid_bank_conflicts(case: Case) -> Iterator[Finding]:
    """Accesses to shared memory of which a request takes more wavefronts than it has to.

    The load/store unit of an SM serves one wavefront per cycle, to all its warps. Expected: a CTA takes less by the
    wavefronts too many of all warps that share the unit. Bound: and by all that is left of the time of these regions.
    """
    table = case.accesses
    # Scratch that the compiler takes is laid out by it, and where copies write is not what a warp waits for.
    chosen = table["op"].isin(("ttg.local_load", "ttg.local_store", "ttg.local_alloc"))
    rows = _worst(table[chosen & (table["bound"] == "exact")])
    spans = _executions(case, rows)
    if spans.empty:
        return
    lost = _lost(case, rows, rows["cost"] - rows["ideal"])
    if lost < LEAST_SHARE:
        return
    share = float(spans["duration_cycles"].sum()) / case.warp_cycles
    worst = rows.sort_values("degree").iloc[-1]
    yield Finding(
        rule="avoid-bank-conflicts",
        kernel=case.kernel,
        title=f"{worst['name']} takes {worst['degree']:.3g} times the wavefronts that its bytes need: lanes want words "
        "of the same bank",
        places=case.places(spans),
        figures=(
            *_prediction(worst, "wavefronts"),
            Figure("mean_cycles", float(spans["duration_cycles"].mean()), "cycles"),
            Figure("conflict_share", lost, "share"),
            Figure("access_share", share, "share"),
        ),
        speedup=case.speedup(lost),
        bound=case.speedup(max(lost, share)),
        basis="expected: the predicted wavefronts that are too many, one per cycle of an SM, go; bound: the time of "
        "the accesses goes too, where that is more",
        change=Change(
            "swizzle or pad the layout of the shared memory (Gluon: SwizzledSharedLayout with max_phase > 1), or read "
            "it in the order in which it is written; where the compiler transposes an operand on the way (Triton, "
            "types of 8 bits), keep it in memory with the dimension that is summed over innermost"
        ),
    )


def coalesce_accesses(case: Case) -> Iterator[Finding]:
    """Accesses to global memory of which a request moves more sectors than its bytes fill.

    Two views, of which the larger is expected. The load/store unit of an SM serves a line of 128 bytes per cycle: lanes
    whose runs are no longer than a sector meet as many lines as sectors, others a quarter, as all would; what is too
    many goes. Or the time of these regions, and what the iteration or kernel around a load takes by itself (there its
    value is waited for), goes with the sectors: 1 - ideal / cost of it. Bound: the launch goes with the sectors.
    """
    known = _known_global(case)
    rows = _worst(known[~_repeats(known)])
    spans = _executions(case, rows)
    cost, ideal = _sectors_around(case, spans, known)
    if not cost > ideal > 0:
        return
    share = _share_with_waits(case, spans)
    lines = rows["cost"].where(rows["run_bytes"] <= SECTOR_BYTES, rows["cost"] / SECTORS_PER_LINE)
    lost = _lost(case, rows, lines - rows["ideal"] / SECTORS_PER_LINE)
    saved = max(share * (1 - ideal / cost), lost)
    if saved < LEAST_SHARE:
        return
    saved = min(saved, 1 - ideal / cost)
    worst = rows.sort_values("degree").iloc[-1]
    yield Finding(
        rule="coalesce-accesses",
        kernel=case.kernel,
        title=f"{worst['name']} moves {worst['degree']:.3g} times the sectors that its bytes fill: lanes lie apart in "
        "memory",
        places=case.places(spans),
        figures=(
            *_prediction(worst, "sectors"),
            Figure("run_bytes", float(worst["run_bytes"]), "bytes"),
            Figure("access_share", share, "share"),
        ),
        speedup=case.speedup(saved),
        bound=max(cost / ideal, case.speedup(saved)),
        basis="expected: the lines too many, one per cycle of an SM, go, or the time of the accesses and of what waits "
        "for them goes with their sectors, whichever is more; bound: the launch goes with the sectors",
        change=Change(
            "let neighbouring lanes access neighbouring addresses: order the tile's dimensions as memory has them, "
            "transpose through shared memory, or store the tensor the other way round"
        ),
    )


def widen_accesses(case: Case) -> Iterator[Finding]:
    """Accesses to global memory in several narrow requests, which meet the same sectors one after the other.

    Each thread has numbers in a row, and the compiler does not know that it may take them at once: a size that is no
    multiple of 16, a mask or a row that may begin anywhere. Together the requests ask for no sector that one wide one
    would not, so what they cost is the load/store unit's time: a line per cycle. Expected: if that unit is busy for
    `BUSY_UNIT` of the time, a CTA's time goes with the lines; else it saves those too many of its own warps, as its
    work hides the others'. Bound: the launch goes with the lines.
    """
    known = _known_global(case)
    rows = _worst(known[_repeats(known)])
    spans = _executions(case, rows)
    if spans.empty:
        return
    over = _per_cta(case, rows, rows["lines"] - rows["touched"] / SECTORS_PER_LINE)
    lines = _per_cta(case, known, known["lines"])
    busy = min(1.0, lines * _together(case) / case.cta_cycles)
    lost = over / lines if busy >= BUSY_UNIT else over / case.cta_cycles
    if lost < LEAST_SHARE:
        return
    share = float(spans["duration_cycles"].sum()) / case.warp_cycles
    worst = rows.sort_values("requests").iloc[-1]
    yield Finding(
        rule="widen-accesses",
        kernel=case.kernel,
        title=f"{worst['name']} takes {worst['requests']:.0f} requests of {worst['bytes']:.0f} bytes per lane for "
        "numbers that lie in a row",
        places=case.places(spans),
        figures=(
            Figure("requests", float(worst["requests"]), "count"),
            Figure("request_bytes", float(worst["bytes"]), "bytes"),
            Figure("predicted_lines", float(worst["lines"]), "count"),
            Figure("touched_sectors", float(worst["touched"]), "count"),
            Figure("unit_share", busy, "share"),
            Figure("access_share", share, "share"),
        ),
        speedup=case.speedup(lost),
        bound=max(lines / (lines - over), case.speedup(lost)),
        basis="expected: the lines too many of a CTA go, one per cycle; or, if the load/store unit is busy for "
        f"{BUSY_UNIT:.0%} of the time, their share of all lines; bound: the launch goes with the lines",
        change=Change(
            "let the compiler see that it may take wide vectors: sizes and strides that are multiples of 16 (Triton "
            "compiles for those apart), padded rows, tl.multiple_of and tl.max_contiguous on what it cannot know"
        ),
    )


def _known_global(case: Case) -> pd.DataFrame:
    """Loads, stores and copies of which something is predicted; of atomics `spread-atomics` speaks."""
    table = case.accesses
    known = table[(table["space"] == "global") & table["bound"].isin(("exact", "at most"))]
    return known[~known["op"].str.contains("atomic")]


def _repeats(rows: pd.DataFrame) -> pd.Series:
    """Whether lanes lie side by side, and narrow requests meet most sectors repeatedly. Older captures do not say."""
    narrow = (rows["bytes"] < WIDEST_BYTES) & (rows["lines"] * 2 <= rows["cost"])
    return narrow & (rows["touched"] * LEAST_DEGREE <= rows["cost"])


def _worst(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[rows["degree"] >= LEAST_DEGREE]


def _executions(case: Case, rows: pd.DataFrame) -> pd.DataFrame:
    """The spans of the regions that these accesses are in."""
    return case.spans[case.spans["name"].isin(rows["name"])]


def _prediction(row: pd.Series, unit: str) -> tuple[Figure, ...]:
    return (
        Figure("predicted_degree", float(row["degree"]), "count"),
        Figure(f"predicted_{unit}", float(row["cost"]), "count"),
        Figure(f"ideal_{unit}", float(row["ideal"]), "count"),
    )


def _sectors_around(case: Case, spans: pd.DataFrame, known: pd.DataFrame) -> tuple[float, float]:
    """Sectors that all known accesses move in the iterations or kernels around `spans`, and what they would at best."""
    parents = spans["parent"].unique()
    around = case.spans[case.spans["parent"].isin(parents[parents >= 0]) & case.spans["name"].isin(known["name"])]
    of = known.drop_duplicates("name").set_index("name")
    cost, ideal = (float(around["name"].map(of[column]).astype(float).sum()) for column in ("cost", "ideal"))
    return cost, ideal


def _share_with_waits(case: Case, spans: pd.DataFrame) -> float:
    """Share of the warps' time in `spans`, and by itself in what is around loads: there values are waited for."""
    around = spans[spans["kind"] == "load"]["parent"].unique()
    waiting = self_cycles(case.spans)[around[around >= 0]].sum()
    return float(spans["duration_cycles"].sum() + waiting) / case.warp_cycles


def _lost(case: Case, rows: pd.DataFrame, over: pd.Series) -> float:
    """What all warps of an SM spend in `over` more than they have to, a cycle each, as a share of a CTA's time."""
    return min(_per_cta(case, rows, over) * _together(case) / case.cta_cycles, 0.99)


def _per_cta(case: Case, rows: pd.DataFrame, each: pd.Series) -> float:
    """How much of `each`, by access, the warps of a CTA have in all executions."""
    by_name = each.groupby(rows["name"].astype(str)).sum()
    executed = case.spans["name"].astype(str).map(by_name)
    return float(executed.sum()) / len(case.ctas)


def _together(case: Case) -> float:
    """CTAs that share an SM while it has any."""
    ctas = case.all_ctas
    busy = sum(length(union(own["start_cycles"].to_numpy(), own["end_cycles"].to_numpy())) for _, own in
               ctas.groupby(["launch", "sm"]))  # fmt: skip
    return max(1.0, float(ctas["cycles"].sum()) / busy) if busy else 1.0

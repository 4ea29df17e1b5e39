"""Advice on how accesses meet memory: bank conflicts in shared memory, lanes that share no sectors of global memory.

Both rules rest on what the compiler's layouts predict (`kperfir.analysis.accesses`), and say so in their figures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kperfir.advice.finding import Change, Figure, Finding
from kperfir.analysis.intervals import length, union
from kperfir.analysis.self_time import self_cycles

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

    from kperfir.advice.case import Case

LEAST_SHARE = 0.03
LEAST_DEGREE = 1.5
SECTOR_BYTES = 32
SECTORS_PER_LINE = 4
_COMPARE = "kperfir compare before.kpf after.kpf"


def avoid_bank_conflicts(case: Case) -> Iterator[Finding]:
    """Accesses to shared memory of which a request takes more wavefronts than it has to.

    The load/store unit of an SM serves one wavefront per cycle, to all its warps. Expected: a CTA takes less by the
    wavefronts too many of all warps that share the unit. Bound: and by all that is left of the time of these regions.
    """
    table = case.accesses
    # Scratch that the compiler takes is laid out by it, and where copies write is not what a warp waits for.
    chosen = table["op"].isin(("ttg.local_load", "ttg.local_store", "ttg.local_alloc"))
    rows = _worst(table[chosen & (table["bound"] == "exact")])
    spans = case.spans[case.spans["name"].isin(rows["name"])]
    if spans.empty:
        return
    lost = _lost(case, spans, rows.assign(over=rows["cost"] - rows["ideal"]))
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
            Figure("predicted_degree", float(worst["degree"]), "count"),
            Figure("predicted_wavefronts", float(worst["cost"]), "count"),
            Figure("ideal_wavefronts", float(worst["ideal"]), "count"),
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
            "it in the order in which it is written"
        ),
        verify=_COMPARE,
    )


def coalesce_accesses(case: Case) -> Iterator[Finding]:
    """Accesses to global memory of which a request moves more sectors than it asks bytes of.

    Two views, of which the larger is expected. The load/store unit of an SM serves a line of 128 bytes per cycle: lanes
    whose runs are no longer than a sector meet as many lines as sectors, others a quarter, as all would; what is too
    many goes. Or the time of these regions, and what the iteration or kernel around a load takes by itself (there its
    value is waited for), goes with the sectors: 1 - ideal / cost of it. Bound: the launch goes with the sectors.
    """
    table = case.accesses
    known = table[(table["space"] == "global") & table["bound"].isin(("exact", "at most"))]
    known = known[~known["op"].str.contains("atomic")]  # Of those `spread-atomics` speaks.
    rows = _worst(known)
    spans = case.spans[case.spans["name"].isin(rows["name"])]
    if spans.empty:
        return
    parents = np.unique(spans["parent"].to_numpy())
    parents = parents[parents >= 0]
    around = case.spans[case.spans["parent"].isin(parents) & case.spans["name"].isin(known["name"])]
    of = known.drop_duplicates("name").set_index("name")
    cost, ideal = (float(around["name"].map(of[column]).astype(float).sum()) for column in ("cost", "ideal"))
    if not cost > ideal > 0:
        return
    loads = spans[spans["kind"] == "load"]["parent"].unique()
    waiting = self_cycles(case.spans)[loads[loads >= 0]].sum()
    busy = float(spans["duration_cycles"].sum() + waiting)
    lines = rows["cost"].where(rows["run_bytes"] <= SECTOR_BYTES, rows["cost"] / SECTORS_PER_LINE)
    over = lines - rows["ideal"] / SECTORS_PER_LINE
    saved = max(busy * (1 - ideal / cost) / case.warp_cycles, _lost(case, spans, rows.assign(over=over)))
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
            Figure("predicted_degree", float(worst["degree"]), "count"),
            Figure("predicted_sectors", float(worst["cost"]), "count"),
            Figure("ideal_sectors", float(worst["ideal"]), "count"),
            Figure("run_bytes", float(worst["run_bytes"]), "bytes"),
            Figure("access_share", busy / case.warp_cycles, "share"),
        ),
        speedup=case.speedup(saved),
        bound=max(cost / ideal, case.speedup(saved)),
        basis="expected: the lines too many, one per cycle of an SM, go, or the time of the accesses and of what waits "
        "for them goes with their sectors, whichever is more; bound: the launch goes with the sectors",
        change=Change(
            "let neighbouring lanes access neighbouring addresses: order the tile's dimensions as memory has them, "
            "transpose through shared memory, or store the tensor the other way round"
        ),
        verify=_COMPARE,
    )


def _worst(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[rows["degree"] >= LEAST_DEGREE]


def _lost(case: Case, spans: pd.DataFrame, rows: pd.DataFrame) -> float:
    """What all warps of an SM spend in ``over`` more than they have to, a cycle each, as a share of a CTA's time."""
    over = rows.groupby(rows["name"].astype(str))["over"].sum()
    per_cta = float(spans["name"].astype(str).map(over).sum()) / len(case.ctas)
    ctas = case.ctas
    busy = sum(length(union(own["start_cycles"].to_numpy(), own["end_cycles"].to_numpy())) for _, own in
               ctas.groupby(["launch", "sm"]))  # fmt: skip
    together = max(1.0, float(ctas["cycles"].sum()) / busy) if busy else 1.0
    return min(per_cta * together / case.cta_cycles, 0.99)

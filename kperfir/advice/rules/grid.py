"""Advice on the grid: how CTAs fill the device."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from kperfir.advice.finding import Change, Figure, Finding, Place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kperfir.advice.case import Case

FULL = 0.9
LEAST_SPREAD = 0.1
LEAST_TAIL = 0.05
LEAST_ENDS = 0.15
LEAST_WAIT = 0.15
LEAST_TRIPS = 4
# By what limits the CTAs on an SM.
_REMEDIES = {
    "registers": "need fewer registers: smaller tiles, more warps for the same tile, or maxnreg",
    "shared memory": "need less shared memory: fewer stages, or smaller tiles",
}


def fill_device(case: Case) -> Iterator[Finding]:
    """Fewer CTAs than half of the SMs: loops could be split among k times as many.

    k is SMs / CTAs, but leaves each part `LEAST_TRIPS` iterations. What is in loops takes 1 / k of the time, the rest
    stays; bound: all of it does.
    """
    row = case.waves
    if not case.sms or row["ctas"] * 2 > case.sms:
        return
    loops = _loop_share(case)
    parts = int(min(case.sms // row["ctas"], max((view.trips for view in case.loops), default=0) // LEAST_TRIPS))
    if not loops or parts < 2:
        return
    yield Finding(
        rule="fill-device",
        kernel=case.kernel,
        title=f"{row['ctas']} CTAs leave {_idle_sms(case)} of {case.sms} SMs without work",
        places=_kernel(case),
        figures=(
            Figure("ctas", row["ctas"], "count"),
            Figure("sms", case.sms, "count"),
            Figure("loop_share", loops, "share"),
        ),
        speedup=case.speedup(loops * (1 - 1 / parts)),
        bound=case.speedup(1 - 1 / parts),
        basis=f"loops divided by {parts}; bound: everything is",
        change=Change(f"split the work among more CTAs: smaller tiles, or split-K in up to {parts} parts"),
    )


def last_wave(case: Case) -> Iterator[Finding]:
    """A last wave that is less than `FULL` full costs as much as a full one.

    With w waves of CTAs of even length a launch takes ceil(w) of them; with tiles of 1 / k the size ceil(k * w) / k.
    Expected is k = 2, or 4 if 2 gains nothing; bound is w.
    """
    row = case.waves
    if not row["waves"] > 0:  # Not known.
        return
    full, count = row["waves"], math.ceil(row["waves"])
    if count < 2 or row["cta_spread"] > LEAST_SPREAD or full / count >= FULL:
        return
    parts = next((k for k in (2, 4) if math.ceil(k * full) / k < count), 2)
    after = math.ceil(parts * full) / parts
    yield Finding(
        rule="last-wave",
        kernel=case.kernel,
        title=f"{full:.2f} waves take as long as {count}: the last one fills {full + 1 - count:.0%} of the device",
        places=_kernel(case),
        figures=(
            Figure("ctas", row["ctas"], "count"),
            Figure("places", row["sms"] * row["ctas_per_sm"], "count"),
            Figure("waves", full, "count"),
        ),
        speedup=case.speedup(1 - after / count),
        bound=case.speedup(1 - full / count),
        basis=f"tiles of 1/{parts} the size need {after:g} waves' time instead of {count}; at least {full:.2f}",
        change=Change(
            f"choose tiles so that the waves are full (1/{parts} of the size), or a persistent grid of one CTA per "
            "place that shares the last tiles (stream-K)"
        ),
    )


def balance_sms(case: Case) -> Iterator[Finding]:
    """CTAs of uneven length leave SMs idle at the end: `tail_share` of `kperfir.analysis.waves`.

    Expected: the tail is no longer than half a CTA on average; bound: there is none. Of a launch some of whose CTAs did
    not record the end is not known.
    """
    row = case.waves
    if not case.times["whole"].loc[row.name]:
        return
    if not row["tail_share"] >= LEAST_TAIL or row["cta_spread"] < LEAST_SPREAD:  # NaN: not known.
        return
    ctas = case.all_ctas
    mean = float(ctas["cycles"].mean())
    whole = float(ctas["end_cycles"].max() - ctas["start_cycles"].min())
    left = min(row["tail_share"], 0.5 * mean * row["sms_used"] / len(ctas) / whole)
    longest = ctas.sort_values("cycles", ascending=False).iloc[0]
    yield Finding(
        rule="balance-sms",
        kernel=case.kernel,
        title=f"CTAs take unevenly long: SMs are idle for {row['tail_share']:.0%} of the launch at its end",
        places=_kernel(case),
        figures=(
            Figure("tail_share", row["tail_share"], "share"),
            Figure("cta_spread", row["cta_spread"], "share"),
            Figure("mean_cta_cycles", mean, "cycles"),
            Figure("longest_cta_cycles", float(longest["cycles"]), "cycles"),
        ),
        speedup=case.speedup(row["tail_share"] - left),
        bound=case.speedup(row["tail_share"]),
        basis="expected: a tail of half a mean CTA per SM's share is left; bound: none",
        change=Change(
            "start the longest CTAs first, split them, or use a persistent grid that fetches its next tile "
            "from a counter"
        ),
    )


def shorten_ends(case: Case) -> Iterator[Finding]:
    """What is before and after a CTA's loops, where CTAs follow each other: a persistent grid overlaps it.

    Expected: half of it is hidden behind the loop of the next tile; bound: all of it.
    """
    loops = _loop_share(case)
    if not loops or 1 - loops < LEAST_ENDS or not case.waves["waves"] > 1:
        return
    ends = case.spans[case.spans["kind"].isin(["prologue", "epilogue"])]
    yield Finding(
        rule="shorten-ends",
        kernel=case.kernel,
        title=f"{1 - loops:.0%} of a CTA's time is before and after its loops, in {case.waves['waves']:.1f} waves",
        places=case.places(ends) or _kernel(case),
        figures=(
            Figure("ends_share", 1 - loops, "share"),
            Figure("waves", case.waves["waves"], "count"),
            Figure("cta_cycles", case.cta_cycles, "cycles"),
        ),
        speedup=case.speedup((1 - loops) / 2),
        bound=case.speedup(1 - loops),
        basis="expected: half of it runs behind the next tile's loop; bound: all of it",
        change=Change(
            "use a persistent grid (tl.range over tiles, flatten=True) so that the stores of a tile run behind the "
            "loads of the next, or give each CTA more work"
        ),
    )


def raise_occupancy(case: Case) -> Iterator[Finding]:
    """CTAs that mostly wait, and few of them on an SM because registers or shared memory run out.

    An SM with r CTAs is a server with r customers: each works for D = (1 - wait) * T and waits for the rest, Z.
    Mean-value analysis gives the throughput X(r) = r / (Z + R(r)), R(r) = D * (1 + Q(r - 1)); expected is
    X(r + 1) / X(r), bound min((r + 1) / r, 1 / (X(r) * D)). Where shared memory holds the tiles of a pipeline, what is
    taken from it makes the waits longer: nothing is said.
    """
    held, limiter = int(case.launch_facts.get("ctas_per_sm") or 0), str(case.launch_facts.get("occupancy_limiter", ""))
    if limiter not in _REMEDIES or not held or not case.waves["waves"] > held / (held + 1):
        return
    wait = _wait_share(case)
    if wait < LEAST_WAIT or (limiter == "shared memory" and (case.pipelines["slots"] > 1).any()):
        return
    demand = max(1 - wait, 1e-3)
    now, after = _throughput(held, demand), _throughput(held + 1, demand)
    limit = min((held + 1) / held, 1 / (now * demand))
    yield Finding(
        rule="raise-occupancy",
        kernel=case.kernel,
        title=f"warps wait {wait:.0%} of their time, and {limiter} leave room for {held} CTAs on an SM",
        places=_kernel(case),
        figures=(
            Figure("wait_share", wait, "share"),
            Figure("ctas_per_sm", held, "count"),
            Figure("shared_bytes", case.facts.get("shared_bytes", 0), "bytes"),
            Figure("waves", case.waves["waves"], "count"),
        ),
        speedup=case.speedup(1 - now / after),
        bound=case.speedup(1 - 1 / limit),
        basis=f"throughput of an SM with {held + 1} CTAs instead of {held} (mean-value analysis); bound: none waits "
        "for another",
        change=Change(f"{_REMEDIES[limiter]}, until one CTA more fits"),
    )


def _throughput(customers: int, demand: float) -> float:
    """Of a cycle of length 1 whose `demand` is at one server: exact mean-value analysis."""
    queue = throughput = 0.0
    for number in range(1, customers + 1):
        response = demand * (1 + queue)
        throughput = number / (1 - demand + response)
        queue = throughput * response
    return throughput


def _wait_share(case: Case) -> float:
    from kperfir.analysis.wait_time import wait_statistics

    table = wait_statistics(case.totals, "kernel")
    cycles = float(table["cycles"].sum())
    return float(table["wait_cycles"].sum()) / cycles if cycles else 0.0


def _loop_share(case: Case) -> float:
    """Largest share, over the roles, of a CTA's time that is in iterations of loops that lie in no other."""
    from kperfir.analysis.phases import phases

    table = phases(case.spans)
    if table.empty:
        return 0.0
    inside = table[table["phase"].isin(["fill", "steady", "drain", "unrecorded", "between"])]
    return float(min(1.0, inside.groupby("role")["cycles"].sum().max() / case.cta_cycles))


def _idle_sms(case: Case) -> int:
    """SMs without a CTA; if not all CTAs recorded, as if each had an SM of its own, as it has on a device."""
    row = case.waves
    used = row["sms_used"] if row["sms_used"] == row["sms_used"] else min(row["ctas"], case.sms)
    return int(case.sms - used)


def _kernel(case: Case) -> tuple[Place, ...]:
    return case.places(case.spans[case.spans["parent"] < 0])

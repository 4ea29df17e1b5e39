"""How timed accesses meet memory: what the compiler's layouts predict, next to the time that was measured.

A request is one instruction of a warp. What it costs is counted in

    shared: wavefronts. 32 banks of 4 bytes serve one word each per wavefront, to any number of lanes.
    global: sectors, of 32 bytes.

`cost` is what all requests of one execution of the region by a warp take, as predicted from which lane holds which
element and where elements lie; `ideal` what they would take

    shared: without bank conflicts, max(1, 32 * bytes / 128) for `bytes` per lane (ldmatrix: one per matrix)
    global: if all that the lanes ask for were next to each other, max(1, different lanes * bytes / 32)

    degree = cost / ideal: 1.0 is a shared access without conflicts, a global one that is coalesced
    lost_cycles = cost - ideal, of a shared access: the load/store unit serves a wavefront per cycle
    lost_bytes = 32 * (cost - ideal), of a global access: moved and not asked for

`bound` is ``exact``; or ``at most``, where lanes may be masked off, or rows are taken to lie apart whose distance is a
run-time value; or ``worst case``, what there could be at most whatever the addresses are; or ``unknown``. Of the last
two `why` says what is not known. A tensor argument that is known to be a multiple of 16 bytes is taken to begin at a
sector.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Hashable

SECTOR_BYTES = 32
COLUMNS = [
    "kernel", "name", "op", "space", "instruction", "bytes", "requests", "cost", "ideal", "degree", "bound",
    "run_bytes", "lines", "touched", "count", "mean_cycles", "share", "lost_cycles", "lost_bytes", "why",
]  # fmt: skip
_PREDICTED = (
    "space", "instruction", "bytes", "requests", "cost", "ideal", "bound", "run_bytes", "lines", "touched", "why",
)  # fmt: skip


def access_patterns(spans: pd.DataFrame, accesses: pd.DataFrame) -> pd.DataFrame:
    """One row per kernel, region and access in it, in program order.

    Args:
        spans: As `Timeline.spans`.
        accesses: As `Timeline.accesses`.

    Returns:
        ``kernel, name``; the operation, its instruction, its ``bytes`` per lane and ``requests`` per execution; the
        figures above; of global memory ``run_bytes``, most bytes in a row that a request asks for, ``lines`` of 128
        bytes that all requests meet, and the sectors ``touched``, each counted once; ``count`` of executions of the
        region, ``mean_cycles`` of those and their ``share`` of the time of all regions' outermost spans. NaN where
        nothing is predicted.
    """
    keys = ["launch", "region"]
    timed = spans[spans["complete"]] if "complete" in spans else spans
    measured = timed.groupby(keys)["duration_cycles"].agg(count="size", cycles="sum").reset_index()
    joined = accesses.merge(measured, on=keys, how="inner")
    whole = spans[spans["parent"] < 0].groupby("kernel", observed=True)["duration_cycles"].sum()
    rows = [
        _row(key, own, float(whole.get(key[0], 0)))
        for key, own in joined.groupby(["kernel", "name", "op", "place", *_VARIANT], sort=False, dropna=False)
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


# Compilations of one kernel differ in what they predict; those that agree are taken together.
_VARIANT = ("instruction", "requests", "cost")


def _row(key: tuple[Hashable, ...], own: pd.DataFrame, whole: float) -> dict[str, object]:
    first = own.iloc[0]
    count, cycles = int(own["count"].sum()), float(own["cycles"].sum())
    over = float(first["cost"] - first["ideal"])
    shared = first["space"] == "shared"
    return {
        "kernel": str(key[0]), "name": str(key[1]), "op": str(key[2]),
        **{column: first[column] for column in _PREDICTED},
        "degree": float(first["cost"] / first["ideal"]), "count": count,
        "mean_cycles": cycles / count if count else np.nan, "share": cycles / whole if whole else 0.0,
        "lost_cycles": over if shared else np.nan, "lost_bytes": np.nan if shared else over * SECTOR_BYTES,
    }  # fmt: skip

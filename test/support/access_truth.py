"""What the SIMT device counted of accesses to memory, next to what was predicted of them before the kernel ran."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from support.launch import ProfiledRun

INSTRUCTIONS = {
    "load": re.compile(r"\bld\.global"),
    "store": re.compile(r"\bst\.global"),
    "async_copy": re.compile(r"\bcp\.async\.c[ag]\."),
    "local_load": re.compile(r"\b(ld\.shared|ldmatrix)"),
    "local_store": re.compile(r"\b(st\.shared|stmatrix)"),
}


def counted(run: ProfiledRun) -> pd.DataFrame:
    """Spans of accesses, with the ``units`` that the device counted from real addresses while they were open.

    The log knows nothing of regions: an instruction belongs to the span during which its warp issued it.
    """
    log, module = run.launch.result.log, run.launch.kernel.module
    source = run.compiled.asm["ptx"].splitlines()
    kinds = np.full(len(module.instructions), "", dtype=object)
    for pc, (text, *_) in enumerate(module.instructions):
        if "// kperf" not in source[module.ptx_lines[pc] - 1]:
            kinds[pc] = next((kind for kind, pattern in INSTRUCTIONS.items() if pattern.search(text)), "")
    events = pd.DataFrame({name: log[name] for name in ("cta", "warp", "issue", "units")})
    events["kind"] = kinds[log["pc"]]
    events = events[events["kind"] != ""]
    spans = run.timeline.spans
    spans = spans[spans["kind"].isin(INSTRUCTIONS)].assign(units=0)
    for (cta, warp, kind), own in spans.groupby(["cta", "warp", "kind"], observed=True):
        mine = events[(events["cta"] == cta) & (events["warp"] == warp) & (events["kind"] == kind)]
        place = np.searchsorted(own["start_cycles"].to_numpy(), mine["issue"].to_numpy(), side="right") - 1
        inside = (place >= 0) & (mine["issue"].to_numpy() < np.append(own["end_cycles"].to_numpy(), -1)[place])
        units = np.zeros(len(own), np.int64)
        np.add.at(units, place[inside], mine["units"].to_numpy()[inside])
        spans.loc[own.index, "units"] = units
    return spans


def compare(run: ProfiledRun) -> pd.DataFrame:
    """Per region with a prediction of all its accesses: ``cost``, ``bound``, ``least``, ``most`` and ``mean`` of what a
    CTA's warps, one of those that hold the same elements, were counted for an execution."""
    accesses = run.timeline.accesses
    known = accesses.groupby("region").agg(
        name=("name", "first"), op=("op", "first"), cost=("cost", "sum"), ideal=("ideal", "sum"),
        copies=("copies", "max"), missing=("cost", lambda costs: int(costs.isna().sum())),
        exact=("bound", lambda bounds: bool((bounds == "exact").all())),
    )  # fmt: skip
    known = known[known["missing"] == 0].drop(columns="missing")
    spans = counted(run)
    units = spans.groupby("region", observed=True)["units"].agg(least="min", most="max", mean="mean", count="size")
    return known.join(units, how="inner").reset_index()

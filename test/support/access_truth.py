"""What the SIMT device counted of accesses to memory, next to what was predicted of them before the kernel ran."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from support.launch import ProfiledRun

SHARED = re.compile(r"\b(ld\.shared|st\.shared|ldmatrix|stmatrix)")
_COPY = re.compile(r"cp\.async\.c[ag]\.shared\.global \[([^]]*)\], \[[^]]*\], (\w+)[^;]*;")
INSTRUCTIONS = {
    **dict.fromkeys(("convert_layout", "reduce", "scan"), SHARED),
    "atomic": re.compile(r"\b(atom|red)\.global"),
    "load": re.compile(r"\bld\.global"),
    "store": re.compile(r"\bst\.global"),
    "async_copy": re.compile(r"\bcp\.async\.c[ag]\."),
    "local_load": re.compile(r"\b(ld\.shared|ldmatrix)"),
    "local_store": re.compile(r"\b(st\.shared|stmatrix)"),
}


def counted(run: ProfiledRun, kinds: dict[str, re.Pattern[str]]) -> pd.DataFrame:
    """Spans of accesses of these kinds, with the ``units`` that the device counted from real addresses meanwhile.

    The log knows nothing of regions: an instruction belongs to the span during which its warp issued it.
    """
    log, module = run.launch.result.log, run.launch.kernel.module
    source = run.compiled.asm["ptx"].splitlines()
    texts = [
        "" if "// kperf" in source[module.ptx_lines[pc] - 1] else text
        for pc, (text, *_) in enumerate(module.instructions)
    ]
    of_kind = {kind: np.array([bool(pattern.search(text)) for text in texts]) for kind, pattern in kinds.items()}
    events = pd.DataFrame({name: log[name] for name in ("cta", "warp", "pc", "issue", "units")})
    by_warp = dict(iter(events.groupby(["cta", "warp"])))
    spans = run.timeline.spans
    spans = spans[spans["kind"].isin(kinds)].assign(units=0)
    for (cta, warp, kind), own in spans.groupby(["cta", "warp", "kind"], observed=True):
        mine = by_warp[cta, warp]
        mine = mine[of_kind[kind][mine["pc"]]]
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
    # What copies cost in shared memory the device does not count.
    accesses = accesses[(accesses["kind"] != "async_copy") | (accesses["space"] == "global")]
    return _compared(run, accesses, INSTRUCTIONS)


def compare_copies(run: ProfiledRun) -> pd.DataFrame:
    """The same of the shared memory that copies write to, for a run of `copies_as_stores`."""
    accesses = run.timeline.accesses
    accesses = accesses[(accesses["kind"] == "async_copy") & (accesses["space"] == "shared")]
    return _compared(run, accesses, {"async_copy": SHARED})


def copies_as_stores(ptx: str) -> str:
    """The kernel with stores of whatever values in place of asynchronous copies: what those cost is counted."""
    vectors = {4: "b32 [{0}], %r1", 8: "v2.b32 [{0}], {{%r1, %r1}}", 16: "v4.b32 [{0}], {{%r1, %r1, %r1, %r1}}"}
    return _COPY.sub(lambda copy: "st.shared." + vectors[int(copy[2], 0)].format(copy[1]) + ";", ptx)


def _compared(run: ProfiledRun, accesses: pd.DataFrame, kinds: dict[str, re.Pattern[str]]) -> pd.DataFrame:
    known = accesses.groupby("region").agg(
        name=("name", "first"), op=("op", "first"), cost=("cost", "sum"), ideal=("ideal", "sum"),
        copies=("copies", "max"), missing=("cost", lambda costs: int(costs.isna().sum())),
        kind=("kind", "first"), exact=("bound", lambda bounds: bool((bounds == "exact").all())),
    )  # fmt: skip
    known = known[known["missing"] == 0].drop(columns="missing")
    spans = counted(run, kinds)
    units = spans.groupby("region", observed=True)["units"].agg(least="min", most="max", mean="mean", count="size")
    return known.join(units, how="inner").reset_index()

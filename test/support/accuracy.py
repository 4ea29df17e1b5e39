"""How far what a capture reports is from what the timing model says without the cost of records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from support.launch import run_plain, run_profiled

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

    from kernels.workload import Workload
    from support.launch import ProfiledRun

CONTAINERS = ("kernel", "loop", "iteration", "prologue", "epilogue")


@dataclass(frozen=True, slots=True)
class Accuracy:
    """One kernel on one chip, default policy. Errors of regions are of the mean over their executions.

    Attributes:
        plain_cycles: Of a launch without records.
        ghost_error: Of a launch whose records cost nothing, relative to that.
        added_cycles: By records, to the launch.
        leaf_share: Of the warps' time, in regions that measure one thing.
        median_error, p95_error: Of regions, in cycles.
        median_excess, p95_excess: The same as shares of max(4 cycles, 1 %) and max(8 cycles, 3 %).
        kernel_error_raw, kernel_error: Of the kernel's own region, as measured and corrected.
        covered: Share of executions whose error is within their uncertainty.
    """

    plain_cycles: int
    ghost_error: float
    added_cycles: int
    leaf_share: float
    median_error: float
    p95_error: float
    median_excess: float
    p95_excess: float
    kernel_error_raw: float
    kernel_error: float
    covered: float

    @property
    def slowdown(self) -> float:
        return self.added_cycles / self.plain_cycles


def measure(workload: Workload, folder: Path, *, chip: str, batch: int = 0) -> Accuracy:
    """Launch `workload` plain, with records, and with records that cost nothing.

    `batch` records are stored at once, with 0 as by default.
    """
    plain = run_plain(workload, chip=chip)
    buffer = {"buffer_bytes": 64 << 10}  # Nothing dropped, so that executions can be told to be the same.
    options: dict[str, Any] = {"simt_chip": chip} | ({"batch": batch} if batch else {})
    ghost = run_profiled(workload, folder / "ghost.kpf", ghost=plain, **options)
    profiled = run_profiled(workload, folder / "out.kpf", **options)
    if any(run.timeline.launches["dropped"].any() for run in (ghost, profiled)):
        ghost = run_profiled(workload, folder / "ghost.kpf", ghost=plain, **options, **buffer)
        profiled = run_profiled(workload, folder / "out.kpf", **options, **buffer)
    return compare(plain.cycles, ghost, profiled)


def compare(plain_cycles: int, ghost: ProfiledRun, profiled: ProfiledRun) -> Accuracy:
    """Compare the same launch with and without the cost of records.

    Regions are compared by their means: where warps race for work, single executions are not the same.
    """
    true, measured = mean_durations(ghost.timeline.spans), profiled.timeline.spans
    corrected = measured.assign(duration_cycles=profiled.timeline.corrected["duration_cycles"])
    found = mean_durations(corrected).reindex(true.index)
    error = (found - true).abs().dropna()
    true_left = true[error.index]
    kernel = {
        "raw": total(measured) / total(ghost.timeline.spans) - 1,
        "corrected": total(corrected) / total(ghost.timeline.spans) - 1,
    }
    return Accuracy(
        plain_cycles, ghost.cycles / plain_cycles - 1, profiled.cycles - plain_cycles, leaf_share(measured),
        float(error.median()), float(error.quantile(0.95)),
        float((error / np.maximum(4, 0.01 * true_left)).median()),
        float((error / np.maximum(8, 0.03 * true_left)).quantile(0.95)),
        kernel["raw"], kernel["corrected"], covered(ghost, profiled),
    )  # fmt: skip


def mean_durations(spans: pd.DataFrame) -> pd.Series:
    """Mean duration of each region's complete executions; marks have none."""
    spans = spans[spans["complete"] & (spans["kind"] != "mark")]
    means: pd.Series = spans.groupby(spans["name"].astype(str))["duration_cycles"].mean()
    return means


def total(spans: pd.DataFrame) -> int:
    """Cycles of all warps in the kernel."""
    return int(spans.loc[spans["kind"] == "kernel", "duration_cycles"].sum())


def leaf_share(spans: pd.DataFrame) -> float:
    """Share of the warps' time that is in regions which measure one thing and hold no others."""
    is_leaf = ~spans.index.isin(spans["parent"]) & ~spans["kind"].isin(CONTAINERS)
    return float(spans.loc[is_leaf, "duration_cycles"].sum() / max(total(spans), 1))


def covered(ghost: ProfiledRun, profiled: ProfiledRun) -> float:
    """Share of executions that are as long as they are said to be, within their uncertainty; nan if others ran."""
    keys = ["cta", "warp", "region"]
    true, spans = ghost.timeline.spans, profiled.timeline.spans
    if len(true) != len(spans) or (true[keys].to_numpy() != spans[keys].to_numpy()).any():
        return float("nan")
    corrected = profiled.timeline.corrected
    error = (corrected["duration_cycles"] - true["duration_cycles"]).abs()
    return float((error <= corrected["uncertainty_cycles"]).mean())

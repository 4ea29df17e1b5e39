"""What the default policy reports, against the truth of the timing model: docs/accuracy.md has what it means."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from kernels.cases import HOPPER_WORKLOADS, WORKLOADS
from sections.long_launches import LONG_LAUNCHES
from sections.table import table
from support.accuracy import Accuracy, measure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from kernels.workload import Workload

CHIPS = {"a100": WORKLOADS, "h100": HOPPER_WORKLOADS}
# Of a launch: chip, kernel, what was found.
Row = tuple[str, str, Accuracy]
LONG_CYCLES = 20_000


@dataclass(frozen=True, slots=True)
class Target:
    """A target, which kernels it is for, and whether one meets it."""

    text: str
    applies: Callable[[Accuracy], bool]
    met: Callable[[Accuracy], bool]


TARGETS = (
    Target(
        f"slowdown of kernels over {LONG_CYCLES:,} cycles at most 10 %",
        lambda it: it.plain_cycles > LONG_CYCLES,
        lambda it: it.slowdown <= 0.10,
    ),
    Target(
        "shorter ones at most 600 cycles longer",
        lambda it: it.plain_cycles <= LONG_CYCLES,
        lambda it: it.added_cycles <= 600,
    ),
    Target("90 % of the warps' time in leaf regions", lambda _: True, lambda it: it.leaf_share >= 0.9),
    Target("region error within max(4 cycles, 1 %) at the median", lambda _: True, lambda it: it.median_excess <= 1),
    Target("region error within max(8 cycles, 3 %) at p95", lambda _: True, lambda it: it.p95_excess <= 1),
    Target("kernel time within 1 %", lambda _: True, lambda it: abs(it.kernel_error) <= 0.01),
    Target("ghost within 1 % of the plain kernel", lambda _: True, lambda it: abs(it.ghost_error) <= 0.01),
)


def run() -> tuple[str, int]:
    """Measure every kernel of the tests that runs on the device, and the long launches."""
    small = {chip: [each for each in workloads.values() if not each.variant] for chip, workloads in CHIPS.items()}
    found, of_long = measured(small), measured(LONG_LAUNCHES)
    text = f"## Accuracy\n\n### Long launches\n\n{summary(of_long)}\n{details(of_long)}\n"
    text += f"### Kernels of the tests\n\n{summary(found)}\n{details(found)}"
    return text, 0


def measured(launches: Mapping[str, Iterable[Workload]]) -> list[Row]:
    """What is found of each launch, by chip."""
    found: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for chip, workloads in launches.items():
            found += [(chip, each.case.name, measure(each, Path(folder), chip=chip)) for each in workloads]
    return found


def summary(found: list[Row]) -> str:
    """How many kernels meet each target."""
    rows = []
    for target in TARGETS:
        mine = [it for *_, it in found if target.applies(it)]
        if mine:
            rows.append([target.text, f"{sum(target.met(it) for it in mine)} of {len(mine)}"])
    slowdowns = [it.slowdown for *_, it in found if it.plain_cycles > LONG_CYCLES]
    text = table(("target", "kernels that meet it"), rows)
    text += f"\nSlowdown of kernels over {LONG_CYCLES:,} cycles: {np.median(slowdowns):.1%} at the median, "
    return text + f"{max(slowdowns):.1%} at most.\n"


def details(found: list[Row]) -> str:
    """A row per kernel."""
    rows = [
        [
            chip, name, it.plain_cycles, f"{it.ghost_error:+.2%}", it.added_cycles, f"{it.slowdown:.1%}",
            f"{it.leaf_share:.0%}", it.median_error, it.p95_error, f"{it.median_excess:.2f} / {it.p95_excess:.2f}",
            f"{it.kernel_error_raw:+.2%}", f"{it.kernel_error:+.2%}", f"{it.covered:.0%}",
        ]
        for chip, name, it in found
    ]  # fmt: skip
    columns = (
        "chip", "kernel", "plain cycles", "ghost / plain", "cycles added", "slowdown", "in leaf regions",
        "region error, median", "p95", "as shares of the targets", "kernel time, measured", "corrected",
        "executions within their uncertainty",
    )  # fmt: skip
    return table(columns, rows)

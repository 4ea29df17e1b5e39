"""How good the advisor's estimates are: expected against achieved, over kernels with a fault that it knows."""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

from sections.table import table
from support.advice_pairs import PAIRS, measure


def run() -> tuple[str, int]:
    """The section."""
    rows: list[list[object]] = []
    errors, beyond = [], 0
    for pair in PAIRS:
        with tempfile.TemporaryDirectory() as folder:
            measured = measure(pair, Path(folder))
        finding, error = measured.finding, measured.error
        errors.append((abs(error), pair.held_out))
        beyond += measured.achieved > finding.bound * 1.05
        rows.append(
            [
                pair.name, pair.chip, pair.rule, f"{finding.speedup:.2f}", f"{finding.bound:.2f}",
                f"{measured.achieved:.2f}", f"{error:+.1%}", "yes" if pair.held_out else "",
            ]
        )  # fmt: skip
    columns = ("kernel", "chip", "rule", "expected", "bound", "achieved", "error", "held out")
    return f"## Advice\n\n{_text(errors, beyond)}\n\n{table(columns, rows)}", 0


def _text(errors: list[tuple[float, bool]], beyond: int) -> str:
    every, held = [error for error, _ in errors], [error for error, held_out in errors if held_out]
    return (
        "Speed-up that `kperfir advise` expects from a recorded run, and what the change achieves in simulated cycles, "
        "without records. "
        f"Mean error {statistics.mean(every):.1%}, median {statistics.median(every):.1%}, worst {max(every):.1%} over "
        f"{len(every)} pairs; {statistics.mean(held):.1%} on average over the {len(held)} that no rule was written "
        f"with in sight. Achieved was more than 5 % beyond the bound {beyond} times. (GPA's own published pairs, on a "
        "V100: mean 10.3 %, median 7.5 %, worst 44 %; these are of a timing model.)"
    )

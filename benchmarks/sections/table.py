"""Markdown tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Render `rows` under `columns`; numbers are right-aligned, floats have three significant digits."""
    rows = [list(row) for row in rows]
    numeric = [bool(rows) and all(isinstance(row[i], int | float) for row in rows) for i in range(len(columns))]
    lines = [
        columns,
        ["---:" if right else "---" for right in numeric],
        *([cell(value) for value in row] for row in rows),
    ]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def cell(value: object) -> str:
    """Text of one cell."""
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)

#!/usr/bin/env python3
"""Draw what benchmarks/RESULTS.md says as docs/img/bench-*.svg.

    python benchmarks/plots.py

Reads the tables of that document and nothing else, so that picture and table cannot differ. A section that has not been
run has no picture.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl

mpl.use("svg")
import matplotlib.pyplot as plt

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parent
RESULTS, IMAGES = ROOT / "RESULTS.md", ROOT.parent / "docs" / "img"
OURS, THEIRS = "#1f6feb", "#9aa4b2"
STYLE = {
    "svg.hashsalt": "kperfir",  # The same figures give the same file.
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.constrained_layout.use": True,
}


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the document: the heading above it, and its rows by column."""

    heading: str
    rows: list[dict[str, str]]


def main() -> int:
    """Draw all that there is; say what is missing."""
    text = RESULTS.read_text(encoding="utf-8")
    IMAGES.mkdir(exist_ok=True)
    missing = []
    with mpl.rc_context(STYLE):
        for name, draw in PLOTS.items():
            figure = draw(text)
            if figure is None:
                missing.append(name)
                continue
            figure.savefig(IMAGES / f"bench-{name}.svg", metadata={"Date": None})
            plt.close(figure)
    if missing:
        print(f"no section of RESULTS.md has what these show: {', '.join(missing)}", file=sys.stderr)
    return int(bool(missing))


def tables(text: str, section: str) -> list[Table]:
    """The tables of a section."""
    found = re.search(f"<!-- section {section} -->\n(.*?)(?=\n<!-- section |\\Z)", text, re.DOTALL)
    result: list[Table] = []
    heading, rows = "", []
    for line in [*(found[1].splitlines() if found else []), ""]:
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip("|").split("|")])
            continue
        if len(rows) > 2:
            columns, _, *body = rows
            result.append(Table(heading, [dict(zip(columns, row, strict=True)) for row in body]))
        rows = []
        heading = line.lstrip("# ") if line.startswith("#") else heading
    return result


def records(text: str) -> Any:
    """Machine instructions of a record in a loop, by target."""
    column = "per record in the loop"
    panels: list[tuple[str, list[tuple[str, float, float]]]] = []
    for table in tables(text, "proton"):
        panels.append((table.heading, _pairs(table.rows, column)))
    return _bars(panels, "machine instructions per record in a loop, net")


def slowdown(text: str) -> Any:
    """Simulated time with records over that without, by chip."""
    panels: dict[str, list[tuple[str, float, float]]] = {}
    for table in tables(text, "proton"):
        for row in table.rows:
            if "Proton / plain" in row:
                pair = float(row["kperfir / plain"]), float(row["Proton / plain"])
                panels.setdefault(row["chip"], []).append((row["kernel"], *pair))
    return _bars(list(panels.items()), "simulated time of a launch, plain = 1", base=1.0)


def host(text: str) -> Any:
    """Rates of decoding and of writing a trace, on the first chip; they differ by orders of magnitude."""
    rows = [row for table in tables(text, "proton_host") for row in table.rows]
    rows = [row for row in rows if row["chip"] == rows[0]["chip"]]
    panels = [(column, _pairs(rows, column)) for column in ("decoded, M records/s", "written, M slices/s")]
    return _bars(panels, "millions per CPU second", scale="log")


def scaling(text: str) -> Any:
    """Time and memory of a report over the size of its capture."""
    rows = [row for table in tables(text, "scaling") for row in table.rows if "records" in row]
    if not rows:
        return None
    size = [float(row["records"].replace(",", "")) for row in rows]
    figure, axes = plt.subplots(1, 2, figsize=(7, 2.6))
    for axis, column, limit in ((axes[0], "CPU seconds", 3.0), (axes[1], "peak memory, GB", 2.0)):
        axis.plot(size, [float(row[column]) for row in rows], "o-", color=OURS)
        axis.axhline(limit, color=THEIRS, linestyle="--", linewidth=1)
        axis.set(xscale="log", xlabel="records in the capture", title=f"report: {column}", ylim=(0, None))
    return figure


def _pairs(rows: list[dict[str, str]], column: str) -> list[tuple[str, float, float]]:
    """Kernels with kperfir's and Proton's figure, where there are both."""
    cells = [(row["kernel"], row[column].split("/")) for row in rows if _both(row.get(column, ""))]
    return [(name, float(ours), float(theirs)) for name, (ours, theirs) in cells]


def _both(cell: str) -> bool:
    return "/" in cell and all(part.strip() for part in cell.split("/"))


def _bars(
    panels: list[tuple[str, list[tuple[str, float, float]]]], label: str, base: float = 0.0, scale: str = "linear"
) -> Any:
    """Pairs of bars, a panel beside the other; None if there is nothing."""
    panels = [panel for panel in panels if panel[1]]
    if not panels:
        return None
    height = 0.6 + 0.32 * max(len(rows) for _, rows in panels)
    figure, axes = plt.subplots(1, len(panels), figsize=(3.6 * len(panels), height), squeeze=False)
    for axis, (title, rows) in zip(axes[0], panels, strict=True):
        place = range(len(rows))
        for offset, index, colour, name in ((0.2, 1, OURS, "kperfir"), (-0.2, 2, THEIRS, "Proton")):
            lengths = [float(row[index]) - base for row in rows]
            axis.barh([-row + offset for row in place], lengths, height=0.38, left=base, color=colour, label=name)
        axis.set_yticks([-row for row in place], [row[0] for row in rows])
        axis.set(title=title, xlabel=label, xscale=scale)
    axes[0][0].legend(frameon=False)
    return figure


PLOTS: dict[str, Callable[[str], Any]] = {
    "records": records,
    "slowdown": slowdown,
    "host": host,
    "scaling": scaling,
}

if __name__ == "__main__":
    sys.exit(main())

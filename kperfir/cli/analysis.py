"""`kperfir report --analysis NAME`: the table of one analysis, for people or as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from kperfir.cli.captures import NO_LAUNCH
from kperfir.cli.table import Column, console, count, percent, print_table

if TYPE_CHECKING:
    from collections.abc import Collection

    import pandas as pd

    from kperfir.timeline import Timeline

JSON_VERSION = 1
# Columns of numbers that are shares without saying so in their names.
_SHARES = ("heat", "alone", "waited", "wave_fill", "sm_busy", "error", "variation", "cta_spread")
_COUNTS = (
    "count",
    "line",
    "iterations",
    "iteration",
    "slots",
    "stage",
    "launch",
    "cta",
    "warp",
    "ctas",
    "sms",
    "steps",
)


def show(timeline: Timeline, name: str, kernels: Collection[str], limit: int | None, *, as_json: bool) -> None:
    """Print the rows of analysis `name` that are about `kernels`."""
    from kperfir.analysis.registry import ANALYSES

    table = ANALYSES[name].run(timeline)
    table = table[table["kernel"].isin(kernels)]
    shown = table.groupby("kernel", sort=False, observed=True).head(limit) if limit else table
    if as_json:
        report = {
            "kperfir_analysis": JSON_VERSION,
            "analysis": name,
            "files": timeline.metadata["files"],
            "notes": timeline.notes,
            "dropped": int(timeline.launches["dropped"].sum()),
            "rows": json.loads(shown.to_json(orient="records", double_precision=15)),
        }
        click.echo(json.dumps(report, indent=2))
        return
    _print(name, ANALYSES[name].about, shown, len(table))
    if table.empty:
        why = "no kernel of these files has what this analysis looks at"
        console().print(Text(f"nothing: {why if len(timeline.launches) else NO_LAUNCH}"), soft_wrap=True)


def _print(name: str, about: str, table: pd.DataFrame, total: int) -> None:
    out = console()
    out.print(Text(f"{name}: {about}"), soft_wrap=True)
    if table.empty:
        return
    matrix = name == "overlap"
    columns = [_column(str(key), table[key], matrix=matrix) for key in table.columns if key != "file"]
    print_table(out, columns)
    if len(table) < total:
        out.print(Text(f"({total - len(table)} more rows; --limit)"))


def _column(key: str, values: pd.Series, *, matrix: bool) -> Column:
    title = key.removesuffix("_cycles").replace("_", " ")
    if not _numeric(values):
        return Column(
            title, [str(value) for value in values], right=False, rank=0 if key in ("name", "activity") else 5
        )
    spell: Any = _figure
    if key.endswith("_share") or key in (*_SHARES, "share") or (matrix and key != "cycles"):
        spell = _percent
    elif key.endswith("cycles"):
        spell = count
    elif key in _COUNTS:
        spell = _plain
    return Column(title, [spell(float(value)) for value in values], rank=3)


def _numeric(values: pd.Series) -> bool:
    return values.dtype.kind in "iuf"


def _percent(value: float) -> str:
    return "-" if value != value else percent(value)


def _plain(value: float) -> str:
    return "-" if value != value else f"{value:,.0f}"


def _figure(value: float) -> str:
    return "-" if value != value else f"{value:,.3g}"

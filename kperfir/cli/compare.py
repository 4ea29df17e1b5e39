"""`kperfir compare`: which regions changed from one capture to another, by more than noise."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kperfir.cli.captures import exit_code, matching_kernels, print_notes
from kperfir.cli.table import Column, console, count, percent, print_table

if TYPE_CHECKING:
    import pandas as pd

JSON_VERSION = 1
_STYLES = {"slower": "red", "faster": "green"}


@click.command("compare")
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path))
@click.option("--kernel", "pattern", metavar="GLOB", default="*", help="Only kernels whose name matches.")
@click.option(
    "--threshold", metavar="PERCENT", type=click.FloatRange(min=0), default=2.0, show_default=True,
    help="Change that never counts.",
)  # fmt: skip
@click.option(
    "--fail-on", type=click.Choice(["kernel", "region", "never"]), default="kernel", show_default=True,
    help="What has to be slower for exit code 4.",
)  # fmt: skip
@click.option("--changed", is_flag=True, help="Only regions whose verdict is not 'same'.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON: all columns, full precision.")
def command(
    before: Path, after: Path, pattern: str, threshold: float, fail_on: str, *, changed: bool, as_json: bool
) -> int:
    """Compare the regions of two captures, BEFORE and AFTER.

    "change" is that of the mean duration of an execution, "band" what noise may make of it: launches, or CTAs where
    there are fewer than three launches, vary so much. A change inside the band is "same". Exit code 4 says that a
    kernel (or, with --fail-on region, any region) got slower.
    """
    from kperfir.analysis.compare import compare_regions
    from kperfir.cli.main import SLOWER
    from kperfir.timeline import load

    timelines = [load(before), load(after)]
    table = compare_regions(timelines[0].totals.rows, timelines[1].totals.rows, threshold / 100)
    table = table[table["kernel"].isin(matching_kernels(table["kernel"], pattern))]
    dropped = sum(int(timeline.launches["dropped"].sum()) for timeline in timelines)
    rows = table[table["verdict"] != "same"] if changed else table
    if as_json:
        report = {
            "kperfir_compare": JSON_VERSION,
            **dict(before=str(before), after=str(after), threshold=threshold / 100),
            "notes": list(dict.fromkeys(note for timeline in timelines for note in timeline.notes)),
            "dropped": dropped,
            "rows": json.loads(rows.to_json(orient="records", double_precision=15)),
        }
        click.echo(json.dumps(report, indent=2))
    else:
        print_notes(timelines)
        _print(rows)
    watched = {"kernel": table["kind"] == "kernel", "region": table["kind"] != "", "never": table["kind"] == ""}
    if (watched[fail_on] & (table["verdict"] == "slower")).any():
        click.echo(f"kperfir: slower than {before} (exit code {SLOWER})", err=True)
        return SLOWER
    return exit_code(dropped)


def _print(table: pd.DataFrame) -> None:
    from rich.text import Text

    out = console()
    if table.empty:
        out.print("nothing to compare")
    for kernel, rows in table.groupby("kernel", sort=False):
        out.print()
        out.print(Text(str(kernel), style="bold"))
        print_table(out, _columns(rows.to_dict("records")))


def _columns(rows: list[dict[str, Any]]) -> list[Column]:
    def change(value: float, sign: str) -> str:
        return "-" if value != value else f"{100 * value:{sign}.1f} %"

    verdicts = {row["verdict"] for row in rows}
    style = next((_STYLES[verdict] for verdict in _STYLES if verdict in verdicts), "")
    names = ["  " * row["depth"] + row["name"] + _before(row) for row in rows]
    return [
        Column("region", names, right=False),
        Column("count", [_counts(row) for row in rows], rank=4),
        Column("before", [count(row["mean_before"]) for row in rows], rank=2),
        Column("after", [count(row["mean_after"]) for row in rows], rank=2),
        Column("change", [change(row["change"], "+") for row in rows]),
        Column("band", ["-" if row["band"] != row["band"] else f"± {percent(row['band'])}" for row in rows], rank=1),
        Column("verdict", [row["verdict"] for row in rows], right=False, style=style),
    ]


def _before(row: dict[str, Any]) -> str:
    renamed = row["name_before"] and row["name_before"] != row["name"]
    return f" (was {row['name_before']})" if renamed else ""


def _counts(row: dict[str, Any]) -> str:
    before, after = count(row["count_before"]), count(row["count_after"])
    return before if before == after else f"{before} > {after}"

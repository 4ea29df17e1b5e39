"""`kperfir advise`: what to change in a kernel, why, and what it should gain."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from kperfir.cli.captures import NO_LAUNCH, exit_code, files_argument, matching_kernels, print_notes
from kperfir.cli.table import console, counted

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from kperfir.advice.finding import Advice, Figure, Finding, Place

_PLACES = 4


@click.command("advise")
@files_argument
@click.option("--kernel", "pattern", metavar="GLOB", default="*", help="Only kernels whose name matches.")
@click.option("--limit", type=click.IntRange(min=1), help="Findings per kernel at most.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON: all findings with all figures.")
def command(files: tuple[Path, ...], pattern: str, limit: int | None, *, as_json: bool) -> int:
    """Say what to change in the kernels of a capture.

    A finding shows where time is lost, the figures that say so, what to change, how much faster a launch should be
    ("expected") and how much it could be at most ("bound"). Findings are about the recorded run: recording itself
    takes time. Check a change with `kperfir whatif`, or without records.
    """
    from kperfir.advice.advise import advise
    from kperfir.timeline import load

    timeline = load(*files)
    advice = advise(timeline, matching_kernels(timeline.launches["kernel"].astype(str), pattern))
    if as_json:
        click.echo(json.dumps(advice.to_dict(), indent=2))
    else:
        print_notes([timeline])
        _print(console(), advice, limit)
    return exit_code(advice.dropped)


def _print(out: Console, advice: Advice, limit: int | None) -> None:
    from rich.text import Text

    if not advice.kernels:
        out.print(Text(NO_LAUNCH), soft_wrap=True)
    for kernel in advice.kernels:
        findings = advice.of_kernel(kernel)
        out.print(Text(f"\n{kernel}: {counted(len(findings), 'finding')}", style="bold"))
        for number, finding in enumerate(findings[:limit], 1):
            for line in _lines(number, finding):
                out.print(Text(line), soft_wrap=True)


def _lines(number: int, finding: Finding) -> list[str]:
    lines = [
        "",
        f"{number}. {finding.title} [{finding.rule}]",
        f"   expected {finding.speedup:.2f}x, at most {finding.bound:.2f}x ({finding.basis})",
    ]
    lines += [f"   at {_place(place)}" for place in finding.places[:_PLACES]]
    if len(finding.places) > _PLACES:
        lines.append(f"   and {counted(len(finding.places) - _PLACES, 'more region')}")
    lines.append("   seen: " + ", ".join(_figure(figure) for figure in finding.figures))
    lines.append(f"   change: {finding.change.what}")
    lines.append(f"   check: {finding.verify}")
    return lines


def _place(place: Place) -> str:
    where = f"{place.file}:{place.line}" if place.file else "unknown source"
    return f"{place.region} ({where}), {place.share:.1%} of the time"


def _figure(figure: Figure) -> str:
    name = figure.name.replace("_", " ")
    if figure.unit == "share":
        return f"{name} {figure.value:.1%}"
    if figure.unit == "cycles":
        return f"{name.removesuffix(' cycles')} {figure.value:,.0f} cycles"
    return f"{name} {figure.value:,.4g}" + ("" if figure.unit == "count" else f" {figure.unit}")

"""`kperfir report`: where the time goes, per region, source line or kind."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kperfir.analysis.registry import ANALYSES
from kperfir.cli.captures import NO_LAUNCH, exit_code, files_argument, matching_kernels, print_notes, require_other_file
from kperfir.cli.table import Column, bar, console, count, counted, percent, print_table
from kperfir.errors import UsageError
from kperfir.report.model import SORTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from kperfir.timeline import Timeline

_SOURCE_WIDTH = 60


@click.command("report")
@files_argument
@click.option("--kernel", "pattern", metavar="GLOB", default="*", help="Only kernels whose name matches.")
@click.option("--by", type=click.Choice(["region", "line", "kind"]), help="What a row stands for; default: region.")
@click.option("--sort", type=click.Choice(list(SORTS)), help="Order of rows; default: program for regions, else self.")
@click.option("--limit", type=click.IntRange(min=1), help="Rows per kernel at most.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON: all columns, full precision.")
@click.option("--for-agent", "as_digest", is_flag=True, help="Print findings and figures in under 2 kB of text.")
@click.option("--html", "page", type=click.Path(path_type=Path), metavar="OUT", help="Write a page for a browser.")
@click.option("--analysis", type=click.Choice(list(ANALYSES)), help="Show this analysis instead (docs/analyses.md).")
def command(
    files: tuple[Path, ...], pattern: str, by: str | None, sort: str | None, limit: int | None, *, as_json: bool,
    as_digest: bool, page: Path | None, analysis: str | None,
) -> int:  # fmt: skip
    """Show where the time goes.

    Times are cycles of a warp; counts and times are summed over all warps, CTAs and launches of a kernel. "share" is
    of the CTA's time: 100 % means all warps of the CTA that recorded, from its start to its end. "self" leaves out
    regions nested inside. "spread" is how unevenly warps share it: the standard deviation of the warps' totals over
    their mean. "wait" is the part of the share in which warps did nothing but wait, for copies, barriers or matrix
    units. Several FILEs, such as the ranks of a job, make one report. --html writes one file with tables, timeline and
    source that opens in any browser, without a network.
    """
    from kperfir.report.agent import digest
    from kperfir.report.model import Request, build
    from kperfir.timeline import load

    if as_json + as_digest + bool(page) > 1:
        raise click.UsageError("give one of --json, --for-agent and --html")
    require_other_file(page, files)
    timeline = load(*files)
    kernels = _chosen_kernels(timeline, pattern)
    if analysis:
        if page or as_digest:
            raise click.UsageError("--analysis is a table, or JSON with --json")
        if by or sort:
            raise click.UsageError("--analysis has rows and an order of its own: leave --by and --sort out")
        return _show_analysis(timeline, analysis, kernels, limit, as_json=as_json)
    if page:
        return _write_page(timeline, page, kernels)
    if as_digest:
        by, sort, limit = None, None, None
    by = by or "region"
    sort = sort or ("program" if by == "region" else "self")
    report = build(timeline, Request(by, sort, kernels, limit, findings=as_json or as_digest))
    if as_digest:
        click.echo(digest(report), nl=False)
    elif as_json:
        click.echo(json.dumps(report, indent=2))
    else:
        _print(report)
    return exit_code(report["dropped"])


def _write_page(timeline: Timeline, page: Path, kernels: tuple[str, ...]) -> int:
    from kperfir.report.html import write_page

    write_page(timeline, page, kernels)
    print_notes([] if len(timeline.launches) else [timeline])
    held = counted(timeline.span_count, "span") if len(timeline.launches) else NO_LAUNCH
    held += f", {len(timeline.details.spans):,} of them drawn" if timeline.details.sample else ""
    click.echo(f"kperfir: {held}; written to {page}, for a browser", err=True)
    return exit_code(int(timeline.launches["dropped"].sum()))


def _show_analysis(
    timeline: Timeline, name: str, kernels: tuple[str, ...], limit: int | None, *, as_json: bool
) -> int:  # fmt: skip
    from kperfir.cli.analysis import show

    if not as_json:
        print_notes([timeline])
    show(timeline, name, kernels, limit, as_json=as_json)
    return exit_code(int(timeline.launches["dropped"].sum()))


def _chosen_kernels(timeline: Timeline, pattern: str) -> tuple[str, ...]:
    from kperfir.report.model import kernel_names

    try:
        return tuple(matching_kernels(kernel_names(timeline), pattern))
    except UsageError:
        print_notes([timeline])  # They may say why it is not there.
        raise


def _print(report: dict[str, Any]) -> None:
    from rich.text import Text

    out = console()
    for note in report["notes"]:
        out.print(Text(f"note: {note}", style="yellow"), soft_wrap=True)
    for bounds in report["bounds"]:
        kept, size = bounds["launches_per_kernel"], bounds["file_bytes"] / (1 << 20)
        text = f"bounds: at most {counted(kept, 'launch', 'launches')} of each kernel, {size:,.4g} MiB a file"
        out.print(Text(text, style="dim"), soft_wrap=True)
    if not report["kernels"]:
        out.print(Text(NO_LAUNCH), soft_wrap=True)
    for kernel in report["kernels"]:
        out.print()
        out.print(Text(kernel["kernel"], style="bold"))
        out.print(Text(_describe_launches(kernel)))
        print_table(out, _columns(kernel["rows"], report["by"], nested=report["sort"] == "program"))
        hidden = kernel["rows_total"] - len(kernel["rows"])
        if hidden:
            out.print(Text(f"({hidden} more rows; --limit)", style="dim"))
        if any(row["wait_cycles"] for row in kernel["waits"]["kernel"]):
            out.print()
            print_table(out, _wait_columns(kernel["waits"]))


def _describe_launches(kernel: dict[str, Any]) -> str:
    launches = kernel["launches"]
    total, recorded = (sum(launch[key] for launch in launches) for key in ("ctas_total", "ctas_recorded"))
    grids = dict.fromkeys("x".join(str(launch[f"grid_{axis}"]) for axis in "xyz") for launch in launches)
    chips = dict.fromkeys(launch["chip"] + (" (simulated)" if launch["simulated"] else "") for launch in launches)
    uncertain = [launch["ns_uncertainty"] for launch in launches if launch["ns_uncertainty"] is not None]
    sms = len({sm["sm"] for sm in kernel["sms"]})
    resident = max((sm["max_resident"] for sm in kernel["sms"]), default=0)
    where = f"{sms} SM{'s' if sms > 1 else ''}, at most {resident} CTA{'s' if resident > 1 else ''} at a time on each"
    parts = [
        f"{len(launches)} launch{'es' if len(launches) > 1 else ''}",
        f"grid {', '.join(grids)}",
        counted(total, "CTA") if recorded == total else f"{recorded:,} of {counted(total, 'CTA')} recorded",
        *([where] if sms else []),  # Sums do not say.
        f"on {', '.join(chips)}",
    ]
    if kernel["mean_warp_lag_cycles"]:  # Neither unknown nor, for a single warp, 0.
        parts.append(f"last warp of a CTA {count(kernel['mean_warp_lag_cycles'])} cycles behind the first")
    if uncertain:
        parts.append(f"nanoseconds ± {max(uncertain):.3g}")
    return " · ".join(parts)


def _cells(rows: list[dict[str, Any]], key: str, spell: Callable[[Any], str]) -> list[str]:
    return [spell(float("nan") if row[key] is None else row[key]) for row in rows]


def _columns(rows: list[dict[str, Any]], by: str, *, nested: bool) -> list[Column]:
    cells = functools.partial(_cells, rows)
    waiting = [percent(row["wait_share"]) if row["wait_cycles"] else "" for row in rows]
    waits = [Column("wait", waiting, rank=3)] if any(waiting) else []
    columns = [_name_column(rows, by, nested=nested)]
    columns += [
        Column("count", cells("count", count), rank=4),
        Column("total", cells("total_cycles", count), rank=2),
        Column("share", cells("share", percent)),
        Column("self", cells("self_share", percent), rank=1),
        *waits,
        Column("", cells("self_share", bar), right=False, rank=9, style="cyan", for_terminals=True),
        Column("mean", cells("mean_cycles", count), rank=3),
        *(_sums_columns(rows) if rows and "histogram" in rows[0] else _percentile_columns(rows)),
        *_corrected_columns(rows),
        Column("spread", cells("warp_spread", percent), rank=7),
    ]
    if any(row.get("value_min") is not None for row in rows):
        columns.append(Column("value", [_value_range(row) for row in rows], rank=4))
    if any(row["incomplete"] for row in rows):
        partial = [count(row["incomplete"]) if row["incomplete"] else "" for row in rows]
        columns.append(Column("partial", partial, rank=4, style="yellow"))
    if by != "kind" and (by == "region" or any(row.get("source") for row in rows)):
        columns.append(Column("source", _sources(rows, by), right=False, rank=8, style="dim"))
    return columns


def _percentile_columns(rows: list[dict[str, Any]]) -> list[Column]:
    return [
        Column("p50", _cells(rows, "p50_cycles", count), rank=6),
        Column("p95", _cells(rows, "p95_cycles", count), rank=5),
    ]


def _sums_columns(rows: list[dict[str, Any]]) -> list[Column]:
    """What sums have in place of percentiles. The histogram has a bar for each power of two that was met."""
    return [
        Column("std", _cells(rows, "std_cycles", count), rank=5),
        Column("min", _cells(rows, "min_cycles", count), rank=6),
        Column("max", _cells(rows, "max_cycles", count), rank=6),
        Column("histogram", [_histogram(row["histogram"]) for row in rows], right=False, rank=4),
    ]


def _histogram(buckets: list[int]) -> str:
    """Such as ``2^5 ▁▃█ 2^8``: executions of 32 cycles and more, up to less than 256; a bar is a share of the most."""
    met = [power for power, executions in enumerate(buckets) if executions]
    if not met:
        return ""
    low, high, most = met[0], met[-1] + 1, max(buckets)
    bars = "".join(" " if not n else "▁▂▃▄▅▆▇█"[-(-8 * n // most) - 1] for n in buckets[low:high])
    return f"2^{low} {bars} 2^{high}"


def _corrected_columns(rows: list[dict[str, Any]]) -> list[Column]:
    """The mean without what records took, and how sure that is."""
    cells = [
        "-"
        if row["corrected_cycles"] is None
        else f"{count(row['corrected_cycles'])} ± {count(row['uncertainty_cycles'])}"
        for row in rows
    ]
    return [Column("corrected", cells, rank=4)] if any(cell != "-" for cell in cells) else []


def _wait_columns(waits: dict[str, list[dict[str, Any]]]) -> list[Column]:
    """Work and wait of all warps, and of each role where there are several."""
    from kperfir.analysis.wait_time import WAIT_KINDS

    roles = waits["role"] if len(waits["role"]) > 1 else []
    rows = [*waits["kernel"], *roles]
    names = ["all warps", *(f"  {row['role']}" for row in roles)]
    kinds = [kind for kind in WAIT_KINDS if any(row[f"{kind}_cycles"] for row in rows)]

    def shares(key: str) -> list[str]:
        return [percent(row[key] / row["cycles"] if row["cycles"] else 0.0) for row in rows]

    return [
        Column("work and wait", names, right=False),
        Column("total", [count(row["cycles"]) for row in rows], rank=2),
        Column("work", shares("work_cycles"), rank=1),
        Column("wait", shares("wait_cycles")),
        *(Column(kind, shares(f"{kind}_cycles"), rank=3) for kind in kinds),
    ]


def _value_range(row: dict[str, Any]) -> str:
    low, high = row.get("value_min"), row.get("value_max")
    if low is None:
        return ""
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def _name_column(rows: list[dict[str, Any]], by: str, *, nested: bool) -> Column:
    if by == "region":
        indent = "  " if nested else ""
        return Column("region", [indent * row["depth"] + row["name"] for row in rows], right=False)
    if by == "line":
        return Column("line", _places(rows), right=False)
    return Column("kind", [row["kind"] for row in rows], right=False)


def _sources(rows: list[dict[str, Any]], by: str) -> list[str]:
    """The text of the source lines where this machine has the file, else where they are."""
    if by == "line":
        return [row.get("source", "")[:_SOURCE_WIDTH] for row in rows]
    return [
        f"{row['line']}: {row['source'][:_SOURCE_WIDTH]}" if row.get("source") else place
        for row, place in zip(rows, _places(rows), strict=True)
    ]


def _places(rows: list[dict[str, Any]]) -> list[str]:
    """``file:line``, the file without its folder where that is clear."""
    names: dict[str, set[str]] = {}
    for row in rows:
        names.setdefault(Path(row["file"]).name, set()).add(row["file"])
    short = {file: name for name, files in names.items() if len(files) == 1 for file in files}
    return [f"{short.get(row['file'], row['file'])}:{row['line']}" for row in rows]

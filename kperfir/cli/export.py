"""`kperfir export`: write captures in a format that other tools read."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kperfir.cli.captures import exit_code, files_argument, print_notes, require_other_file
from kperfir.export import FORMATS


@click.command("export")
@files_argument
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), help="File to write; its suffix names the format.", metavar="OUT"
)
@click.option(
    "--format", "format_name", type=click.Choice(list(FORMATS)), help="Format, if the suffix does not say it."
)
def command(files: tuple[Path, ...], out: Path | None, format_name: str | None) -> int:
    """Write captures in a format that other tools read.

    .pftrace opens in Perfetto (https://ui.perfetto.dev), .json in Perfetto and Chrome, .speedscope.json in speedscope,
    .pprof in pprof, .csv and .parquet hold the table of spans. Several FILEs make one export. Without -o the export
    goes to stdout.
    """
    from kperfir.export import format_of, write, write_file
    from kperfir.export.tables import row_count
    from kperfir.timeline import load, without_repeats

    if out is None and format_name is None:
        raise click.UsageError("give -o OUT, or --format for an export to stdout")
    # Before the captures are read, which may take long.
    format_name = format_name or format_of(Path(out or ""))
    require_other_file(out, files)
    distinct, repeats = without_repeats(files)
    timelines = [load(file) for file in distinct]
    if out is None:
        write(timelines, sys.stdout.buffer, format_name)
    else:
        write_file(timelines, out, format_name)
    print_notes(timelines, repeats)
    if out is not None:
        rows = sum(map(row_count, timelines))
        what = "sums" if all(timeline.has_only_sums for timeline in timelines) else "spans"
        click.echo(f"kperfir: {rows} {what} in {out}", err=True)
    return exit_code(sum(int(timeline.launches["dropped"].sum()) for timeline in timelines))

"""`kperfir merge`: captures of several processes on one time axis."""

from __future__ import annotations

from pathlib import Path

import click

from kperfir.cli.captures import exit_code, files_argument, print_notes, require_other_file
from kperfir.errors import UsageError
from kperfir.export.merge import ALIGN

# The formats that have an axis.
FORMATS = ("pftrace", "json")


@click.command("merge")
@files_argument
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), required=True, metavar="OUT", help="A .pftrace or .json file."
)
@click.option(
    "--align", type=click.Choice(ALIGN), default="timer", show_default=True,
    help="What puts processes beside each other.",
)  # fmt: skip
def command(files: tuple[Path, ...], out: Path, align: str) -> int:
    """Write captures of several processes, such as the ranks of a job, on one time axis.

    Each FILE is a process with a name of its own. With --align timer launches lie where the global timers of their
    devices say that they were; with --align start the first launch of each process is put at the same time, for
    machines whose timers have nothing to do with each other.
    """
    from kperfir.export import format_of, write_file
    from kperfir.export.merge import apart_ns, far_apart, merge
    from kperfir.timeline import load, without_repeats

    name = out.suffix.removeprefix(".")
    if name not in FORMATS or format_of(out) != name:
        raise UsageError(
            "bad-option", where="--out", found=str(out), expected=" or ".join(f".{known}" for known in FORMATS),
            fix="choose such a name: the other formats have no time axis",
        )  # fmt: skip
    require_other_file(out, files)
    distinct, repeats = without_repeats(files)
    timelines = merge([load(file) for file in distinct], align)
    write_file(timelines, out, name)
    more = []
    if align == "timer" and far_apart(timelines):
        hours = apart_ns(timelines) / 3.6e12
        more = [f"the processes are {hours:,.0f} hours apart by their timers; --align start puts them side by side"]
    print_notes(timelines, [*repeats, *more])
    spans = sum(timeline.span_count for timeline in timelines)
    click.echo(f"kperfir: {spans} spans of {len(timelines)} processes in {out}", err=True)
    return exit_code(sum(int(timeline.launches["dropped"].sum()) for timeline in timelines))

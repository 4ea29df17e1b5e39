"""What the verbs that read .kpf files share: the argument, the notes, and what dropped records mean."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kperfir.timeline import Timeline

_Command = TypeVar("_Command", bound=Callable[..., Any])


def files_argument(command: _Command) -> _Command:
    """Add FILE... to a verb. A missing file is an error of the reader, which says more than click does."""
    return click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))(command)


def print_notes(timelines: Sequence[Timeline], more: Sequence[str] = ()) -> None:
    """Say on stderr what a reader of the data has to know."""
    for note in dict.fromkeys([*more, *(note for timeline in timelines for note in timeline.notes)]):
        click.echo(f"note: {note}", err=True)


def exit_code(dropped: int) -> int:
    """0, or 3 with a line on stderr if records were dropped."""
    from kperfir.cli.main import INCOMPLETE, OK

    if not dropped:
        return OK
    click.echo(f"kperfir: the result is incomplete: {dropped} records were dropped (exit code {INCOMPLETE})", err=True)
    return INCOMPLETE

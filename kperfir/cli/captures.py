"""What the verbs that read .kpf files share: the argument, --kernel, the notes, and what dropped records mean."""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kperfir.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kperfir.timeline import Timeline

NO_LAUNCH = "no launch was recorded; the notes may say why, and `kperfir inspect` shows what the file holds"
_NAMED = 8  # Kernels that a message lists.
_Command = TypeVar("_Command", bound=Callable[..., Any])


def files_argument(command: _Command) -> _Command:
    """Add FILE... to a verb. A missing file is an error of the reader, which says more than click does."""
    return click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))(command)


def matching_kernels(names: Iterable[str], pattern: str) -> list[str]:
    """Return the names that `pattern` matches, each once, in order.

    Raises:
        UsageError: ``no-such-kernel`` if there are names, and it matches none.
    """
    known = list(dict.fromkeys(names))
    chosen = [name for name in known if fnmatch.fnmatchcase(name, pattern)]
    if known and not chosen and pattern != "*":
        raise UsageError(
            "no-such-kernel",
            what="no kernel has such a name",
            where="--kernel",
            found=pattern,
            expected=_nearest_first(pattern, known),
            fix="give one of those; a pattern such as '*name*' goes in quotes, so that the shell leaves it alone",
        )
    return chosen


def _nearest_first(name: str, known: list[str]) -> str:
    """The names that there are, those first that `name` may have meant; not more than anyone would read."""
    wanted = name.strip("*").lower()
    ranked = sorted(known, key=lambda each: -difflib.SequenceMatcher(None, wanted, each.lower()).ratio())
    more = f" and {len(known) - _NAMED} more (`kperfir inspect` lists them)" if len(known) > _NAMED else ""
    return ", ".join(ranked[:_NAMED]) + more


def require_other_file(out: Path | None, inputs: Iterable[Path]) -> None:
    """Refuse to write over what is read.

    Raises:
        UsageError: ``same-file``.
    """
    if out is None or not out.exists():
        return
    for path in inputs:
        if path.exists() and out.samefile(path):
            raise UsageError(
                "same-file", what="the output would replace the input", where=str(out), fix="write another file"
            )


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

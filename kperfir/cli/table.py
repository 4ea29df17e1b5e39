"""Tables for people: as many columns as the terminal has room for; plain aligned text in a pipe.

Machines should ask for ``--json``.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

# In a pipe nothing is left out or cut.
_PIPE_WIDTH = 10_000
_GAP = 2


@dataclass(frozen=True, slots=True)
class Column:
    """One column. Where room is short, columns go in order of `rank`, the largest first; 0 stays."""

    title: str
    cells: list[str]
    right: bool = True
    rank: int = 0
    style: str = ""
    for_terminals: bool = False

    def __post_init__(self) -> None:
        # Names are the user's: a line break or a tab in one must not break the table.
        object.__setattr__(self, "cells", [_on_one_line(cell) for cell in self.cells])

    @property
    def width(self) -> int:
        return max(len(text) for text in [self.title, *self.cells])


def console() -> Console:
    """A console on stdout; rich leaves styles out where there is no terminal."""
    if sys.stdout.isatty():
        # Left to itself, rich leaves colours out for NO_COLOR, but not bold and dim.
        return Console(highlight=False, color_system=None if os.environ.get("NO_COLOR") else "auto")
    return Console(highlight=False, width=_PIPE_WIDTH)


def print_table(out: Console, columns: list[Column]) -> None:
    """Print the columns that fit; say which do not."""
    kept, left_out = fitting(columns, out.width, terminal=out.is_terminal)
    _print_row(out, kept, [Text(column.title, style="bold") for column in kept])
    if out.is_terminal:
        _print_row(out, kept, [Text("─" * column.width, style="dim") for column in kept])
    for cells in zip(*(column.cells for column in kept), strict=True):
        _print_row(out, kept, [Text(cell, style=column.style) for cell, column in zip(cells, kept, strict=True)])
    if left_out:
        names = ", ".join(column.title for column in left_out)
        out.print(Text(f"(no room for: {names}; widen the terminal, or use a pipe or --json)", style="dim"))


def _print_row(out: Console, columns: list[Column], cells: list[Text]) -> None:
    line = Text()
    for column, cell in zip(columns, cells, strict=True):
        line.append(" " * _GAP if line else "")
        cell.align("right" if column.right else "left", column.width)
        line.append_text(cell)
    line.rstrip()
    # Only a first column wider than the terminal does not fit; the ellipsis says so.
    out.print(line, no_wrap=True, overflow="ellipsis", crop=True)


def fitting(columns: list[Column], width: int, *, terminal: bool) -> tuple[list[Column], list[Column]]:
    """Split `columns` into those to show in `width` characters and those to leave out."""
    kept = [column for column in columns if terminal or not column.for_terminals]
    left_out: list[Column] = []
    while sum(column.width + _GAP for column in kept) - _GAP > width:
        least = max(kept, key=lambda column: column.rank)
        if least.rank == 0:
            break
        kept.remove(least)
        if not least.for_terminals:
            left_out.append(least)
    return kept, left_out


def _on_one_line(text: str) -> str:
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def count(value: float) -> str:
    """A whole number with thousands set apart; a dash if there is none."""
    return "-" if value != value else f"{round(value):,}"


def counted(number: int, noun: str, plural: str = "") -> str:
    """``1 frame``, ``2 frames``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def bar(share: float, cells: int = 10) -> str:
    """A bar that fills `cells` characters at a share of 1, in eighths of a character."""
    eighths = round(min(max(share, 0.0), 1.0) * cells * 8)
    return "█" * (eighths // 8) + ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")[eighths % 8]

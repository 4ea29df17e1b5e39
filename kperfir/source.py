"""The text of source lines, where this machine has the file.

A capture names files; it may come from another machine or from someone else. So only regular Python files of a bounded
size are read, and what cannot be read is an absence with a reason, not an error. Nothing else opens a file that a
capture names as source.
"""

from __future__ import annotations

import tokenize
from datetime import datetime
from pathlib import Path

_LARGEST_BYTES = 4 << 20


class SourceReader:
    """Reads each file once."""

    def __init__(self) -> None:
        self._files: dict[str, tuple[list[str], str]] = {}

    def line(self, file: str, number: int) -> str:
        """Line `number`, the first is 1; empty where there is none."""
        lines, _ = self.lines(file)
        return lines[number - 1] if 1 <= number <= len(lines) else ""

    def lines(self, file: str) -> tuple[list[str], str]:
        """The lines of `file`, and why there are none (empty if there are)."""
        if file not in self._files:
            self._files[file] = _read(file)
        return self._files[file]


def changed_since(file: str, written: float) -> str:
    """When `file` was last changed, if that was after the time `written`; empty if it was not, or cannot be read.

    Args:
        file: As a capture names it.
        written: Seconds since the epoch, such as when the capture was written.
    """
    path = Path(file)
    try:
        changed = path.stat().st_mtime if path.suffix == ".py" and path.is_file() else 0.0
    except (OSError, ValueError):
        return ""
    return f"{datetime.fromtimestamp(changed):%Y-%m-%d %H:%M}" if changed > written else ""


def _read(file: str) -> tuple[list[str], str]:
    path = Path(file)
    if path.suffix != ".py":
        return [], "not a Python file"
    try:
        if not path.is_file():
            return [], "not on this machine"
        if path.stat().st_size > _LARGEST_BYTES:
            return [], f"larger than {_LARGEST_BYTES >> 20} MiB"
        with tokenize.open(path) as text:  # Python's own rule for the encoding.
            return text.read().splitlines(), ""
    except (OSError, UnicodeError, SyntaxError, ValueError) as error:
        return [], f"cannot be read: {error}"

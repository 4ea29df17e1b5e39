"""Write timelines in formats that other tools read. One module per format.

    export.write_file([timeline], Path("t.pftrace"))

Owns the list of formats; each module's `write(timelines, out)` writes to a binary file.
"""

from __future__ import annotations

import importlib
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO

from kperfir.errors import ExportError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from kperfir.timeline import Timeline

FORMATS = {
    "pftrace": "pftrace",
    "json": "chrome",
    "csv": "csv",
    "parquet": "parquet",
    "speedscope": "speedscope",
    "pprof": "pprof",
}
_SPEEDSCOPE = ".speedscope.json"  # As its own tools name such files.


def format_of(path: Path) -> str:
    """Format that the suffix of `path` names.

    Raises:
        ExportError: ``unknown-format``.
    """
    name = "speedscope" if path.name.endswith(_SPEEDSCOPE) else path.suffix.removeprefix(".")
    if name not in FORMATS:
        raise ExportError(
            "unknown-format",
            what="the format of the export is not known",
            where=str(path),
            found=f"suffix {path.suffix or 'none'}",
            expected=", ".join(f".{known}" for known in FORMATS),
            fix="choose such a name, or pass --format",
        )
    return name


def write(timelines: Sequence[Timeline], out: BinaryIO, format_name: str) -> None:
    """Write `timelines` to `out` in one of `FORMATS`."""
    module = importlib.import_module(f"kperfir.export.{FORMATS[format_name]}")
    module.write(timelines, out)


def write_file(timelines: Sequence[Timeline], path: Path, format_name: str | None = None) -> None:
    """Write `timelines` to `path`; a failure leaves whatever was there before.

    Args:
        timelines: One or more captures.
        path: File to write.
        format_name: One of `FORMATS`. Default: what the suffix of `path` says.

    Raises:
        ExportError: ``unknown-format``, or ``write-failed`` with the operating system's reason.
    """
    format_name = format_name or format_of(path)
    try:
        with _replacing(path) as out:
            write(timelines, out, format_name)
    except OSError as error:
        raise ExportError(
            "write-failed",
            what="the export cannot be written",
            where=str(path),
            found=error.strerror or str(error),
            fix="choose a file in a folder that exists and can be written, on a disk with space",
        ) from None


@contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    if path.exists() and not path.is_file():  # /dev/stdout, a pipe.
        with path.open("wb") as out:
            yield out
        return
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as out:
            yield out
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)

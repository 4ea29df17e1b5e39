"""Which file a process writes: one of its own among those of its parents, its ranks and its other sessions."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

from kperfir.config import OWNER_VARIABLE

if TYPE_CHECKING:
    from pathlib import Path

_RANK_VARIABLES = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK")


class FileNames:
    """The names that the sessions of this process have taken."""

    def __init__(self) -> None:
        self._taken: set[Path] = set()

    def take(self, path: Path) -> Path:
        """Return `path`, or the next free name like it."""
        number, name = 1, path
        while name in self._taken:
            number += 1
            name = path.with_stem(f"{path.stem}-{number}")
        self._taken.add(name)
        return name

    def free(self, path: Path) -> None:
        """Let a later session overwrite `path`."""
        self._taken.discard(path)


def rank() -> int | None:
    """Return the rank of this process in a distributed job, or None."""
    for variable in _RANK_VARIABLES:
        if os.environ.get(variable, "").isdecimal():
            return int(os.environ[variable])
    return None


def capture_path(out: str | None, folder: Path, *, child: bool) -> Path:
    """Return the file that this process writes.

    Args:
        out: The option: a file, a folder, or None.
        folder: What a relative `out` is relative to.
        child: Some ancestor of this process writes a file too, maybe under the same `out`.
    """
    ranks = [] if rank() is None else [f"rank{rank()}"]
    if out is None or not names_file(out, folder):
        host = socket.gethostname().split(".")[0] or "localhost"
        return folder / (out or "") / ("-".join(["kperf", host, str(os.getpid()), *ranks]) + ".kpf")
    path = folder / out
    return path.with_stem("-".join([path.stem, *([str(os.getpid())] if child else []), *ranks]))


def names_file(out: str | None, folder: Path) -> bool:
    """Tell whether the option `out` names a file, not a folder."""
    return out is not None and not out.endswith("/") and not (folder / out).is_dir()


def is_descendant() -> bool:
    """Tell whether this process descends from one that profiles because of the environment."""
    return os.environ.get(OWNER_VARIABLE, "") not in ("", str(os.getpid()))

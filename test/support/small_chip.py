"""A chip with few SMs, so that small grids have many waves."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from support import ptx_lab

if TYPE_CHECKING:
    from pathlib import Path


def small_chip(like: str = "a100", **figures: int) -> str:
    """Return the JSON text of chip `like` with other `figures`."""
    chip = json.loads(ptx_lab.chip_text(like))
    for name, value in figures.items():
        chip["figures"][name]["value"] = value
    return json.dumps(chip)


def write_small_chip(folder: Path, like: str = "a100", **figures: int) -> str:
    """Write such a chip and return the name of the file, as `simt_chip` takes it."""
    path = folder / f"small-{like}.json"
    path.write_text(small_chip(like, **figures), encoding="utf-8")
    return str(path)

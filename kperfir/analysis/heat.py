"""How hot each source line is: the time of warps that no inner region takes, by the line of the region.

    heat(line) = self cycles of the regions of the line / self cycles of the kernel

Self cycles of a warp add up to its time (`kperfir.analysis.self_time`), so the heat of a kernel's lines adds up to 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kperfir.analysis.self_time import self_cycles
from kperfir.analysis.wait_time import outermost_waits
from kperfir.source import SourceReader

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ["kernel", "file", "line", "heat", "self_cycles", "wait_cycles", "count", "kinds", "source"]


def source_heat(spans: pd.DataFrame) -> pd.DataFrame:
    """One row per kernel and source line, by file and line.

    Args:
        spans: As `Timeline.spans`, or the rows of `Timeline.totals`.

    Returns:
        ``kernel, file, line``; ``heat``; ``self_cycles`` and, of these, ``wait_cycles`` in regions that only wait;
        ``count``, executions of its regions; ``kinds``, what they are; ``source``, the text of the line where this
        machine has the file, else empty.
    """
    own = self_cycles(spans)
    frame = spans[["kernel", "file", "line", "kind"]].astype({"kernel": object, "file": object, "kind": object})
    frame = frame.assign(self_cycles=own, wait_cycles=np.where(outermost_waits(spans), spans["duration_cycles"], 0))
    frame["executions"] = spans.get("count", 1)
    groups = frame.groupby(["kernel", "file", "line"], sort=False)
    table = groups.agg(
        self_cycles=("self_cycles", "sum"), wait_cycles=("wait_cycles", "sum"), count=("executions", "sum"),
        kinds=("kind", lambda kinds: ", ".join(dict.fromkeys(kinds))),
    ).reset_index()  # fmt: skip
    whole = table.groupby("kernel", sort=False)["self_cycles"].transform("sum")
    table["heat"] = (table["self_cycles"] / whole.where(whole > 0)).fillna(0.0)
    reader = SourceReader()
    table["source"] = [reader.line(file, line).strip() for file, line in zip(table["file"], table["line"], strict=True)]
    rank = {kernel: number for number, kernel in enumerate(dict.fromkeys(table["kernel"]))}
    table = table.assign(rank=table["kernel"].map(rank))
    return table.sort_values(["rank", "file", "line"], kind="stable", ignore_index=True)[COLUMNS]

"""The span table of one or more captures, for formats that hold a table.

The table is `Timeline.spans`. With several captures a column `capture` (0, 1, ... in the order given) comes first, and
`parent` counts rows of the whole table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pandas as pd

    from kperfir.timeline import Timeline

ROWS_PER_CHUNK = 1 << 18


def span_chunks(timelines: Sequence[Timeline]) -> Iterator[pd.DataFrame]:
    """The rows in pieces of bounded size; at least one piece, so that columns are known where there are no rows."""
    first_row = 0
    for number, timeline in enumerate(timelines):
        spans = timeline.spans
        for first in range(0, max(len(spans), 1), ROWS_PER_CHUNK):
            yield _chunk(spans.iloc[first : first + ROWS_PER_CHUNK], number, first_row, several=len(timelines) > 1)
        first_row += len(spans)


def _chunk(spans: pd.DataFrame, capture: int, first_row: int, *, several: bool) -> pd.DataFrame:
    if not several:
        return spans
    parent = spans["parent"].to_numpy()
    spans = spans.assign(parent=np.where(parent < 0, -1, parent + first_row))
    spans.insert(0, "capture", np.int32(capture))
    return spans

"""The span table of one or more captures, for formats that hold a table.

The table is `Timeline.spans` with four columns more for what marks carry: ``value_type`` (i32, u32, i64, u64, f32, f64,
or nothing), and the value in ``value_i64`` (of the first three), ``value_u64`` or ``value_f64``; a NaN may come back as
nothing, but never loses its type. Of captures that have only sums of executions (strategy ``aggregate``) it is
`Timeline.aggregates` instead. With several captures a column `capture` (0, 1, ... in the order given) comes first,
and `parent` counts rows of the whole table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kperfir.timeline import Timeline

ROWS_PER_CHUNK = 1 << 18
# Which types of a mark's value a column holds.
_STORED = {"int64": ("i32", "u32", "i64"), "uint64": ("u64",), "float64": ("f32", "f64")}


def span_chunks(timelines: Sequence[Timeline]) -> Iterator[pd.DataFrame]:
    """The rows in pieces of bounded size; at least one piece, so that columns are known where there are no rows."""
    if timelines and all(timeline.has_only_sums for timeline in timelines):
        yield from _sums_chunks(timelines)
        return
    first_row = 0
    for number, timeline in enumerate(timelines):
        spans = timeline.spans
        for first in range(0, max(len(spans), 1), ROWS_PER_CHUNK):
            chunk = spans.iloc[first : first + ROWS_PER_CHUNK]
            chunk = chunk.assign(**_values(timeline.marks, first, len(chunk)))
            yield _numbered(chunk, number, first_row) if len(timelines) > 1 else chunk
        first_row += len(spans)


def row_count(timeline: Timeline) -> int:
    """How many rows it gives."""
    return len(timeline.aggregates) if timeline.has_only_sums else timeline.span_count


def _sums_chunks(timelines: Sequence[Timeline]) -> Iterator[pd.DataFrame]:
    for number, timeline in enumerate(timelines):
        sums = timeline.aggregates
        for first in range(0, max(len(sums), 1), ROWS_PER_CHUNK):
            chunk = sums.iloc[first : first + ROWS_PER_CHUNK]
            if len(timelines) > 1:
                chunk = chunk.assign(capture=np.int32(number))[["capture", *chunk.columns]]
            yield chunk


def _values(marks: pd.DataFrame, first: int, rows: int) -> dict[str, pd.api.extensions.ExtensionArray]:
    """What the marks among `rows` spans from row `first` on carry; ``marks`` is sorted by ``span``."""
    begin, end = np.searchsorted(marks["span"].to_numpy(), [first, first + rows])
    marks = marks.iloc[begin:end]
    at = marks["span"].to_numpy() - first
    types = np.full(rows, None, object)
    types[at] = marks["value_type"].replace({"": None}).to_numpy()
    columns = {"value_type": pd.Categorical(types, categories=[name for names in _STORED.values() for name in names])}
    for dtype, names in _STORED.items():
        mine = marks["value_type"].isin(names).to_numpy()
        numbers, missing = np.zeros(rows, dtype), np.ones(rows, np.bool_)
        numbers[at[mine]] = marks["value"].to_numpy()[mine].astype(dtype)
        missing[at[mine]] = False
        array = pd.arrays.FloatingArray if dtype == "float64" else pd.arrays.IntegerArray
        columns[f"value_{dtype[0]}64"] = array(numbers, missing)
    return columns


def _numbered(spans: pd.DataFrame, capture: int, first_row: int) -> pd.DataFrame:
    parent = spans["parent"].to_numpy()
    spans = spans.assign(parent=np.where(parent < 0, -1, parent + first_row))
    spans.insert(0, "capture", np.int32(capture))
    return spans

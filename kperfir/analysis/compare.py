"""Two captures side by side: which regions take longer, and by more than noise.

For a region of a capture let x_1 .. x_n be the mean durations of its complete executions in n blocks: its launches if
both captures have three or more, else its CTAs (executions within a block are not independent of each other). With m
their mean and s their standard deviation (n - 1), the standard error is e = s / sqrt(n). Between captures a and b

    change = m_b / m_a - 1
    band   = max(threshold, t * sqrt(e_a^2 + e_b^2) / m_a)

t is the 97.5 % point of Student's distribution with min(n_a, n_b) - 1 degrees of freedom: without a difference, a
change leaves the second term in one comparison of twenty. The verdict is ``slower`` or ``faster`` where the change
leaves the band, else ``same``; ``added`` and ``removed`` where one capture lacks the region; ``unknown`` without a
complete execution. A single block has no error to estimate: the band is the threshold then, and ``blocks`` says 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from kperfir.analysis.student import student

if TYPE_CHECKING:
    from collections.abc import Iterable

THRESHOLD = 0.02
MIN_LAUNCHES = 3
_KEYS = ["kernel", "kind", "name"]
COLUMNS = [
    "kernel", "kind", "name", "name_before", "depth", "count_before", "count_after", "mean_before", "mean_after",
    "change", "band", "blocks", "verdict",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Blocks:
    mean: float
    error: float
    number: int


def compare_regions(before: pd.DataFrame, after: pd.DataFrame, threshold: float = THRESHOLD) -> pd.DataFrame:
    """One row per region of either capture, kernels and regions in program order.

    Regions are the same if kernel, kind and name are. Names hold source lines; so of what is left over, regions of a
    kernel are paired in program order where both captures have equally many of a kind and depth.

    Args:
        before: As `Timeline.spans`, or the rows of `Timeline.totals`.
        after: The same of the other capture.
        threshold: Relative change that is never more than noise.

    Returns:
        ``kernel, kind, name`` (of `after`, else of `before`), ``name_before``, ``depth``; ``count_before`` and
        ``count_after``, executions per launch; ``mean_before`` and ``mean_after``, cycles of one execution; ``change``,
        ``band``, ``blocks`` (the fewer of both) and ``verdict`` as above. NaN where there is nothing to say.
    """
    tables = _counted(before), _counted(after)
    sides = [_regions(table) for table in tables]
    pairs = _pair(*sides)
    rows = [_row(sides, pair, tables, threshold) for pair in pairs]
    return pd.DataFrame(rows, columns=COLUMNS)


def _counted(spans: pd.DataFrame) -> pd.DataFrame:
    """With the counts and sums that totals have: a span is one execution."""
    if "count" in spans:
        return spans
    complete = spans["complete"].astype(np.int64)
    return spans.assign(count=1, complete_count=complete, complete_cycles=spans["duration_cycles"] * complete)


def _regions(spans: pd.DataFrame) -> pd.DataFrame:
    """A row per region, in program order: keys, depth, executions per launch, and which rows are its."""
    group = spans.groupby(_KEYS, observed=True, sort=False)
    table = group[["region", "depth"]].min()
    rows = group.indices
    table = table.assign(size=group["count"].sum()).reset_index().astype({key: object for key in _KEYS})
    launches = spans.groupby("kernel", observed=True)["launch"].nunique().to_dict()
    table["count"] = table["size"] / table["kernel"].map(launches).astype("float64")
    table["rows"] = [rows[key] for key in table[_KEYS].itertuples(index=False, name=None)]
    rank = {kernel: number for number, kernel in enumerate(dict.fromkeys(spans["kernel"]))}
    order = np.lexsort((table["region"].to_numpy(), table["kernel"].map(rank).to_numpy()))
    return table.iloc[order].reset_index(drop=True)


def _pair(before: pd.DataFrame, after: pd.DataFrame) -> list[tuple[int, int]]:
    """Rows of both tables that are one region, -1 for none; in the order of `after`, then what only `before` has."""
    rows = {key: row for row, key in enumerate(before[_KEYS].itertuples(index=False, name=None))}
    partner = [rows.pop(key, -1) for key in after[_KEYS].itertuples(index=False, name=None)]
    left_over = _by_kind_and_depth(before, sorted(rows.values()))
    unpaired = _by_kind_and_depth(after, [row for row, other in enumerate(partner) if other < 0])
    for key, mine in unpaired.items():
        others = left_over.get(key, [])
        if len(others) == len(mine):
            for row, other in zip(mine, others, strict=True):
                partner[row] = other
    taken = set(partner)
    return [
        *((other, row) for row, other in enumerate(partner)),
        *((row, -1) for row in range(len(before)) if row not in taken),
    ]


def _by_kind_and_depth(table: pd.DataFrame, rows: Iterable[int]) -> dict[tuple[Any, ...], list[int]]:
    groups: dict[tuple[Any, ...], list[int]] = {}
    for row in rows:
        groups.setdefault(tuple(table.loc[row, ["kernel", "kind", "depth"]]), []).append(row)
    return groups


def _row(
    sides: list[pd.DataFrame], pair: tuple[int, int], spans: tuple[pd.DataFrame, pd.DataFrame], threshold: float
) -> dict[str, Any]:
    found = [side.loc[row] if row >= 0 else None for side, row in zip(sides, pair, strict=True)]
    shown = found[1] if found[1] is not None else found[0]
    assert shown is not None  # A pair has a row of one table at least.
    durations = [
        None if region is None else table.iloc[region["rows"]] for region, table in zip(found, spans, strict=True)
    ]
    by_launch = all(part is None or part["launch"].nunique() >= MIN_LAUNCHES for part in durations)
    blocks = [None if part is None else _blocks(part, by_launch=by_launch) for part in durations]
    change, band, verdict = _judge(blocks[0], blocks[1], threshold)
    return {
        **{key: shown[key] for key in (*_KEYS, "depth")},
        "name_before": found[0]["name"] if found[0] is not None else "",
        **{f"count_{when}": 0.0 if r is None else r["count"] for when, r in zip(_WHEN, found, strict=True)},
        **{f"mean_{when}": np.nan if b is None else b.mean for when, b in zip(_WHEN, blocks, strict=True)},
        "change": change,
        "band": band,
        "blocks": min((block.number for block in blocks if block is not None), default=0),
        "verdict": verdict,
    }


_WHEN = ("before", "after")


def _blocks(executions: pd.DataFrame, *, by_launch: bool) -> _Blocks:
    keys = ["launch"] if by_launch else ["launch", "cta"]
    sums = executions.groupby(keys, observed=True)[["complete_cycles", "complete_count"]].sum()
    sums = sums[sums["complete_count"] > 0]
    means = (sums["complete_cycles"] / sums["complete_count"]).to_numpy()
    if not len(means):
        return _Blocks(np.nan, np.nan, 0)
    error = float(means.std(ddof=1)) / len(means) ** 0.5 if len(means) > 1 else 0.0
    return _Blocks(float(means.mean()), error, len(means))


def _judge(before: _Blocks | None, after: _Blocks | None, threshold: float) -> tuple[float, float, str]:
    if before is None or after is None:
        return np.nan, np.nan, "added" if before is None else "removed"
    if not before.number or not after.number:
        return np.nan, np.nan, "unknown"
    if before.mean == 0:  # As long as its clock can tell.
        return (0.0, threshold, "same") if after.mean == 0 else (np.inf, threshold, "slower")
    change = after.mean / before.mean - 1
    freedom = min(before.number, after.number) - 1
    t = student(freedom) if freedom else 0.0
    band = max(threshold, t * (before.error**2 + after.error**2) ** 0.5 / before.mean)
    if abs(change) <= band:
        return change, band, "same"
    return change, band, "slower" if change > 0 else "faster"

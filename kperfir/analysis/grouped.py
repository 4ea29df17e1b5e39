"""Sums, extremes and quantiles of groups of rows, for tables of ten million spans.

    groups = group_by(spans["kernel"], spans["name"])
    groups.sum(spans["duration_cycles"].to_numpy())

The same as pandas' groupby, whose figures for one column after the other each go through the rows several times.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_EXACT = float(1 << 53)  # Sums of integers below this are exact as floats.
_SMALL = 1 << 16  # Values of which a table is kept.
_FEW = 1 << 15  # Groups whose numbers take two bytes, which sort in one pass over each.


@dataclass(frozen=True)
class Groups:
    """Which group each row is in.

    Attributes:
        number: Per row, its group, from 0 on. Shape (n,), dtype int64.
        count: How many groups there are.
    """

    number: NDArray[np.int64]
    count: int

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Rows of each group; shape (count,), as for all that follows."""
        return np.bincount(self.number, minlength=self.count)

    @cached_property
    def order(self) -> NDArray[np.intp] | None:
        """The rows, group after group, each group's in their order; None if that is how they are."""
        if len(self.number) < 2 or not np.any(self.number[1:] < self.number[:-1]):
            return None
        number = self.number.astype(np.int16) if self.count <= _FEW else self.number
        return np.argsort(number, kind="stable")

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Where in `order` each group begins."""
        return np.cumsum(self.sizes) - self.sizes

    @property
    def first(self) -> NDArray[np.int64]:
        """The first row of each group."""
        return self.starts if self.order is None else self.order[self.starts]

    def sum(self, values: NDArray[Any]) -> NDArray[Any]:
        """Sums, exact for integers."""
        whole = values.dtype.kind in "iub"
        if whole and float(np.abs(values).max(initial=0)) * len(values) >= _EXACT:
            return np.add.reduceat(self._sorted(values), self.starts)
        sums = np.bincount(self.number, values, minlength=self.count)
        return np.rint(sums).astype(np.int64) if whole else sums

    def min(self, values: NDArray[Any]) -> NDArray[Any]:
        """Least value of each group."""
        return np.minimum.reduceat(self._sorted(values), self.starts) if self.count else values[:0]

    def max(self, values: NDArray[Any]) -> NDArray[Any]:
        """Largest value of each group."""
        return np.maximum.reduceat(self._sorted(values), self.starts) if self.count else values[:0]

    def quantiles(self, values: NDArray[Any], counted: NDArray[np.bool_], at: Sequence[float]) -> NDArray[np.float64]:
        """Quantiles, interpolated linearly, of the rows that are `counted`; NaN where a group has none.

        Returns:
            Shape (len(at), count).
        """
        result = np.full((len(at), self.count), np.nan)
        ordered, kept = self._sorted(values), self._sorted(counted)
        for group, (begin, size) in enumerate(zip(self.starts.tolist(), self.sizes.tolist(), strict=True)):
            part, keep = ordered[begin : begin + size], kept[begin : begin + size]
            part = part if keep.all() else part[keep]
            if len(part):
                result[:, group] = np.quantile(part, at)
        return result

    def spread(self, values: NDArray[np.integer], parts: Groups, counted: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Standard deviation over mean of the sums of `values` of the `parts` that have a row which is `counted`."""
        both = number(self.number, parts.number)
        rows = both.first
        has = np.bincount(both.number, counted, minlength=both.count) > 0
        owner = self.number[rows][has]
        sums = both.sum(np.where(counted, values, 0))[has].astype(np.float64)
        count = np.bincount(owner, minlength=self.count)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = np.bincount(owner, sums, minlength=self.count) / count
            variance = np.bincount(owner, (sums - mean[owner]) ** 2, minlength=self.count) / count
            return np.nan_to_num(np.sqrt(variance) / mean)

    def _sorted(self, values: NDArray[Any]) -> NDArray[Any]:
        return values if self.order is None else values[self.order]


def number(*columns: NDArray[Any]) -> Groups:
    """Put rows into one group where all columns of integers are equal."""
    extents = [(int(column.min()), int(column.max())) if len(column) else (0, 0) for column in columns]
    key: NDArray[Any] = np.zeros(len(columns[0]), np.int8)
    extent = 1
    for column, (low, high) in zip(columns, extents, strict=True):
        if extent * (high - low + 1) >= 1 << 62:
            key, extent = _dense(key, extent)
        # Bytes count: the fewer there are, the faster ten million rows are gone through.
        extent *= high - low + 1
        size = np.min_scalar_type(-extent - 1)  # Signed, and wide enough for the extent itself.
        key = key.astype(size) * size.type(high - low + 1) + (column.astype(np.int64) - low).astype(size)
    return Groups(*_dense(key, extent))


def group_by(*columns: pd.Series) -> Groups:
    """Put rows into one group where all columns are equal."""
    return number(*(_integers(column) for column in columns))


def tracks_of(spans: pd.DataFrame) -> Groups:
    """Put the spans of each warp of each CTA of each launch into a group."""
    return group_by(spans["launch"], spans["cta"], spans["warp"])


def _integers(column: pd.Series) -> NDArray[Any]:
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.cat.codes
    values: NDArray[Any] = column.to_numpy() if column.dtype.kind in "iub" else pd.factorize(column)[0]
    return values


def _dense(key: NDArray[Any], extent: int) -> tuple[NDArray[np.int64], int]:
    """Numbers from 0 on for the values of `key`, which are from 0 to `extent`, and how many there are."""
    if extent > _SMALL:
        numbers, values = pd.factorize(key)
        return numbers.astype(np.int64, copy=False), len(values)
    used = np.bincount(key, minlength=extent) > 0
    return (np.cumsum(used) - 1)[key], int(np.count_nonzero(used))

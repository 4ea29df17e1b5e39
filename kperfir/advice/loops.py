"""The loops of a kernel as the advisor sees them: what an iteration is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from kperfir.analysis.bubbles import iteration_of
from kperfir.analysis.self_time import self_cycles

if TYPE_CHECKING:
    from numpy.typing import NDArray


# What lies between the regions of operations, where no record was put for it.
GAPS = ("compute", "between")


@dataclass(frozen=True, eq=False)
class LoopView:
    """A loop in a role, over all its executions.

    Attributes:
        name: Of the loop's region; of the iteration where the loop was not recorded.
        role: Whose.
        trips: Iterations that a warp of a CTA executes, on average.
        iteration_cycles: Median duration of an iteration.
        self_cycles: Median part of it that no region inside takes, but for gaps between them; arithmetic on data is
            none, as it grows with the tile.
        inside: The spans whose innermost iteration is one of this loop, outermost first.
        rows: The spans of its iterations.
    """

    name: str
    role: str
    trips: float
    iteration_cycles: float
    self_cycles: float
    inside: pd.DataFrame
    rows: pd.DataFrame

    def kinds(self, *kinds: str) -> pd.DataFrame:
        """The spans of these kinds in its iterations."""
        return self.inside[self.inside["kind"].isin(kinds)]

    def cycles(self, *kinds: str) -> float:
        """Mean time of an iteration in regions of these kinds."""
        return float(self.kinds(*kinds)["duration_cycles"].sum() / len(self.rows)) if len(self.rows) else 0.0


def loop_views(spans: pd.DataFrame, arithmetic: frozenset[str] = frozenset()) -> tuple[LoopView, ...]:
    """The loops of these spans (rows numbered from 0), in the order of their first iteration.

    Args:
        spans: As `Timeline.spans`.
        arithmetic: Names of the gaps that begin with arithmetic on data, not on addresses or counters.
    """
    around = iteration_of(spans)
    rows = np.flatnonzero((spans["kind"] == "iteration").to_numpy())
    if not len(rows):
        return ()
    parent, names = spans["parent"].to_numpy(), spans["name"].astype(object).to_numpy()
    gaps = (spans["kind"].isin(GAPS) & ~spans["name"].isin(arithmetic)).to_numpy() & (parent >= 0)
    in_gaps = np.bincount(parent[gaps], spans["duration_cycles"].to_numpy()[gaps], minlength=len(spans))
    own = self_cycles(spans) + in_gaps
    loop = np.where(parent[rows] >= 0, names[parent[rows]], names[rows])
    keys = pd.DataFrame({"loop": loop, "role": spans["role"].astype(object).to_numpy()[rows], "row": rows})
    views = []
    for (name, role), group in keys.groupby(["loop", "role"], sort=False):
        mine = group["row"].to_numpy()
        iterations = spans.iloc[mine]
        warps = len(iterations.drop_duplicates(["launch", "cta", "warp"]))
        views.append(
            LoopView(
                str(name), str(role), len(mine) / warps, float(iterations["duration_cycles"].median()),
                float(np.median(own[mine])), spans[np.isin(around, mine)], iterations,
            )
        )  # fmt: skip
    return tuple(views)


def inside_loops(spans: pd.DataFrame) -> NDArray[np.bool_]:
    """Rows that have an iteration around them."""
    mask: NDArray[np.bool_] = iteration_of(spans) >= 0
    return mask

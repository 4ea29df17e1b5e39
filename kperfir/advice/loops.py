"""Where spans stand to loops."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray


def inside_loops(spans: pd.DataFrame) -> NDArray[np.bool_]:
    """Rows that have an iteration around them."""
    parent, is_iteration = spans["parent"].to_numpy(), (spans["kind"] == "iteration").to_numpy()
    inside = np.zeros(len(spans), np.bool_)
    rows = np.flatnonzero(parent >= 0)
    above = parent[rows]
    while len(rows):
        inside[rows[is_iteration[above]]] = True
        above = parent[above]
        rows, above = rows[above >= 0], above[above >= 0]
    return inside

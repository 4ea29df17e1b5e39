"""Self time: what a span spends outside the spans nested in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray


def self_cycles(spans: pd.DataFrame) -> NDArray[np.int64]:
    """Cycles of each row of `spans` that none of its children covers. Self times of a warp add up to its root spans."""
    duration = spans["duration_cycles"].to_numpy()
    parent = spans["parent"].to_numpy()
    nested = parent >= 0
    children = np.bincount(parent[nested], duration[nested], minlength=len(spans))
    own: NDArray[np.int64] = duration - children.astype(np.int64)
    return own

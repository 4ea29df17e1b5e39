"""The order in which the begins and ends of nested spans must be written.

Timestamps alone do not say it: in whole nanoseconds a short span has no length, and a span may begin in the instant in
which its neighbour ends. Viewers break such ties by file order, so the file follows the tree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from kperfir._native import trace

from kperfir.errors import ExportError

if TYPE_CHECKING:
    from numpy.typing import NDArray


def event_order(parent: NDArray[np.int64], depth: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Positions of every span's begin and end in a walk over the forest.

    Args:
        parent: Row of the enclosing span, an earlier one; -1 for a root. Siblings, and roots, keep their row order.
        depth: 0 for a root, else the parent's depth + 1.

    Returns:
        Begin and end position of each row; together they are a permutation of ``0 .. 2 * rows - 1``.

    Raises:
        ExportError: ``not-nested`` if depths contradict parents, or a parent comes after its child.
    """
    positions = trace.walk(np.ascontiguousarray(parent, np.int64), np.ascontiguousarray(depth, np.int64))
    if positions is None:
        raise ExportError(
            "not-nested",
            what="the spans of a warp do not nest",
            found="a span whose parent comes later, or whose depth is not its parent's depth + 1",
            expected="a tree of spans per warp",
            fix="report this as a bug of kperfir, with the .kpf file",
        )
    return positions

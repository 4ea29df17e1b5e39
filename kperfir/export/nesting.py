"""The order in which the begins and ends of nested spans must be written.

Timestamps alone do not say it: in whole nanoseconds a short span has no length, and a span may begin in the instant in
which its neighbour ends. Viewers break such ties by file order, so the file follows the tree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kperfir.errors import ExportError

if TYPE_CHECKING:
    from numpy.typing import NDArray


def event_order(parent: NDArray[np.int64], depth: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Positions of every span's begin and end in a walk over the forest.

    Args:
        parent: Row of the enclosing span, -1 for a root. Siblings, and roots, keep their row order.
        depth: 0 for a root, else the parent's depth + 1.

    Returns:
        Begin and end position of each row; together they are a permutation of ``0 .. 2 * rows - 1``.

    Raises:
        ExportError: ``not-nested`` if depths contradict parents.
    """
    rows = len(parent)
    child = parent >= 0
    if np.any(depth[~child] != 0) or np.any(depth[child] != depth[parent[child]] + 1):
        raise ExportError(
            "not-nested",
            what="the spans of a warp do not nest",
            found="a span whose depth is not its parent's depth + 1",
            expected="a tree of spans per warp",
            fix="report this as a bug of kperfir, with the .kpf file",
        )
    by_depth = np.argsort(depth, kind="stable")
    levels = np.split(by_depth, np.cumsum(np.bincount(depth))[:-1]) if rows else []

    size = np.ones(rows, np.int64)  # Rows of the subtree.
    for level in reversed(levels[1:]):
        np.add.at(size, parent[level], size[level])

    preorder = np.zeros(rows, np.int64)
    for number, level in enumerate(levels):
        if number == 0:
            preorder[level] = np.cumsum(size[level]) - size[level]
            continue
        siblings = level[np.argsort(parent[level], kind="stable")]
        owner = parent[siblings]
        before = np.cumsum(size[siblings]) - size[siblings]
        first = np.flatnonzero(np.r_[True, owner[1:] != owner[:-1]])
        before -= np.repeat(before[first], np.diff(np.r_[first, len(owner)]))
        preorder[siblings] = preorder[owner] + 1 + before
    # Before a begin: every earlier begin, and the end of each earlier row that is not an ancestor. Before an end: the
    # same for the row that follows the subtree, less this end.
    return 2 * preorder - depth, 2 * (preorder + size) - depth - 1

"""Bank conflicts: a tile in shared memory whose columns all lie in one bank.

Transposes 64 x 64 tiles through shared memory, in Gluon, where layouts are the author's. First the tile lies there row
by row, so the 32 threads of a warp that read down a column all want the same bank. Then the rows are swizzled.
"""

import numpy as np
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from walkthrough import conclude, profile, show

SIZE, TILE = 128, 64


@gluon.jit
def transpose(x_ptr, out_ptr, SIZE: gl.constexpr, TILE: gl.constexpr, SHARED: gl.constexpr):
    ACROSS: gl.constexpr = gl.BlockedLayout([1, 1], [1, 32], [4, 1], [1, 0])
    DOWN: gl.constexpr = gl.BlockedLayout([1, 1], [32, 1], [1, 4], [0, 1])
    row, column = gl.program_id(0) * TILE, gl.program_id(1) * TILE
    rows = row + gl.arange(0, TILE, layout=gl.SliceLayout(1, ACROSS))
    columns = column + gl.arange(0, TILE, layout=gl.SliceLayout(0, ACROSS))
    tile = gl.allocate_shared_memory(gl.float32, [TILE, TILE], SHARED)
    tile.store(gl.load(x_ptr + rows[:, None] * SIZE + columns[None, :]))
    values = tile.load(DOWN)
    down = row + gl.arange(0, TILE, layout=gl.SliceLayout(1, DOWN))
    across = column + gl.arange(0, TILE, layout=gl.SliceLayout(0, DOWN))
    gl.store(out_ptr + across[None, :] * SIZE + down[:, None], values)


def main() -> None:
    x = np.random.default_rng(0).random((SIZE, SIZE), dtype=np.float32)
    layouts = {"before": gl.SwizzledSharedLayout(1, 1, 1, [1, 0]), "after": gl.SwizzledSharedLayout(1, 1, 32, [1, 0])}
    timelines = []
    for name, layout in layouts.items():
        out = np.zeros_like(x)

        def launch(layout: gl.SwizzledSharedLayout = layout, out: np.ndarray = out) -> None:
            transpose[(SIZE // TILE, SIZE // TILE)](x, out, SIZE, TILE, layout, num_warps=4)

        timelines.append(profile(f"bank_conflict-{name}", launch))
        np.testing.assert_array_equal(out, x.T)
    show("rows as they are", timelines[0], ("local_load", "local_store"))
    show("rows swizzled", timelines[1], ("local_load", "local_store"))
    conclude(*timelines)


if __name__ == "__main__":
    main()

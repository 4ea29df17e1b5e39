"""Kernels whose accesses meet memory badly, or well, as a constexpr says."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def turn(x, y, SIZE: gl.constexpr, TILE: gl.constexpr, SHARED: gl.constexpr):
    """Transpose through shared memory: written along rows, read down columns."""
    ACROSS: gl.constexpr = gl.BlockedLayout([1, 1], [1, 32], [4, 1], [1, 0])
    DOWN: gl.constexpr = gl.BlockedLayout([1, 1], [32, 1], [1, 4], [0, 1])
    row, column = gl.program_id(0) * TILE, gl.program_id(1) * TILE
    rows = row + gl.arange(0, TILE, layout=gl.SliceLayout(1, ACROSS))
    columns = column + gl.arange(0, TILE, layout=gl.SliceLayout(0, ACROSS))
    tile = gl.allocate_shared_memory(gl.float32, [TILE, TILE], SHARED)
    tile.store(gl.load(x + rows[:, None] * SIZE + columns[None, :]))
    values = tile.load(DOWN)
    down = row + gl.arange(0, TILE, layout=gl.SliceLayout(1, DOWN))
    across = column + gl.arange(0, TILE, layout=gl.SliceLayout(0, DOWN))
    gl.store(y + across[None, :] * SIZE + down[:, None], values)


def turned(swizzled: int, *, size: int = 128, tile: int = 64) -> None:
    """`swizzled`: over how many rows the columns are spread; 1 is none."""
    turn_through(gl.SwizzledSharedLayout(1, 1, swizzled, [1, 0]), size, tile)


def turned_padded(padding: int, *, size: int = 128, tile: int = 64) -> None:
    """Rows that lie `padding` words further apart than they are long."""
    turn_through(gl.PaddedSharedLayout.with_identity_for([[tile, padding]], [tile, tile], [1, 0]), size, tile)


def turn_through(shared: object, size: int, tile: int) -> None:
    """The transpose of a matrix, by way of memory of this layout."""
    x = torch.arange(size * size, dtype=torch.float32).reshape(size, size)
    y = torch.empty_like(x)
    grid = (size // tile, size // tile)
    turn[grid](x, y, size, tile, shared, num_warps=4)
    assert torch.equal(y, x.T)


@gluon.jit
def scaled_columns(x, y, columns, ROWS: gl.constexpr, BLOCK: gl.constexpr, LAYOUT: gl.constexpr):
    """Sums of the rows of a matrix, a tile of columns at a time, by threads that lie as `LAYOUT` says."""
    row = gl.program_id(0) * ROWS + gl.arange(0, ROWS, layout=gl.SliceLayout(1, LAYOUT))
    column = gl.arange(0, BLOCK, layout=gl.SliceLayout(0, LAYOUT))
    total = gl.zeros([ROWS, BLOCK], gl.float32, LAYOUT)
    for start in range(0, columns, BLOCK):
        total += gl.load(x + row[:, None] * columns + (start + column)[None, :])
    gl.store(y + row, gl.sum(total, 1))


DOWN = gl.BlockedLayout([1, 1], [32, 1], [2, 2], [0, 1])  # A warp's lanes lie down a column.
ALONG = gl.BlockedLayout([1, 4], [2, 16], [4, 1], [1, 0])  # They lie along rows.


def row_sums(along: bool, *, columns: int = 2048, rows: int = 64, ctas: int = 8) -> None:
    """Sums of rows, loaded along them or down columns."""
    x, y = torch.ones(rows * ctas, columns), torch.empty(rows * ctas)
    scaled_columns[(ctas,)](x, y, columns, ROWS=rows, BLOCK=64, LAYOUT=ALONG if along else DOWN, num_warps=4)
    assert y.eq(columns).all()


@triton.jit
def every_other(x, y, BLOCK: tl.constexpr, STEP: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i * STEP))


def stepped(step: int, *, count: int = 4096) -> None:
    """A copy of each `step`-th number."""
    x, y = torch.arange(count * step, dtype=torch.float32), torch.empty(count)
    every_other[(count // 512,)](x, y, BLOCK=512, STEP=step, num_warps=4)
    assert torch.equal(y, x[::step])


@triton.jit
def pick(x, ids, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + tl.load(ids + i)))


def picks(count: int = 128) -> None:
    """A copy of the numbers that a list of places names."""
    x, ids, y = torch.arange(count, dtype=torch.float32), torch.arange(count).flip(0), torch.empty(count)
    pick[(1,)](x, ids, y, BLOCK=count, num_warps=4)
    assert torch.equal(y, x.flip(0))


@gluon.jit
def shared_pick(x, ids, y, BLOCK: gl.constexpr):
    LAYOUT: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    i = gl.arange(0, BLOCK, layout=LAYOUT)
    memory = gl.allocate_shared_memory(gl.float32, [BLOCK], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    memory.store(gl.load(x + i))
    gl.barrier()
    gl.store(y + i, memory.gather(gl.load(ids + i), axis=0))


def shared_picks(step: int, *, count: int = 1024) -> None:
    """Numbers `step` apart in shared memory, picked by a list of places."""
    x, y = torch.arange(count, dtype=torch.float32), torch.empty(count)
    ids = (torch.arange(count, dtype=torch.int32) * step) % count
    shared_pick[(1,)](x, ids, y, BLOCK=count, num_warps=4)
    assert torch.equal(y, x[ids.long()])

"""Kernels with one fault each, and without it as a constexpr says: what pairs of advice_pairs.py launch."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy
from triton.language.extra import libdevice

from kernels.elementwise import gelu_tanh, vadd
from kernels.matmuls import matmul


@triton.jit
def long_rows(x, y, columns, BLOCK: tl.constexpr, PARTS: tl.constexpr):
    """Sums of rows, each cut into parts that CTAs of their own add up."""
    row, part = tl.program_id(0), tl.program_id(1)
    width = columns // PARTS
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(part * width, (part + 1) * width, BLOCK):
        total += tl.load(x + row * columns + start + tl.arange(0, BLOCK))
    if PARTS == 1:
        tl.store(y + row, tl.sum(total, 0))
    else:
        tl.atomic_add(y + row, tl.sum(total, 0))


def rows_in_parts(parts: int, *, rows: int = 2, columns: int = 32768, block: int = 512) -> None:
    """Two long rows on a device with more SMs."""
    x, y = torch.ones(rows, columns), torch.zeros(rows)
    long_rows[(rows, parts)](x, y, columns, BLOCK=block, PARTS=parts, num_warps=4)
    assert y.eq(columns).all()


@triton.jit
def smoothed(x, y, columns, BLOCK: tl.constexpr, BARRIERS: tl.constexpr):
    """Running sums of tiles, with a number of barriers in each iteration, none of which it needs."""
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, columns, BLOCK):
        for _ in tl.static_range(BARRIERS):
            tl.debug_barrier()
            total = total * 0.5 + 1.0
        total += tl.load(x + row * columns + start + i)
    tl.store(y + row * BLOCK + i, total)


def with_barriers(count: int, *, columns: int = 8192, warps: int = 4) -> None:
    """Eight rows."""
    x, y = torch.ones(8, columns), torch.empty(8, 512)
    smoothed[(8,)](x, y, columns, BLOCK=512, BARRIERS=count, num_warps=warps)


@gluon.jit
def converted(x, y, rows, ROWS: gl.constexpr, COLUMNS: gl.constexpr, CONVERT: gl.constexpr):
    """Sums of tiles; the tile changes its layout in each iteration, or the sum does after the last."""
    ALONG: gl.constexpr = gl.BlockedLayout([1, 4], [2, 16], [4, 1], [1, 0])
    DOWN: gl.constexpr = gl.BlockedLayout([4, 1], [16, 2], [1, 4], [0, 1])
    cta = gl.program_id(0)
    row = gl.arange(0, ROWS, layout=gl.SliceLayout(1, ALONG))
    column = gl.arange(0, COLUMNS, layout=gl.SliceLayout(0, ALONG))
    places = row[:, None] * COLUMNS + column[None, :]
    KEPT: gl.constexpr = DOWN if CONVERT else ALONG
    total = gl.zeros([ROWS, COLUMNS], gl.float32, KEPT)
    for start in range(0, rows, ROWS):
        tile = gl.load(x + (cta * rows + start) * COLUMNS + places)
        total += gl.convert_layout(gl.exp(tile), KEPT)
    result = gl.convert_layout(total, DOWN)
    down = gl.arange(0, ROWS, layout=gl.SliceLayout(1, DOWN))
    across = gl.arange(0, COLUMNS, layout=gl.SliceLayout(0, DOWN))
    gl.store(y + cta * ROWS * COLUMNS + across[None, :] * ROWS + down[:, None], result)


def conversions(after: bool, *, rows: int = 1024, tile: int = 64) -> None:
    """Tiles of `tile` x 64."""
    x, y = torch.zeros(4 * rows, 64), torch.empty(4, 64, tile)
    converted[(4,)](x, y, rows, ROWS=tile, COLUMNS=64, CONVERT=not after, num_warps=4)
    assert y.eq(rows // tile).all()


@triton.jit
def weighted(x, weights, y, columns, tiles, BLOCK: tl.constexpr, ROWS: tl.constexpr, PERSISTENT: tl.constexpr):
    """Rows times normalised weights; the weights are normalised for each tile of rows, or once by each CTA."""
    i = tl.arange(0, BLOCK)
    w = tl.exp(tl.load(weights + i))
    w = w / tl.sum(w, 0)
    step = tl.num_programs(0) if PERSISTENT else tiles
    for tile in range(tl.program_id(0), tiles, step):
        for row in range(ROWS):
            place = (tile * ROWS + row) * columns + i
            tl.store(y + place, tl.load(x + place) * w)


def with_weights(persistent: bool, *, tiles: int = 64, rows: int = 4, block: int = 1024) -> None:
    """Tiles of a few rows on four SMs; a persistent CTA takes them in turn."""
    x, w, y = torch.ones(tiles * rows, block), torch.zeros(block), torch.empty(tiles * rows, block)
    grid = (8 if persistent else tiles,)
    weighted[grid](x, w, y, block, tiles, BLOCK=block, ROWS=rows, PERSISTENT=persistent, num_warps=32)
    assert torch.allclose(y, torch.full_like(y, 1 / block))


@gluon.jit
def staged(x, y, tiles, BLOCK: gl.constexpr, SLOTS: gl.constexpr):
    """Tiles are copied to shared memory, waited for and added up, one at a time, in more memory than that needs."""
    LAYOUT: gl.constexpr = gl.BlockedLayout([4], [32], [4], [0])
    SHARED: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    buffers = gl.allocate_shared_memory(gl.float32, [SLOTS, BLOCK], SHARED)
    cta = gl.program_id(0)
    i = gl.arange(0, BLOCK, layout=LAYOUT)
    total = gl.zeros([BLOCK], gl.float32, LAYOUT)
    for tile in range(tiles):
        buffer = buffers.index(tile % SLOTS)
        async_copy.async_load(buffer, x + (cta * tiles + tile) * BLOCK + i)
        async_copy.commit_group()
        async_copy.wait_group(0)
        total += gl.exp(buffer.load(LAYOUT))
    gl.store(y + cta * BLOCK + i, total)


def staged_tiles(slots: int, *, tiles: int = 16, block: int = 4096, ctas: int = 32) -> None:
    """Tiles of 16 kB on four SMs; an SM has room for 160 kB."""
    x, y = torch.zeros(ctas * tiles * block), torch.empty(ctas * block)
    staged[(ctas,)](x, y, tiles, BLOCK=block, SLOTS=slots, num_warps=4)
    assert y.eq(tiles).all()


def gemm(*, stages: int, step: int = 32, tile: int = 64, k: int = 1024, ctas: int = 4, warps: int = 4) -> None:
    """A row of `ctas` tiles of a matrix product."""
    a, b = torch.zeros(tile, k, dtype=torch.float16), torch.zeros(k, tile * ctas, dtype=torch.float16)
    c = torch.empty(tile, tile * ctas, dtype=torch.float16)
    n = tile * ctas
    matmul[(ctas,)](
        a, b, c, tile, n, k, k, 1, n, 1, n, 1, BM=tile, BN=tile, BK=step, G=8, P="tf32", AT=tl.float32,
        num_warps=warps, num_stages=stages,
    )  # fmt: skip


def five_tiles(tile: int) -> None:
    """A product of 128 x 640 in tiles of 128 rows; of those with 128 columns, an SM has room for one."""
    m, n, k = 128, 640, 512
    a, b = torch.zeros(m, k, dtype=torch.float16), torch.zeros(k, n, dtype=torch.float16)
    c = torch.empty(m, n, dtype=torch.float16)
    matmul[(n // tile,)](
        a, b, c, m, n, k, k, 1, n, 1, n, 1, BM=m, BN=tile, BK=64, G=8, P="tf32", AT=tl.float32,
        num_warps=8 * tile // 128, num_stages=4,
    )  # fmt: skip


@triton.jit
def sum_rows(x, y, columns, BLOCK: tl.constexpr, AFTER: tl.constexpr):
    row = tl.program_id(0)
    if AFTER:
        partial = tl.zeros([BLOCK], tl.float32)
        for start in range(0, columns, BLOCK):
            partial += tl.load(x + row * columns + start + tl.arange(0, BLOCK))
        tl.store(y + row, tl.sum(partial, 0))
    else:
        total = tl.full([], 0.0, tl.float32)
        for start in range(0, columns, BLOCK):
            total += tl.sum(tl.load(x + row * columns + start + tl.arange(0, BLOCK)), 0)
        tl.store(y + row, total)


def sums(after: bool, *, columns: int = 8192, block: int = 512, warps: int = 4) -> None:
    """Rows, reduced in each iteration or after them."""
    x, y = torch.ones(8, columns), torch.empty(8)
    sum_rows[(8,)](x, y, columns, BLOCK=block, AFTER=after, num_warps=warps)
    assert y.eq(columns).all()


@triton.jit
def uneven(x, y, trips, BLOCK: tl.constexpr, LONGEST_FIRST: tl.constexpr):
    cta = tl.program_id(0)
    if LONGEST_FIRST:
        cta = tl.num_programs(0) - 1 - cta
    i = cta * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i)
    for _ in range(tl.load(trips + cta)):
        value = value * value + 0.25
    tl.store(y + i, value)


def uneven_ctas(longest_first: bool) -> None:
    """12 CTAs, one to an SM of 4 at a time, the last three times as long as the others."""
    count, ctas = 4096, 12
    trips = torch.full((ctas,), 200, dtype=torch.int32)
    trips[-1] = 600
    x, y = torch.zeros(count * ctas), torch.empty(count * ctas)
    uneven[(ctas,)](x, y, trips, BLOCK=count, LONGEST_FIRST=longest_first, num_warps=32)


@triton.jit
def counts(x, y, BLOCK: tl.constexpr, SPREAD: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(y + (i if SPREAD else i % 4), tl.load(x + i))


def atomics(spread: bool, *, count: int = 4096, warps: int = 4) -> None:
    """Atomic additions of blocks of 512, to four addresses or each to its own."""
    x, y = torch.ones(count), torch.zeros(count)
    counts[(count // 512,)](x, y, BLOCK=512, SPREAD=spread, num_warps=warps)
    assert y.sum() == count


@gluon.jit
def wrapped_rows(x, y, columns, ROWS: gl.constexpr, COLUMNS: gl.constexpr, EACH: gl.constexpr):
    """Column sums of angles, wrapped into a circle; a warp has `EACH` rows next to each other, or they lie spread."""
    ROWWISE: gl.constexpr = gl.BlockedLayout([EACH, 1], [1, 32], [4, 1], [1, 0])
    DOWN: gl.constexpr = gl.BlockedLayout([ROWS, 1], [1, 32], [1, 4], [0, 1])
    SHARED: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
    tile = gl.allocate_shared_memory(gl.float32, [ROWS, COLUMNS], SHARED)
    row = gl.arange(0, ROWS, layout=gl.SliceLayout(1, ROWWISE))
    column = gl.arange(0, COLUMNS, layout=gl.SliceLayout(0, ROWWISE))
    first = gl.program_id(0) * ROWS
    across = gl.arange(0, COLUMNS, layout=gl.SliceLayout(0, DOWN))
    for start in range(0, columns, COLUMNS):
        angle = gl.load(x + (first + row)[:, None] * columns + (start + column)[None, :])
        tile.store(libdevice.fmod(angle, 6.2831855))
        gl.barrier()
        gl.store(y + gl.program_id(0) * columns + start + across, gl.sum(tile.load(DOWN), 0))
        gl.barrier()


def ragged_rows(spread: bool, *, columns: int = 2048, heavy: int = 4, ctas: int = 4) -> None:
    """Of each 16 rows the first `heavy` hold angles of many turns, which take longest to wrap."""
    x = torch.ones(16 * ctas, columns)
    x.view(ctas, 16, columns)[:, :heavy] = 1e30
    y = torch.empty(ctas, columns)
    wrapped_rows[(ctas,)](x, y, columns, ROWS=16, COLUMNS=128, EACH=1 if spread else 4, num_warps=4)
    expected = torch.fmod(x, 6.2831855).view(ctas, 16, columns).sum(1)
    torch.testing.assert_close(y, expected)


def odd_gelu(even: bool, *, count: int = 1 << 16, block: int = 1024) -> None:
    """An element-wise kernel on so many numbers, or on one less, which the compiler knows nothing of."""
    n = count if even else count - 1
    x = torch.zeros(n, dtype=torch.float16)
    y = torch.empty_like(x)
    gelu_tanh[(triton.cdiv(n, block),)](x, y, n, B=block, num_warps=4)
    assert y.eq(0).all()


def odd_sum(even: bool, *, count: int = 1 << 17, block: int = 1024, dtype: torch.dtype = torch.float16) -> None:
    """The same of one that does nothing but load and store."""
    n = count if even else count - 1
    x, y = torch.ones(n, dtype=dtype), torch.empty(n, dtype=dtype)
    vadd[(triton.cdiv(n, block),)](x, x, y, n, B=block, num_warps=4)
    assert y.eq(2).all()

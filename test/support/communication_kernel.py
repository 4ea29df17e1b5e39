"""All-gather and matrix product in one grid: some CTAs fetch chunks of rows and set flags, others multiply."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def gather_matmul(
    far, near, b, c, flags, K,
    SENDERS: tl.constexpr, CHUNKS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    TILES: tl.constexpr, POLL: tl.constexpr,
):  # fmt: skip
    """`far` @ `b`: chunks of BM rows of `far` are copied to `near` by the first CTAs, and multiplied from there."""
    pid = tl.program_id(0)
    rows = tl.arange(0, BM)
    if pid < SENDERS:
        inner = tl.arange(0, BK)
        for chunk in range(pid, CHUNKS, SENDERS):
            for k in range(0, K, BK):
                places = (chunk * BM + rows)[:, None] * K + (k + inner)[None, :]
                tl.store(near + places, tl.load(far + places))
            tl.debug_barrier()
            tl.atomic_xchg(flags + chunk, 1, sem="release")
    else:
        step = tl.num_programs(0) - SENDERS
        columns = tl.arange(0, BN)
        inner = tl.arange(0, BK)
        for tile in range(pid - SENDERS, CHUNKS * TILES, step):
            chunk = tile // TILES
            if POLL:
                tl.atomic_poll(flags + chunk, 1)
            else:
                while tl.atomic_add(flags + chunk, 0, sem="acquire") == 0:
                    pass
            left = near + (chunk * BM + rows)[:, None] * K + inner[None, :]
            right = b + inner[:, None] * (TILES * BN) + ((tile % TILES) * BN + columns)[None, :]
            total = tl.zeros([BM, BN], tl.float32)
            for _ in range(0, K, BK):
                total = tl.dot(tl.load(left), tl.load(right), total)
                left += BK
                right += BK * TILES * BN
            places = (chunk * BM + rows)[:, None] * (TILES * BN) + ((tile % TILES) * BN + columns)[None, :]
            tl.store(c + places, total)


def gather_and_multiply(
    *, chunks: int = 4, senders: int = 1, consumers: int = 2, tiles: int = 4, k: int = 256, poll: bool = False
) -> None:
    """Chunks of 32 rows, each multiplied in `tiles` tiles of 64 columns by `consumers` CTAs."""
    rows, columns = 32, 64
    far = torch.randn(chunks * rows, k, generator=torch.Generator().manual_seed(0)).half()
    b = torch.randn(k, tiles * columns, generator=torch.Generator().manual_seed(1)).half()
    near, c = torch.zeros_like(far), torch.empty(chunks * rows, tiles * columns)
    flags = torch.zeros(chunks, dtype=torch.int32)
    gather_matmul[(senders + consumers,)](
        far, near, b, c, flags, k, SENDERS=senders, CHUNKS=chunks, BM=rows, BN=columns, BK=32, TILES=tiles, POLL=poll,
        num_warps=4, num_stages=2,
    )  # fmt: skip
    torch.testing.assert_close(c, far.float() @ b.float(), rtol=1e-2, atol=1e-2)

"""A product with weights that are shared by hashing, as ROAST has it: profiled, advised, improved, verified.

The weight matrix is not stored: where its elements lie in a small table says a hash. First each element has a hash of
its own, so what neighbouring threads read lies anywhere. Then a hash is taken per block of the matrix, as ROAST does,
and a block's elements lie together. Last, what the advisor says of that: more stages.
"""

import numpy as np
import triton
import triton.language as tl
from numpy.typing import NDArray
from walkthrough import conclude, cycles, profile, show

from kperfir.advice.advise import advise

SIZE, TABLE = 128, 4096
BLOCK = 32
A, B, C = 2654435, 40503, 97


@triton.jit
def hashed_matmul(
    x_ptr, table_ptr, out_ptr, K: tl.constexpr, N: tl.constexpr, TABLE: tl.constexpr, BLOCK: tl.constexpr,
    BY_BLOCK: tl.constexpr, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK, BLOCK], tl.float32)
    for first in range(0, K, BLOCK):
        inner = first + tl.arange(0, BLOCK)
        if BY_BLOCK:
            start = ((first // BLOCK) * A + tl.program_id(1) * B + C) % (TABLE // BLOCK - BLOCK) * BLOCK
            places = start + tl.arange(0, BLOCK)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
        else:
            places = (inner[:, None] * A + columns[None, :] * B + C) % TABLE
        x = tl.load(x_ptr + rows[:, None] * K + inner[None, :])
        weights = tl.load(table_ptr + places)
        total = tl.dot(x, weights, total)
    tl.store(out_ptr + rows[:, None] * N + columns[None, :], total)


def expected(x: NDArray[np.float16], table: NDArray[np.float16], by_block: int) -> NDArray[np.float32]:
    k, n = np.meshgrid(np.arange(SIZE), np.arange(SIZE), indexing="ij")
    places = (k * A + n * B + C) % TABLE
    if by_block:
        start = ((k // BLOCK) * A + (n // BLOCK) * B + C) % (TABLE // BLOCK - BLOCK) * BLOCK
        places = start + k % BLOCK * BLOCK + n % BLOCK
    return x.astype(np.float32) @ table[places].astype(np.float32)


def main() -> None:
    random = np.random.default_rng(0)
    x = random.random((SIZE, SIZE), dtype=np.float32).astype(np.float16)
    table = (random.random(TABLE, dtype=np.float32) - np.float32(0.5)).astype(np.float16)
    timelines = []
    for name, by_block, stages in (("element", 0, 1), ("block", 1, 1), ("stages", 1, 3)):
        out = np.zeros((SIZE, SIZE), np.float32)

        def launch(by_block: int = by_block, stages: int = stages, out: NDArray[np.float32] = out) -> None:
            hashed_matmul[(SIZE // BLOCK, SIZE // BLOCK)](
                x, table, out, SIZE, SIZE, TABLE, BLOCK, by_block, A, B, C, num_warps=2, num_stages=stages
            )

        timelines.append(profile(f"hashed_weights-{name}", launch))
        np.testing.assert_allclose(out, expected(x, table, by_block), atol=0.05)
    titles = ("a hash per element", "a hash per block", "a hash per block, 3 stages")
    for title, timeline in zip(titles, timelines, strict=True):
        show(title, timeline, ("load", "iteration"))
        for finding in advise(timeline).findings[:1]:
            print(f"    advice: {finding.change.what} ({finding.rule}, {finding.speedup:.2f} times as fast expected)")
    print(f"the advised change: {cycles(timelines[1]) / cycles(timelines[2]):.2f} times as fast")
    conclude(timelines[0], timelines[2])


if __name__ == "__main__":
    main()

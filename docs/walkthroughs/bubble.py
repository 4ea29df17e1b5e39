"""A bubble: a pipeline so short that each iteration waits for the copies of the one before it.

The matrix product of the demo, with two stages in flight and with four.
"""

from __future__ import annotations

import numpy as np
from walkthrough import conclude, profile, show

from kperfir.demo.kernels import matmul

SIZE = 256


def main() -> None:
    random = np.random.default_rng(0)
    a, b = (random.random((SIZE, SIZE), dtype=np.float32).astype(np.float16) - np.float16(0.5) for _ in "ab")
    c = np.zeros((SIZE, SIZE), np.float16)

    def launch(stages: int) -> None:
        matmul[(SIZE // 64, SIZE // 64)](
            a, b, c, SIZE, SIZE, SIZE, SIZE, SIZE, SIZE, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32, num_warps=4,
            num_stages=stages,
        )  # fmt: skip
        np.testing.assert_allclose(c, a.astype(np.float32) @ b.astype(np.float32), atol=0.02)

    before = profile("bubble-before", lambda: launch(2))
    after = profile("bubble-after", lambda: launch(4))
    show("num_stages=2", before, ("async_wait", "iteration"))
    show("num_stages=4", after, ("async_wait", "iteration"))
    conclude(before, after)


if __name__ == "__main__":
    main()

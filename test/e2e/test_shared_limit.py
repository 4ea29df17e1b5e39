"""A kernel that needs nearly all the shared memory of an SM: its records go where there is room, and it still runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import triton
import triton.language as tl

import kperfir

if TYPE_CHECKING:
    from pathlib import Path

LIMIT_BYTES = 166_912  # Of one CTA of sm_80: 163 KiB.
BLOCK, DEPTH = 128, 64


@triton.jit
def matmul(a, b, c, K, BLOCK: tl.constexpr, DEPTH: tl.constexpr):
    rows = tl.arange(0, BLOCK)
    inner = tl.arange(0, DEPTH)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(0, K, DEPTH):
        left = tl.load(a + rows[:, None] * K + (k + inner)[None, :])
        right = tl.load(b + (k + inner)[:, None] * BLOCK + rows[None, :])
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * BLOCK + rows[None, :], total)


@pytest.mark.parametrize("stages", [3, 6])
def test_kernel_near_the_limit_stays_within_it(stages: int, tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    a = generator.standard_normal((BLOCK, 8 * DEPTH)).astype(np.float16)
    b = generator.standard_normal((8 * DEPTH, BLOCK)).astype(np.float16)
    plain, profiled = (np.zeros((BLOCK, BLOCK), np.float32) for _ in range(2))

    def launch(c: np.ndarray) -> int:
        compiled = matmul[(1,)](a, b, c, a.shape[1], BLOCK, DEPTH, num_stages=stages, num_warps=8)
        return int(compiled.metadata.shared)

    from support.launch import simt

    with simt():
        needed = launch(plain)
    with kperfir.profile(tmp_path / "out.kpf", device="simt"):
        instrumented = launch(profiled)
    assert needed <= instrumented <= LIMIT_BYTES
    if stages == 6:
        assert LIMIT_BYTES - needed < 4096, "the kernel should leave almost nothing"
    np.testing.assert_array_equal(plain, profiled)
    np.testing.assert_allclose(plain, a.astype(np.float32) @ b.astype(np.float32), rtol=1e-3, atol=1e-2)
    timeline = kperfir.load(tmp_path / "out.kpf")
    assert {"async_copy", "async_wait", "dot"} <= set(timeline.spans["kind"])
    assert timeline.tracks["records"].min() > 0

"""The kernels of the demo: ordinary Triton code, with nothing of kperfir in it."""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"

from typing import Any

import triton
import triton.language as tl


@triton.jit
def matmul(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_a, stride_b, stride_c,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Compute one tile of C = A B."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    a_tile = a_ptr + rows[:, None] * stride_a + inner[None, :]
    b_tile = b_ptr + inner[:, None] * stride_b + columns[None, :]
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for _ in range(0, K, BLOCK_K):
        a = tl.load(a_tile)
        b = tl.load(b_tile)
        accumulator = tl.dot(a, b, accumulator)
        a_tile += BLOCK_K
        b_tile += BLOCK_K * stride_b
    c_tile = c_ptr + rows[:, None] * stride_c + columns[None, :]
    tl.store(c_tile, accumulator.to(tl.float16), mask=(rows[:, None] < M) & (columns[None, :] < N))


@triton.jit
def flash_attention(
    q_ptr, k_ptr, v_ptr, o_ptr, scale, T,
    D: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_KV: tl.constexpr,
):  # fmt: skip
    """Compute the attention of one block of queries of one head, with the softmax taken as the keys stream by."""
    head = tl.program_id(1) * T * D
    queries = tl.program_id(0) * BLOCK_Q + tl.arange(0, BLOCK_Q)
    keys = tl.arange(0, BLOCK_KV)
    dims = tl.arange(0, D)
    q = tl.load(q_ptr + head + queries[:, None] * D + dims[None, :])
    largest = tl.full([BLOCK_Q], -float("inf"), tl.float32)
    total = tl.zeros([BLOCK_Q], tl.float32)
    accumulator = tl.zeros([BLOCK_Q, D], tl.float32)
    for start in range(0, T, BLOCK_KV):
        k = tl.load(k_ptr + head + (start + keys)[None, :] * D + dims[:, None])
        scores = tl.dot(q, k) * (scale * 1.4426950408889634)
        v = tl.load(v_ptr + head + (start + keys)[:, None] * D + dims[None, :])
        larger = tl.maximum(largest, tl.max(scores, 1))
        weights = tl.exp2(scores - larger[:, None])
        rescale = tl.exp2(largest - larger)
        total = total * rescale + tl.sum(weights, 1)
        accumulator = tl.dot(weights.to(tl.float16), v, accumulator * rescale[:, None])
        largest = larger
    tl.store(o_ptr + head + queries[:, None] * D + dims[None, :], (accumulator / total[:, None]).to(tl.float16))


def launch_matmul(a: Any, b: Any, c: Any) -> None:
    """Compute ``c = a @ b``; shapes ``(M, K)``, ``(K, N)``, ``(M, N)``, multiples of 64, 64 and 32; dtype float16."""
    (M, K), N = a.shape, b.shape[1]
    matmul[(M // 64, N // 64)](
        a, b, c, M, N, K, K, N, N, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32, num_warps=4, num_stages=3, enable_fp_fusion=True
    )


def launch_flash_attention(q: Any, k: Any, v: Any, o: Any) -> None:
    """Compute the attention of all heads; shapes ``(H, T, D)``, T a multiple of 64, D a power of two; dtype float16."""
    H, T, D = q.shape
    flash_attention[(T // 64, H)](
        q, k, v, o, D**-0.5, T, D=D, BLOCK_Q=64, BLOCK_KV=32, num_warps=4, num_stages=2, enable_fp_fusion=True
    )

"""Scans, sorts, histograms, gathers and scatters, atomics, reshapes, prints and inline PTX."""

from __future__ import annotations

import triton
import triton.language as tl

from kernels.registry import Case


@triton.jit
def cumsum_k(x, o, N, B: tl.constexpr):
    r = tl.program_id(0)
    i = tl.arange(0, B)
    tl.store(o + r * N + i, tl.cumsum(tl.load(x + r * N + i, mask=i < N, other=0.0), 0), mask=i < N)


@triton.jit
def _lin(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@triton.jit
def linrec(a, b, o, T, D, B: tl.constexpr, C: tl.constexpr):
    t = tl.arange(0, B)[:, None]
    c = tl.program_id(0) * C + tl.arange(0, C)[None, :]
    _, h = tl.associative_scan((tl.load(a + t * D + c), tl.load(b + t * D + c)), 0, _lin)
    tl.store(o + t * D + c, h)


@triton.jit
def sort_k(x, o, N: tl.constexpr):
    i = tl.arange(0, N)
    r = tl.program_id(0)
    tl.store(o + r * N + i, tl.sort(tl.load(x + r * N + i)))


@triton.jit
def topk_k(x, o, N: tl.constexpr, K: tl.constexpr):
    i = tl.arange(0, N)
    r = tl.program_id(0)
    tl.store(o + r * K + tl.arange(0, K), tl.topk(tl.load(x + r * N + i), K))


@triton.jit
def hist_k(x, o, n, B: tl.constexpr, NB: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    h = tl.histogram(tl.load(x + i, mask=i < n, other=0), NB)
    tl.atomic_add(o + tl.arange(0, NB), h)


@triton.jit
def gather_k(x, idx, o, B: tl.constexpr, C: tl.constexpr):
    r = tl.arange(0, B)[:, None]
    c = tl.arange(0, C)[None, :]
    tl.store(o + r * C + c, tl.gather(tl.load(x + r * C + c), tl.load(idx + r * C + c), 0))


@triton.jit
def embed(ids, W, o, D: tl.constexpr):
    r = tl.program_id(0)
    i = tl.arange(0, D)
    tl.store(o + r * D + i, tl.load(W + tl.load(ids + r) * D + i))


@triton.jit
def embed_bwd(ids, dW, g, D: tl.constexpr):
    r = tl.program_id(0)
    i = tl.arange(0, D)
    tl.atomic_add(dW + tl.load(ids + r) * D + i, tl.load(g + r * D + i))


@triton.jit
def atomics(p, q, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    v = tl.load(q + i, mask=m)
    tl.atomic_max(p + i * 0, v, mask=m)
    tl.atomic_min(p + 1 + i * 0, v, mask=m)
    tl.atomic_and(p + 2 + i * 0, v, mask=m)
    tl.atomic_or(p + 3 + i * 0, v, mask=m)
    tl.atomic_xor(p + 4 + i * 0, v, mask=m)
    r = tl.atomic_add(p + 5 + i * 0, v, mask=m, sem="acquire")
    tl.store(q + i, r, mask=m)


@triton.jit
def splitjoin(x, o, B: tl.constexpr):
    i = tl.arange(0, B)
    a, b = tl.split(tl.reshape(tl.load(x + i), (B // 2, 2)))
    tl.store(o + i, tl.interleave(b, a))
    tl.store(o + B + i, tl.flip(tl.load(x + i)))


@triton.jit
def assert_print(x, n, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i, mask=i < n)
    tl.device_assert(v > 0, "neg")
    tl.device_print("v", v)


@triton.jit
def inline_asm(x, o, B: tl.constexpr):
    i = tl.arange(0, B)
    r = tl.inline_asm_elementwise("shl.b32 $0, $1, 3;", "=r,r", [tl.load(x + i)], dtype=tl.int32, is_pure=True, pack=1)
    t = tl.extra.cuda.globaltimer()
    s = tl.extra.cuda.smid()
    tl.store(o + i, r + t.to(tl.int32) + s)


CASES = (
    Case("cumsum_fp32", cumsum_k, ("*fp32", "*fp32", "i32"), {"B": 1024}),
    Case("assoc_scan", linrec, ("*fp32", "*fp32", "*fp32", "i32", "i32"), {"B": 128, "C": 16}),
    Case("sort_i32", sort_k, ("*i32", "*i32"), {"N": 256}),
    Case("topk_fp32", topk_k, ("*fp32", "*fp32"), {"N": 256, "K": 8}),
    Case("histogram", hist_k, ("*i32", "*i32", "i32"), {"B": 1024, "NB": 256}),
    Case("tl_gather", gather_k, ("*fp32", "*i32", "*fp32"), {"B": 64, "C": 32}),
    Case("embedding_fwd", embed, ("*i64", "*bf16", "*bf16"), {"D": 1024}),
    Case("embedding_bwd_f32", embed_bwd, ("*i64", "*fp32", "*fp32"), {"D": 1024}),
    Case("embedding_bwd_f16", embed_bwd, ("*i64", "*fp16", "*fp16"), {"D": 1024}),
    Case("embedding_bwd_bf16", embed_bwd, ("*i64", "*bf16", "*bf16"), {"D": 1024}),
    Case("atomics_i32", atomics, ("*i32", "*i32", "i32"), {"B": 256}),
    Case("split_join_flip", splitjoin, ("*fp32", "*fp32"), {"B": 1024}),
    Case("assert_print", assert_print, ("*fp32", "i32"), {"B": 128}, {"debug": True}),
    Case("inline_asm_timer", inline_asm, ("*i32", "*i32"), {"B": 128}),
)

"""Reductions and what is built on them: softmax, norms, cross entropy, argmax, Welford."""

from __future__ import annotations

import triton
import triton.language as tl

from kernels.registry import Case


@triton.jit
def softmax(o, x, sx, so, n, B: tl.constexpr):
    r = tl.program_id(0)
    i = tl.arange(0, B)
    m = i < n
    v = tl.load(x + r * sx + i, mask=m, other=-float("inf"))
    v = v - tl.max(v, axis=0)
    e = tl.exp(v)
    tl.store(o + r * so + i, e / tl.sum(e, axis=0), mask=m)


@triton.jit
def softmax_persistent(o, x, sx, so, rows, n, B: tl.constexpr, S: tl.constexpr):
    for r in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=S):
        i = tl.arange(0, B)
        m = i < n
        v = tl.load(x + r * sx + i, mask=m, other=-float("inf"))
        v = v - tl.max(v, axis=0)
        e = tl.exp(v)
        tl.store(o + r * so + i, e / tl.sum(e, axis=0), mask=m)


@triton.jit
def reduce2d(x, o, N, B: tl.constexpr, R: tl.constexpr):
    r = tl.program_id(0) * R + tl.arange(0, R)
    acc = tl.zeros((R,), tl.float32)
    for k in range(0, N, B):
        c = k + tl.arange(0, B)
        acc += tl.sum(tl.load(x + r[:, None] * N + c[None, :], mask=(c < N)[None, :], other=0.0).to(tl.float32), axis=1)
    tl.store(o + r, acc)


@triton.jit
def argmax_k(x, o, v, N, B: tl.constexpr):
    r = tl.program_id(0)
    i = tl.arange(0, B)
    t = tl.load(x + r * N + i, mask=i < N, other=-float("inf"))
    mv, mi = tl.max(t, axis=0, return_indices=True)
    tl.store(o + r, mi)
    tl.store(v + r, mv)


@triton.jit
def layernorm_fwd(X, Y, W, Bi, Mean, Rstd, s, N, eps, B: tl.constexpr):
    r = tl.program_id(0)
    Y += r * s
    X += r * s
    _m = tl.zeros([B], tl.float32)
    for off in range(0, N, B):
        c = off + tl.arange(0, B)
        _m += tl.load(X + c, mask=c < N, other=0.0).to(tl.float32)
    mean = tl.sum(_m, axis=0) / N
    _v = tl.zeros([B], tl.float32)
    for off in range(0, N, B):
        c = off + tl.arange(0, B)
        x = tl.load(X + c, mask=c < N, other=0.0).to(tl.float32)
        x = tl.where(c < N, x - mean, 0.0)
        _v += x * x
    rstd = 1 / tl.sqrt(tl.sum(_v, axis=0) / N + eps)
    tl.store(Mean + r, mean)
    tl.store(Rstd + r, rstd)
    for off in range(0, N, B):
        c = off + tl.arange(0, B)
        m = c < N
        x = tl.load(X + c, mask=m, other=0.0).to(tl.float32)
        tl.store(Y + c, (x - mean) * rstd * tl.load(W + c, mask=m) + tl.load(Bi + c, mask=m), mask=m)


@triton.jit
def layernorm_bwd(DX, DY, DW, DB, X, W, Mean, Rstd, Lock, s, N, G: tl.constexpr, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    m = c < N
    X += r * s
    DY += r * s
    DX += r * s
    lid = r % G
    Lock += lid
    Count = Lock + G
    x = tl.load(X + c, mask=m, other=0).to(tl.float32)
    dy = tl.load(DY + c, mask=m, other=0).to(tl.float32)
    w = tl.load(W + c, mask=m).to(tl.float32)
    mean = tl.load(Mean + r)
    rstd = tl.load(Rstd + r)
    xh = tl.where(m, (x - mean) * rstd, 0.0)
    wdy = tl.where(m, w * dy, 0.0)
    c1 = tl.sum(xh * wdy, axis=0) / N
    c2 = tl.sum(wdy, axis=0) / N
    tl.store(DX + c, (wdy - (xh * c1 + c2)) * rstd, mask=m)
    pw = (dy * xh).to(w.dtype)
    pb = dy.to(w.dtype)
    while tl.atomic_cas(Lock, 0, 1) == 1:
        pass
    cnt = tl.load(Count)
    if cnt == 0:
        tl.atomic_xchg(Count, 1)
    else:
        pw += tl.load(DW + lid * N + c, mask=m)
        pb += tl.load(DB + lid * N + c, mask=m)
    tl.store(DW + lid * N + c, pw, mask=m)
    tl.store(DB + lid * N + c, pb, mask=m)
    tl.debug_barrier()
    tl.atomic_xchg(Lock, 0)


@triton.jit
def rmsnorm(X, W, Y, N, eps, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    m = c < N
    x = tl.load(X + r * N + c, mask=m, other=0.0).to(tl.float32)
    rs = tl.rsqrt(tl.sum(x * x, axis=0) / N + eps)
    tl.store(Y + r * N + c, x * rs * tl.load(W + c, mask=m).to(tl.float32), mask=m)


@triton.jit
def xent(L, T, Loss, s, V, B: tl.constexpr):
    r = tl.program_id(0)
    t = tl.load(T + r)
    mx = -float("inf")
    d = 0.0
    for k in range(0, V, B):
        c = k + tl.arange(0, B)
        v = tl.load(L + r * s + c, mask=c < V, other=-float("inf")).to(tl.float32)
        bm = tl.max(v)
        nm = tl.maximum(mx, bm)
        d = d * tl.exp(mx - nm) + tl.sum(tl.exp(v - nm))
        mx = nm
    tl.store(Loss + r, mx + tl.log(d) - tl.load(L + r * s + t).to(tl.float32))


@triton.jit
def _welford(m1, s1, w1, m2, s2, w2):
    d = m2 - m1
    w = w1 + w2
    q = tl.where(w == 0.0, 0.0, w2 / w)
    return m1 + d * q, s1 + s2 + d * d * w1 * q, w


@triton.jit
def welford(X, M, V, N, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    x = tl.load(X + r * N + c, mask=c < N, other=0.0)
    mean, m2, w = tl.reduce((x, x * 0, (c < N).to(tl.float32)), 0, _welford)
    tl.store(M + r, mean)
    tl.store(V + r, m2 / w)


CASES = (
    Case("softmax_fp32", softmax, ("*fp32", "*fp32", "i32", "i32", "i32"), {"B": 1024}),
    Case("softmax_fp16_w8", softmax, ("*fp16", "*fp16", "i32", "i32", "i32"), {"B": 8192}, {"num_warps": 8}),
    Case("softmax_persistent", softmax_persistent, ("*fp32", "*fp32", "i32", "i32", "i32", "i32"), {"B": 2048, "S": 3}),
    Case("reduce_rows", reduce2d, ("*fp16", "*fp32", "i32"), {"B": 128, "R": 32}),
    Case("argmax", argmax_k, ("*fp32", "*i32", "*fp32", "i32"), {"B": 2048}),
    Case("layernorm_fwd", layernorm_fwd, ("*fp16",) * 4 + ("*fp32", "*fp32", "i32", "i32", "fp32"), {"B": 1024}),
    Case(
        "layernorm_bwd_lock",
        layernorm_bwd,
        ("*fp16",) * 6 + ("*fp32", "*fp32", "*i32", "i32", "i32"),
        {"G": 64, "B": 1024},
    ),
    Case("rmsnorm_bf16", rmsnorm, ("*bf16", "*bf16", "*bf16", "i32", "fp32"), {"B": 4096}, {"num_warps": 8}),
    Case("cross_entropy", xent, ("*bf16", "*i64", "*fp32", "i32", "i32"), {"B": 2048}),
    Case("welford", welford, ("*fp32", "*fp32", "*fp32", "i32"), {"B": 1024}),
)

"""Flash attention forward and backward, and the descriptor kernels that only sm_90 and later can run."""

from __future__ import annotations

import triton
import triton.language as tl

from kernels.registry import BLACKWELL, HOPPER_UP, Case


@triton.jit
def fa_fwd(Q, K, V, O, L, sc, sz, sh, T, H, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr):
    pm = tl.program_id(0)
    zh = tl.program_id(1)
    base = (zh // H).to(tl.int64) * sz + (zh % H).to(tl.int64) * sh
    om = pm * BM + tl.arange(0, BM)
    on = tl.arange(0, BN)
    od = tl.arange(0, D)
    q = tl.load(Q + base + om[:, None] * D + od[None, :], mask=om[:, None] < T, other=0.0)
    m_i = tl.full([BM], -float("inf"), tl.float32)
    l_i = tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, D], tl.float32)
    qk_scale = sc * 1.44269504
    hi = (pm + 1) * BM if CAUSAL else T
    for n in range(0, hi, BN):
        k = tl.load(K + base + (n + on)[None, :] * D + od[:, None], mask=(n + on)[None, :] < T, other=0.0)
        s = tl.dot(q, k) * qk_scale
        if CAUSAL:
            s = tl.where(om[:, None] >= (n + on)[None, :], s, -1e6)
        mn = tl.maximum(m_i, tl.max(s, 1))
        p = tl.math.exp2(s - mn[:, None])
        al = tl.math.exp2(m_i - mn)
        l_i = l_i * al + tl.sum(p, 1)
        acc = acc * al[:, None]
        v = tl.load(V + base + (n + on)[:, None] * D + od[None, :], mask=(n + on)[:, None] < T, other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc)
        m_i = mn
    acc = acc / l_i[:, None]
    tl.store(O + base + om[:, None] * D + od[None, :], acc.to(O.dtype.element_ty), mask=om[:, None] < T)
    tl.store(L + zh * T + om, m_i + tl.math.log2(l_i), mask=om < T)


@triton.jit
def fa_tma(dq, dk, dv, do, sc, T, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, WS: tl.constexpr):
    pm = tl.program_id(0)
    y = tl.program_id(1) * T
    q = dq.load([y + pm * BM, 0])
    m_i = tl.full([BM], -float("inf"), tl.float32)
    l_i = tl.zeros([BM], tl.float32) + 1.0
    acc = tl.zeros([BM, D], tl.float32)
    for n in tl.range(0, T, BN, warp_specialize=WS):
        s = tl.dot(q, dk.load([y + n, 0]).T)
        mn = tl.maximum(m_i, tl.max(s, 1) * sc)
        p = tl.math.exp2(s * sc - mn[:, None])
        al = tl.math.exp2(m_i - mn)
        acc = acc * al[:, None]
        acc = tl.dot(p.to(tl.float16), dv.load([y + n, 0]), acc)
        l_i = l_i * al + tl.sum(p, 1)
        m_i = mn
    do.store([y + pm * BM, 0], (acc / l_i[:, None]).to(tl.float16))


@triton.jit
def fa_bwd_dkdv(Q, K, V, DO, DK, DV, M, Dl, sc, T, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    pn = tl.program_id(0)
    base = tl.program_id(1).to(tl.int64) * T * D
    on = pn * BN + tl.arange(0, BN)
    od = tl.arange(0, D)
    lo = tl.program_id(1) * T
    k = tl.load(K + base + on[:, None] * D + od[None, :])
    v = tl.load(V + base + on[:, None] * D + od[None, :])
    dk = tl.zeros([BN, D], tl.float32)
    dv = tl.zeros([BN, D], tl.float32)
    for m in range(0, T, BM):
        om = m + tl.arange(0, BM)
        qT = tl.load(Q + base + om[None, :] * D + od[:, None])
        do = tl.load(DO + base + om[:, None] * D + od[None, :])
        pT = tl.math.exp2(tl.dot(k, qT) - tl.load(M + lo + om)[None, :])
        dv += tl.dot(pT.to(tl.float16), do)
        dsT = (pT * (tl.dot(v, tl.trans(do)) - tl.load(Dl + lo + om)[None, :])).to(tl.float16)
        dk += tl.dot(dsT, tl.trans(qT))
    tl.store(DV + base + on[:, None] * D + od[None, :], dv.to(tl.float16))
    tl.store(DK + base + on[:, None] * D + od[None, :], (dk * sc).to(tl.float16))


@triton.jit
def tma_gather_k(desc, idx, o, BX: tl.constexpr, C: tl.constexpr):
    r = desc.gather(tl.load(idx + tl.arange(0, BX)), 0)
    tl.store(o + tl.arange(0, BX)[:, None] * C + tl.arange(0, C)[None, :], r)


@triton.jit
def tma_reduce_k(desc, x, R: tl.constexpr, C: tl.constexpr):
    desc.atomic_add([tl.program_id(0) * R, 0], tl.load(x + tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]))


FORWARD = ("*fp32", "fp32", "i32", "i32", "i32", "i32")
QUERY, KEY = "tensordesc<fp16[128,64]>", "tensordesc<fp16[64,64]>"
TMA = (QUERY, KEY, KEY, QUERY, "fp32", "i32")
W4 = {"num_warps": 4}

CASES = (
    Case("fa_fwd_fp16", fa_fwd, ("*fp16",) * 4 + FORWARD, {"D": 64, "BM": 128, "BN": 64, "CAUSAL": False}, W4),
    Case("fa_fwd_bf16_causal", fa_fwd, ("*bf16",) * 4 + FORWARD, {"D": 64, "BM": 128, "BN": 64, "CAUSAL": True}, W4),
    Case(
        "fa_fwd_fp8", fa_fwd, ("*fp8e5",) * 4 + FORWARD, {"D": 128, "BM": 128, "BN": 64, "CAUSAL": False}, {}, HOPPER_UP
    ),
    Case("fa_tma", fa_tma, TMA, {"D": 64, "BM": 128, "BN": 64, "WS": False}, W4, HOPPER_UP),
    Case("fa_tma_ws", fa_tma, TMA, {"D": 64, "BM": 128, "BN": 64, "WS": True}, W4, HOPPER_UP),
    Case(
        "fa_bwd_dkdv",
        fa_bwd_dkdv,
        ("*fp16",) * 6 + ("*fp32", "*fp32", "fp32", "i32"),
        {"D": 64, "BM": 32, "BN": 128},
        W4,
    ),
    Case("tma_gather", tma_gather_k, ("tensordesc<fp16[1,64]>", "*i32", "*fp16"), {"BX": 32, "C": 64}, {}, BLACKWELL),
    Case("tma_reduce_add", tma_reduce_k, ("tensordesc<fp32[32,32]>", "*fp32"), {"R": 32, "C": 32}, {}, HOPPER_UP),
)

"""Warp-specialised Gluon kernels for sm_90: one warp brings tiles with TMA, a warpgroup multiplies them with wgmma."""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
)

from kernels.gluon_kernels import descriptor
from kernels.registry import HOPPER, Case


@gluon.jit
def _matmul_load(ad, bd, sa, sb, ready, empty, M, N, K, BM: gl.constexpr, BN: gl.constexpr, BK: gl.constexpr):
    S: gl.constexpr = sa.type.shape[0]
    rows = gl.cdiv(M, BM)
    step = 0
    for tile in range(gl.program_id(0), rows * gl.cdiv(N, BN), gl.num_programs(0)):
        for k in range(0, K, BK):
            s = step % S
            mbarrier.wait(empty.index(s), ((step // S) & 1) ^ 1)
            mbarrier.expect(ready.index(s), ad.block_type.nbytes + bd.block_type.nbytes)
            tma.async_load(ad, [tile % rows * BM, k], ready.index(s), sa.index(s))
            tma.async_load(bd, [k, tile // rows * BN], ready.index(s), sb.index(s))
            step += 1


@gluon.jit
def _matmul_multiply(cd, sa, sb, sc, ready, empty, M, N, K, BM: gl.constexpr, BN: gl.constexpr, BK: gl.constexpr):
    S: gl.constexpr = sa.type.shape[0]
    L: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BN, 16])
    rows = gl.cdiv(M, BM)
    step = 0
    for tile in range(gl.program_id(0), rows * gl.cdiv(N, BN), gl.num_programs(0)):
        acc = gl.zeros((BM, BN), gl.float32, L)
        for _ in range(0, K, BK):
            s = step % S
            mbarrier.wait(ready.index(s), (step // S) & 1)
            acc = warpgroup_mma(sa.index(s), sb.index(s), acc)
            mbarrier.arrive(empty.index(s))
            step += 1
        tma.store_wait(0)
        sc.store(acc.to(gl.float16))
        fence_async_shared()
        tma.async_store(cd, [tile % rows * BM, tile // rows * BN], sc)
    tma.store_wait(0)


@gluon.jit
def g_persistent(ad, bd, cd, M, N, K, BM: gl.constexpr, BN: gl.constexpr, BK: gl.constexpr, S: gl.constexpr):
    sa = gl.allocate_shared_memory(gl.float16, [S, BM, BK], ad.layout)
    sb = gl.allocate_shared_memory(gl.float16, [S, BK, BN], bd.layout)
    sc = gl.allocate_shared_memory(gl.float16, [BM, BN], cd.layout)
    ready = mbarrier.allocate_mbarrier(batch=S)
    empty = mbarrier.allocate_mbarrier(batch=S)
    for i in gl.static_range(S):
        mbarrier.init(ready.index(i), count=1)
        mbarrier.init(empty.index(i), count=1)
    gl.warp_specialize(
        [
            (_matmul_multiply, (cd, sa, sb, sc, ready, empty, M, N, K, BM, BN, BK)),
            (_matmul_load, (ad, bd, sa, sb, ready, empty, M, N, K, BM, BN, BK)),
        ],
        [1],
        [24],
    )


@gluon.jit
def _attention_load(qd, kd, vd, sq, sk, sv, q_ready, ready, empty, T, BM: gl.constexpr, BN: gl.constexpr):
    S: gl.constexpr = sk.type.shape[0]
    first = gl.program_id(1) * T
    mbarrier.expect(q_ready, qd.block_type.nbytes)
    tma.async_load(qd, [first + gl.program_id(0) * BM, 0], q_ready, sq)
    for n in range(0, T, BN):
        step = n // BN
        s = step % S
        mbarrier.wait(empty.index(s), ((step // S) & 1) ^ 1)
        mbarrier.expect(ready.index(s), kd.block_type.nbytes + vd.block_type.nbytes)
        tma.async_load(kd, [first + n, 0], ready.index(s), sk.index(s))
        tma.async_load(vd, [first + n, 0], ready.index(s), sv.index(s))


@gluon.jit
def _attention_multiply(od, sq, sk, sv, so, q_ready, ready, empty, scale, T, BM: gl.constexpr, BN: gl.constexpr):
    S: gl.constexpr = sk.type.shape[0]
    D: gl.constexpr = sq.type.shape[1]
    SL: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BN, 16])
    OL: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, D, 16])
    PL: gl.constexpr = gl.DotOperandLayout(0, OL, 2)
    m_i = gl.full([BM], -float("inf"), gl.float32, gl.SliceLayout(1, SL))
    l_i = gl.zeros([BM], gl.float32, gl.SliceLayout(1, SL))
    acc = gl.zeros([BM, D], gl.float32, OL)
    mbarrier.wait(q_ready, 0)
    for n in range(0, T, BN):
        step = n // BN
        s = step % S
        mbarrier.wait(ready.index(s), (step // S) & 1)
        x = warpgroup_mma(sq, sk.index(s).permute((1, 0)), gl.zeros([BM, BN], gl.float32, SL), use_acc=False)
        mn = gl.maximum(m_i, gl.max(x, 1) * scale)
        p = gl.exp2(x * scale - mn[:, None])
        alpha = gl.exp2(m_i - mn)
        l_i = l_i * alpha + gl.sum(p, 1)
        acc = acc * gl.convert_layout(alpha, gl.SliceLayout(1, OL))[:, None]
        acc = warpgroup_mma(gl.convert_layout(p.to(gl.float16), PL), sv.index(s), acc)
        mbarrier.arrive(empty.index(s))
        m_i = mn
    acc = acc / gl.convert_layout(l_i, gl.SliceLayout(1, OL))[:, None]
    so.store(acc.to(gl.float16))
    fence_async_shared()
    tma.async_store(od, [gl.program_id(1) * T + gl.program_id(0) * BM, 0], so)
    tma.store_wait(0)


@gluon.jit
def g_attention(qd, kd, vd, od, scale, T, BM: gl.constexpr, BN: gl.constexpr, D: gl.constexpr, S: gl.constexpr):
    sq = gl.allocate_shared_memory(gl.float16, [BM, D], qd.layout)
    sk = gl.allocate_shared_memory(gl.float16, [S, BN, D], kd.layout)
    sv = gl.allocate_shared_memory(gl.float16, [S, BN, D], vd.layout)
    so = gl.allocate_shared_memory(gl.float16, [BM, D], od.layout)
    q_ready = mbarrier.allocate_mbarrier()
    ready = mbarrier.allocate_mbarrier(batch=S)
    empty = mbarrier.allocate_mbarrier(batch=S)
    mbarrier.init(q_ready, count=1)
    for i in gl.static_range(S):
        mbarrier.init(ready.index(i), count=1)
        mbarrier.init(empty.index(i), count=1)
    gl.warp_specialize(
        [
            (_attention_multiply, (od, sq, sk, sv, so, q_ready, ready, empty, scale, T, BM, BN)),
            (_attention_load, (qd, kd, vd, sq, sk, sv, q_ready, ready, empty, T, BM, BN)),
        ],
        [1],
        [24],
    )


TILE = descriptor(64, 64)

CASES = (
    Case(
        "g_persistent_matmul_ws",
        g_persistent,
        (TILE, descriptor(64, 128), descriptor(64, 128), "i32", "i32", "i32"),
        {"BM": 64, "BN": 128, "BK": 64, "S": 3},
        archs=HOPPER,
    ),
    Case(
        "g_attention_ws",
        g_attention,
        (TILE, TILE, TILE, TILE, "fp32", "i32"),
        {"BM": 64, "BN": 64, "D": 64, "S": 2},
        archs=HOPPER,
    ),
)

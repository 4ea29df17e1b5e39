"""All Gluon kernels of the corpus: layouts, asynchronous copies, barriers and tensor cores named by hand."""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia import ampere, blackwell, hopper
from triton.experimental.gluon.language.nvidia.ampere import async_copy as cp
from triton.experimental.gluon.language.nvidia.ampere import mma_v2
from triton.experimental.gluon.language.nvidia.blackwell import (
    TensorMemoryLayout,
    allocate_tensor_memory,
    clc,
    tcgen05_commit,
    tcgen05_mma,
)
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_init,
    warpgroup_mma_wait,
)

from kernels.registry import BLACKWELL, HOPPER, HOPPER_UP, Case


@gluon.jit
def g_memcpy(x, y, n, X: gl.constexpr, L: gl.constexpr):
    i = gl.program_id(0) * X + gl.arange(0, X, layout=L)
    gl.store(y + i, gl.load(x + i, mask=i < n), mask=i < n)


@gluon.jit
def g_async_copy(x, y, xs, n, X: gl.constexpr, S: gl.constexpr):
    L: gl.constexpr = gl.BlockedLayout([4], [32], [4], [0])
    SL: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    sm = gl.allocate_shared_memory(gl.float32, [S, X], SL)
    o = gl.arange(0, X, layout=L)
    for s in gl.static_range(S - 1):
        cp.async_load(sm.index(s), x + s * X + o, mask=s * X + o < n)
        cp.commit_group()
    acc = gl.zeros([X], gl.float32, L)
    for k in range(0, n, X):
        kk = k + (S - 1) * X
        cp.async_load(sm.index((k // X + S - 1) % S), x + kk + o, mask=kk + o < n)
        cp.commit_group()
        cp.wait_group(S - 1)
        acc += sm.index((k // X) % S).load(L)
    cp.wait_group(0)
    gl.store(y + o, acc)


@gluon.jit
def g_cp_mbar(x, y, X: gl.constexpr):
    L: gl.constexpr = gl.BlockedLayout([4], [32], [4], [0])
    sm = gl.allocate_shared_memory(gl.float32, [X], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    bar = ampere.mbarrier.allocate_mbarrier()
    ampere.mbarrier.init(bar, count=1)
    o = gl.arange(0, X, layout=L)
    cp.async_load(sm, x + o)
    cp.mbarrier_arrive(bar)
    ampere.mbarrier.arrive(bar)
    ampere.mbarrier.wait(bar, 0)
    gl.store(y + o, sm.load(L))
    ampere.mbarrier.invalidate(bar)


@gluon.jit
def g_mma_v2(a, b, c, BM: gl.constexpr, BN: gl.constexpr, BK: gl.constexpr):
    L: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    ML: gl.constexpr = gl.NVMMADistributedLayout([2, 0], [2, 2], [16, 8])
    AL: gl.constexpr = gl.DotOperandLayout(0, ML, 2)
    BL: gl.constexpr = gl.DotOperandLayout(1, ML, 2)
    m = gl.arange(0, BM, layout=gl.SliceLayout(1, L))
    n = gl.arange(0, BN, layout=gl.SliceLayout(0, L))
    k1 = gl.arange(0, BK, layout=gl.SliceLayout(0, L))
    k0 = gl.arange(0, BK, layout=gl.SliceLayout(1, L))
    x = gl.load(a + m[:, None] * BK + k1[None, :])
    y = gl.load(b + k0[:, None] * BN + n[None, :])
    SL: gl.constexpr = gl.SwizzledSharedLayout(8, 1, 8, [1, 0])
    sa = gl.allocate_shared_memory(gl.float16, [BM, BK], SL, x)
    sb = gl.allocate_shared_memory(gl.float16, [BK, BN], SL, y)
    acc = mma_v2(sa.load(AL), sb.load(BL), gl.zeros([BM, BN], gl.float32, ML))
    r = gl.convert_layout(acc, L)
    gl.store(c + m[:, None] * BN + n[None, :], r)


@gluon.jit
def g_tma_copy(ad, bd, M: gl.constexpr, N: gl.constexpr):
    sm = gl.allocate_shared_memory(ad.dtype, ad.block_type.shape, ad.layout)
    bar = mbarrier.allocate_mbarrier()
    mbarrier.init(bar, count=1)
    mbarrier.expect(bar, ad.block_type.nbytes)
    tma.async_load(ad, [gl.program_id(0) * M, 0], bar, sm)
    mbarrier.wait(bar, 0)
    mbarrier.invalidate(bar)
    tma.async_store(bd, [gl.program_id(0) * M, 0], sm)
    tma.store_wait(0)


@gluon.jit
def g_wgmma(ad, bd, cd, K, BM: gl.constexpr, BN: gl.constexpr, BK: gl.constexpr, S: gl.constexpr):
    sa = gl.allocate_shared_memory(gl.float16, [S, BM, BK], ad.layout)
    sb = gl.allocate_shared_memory(gl.float16, [S, BK, BN], bd.layout)
    bars = mbarrier.allocate_mbarrier(batch=S)
    for i in gl.static_range(S):
        mbarrier.init(bars.index(i), count=1)
    om = gl.program_id(0) * BM
    on = gl.program_id(1) * BN
    ML: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BN, 16])
    acc = warpgroup_mma_init(gl.zeros((BM, BN), gl.float32, ML))
    for k in range(0, K, BK):
        it = k // BK
        s = it % S
        b = bars.index(s)
        mbarrier.expect(b, ad.block_type.nbytes + bd.block_type.nbytes)
        tma.async_load(ad, [om, k], b, sa.index(s))
        tma.async_load(bd, [k, on], b, sb.index(s))
        mbarrier.wait(b, (it // S) & 1)
        acc = warpgroup_mma_wait(num_outstanding=0, deps=(acc,))
        acc = warpgroup_mma(sa.index(s), sb.index(s), acc, is_async=True)
    acc = warpgroup_mma_wait(num_outstanding=0, deps=(acc,))
    cs = gl.allocate_shared_memory(gl.float16, [BM, BN], cd.layout)
    cs.store(acc.to(gl.float16))
    fence_async_shared()
    tma.async_store(cd, [om, on], cs)
    tma.store_wait(0)


@gluon.jit
def g_tcgen05(ad, bd, cd, K, BM: gl.constexpr, BN: gl.constexpr, BK: gl.constexpr):
    sa = gl.allocate_shared_memory(gl.float16, [BM, BK], ad.layout)
    sb = gl.allocate_shared_memory(gl.float16, [BK, BN], bd.layout)
    tb = mbarrier.allocate_mbarrier()
    mb = mbarrier.allocate_mbarrier()
    mbarrier.init(tb, count=1)
    mbarrier.init(mb, count=1)
    tl_: gl.constexpr = TensorMemoryLayout([BM, BN], col_stride=1)
    acc = allocate_tensor_memory(gl.float32, [BM, BN], tl_)
    om = gl.program_id(0) * BM
    on = gl.program_id(1) * BN
    use = False
    ph = 0
    for k in range(0, K, BK):
        mbarrier.expect(tb, ad.block_type.nbytes + bd.block_type.nbytes)
        tma.async_load(ad, [om, k], tb, sa)
        tma.async_load(bd, [k, on], tb, sb)
        mbarrier.wait(tb, ph)
        tcgen05_mma(sa, sb, acc, use_acc=use)
        tcgen05_commit(mb)
        mbarrier.wait(mb, ph)
        use = True
        ph ^= 1
    r = acc.load()
    cs = gl.allocate_shared_memory(gl.float16, [BM, BN], cd.layout)
    cs.store(r.to(gl.float16))
    fence_async_shared()
    tma.async_store(cd, [om, on], cs)
    tma.store_wait(0)


@gluon.jit
def _prod(ad, bd, sa, sb, rd, em, om, on, K, BK: gl.constexpr, S: gl.constexpr):
    for k in range(0, K, BK):
        it = k // BK
        s = it % S
        mbarrier.wait(em.index(s), ((it // S) & 1) ^ 1)
        mbarrier.expect(rd.index(s), ad.block_type.nbytes + bd.block_type.nbytes)
        tma.async_load(ad, [om, k], rd.index(s), sa.index(s))
        tma.async_load(bd, [k, on], rd.index(s), sb.index(s))


@gluon.jit
def _cons90(cd, sa, sb, rd, em, om, on, K, BM: gl.constexpr, BN: gl.constexpr, BK: gl.constexpr, S: gl.constexpr):
    ML: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BN, 16])
    acc = gl.zeros((BM, BN), gl.float32, ML)
    for k in range(0, K, BK):
        it = k // BK
        s = it % S
        mbarrier.wait(rd.index(s), (it // S) & 1)
        acc = warpgroup_mma(sa.index(s), sb.index(s), acc)
        mbarrier.arrive(em.index(s))
    cs = gl.allocate_shared_memory(gl.float16, [BM, BN], cd.layout)
    cs.store(acc.to(gl.float16))
    fence_async_shared()
    tma.async_store(cd, [om, on], cs)
    tma.store_wait(0)


@gluon.jit
def g_ws90(ad, bd, cd, K, BM: gl.constexpr, BN: gl.constexpr, BK: gl.constexpr, S: gl.constexpr):
    sa = gl.allocate_shared_memory(gl.float16, [S, BM, BK], ad.layout)
    sb = gl.allocate_shared_memory(gl.float16, [S, BK, BN], bd.layout)
    rd = mbarrier.allocate_mbarrier(batch=S)
    em = mbarrier.allocate_mbarrier(batch=S)
    for i in gl.static_range(S):
        mbarrier.init(rd.index(i), count=1)
        mbarrier.init(em.index(i), count=1)
    om = gl.program_id(0) * BM
    on = gl.program_id(1) * BN
    gl.warp_specialize(
        [
            (_cons90, (cd, sa, sb, rd, em, om, on, K, BM, BN, BK, S)),
            (_prod, (ad, bd, sa, sb, rd, em, om, on, K, BK, S)),
        ],
        [1],
        [24],
    )


@gluon.jit
def _mma100(sa, sb, rd, em, acc, done, K, BK: gl.constexpr, S: gl.constexpr):
    use = False
    for k in range(0, K, BK):
        it = k // BK
        s = it % S
        mbarrier.wait(rd.index(s), (it // S) & 1)
        tcgen05_mma(sa.index(s), sb.index(s), acc, use_acc=use, mbarriers=[em.index(s)])
        use = True
    tcgen05_commit(done)


@gluon.jit
def _epi100(cd, acc, done, om, on, BM: gl.constexpr, BN: gl.constexpr):
    mbarrier.wait(done, 0)
    r = acc.load()
    cs = gl.allocate_shared_memory(gl.float16, [BM, BN], cd.layout)
    cs.store(r.to(gl.float16))
    fence_async_shared()
    tma.async_store(cd, [om, on], cs)
    tma.store_wait(0)


@gluon.jit
def g_ws100(ad, bd, cd, K, BM: gl.constexpr, BN: gl.constexpr, BK: gl.constexpr, S: gl.constexpr):
    sa = gl.allocate_shared_memory(gl.float16, [S, BM, BK], ad.layout)
    sb = gl.allocate_shared_memory(gl.float16, [S, BK, BN], bd.layout)
    rd = mbarrier.allocate_mbarrier(batch=S)
    em = mbarrier.allocate_mbarrier(batch=S)
    done = mbarrier.allocate_mbarrier()
    for i in gl.static_range(S):
        mbarrier.init(rd.index(i), count=1)
        mbarrier.init(em.index(i), count=1)
    mbarrier.init(done, count=1)
    acc = allocate_tensor_memory(gl.float32, [BM, BN], TensorMemoryLayout([BM, BN], col_stride=1))
    om = gl.program_id(0) * BM
    on = gl.program_id(1) * BN
    gl.warp_specialize(
        [
            (_epi100, (cd, acc, done, om, on, BM, BN)),
            (_prod, (ad, bd, sa, sb, rd, em, om, on, K, BK, S)),
            (_mma100, (sa, sb, rd, em, acc, done, K, BK, S)),
        ],
        [1, 1],
        [24, 24],
    )


@gluon.jit
def g_tmem_rt(x, y, BM: gl.constexpr, BN: gl.constexpr):
    L: gl.constexpr = gl.BlockedLayout([1, 4], [1, 32], [4, 1], [1, 0])
    m = gl.arange(0, BM, layout=gl.SliceLayout(1, L))
    n = gl.arange(0, BN, layout=gl.SliceLayout(0, L))
    v = gl.load(x + m[:, None] * BN + n[None, :])
    t = allocate_tensor_memory(gl.float32, [BM, BN], TensorMemoryLayout([BM, BN], col_stride=1))
    t.store(gl.convert_layout(v, t.get_reg_layout()))
    gl.store(y + m[:, None] * BN + n[None, :], gl.convert_layout(t.load(), L))


@gluon.jit
def g_packed(x, y, X: gl.constexpr):
    L: gl.constexpr = gl.BlockedLayout([4], [32], [4], [0])
    i = gl.arange(0, X, layout=L)
    v = gl.load(x + i)
    gl.store(y + i, blackwell.fma2(v, v, v))


@gluon.jit
def g_cluster(x, y, X: gl.constexpr):
    L: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0], cga_layout=[[1]])
    i = gl.arange(0, X, layout=L)
    v = gl.load(x + i)
    s = gl.sum(v, 0)
    hopper.cluster.barrier()
    gl.store(y + i, v / s)


# Takes over the work of CTAs that were not launched yet: those never start.
@gluon.jit
def g_clc(x, y, X: gl.constexpr):
    L: gl.constexpr = gl.BlockedLayout([4], [32], [4], [0])
    answer = gl.allocate_shared_memory(gl.int64, [2], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    bar = mbarrier.allocate_mbarrier()
    mbarrier.init(bar, count=1)
    phase = 0
    tile = gl.program_id(0)
    i = gl.arange(0, X, layout=L)
    more = True
    while more:
        mbarrier.expect(bar, 16)
        clc.try_cancel(answer, bar)
        gl.store(y + tile * X + i, gl.load(x + tile * X + i) * 2.0)
        mbarrier.wait(bar, phase)
        phase ^= 1
        result = clc.load_result(answer)
        more = result.is_canceled()
        tile = result.program_id(0)
    mbarrier.invalidate(bar)


SWIZZLED = gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=2)


def descriptor(rows, columns):
    """Signature type of a host tensor descriptor of fp16 with a 128-byte swizzled block."""
    return f"tensordesc<fp16[{rows},{columns}],{SWIZZLED!r}>"


HOPPER_GEMM = (descriptor(64, 64), descriptor(64, 128), descriptor(64, 128), "i32")
BLACKWELL_GEMM = (descriptor(128, 64), descriptor(64, 128), descriptor(128, 128), "i32")
LINEAR = gl.BlockedLayout([4], [32], [4], [0])

CASES = (
    Case("g_memcpy", g_memcpy, ("*fp32", "*fp32", "i32"), {"X": 1024, "L": LINEAR}),
    Case("g_async_copy", g_async_copy, ("*fp32", "*fp32", "i32", "i32"), {"X": 512, "S": 3}),
    Case("g_cp_mbarrier", g_cp_mbar, ("*fp32", "*fp32"), {"X": 512}),
    Case("g_mma_v2", g_mma_v2, ("*fp16", "*fp16", "*fp32"), {"BM": 64, "BN": 64, "BK": 64}, archs=(80, 90)),
    Case("g_tma_copy", g_tma_copy, (descriptor(64, 64),) * 2, {"M": 64, "N": 64}, archs=HOPPER_UP),
    Case("g_wgmma", g_wgmma, HOPPER_GEMM, {"BM": 64, "BN": 128, "BK": 64, "S": 2}, archs=HOPPER),
    Case("g_tcgen05", g_tcgen05, BLACKWELL_GEMM, {"BM": 128, "BN": 128, "BK": 64}, archs=BLACKWELL),
    Case("g_warp_specialize_wgmma", g_ws90, HOPPER_GEMM, {"BM": 64, "BN": 128, "BK": 64, "S": 3}, archs=HOPPER),
    Case(
        "g_warp_specialize_tcgen05", g_ws100, BLACKWELL_GEMM, {"BM": 128, "BN": 128, "BK": 64, "S": 3}, archs=BLACKWELL
    ),
    Case("g_tmem_roundtrip", g_tmem_rt, ("*fp32", "*fp32"), {"BM": 128, "BN": 64}, archs=BLACKWELL),
    Case("g_clc", g_clc, ("*fp32", "*fp32"), {"X": 512}, archs=BLACKWELL),
    Case("g_packed_f32x2", g_packed, ("*fp32", "*fp32"), {"X": 512}, archs=BLACKWELL),
    Case("g_cluster_2cta", g_cluster, ("*fp32", "*fp32"), {"X": 512}, {"num_ctas": 2}, HOPPER_UP),
)

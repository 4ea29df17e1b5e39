"""Hopper kernels with one fault each, and without it as an argument says: what pairs of advice_pairs.py launch."""

from __future__ import annotations

import torch
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_init,
    warpgroup_mma_wait,
)

from kernels.matmuls import matmul
from kernels.workloads import hopper


def attention(buffers: int, *, split: bool = False, ahead: bool = False, steps: int = 1024) -> None:
    """A block of queries of a warp-specialised flash attention.

    `split`: keys and values have barriers of their own. `ahead`: and scores are computed a tile ahead.
    """
    workload = hopper.attention_ws(1, steps)
    arguments = workload.arguments()
    passed = {name: value for name, value in arguments.items() if not name.startswith("_")}
    constants = {**workload.case.constexprs, "S": buffers}
    if not (split or ahead):
        workload.case.kernel[(1, 1)](**passed, **constants)
        return
    split_attention[(1, 1)](**passed, **constants, AHEAD=ahead)
    expected = workload.reference(workload.arguments())
    found = arguments["_od"][:64].double()
    torch.testing.assert_close(found, expected["_od"][:64], rtol=2e-3, atol=2e-3)


def ws_gemm(buffers: int, *, k: int = 1024) -> None:
    """One tile of the warp-specialised product."""
    case = next(w.case for w in hopper.WORKLOADS if w.case.name == "g_warp_specialize_wgmma")
    arguments = hopper.gemm(64, 128, k, "K")(torch.Generator().manual_seed(0))
    passed = {name: value for name, value in arguments.items() if not name.startswith("_")}
    case.kernel[(1, 1)](**passed, **{**case.constexprs, "S": buffers})


@gluon.jit
def _split_load(
    qd, kd, vd, sq, sk, sv, q_ready, k_ready, k_empty, v_ready, v_empty, T, BM: gl.constexpr, BN: gl.constexpr
):
    S: gl.constexpr = sk.type.shape[0]
    first = gl.program_id(1) * T
    mbarrier.expect(q_ready, qd.block_type.nbytes)
    tma.async_load(qd, [first + gl.program_id(0) * BM, 0], q_ready, sq)
    for n in range(0, T, BN):
        step = n // BN
        s = step % S
        mbarrier.wait(k_empty.index(s), ((step // S) & 1) ^ 1)
        mbarrier.expect(k_ready.index(s), kd.block_type.nbytes)
        tma.async_load(kd, [first + n, 0], k_ready.index(s), sk.index(s))
        mbarrier.wait(v_empty.index(s), ((step // S) & 1) ^ 1)
        mbarrier.expect(v_ready.index(s), vd.block_type.nbytes)
        tma.async_load(vd, [first + n, 0], v_ready.index(s), sv.index(s))


@gluon.jit
def _split_multiply(
    od, sq, sk, sv, so, q_ready, k_ready, k_empty, v_ready, v_empty, scale, T, BM: gl.constexpr, BN: gl.constexpr
):  # fmt: skip
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
        mbarrier.wait(k_ready.index(s), (step // S) & 1)
        x = warpgroup_mma(sq, sk.index(s).permute((1, 0)), gl.zeros([BM, BN], gl.float32, SL), use_acc=False)
        mbarrier.arrive(k_empty.index(s))
        mn = gl.maximum(m_i, gl.max(x, 1) * scale)
        p = gl.exp2(x * scale - mn[:, None])
        alpha = gl.exp2(m_i - mn)
        l_i = l_i * alpha + gl.sum(p, 1)
        acc = acc * gl.convert_layout(alpha, gl.SliceLayout(1, OL))[:, None]
        mbarrier.wait(v_ready.index(s), (step // S) & 1)
        acc = warpgroup_mma(gl.convert_layout(p.to(gl.float16), PL), sv.index(s), acc)
        mbarrier.arrive(v_empty.index(s))
        m_i = mn
    acc = acc / gl.convert_layout(l_i, gl.SliceLayout(1, OL))[:, None]
    so.store(acc.to(gl.float16))
    fence_async_shared()
    tma.async_store(od, [gl.program_id(1) * T + gl.program_id(0) * BM, 0], so)
    tma.store_wait(0)


@gluon.jit
def _softmax(x, m_i, l_i, acc, scale):
    """Weights of a tile of scores, and what was added up so far, rescaled."""
    D: gl.constexpr = acc.shape[1]
    OL: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, D, 16])
    mn = gl.maximum(m_i, gl.max(x, 1) * scale)
    p = gl.exp2(x * scale - mn[:, None])
    alpha = gl.exp2(m_i - mn)
    l_i = l_i * alpha + gl.sum(p, 1)
    acc = acc * gl.convert_layout(alpha, gl.SliceLayout(1, OL))[:, None]
    return gl.convert_layout(p.to(gl.float16), gl.DotOperandLayout(0, OL, 2)), mn, l_i, acc


@gluon.jit
def _multiply_ahead(
    od, sq, sk, sv, so, q_ready, k_ready, k_empty, v_ready, v_empty, scale, T, BM: gl.constexpr, BN: gl.constexpr
):  # fmt: skip
    """The scores of a tile are under way while the softmax of the tile before runs."""
    S: gl.constexpr = sk.type.shape[0]
    D: gl.constexpr = sq.type.shape[1]
    SL: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BN, 16])
    OL: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, D, 16])
    m_i = gl.full([BM], -float("inf"), gl.float32, gl.SliceLayout(1, SL))
    l_i = gl.zeros([BM], gl.float32, gl.SliceLayout(1, SL))
    acc = gl.zeros([BM, D], gl.float32, OL)
    mbarrier.wait(q_ready, 0)
    mbarrier.wait(k_ready.index(0), 0)
    x = warpgroup_mma(sq, sk.index(0).permute((1, 0)), gl.zeros([BM, BN], gl.float32, SL), use_acc=False)
    mbarrier.arrive(k_empty.index(0))
    for n in range(BN, T, BN):
        step = n // BN
        s = step % S
        before = (step - 1) % S
        mbarrier.wait(k_ready.index(s), (step // S) & 1)
        ahead = warpgroup_mma(
            sq, sk.index(s).permute((1, 0)), gl.zeros([BM, BN], gl.float32, SL), use_acc=False, is_async=True
        )
        p, m_i, l_i, acc = _softmax(x, m_i, l_i, acc, scale)
        mbarrier.wait(v_ready.index(before), ((step - 1) // S) & 1)
        x = warpgroup_mma_wait(num_outstanding=0, deps=(ahead,))
        mbarrier.arrive(k_empty.index(s))
        acc = warpgroup_mma(p, sv.index(before), acc)
        mbarrier.arrive(v_empty.index(before))
    last = (T - 1) // BN
    p, m_i, l_i, acc = _softmax(x, m_i, l_i, acc, scale)
    mbarrier.wait(v_ready.index(last % S), (last // S) & 1)
    acc = warpgroup_mma(p, sv.index(last % S), acc)
    acc = acc / gl.convert_layout(l_i, gl.SliceLayout(1, OL))[:, None]
    so.store(acc.to(gl.float16))
    fence_async_shared()
    tma.async_store(od, [gl.program_id(1) * T + gl.program_id(0) * BM, 0], so)
    tma.store_wait(0)


@gluon.jit
def split_attention(
    qd, kd, vd, od, scale, T, BM: gl.constexpr, BN: gl.constexpr, D: gl.constexpr, S: gl.constexpr, AHEAD: gl.constexpr
):
    sq = gl.allocate_shared_memory(gl.float16, [BM, D], qd.layout)
    sk = gl.allocate_shared_memory(gl.float16, [S, BN, D], kd.layout)
    sv = gl.allocate_shared_memory(gl.float16, [S, BN, D], vd.layout)
    so = gl.allocate_shared_memory(gl.float16, [BM, D], od.layout)
    q_ready = mbarrier.allocate_mbarrier()
    k_ready = mbarrier.allocate_mbarrier(batch=S)
    k_empty = mbarrier.allocate_mbarrier(batch=S)
    v_ready = mbarrier.allocate_mbarrier(batch=S)
    v_empty = mbarrier.allocate_mbarrier(batch=S)
    mbarrier.init(q_ready, count=1)
    for i in gl.static_range(S):
        mbarrier.init(k_ready.index(i), count=1)
        mbarrier.init(k_empty.index(i), count=1)
        mbarrier.init(v_ready.index(i), count=1)
        mbarrier.init(v_empty.index(i), count=1)
    gl.warp_specialize(
        [
            (
                _multiply_ahead if AHEAD else _split_multiply,
                (od, sq, sk, sv, so, q_ready, k_ready, k_empty, v_ready, v_empty, scale, T, BM, BN),
            ),
            (_split_load, (qd, kd, vd, sq, sk, sv, q_ready, k_ready, k_empty, v_ready, v_empty, T, BM, BN)),
        ],
        [1],
        [24],
    )


@gluon.jit
def _produce(ad, bd, sa, sb, ready, empty, row, column, K, BK: gl.constexpr):
    S: gl.constexpr = sa.type.shape[0]
    for k in range(0, K, BK):
        step = k // BK
        s = step % S
        mbarrier.wait(empty.index(s), ((step // S) & 1) ^ 1)
        mbarrier.expect(ready.index(s), ad.block_type.nbytes + bd.block_type.nbytes)
        tma.async_load(ad, [row, k], ready.index(s), sa.index(s))
        tma.async_load(bd, [k, column], ready.index(s), sb.index(s))


@gluon.jit
def _consume(cd, sa, sb, ready, empty, row, column, K, BM: gl.constexpr, BN: gl.constexpr, BK: gl.constexpr):
    S: gl.constexpr = sa.type.shape[0]
    ML: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BN, 16])
    acc = warpgroup_mma_init(gl.zeros((BM, BN), gl.float32, ML))
    for k in range(0, K, BK):
        step = k // BK
        s = step % S
        mbarrier.wait(ready.index(s), (step // S) & 1)
        acc = warpgroup_mma_wait(num_outstanding=0, deps=(acc,))
        mbarrier.arrive(empty.index((step + S - 1) % S), pred=step > 0)
        acc = warpgroup_mma(sa.index(s), sb.index(s), acc, is_async=True)
    acc = warpgroup_mma_wait(num_outstanding=0, deps=(acc,))
    cs = gl.allocate_shared_memory(gl.float16, [BM, BN], cd.layout)
    cs.store(acc.to(gl.float16))
    fence_async_shared()
    tma.async_store(cd, [row, column], cs)
    tma.store_wait(0)


@gluon.jit
def produced(ad, bd, cd, K, BM: gl.constexpr, BN: gl.constexpr, BK: gl.constexpr, S: gl.constexpr):
    """A product whose tiles a producer warp copies, with one product under way."""
    sa = gl.allocate_shared_memory(gl.float16, [S, BM, BK], ad.layout)
    sb = gl.allocate_shared_memory(gl.float16, [S, BK, BN], bd.layout)
    ready = mbarrier.allocate_mbarrier(batch=S)
    empty = mbarrier.allocate_mbarrier(batch=S)
    for i in gl.static_range(S):
        mbarrier.init(ready.index(i), count=1)
        mbarrier.init(empty.index(i), count=1)
    row = gl.program_id(0) * BM
    column = gl.program_id(1) * BN
    gl.warp_specialize(
        [
            (_consume, (cd, sa, sb, ready, empty, row, column, K, BM, BN, BK)),
            (_produce, (ad, bd, sa, sb, ready, empty, row, column, K, BK)),
        ],
        [1],
        [24],
    )


def copied(specialised: bool, *, stages: int = 4, k: int = 4096) -> None:
    """A tile of a product of matrices in rows, copied by the warps that multiply (Triton) or by a producer warp."""
    arguments = hopper.gemm(64, 128, k, "K")(torch.Generator().manual_seed(0))
    expected = hopper.gemm_result(arguments)["_cd"]
    if specialised:
        passed = {name: value for name, value in arguments.items() if not name.startswith("_")}
        produced[(1, 1)](**passed, BM=64, BN=128, BK=64, S=stages)
    else:
        a, b, c = (arguments[name] for name in ("_ad", "_bd", "_cd"))
        matmul[(1,)](
            a, b, c, 64, 128, k, k, 1, 128, 1, 128, 1, BM=64, BN=128, BK=64, G=8, P="tf32", AT=tl.float32,
            num_warps=4, num_stages=stages,
        )  # fmt: skip
    torch.testing.assert_close(arguments["_cd"].double(), expected, rtol=2e-3, atol=2e-3 * k**0.5)

"""Matrix products: tiled, persistent, grouped, quantised, scaled; every operand type that mma.sync knows."""

from __future__ import annotations

import triton
import triton.language as tl

from kernels.registry import ALL, HOPPER_UP, Case


@triton.jit
def matmul(
    A,
    B,
    C,
    M,
    N,
    K,
    sam,
    sak,
    sbk,
    sbn,
    scm,
    scn,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    G: tl.constexpr,
    P: tl.constexpr,
    AT: tl.constexpr,
):
    pid = tl.program_id(0)
    npm = tl.cdiv(M, BM)
    npn = tl.cdiv(N, BN)
    w = G * npn
    g = pid // w
    f = g * G
    sz = min(npm - f, G)
    pm = f + ((pid % w) % sz)
    pn = (pid % w) // sz
    om = (pm * BM + tl.arange(0, BM)) % M
    on = (pn * BN + tl.arange(0, BN)) % N
    ok = tl.arange(0, BK)
    a = A + om[:, None] * sam + ok[None, :] * sak
    b = B + ok[:, None] * sbk + on[None, :] * sbn
    acc = tl.zeros((BM, BN), AT)
    for k in range(0, tl.cdiv(K, BK)):
        x = tl.load(a, mask=ok[None, :] < K - k * BK, other=0.0)
        y = tl.load(b, mask=ok[:, None] < K - k * BK, other=0.0)
        acc = tl.dot(x, y, acc, input_precision=P, out_dtype=AT)
        a += BK * sak
        b += BK * sbk
    cm = pm * BM + tl.arange(0, BM)
    cn = pn * BN + tl.arange(0, BN)
    tl.store(
        C + scm * cm[:, None] + scn * cn[None, :],
        acc.to(C.dtype.element_ty),
        mask=(cm[:, None] < M) & (cn[None, :] < N),
    )


@triton.jit
def matmul_tma(
    A,
    B,
    C,
    M,
    N,
    K,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    NS: tl.constexpr,
    WS: tl.constexpr,
    FL: tl.constexpr,
):
    da = tl.make_tensor_descriptor(A, [M, K], [K, 1], [BM, BK])
    db = tl.make_tensor_descriptor(B, [N, K], [K, 1], [BN, BK])
    dc = tl.make_tensor_descriptor(C, [M, N], [N, 1], [BM, BN])
    npm = tl.cdiv(M, BM)
    npn = tl.cdiv(N, BN)
    kt = tl.cdiv(K, BK)
    for t in tl.range(tl.program_id(0), npm * npn, NS, flatten=FL, warp_specialize=WS):
        pm = t % npm
        pn = t // npm
        acc = tl.zeros((BM, BN), tl.float32)
        for k in range(kt):
            acc = tl.dot(da.load([pm * BM, k * BK]), db.load([pn * BN, k * BK]).T, acc)
        dc.store([pm * BM, pn * BN], acc.to(C.dtype.element_ty))


@triton.jit
def matmul_ws_inner(da, db, dc, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pm = tl.program_id(0)
    pn = tl.program_id(1)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in tl.range(0, K, BK, warp_specialize=True):
        acc = tl.dot(da.load([pm * BM, k]), db.load([pn * BN, k]).T, acc)
    dc.store([pm * BM, pn * BN], acc.to(tl.float16))


@triton.jit
def grouped_gemm(pa, pb, pc, sizes, lds, gs, NS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    t = tl.program_id(0)
    last = 0
    for g in range(gs):
        gm = tl.load(sizes + g * 3)
        gn = tl.load(sizes + g * 3 + 1)
        gk = tl.load(sizes + g * 3 + 2)
        nm = tl.cdiv(gm, BM)
        nn = tl.cdiv(gn, BN)
        nt = nm * nn
        while t >= last and t < last + nt:
            lda = tl.load(lds + g * 3)
            ldb = tl.load(lds + g * 3 + 1)
            ldc = tl.load(lds + g * 3 + 2)
            a = tl.load(pa + g).to(tl.pointer_type(tl.float16))
            b = tl.load(pb + g).to(tl.pointer_type(tl.float16))
            c = tl.load(pc + g).to(tl.pointer_type(tl.float16))
            ti = t - last
            tm = ti // nn
            tn = ti % nn
            om = tm * BM + tl.arange(0, BM)
            on = tn * BN + tl.arange(0, BN)
            ok = tl.arange(0, BK)
            ap = a + om[:, None] * lda + ok[None, :]
            bp = b + ok[:, None] * ldb + on[None, :]
            acc = tl.zeros((BM, BN), tl.float32)
            for _ in range(0, tl.cdiv(gk, BK)):
                tl.multiple_of(ap, [16, 16])
                tl.multiple_of(bp, [16, 16])
                acc += tl.dot(tl.load(ap), tl.load(bp))
                ap += BK
                bp += BK * ldb
            tl.store(c + ldc * om[:, None] + on[None, :], acc.to(tl.float16))
            t += NS
        last = last + nt


@triton.jit
def w4a16(A, Bq, S, C, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    om = tl.program_id(0) * BM + tl.arange(0, BM)
    on = tl.program_id(1) * BN + tl.arange(0, BN)
    ok = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    sh = (ok % 8) * 4
    for k in range(0, K, BK):
        a = tl.load(A + om[:, None] * K + (k + ok)[None, :])
        q = tl.load(Bq + ((k + ok) // 8)[:, None] * N + on[None, :])
        w = (((q >> sh[:, None]) & 15) - 8).to(tl.float16) * tl.load(S + (k // 128) * N + on)[None, :]
        acc = tl.dot(a, w.to(tl.float16), acc)
    tl.store(C + om[:, None] * N + on[None, :], acc.to(tl.float16))


@triton.jit
def mxfp8(A, B, C, SA, SB, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    om = tl.program_id(0) * BM + tl.arange(0, BM)
    on = tl.program_id(1) * BN + tl.arange(0, BN)
    ok = tl.arange(0, BK)
    os_ = tl.arange(0, BK // 32)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        a = tl.load(A + om[:, None] * K + (k * BK + ok)[None, :])
        b = tl.load(B + (k * BK + ok)[:, None] * N + on[None, :])
        sa = tl.load(SA + om[:, None] * (K // 32) + (k * (BK // 32) + os_)[None, :])
        sb = tl.load(SB + on[:, None] * (K // 32) + (k * (BK // 32) + os_)[None, :])
        acc = tl.dot_scaled(a, sa, "e5m2", b, sb, "e5m2", acc)
    tl.store(C + om[:, None] * N + on[None, :], acc)


@triton.jit
def matmul_2cta(A, B, C, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    da = tl.make_tensor_descriptor(A, [M, K], [K, 1], [BM, BK])
    db = tl.make_tensor_descriptor(B, [K, N], [N, 1], [BK, BN])
    dc = tl.make_tensor_descriptor(C, [M, N], [N, 1], [BM, BN])
    pm = tl.program_id(0)
    pn = tl.program_id(1)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(da.load([pm * BM, k]), db.load([k, pn * BN]), acc)
    dc.store([pm * BM, pn * BN], acc.to(tl.float16))


def tiled(name, operand, result, *, tile=(128, 128, 64), precision="tf32", accumulator=tl.float32, archs=ALL, options):
    """The `matmul` kernel with row-major operands; `tile` is (BM, BN, BK)."""
    signature = (f"*{operand}", f"*{operand}", f"*{result}", "i32", "i32", "i32", "i32", "1", "i32", "1", "i32", "1")
    block_m, block_n, block_k = tile
    constexprs = {"BM": block_m, "BN": block_n, "BK": block_k, "G": 8, "P": precision, "AT": accumulator}
    return Case(name, matmul, signature, constexprs, options, archs)


W4S3 = {"num_warps": 4, "num_stages": 3}
PERSISTENT = {"BM": 128, "BN": 128, "BK": 64, "NS": 132}
HALF_TILE = "tensordesc<fp16[128,64]>"

CASES = (
    tiled("matmul_fp16", "fp16", "fp16", options={"num_warps": 8, "num_stages": 3}),
    tiled("matmul_bf16", "bf16", "bf16", options={"num_warps": 4, "num_stages": 4}),
    tiled("matmul_tf32", "fp32", "fp32", tile=(128, 128, 32), options=W4S3),
    tiled("matmul_fp32_ieee", "fp32", "fp32", tile=(64, 64, 32), precision="ieee", options=W4S3),
    tiled("matmul_tf32x3", "fp32", "fp32", tile=(64, 64, 32), precision="tf32x3", options=W4S3),
    tiled("matmul_fp8e4", "fp8e4nv", "fp16", archs=HOPPER_UP, options=W4S3),
    tiled("matmul_fp8e5", "fp8e5", "fp16", options=W4S3),
    tiled("matmul_int8", "i8", "i32", precision=None, accumulator=tl.int32, options=W4S3),
    tiled("matmul_fp16_small", "fp16", "fp16", tile=(16, 64, 64), options={"num_warps": 2, "num_stages": 3}),
    tiled("matmul_fp64", "fp64", "fp64", tile=(32, 32, 16), precision=None, accumulator=tl.float64, options=W4S3),
    tiled("matmul_fp16acc16", "fp16", "fp16", accumulator=tl.float16, options=W4S3),
    Case(
        "matmul_persistent_tma",
        matmul_tma,
        ("*fp16",) * 3 + ("i32",) * 3,
        PERSISTENT | {"WS": False, "FL": False},
        {"num_warps": 8},
    ),
    Case(
        "matmul_persistent_tma_ws",
        matmul_tma,
        ("*fp16",) * 3 + ("i32",) * 3,
        PERSISTENT | {"WS": True, "FL": True},
        {"num_warps": 4},
        HOPPER_UP,
    ),
    Case(
        "matmul_hostdesc_ws",
        matmul_ws_inner,
        (HALF_TILE, HALF_TILE, "tensordesc<fp16[128,128]>", "i32"),
        {"BM": 128, "BN": 128, "BK": 64},
        {"num_warps": 4},
        HOPPER_UP,
    ),
    Case(
        "grouped_gemm",
        grouped_gemm,
        ("*i64",) * 3 + ("*i32", "*i32", "i32"),
        {"NS": 108, "BM": 128, "BN": 128, "BK": 32},
    ),
    Case("w4a16_gemm", w4a16, ("*fp16", "*i32", "*fp16", "*fp16", "i32", "i32", "i32"), {"BM": 64, "BN": 64, "BK": 64}),
    Case(
        "dot_scaled_mxfp8",
        mxfp8,
        ("*fp8e5", "*fp8e5", "*fp32", "*u8", "*u8", "i32", "i32", "i32"),
        {"BM": 128, "BN": 128, "BK": 128},
        {"num_warps": 4, "num_stages": 2},
    ),
    Case(
        "matmul_2cta",
        matmul_2cta,
        ("*fp16",) * 3 + ("i32",) * 3,
        {"BM": 256, "BN": 128, "BK": 64},
        {"num_warps": 4, "num_ctas": 2},
        HOPPER_UP,
    ),
)

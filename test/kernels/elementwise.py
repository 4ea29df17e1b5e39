"""Element-wise kernels: arithmetic, transcendental and integer functions, random numbers, quantisation, transpose."""

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra import libdevice

from kernels.registry import HOPPER_UP, Case


@triton.jit
def vadd(x, y, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    tl.store(o + i, tl.load(x + i, mask=m) + tl.load(y + i, mask=m), mask=m)


@triton.jit
def gelu_tanh(x, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    v = tl.load(x + i, mask=m).to(tl.float32)
    u = 0.79788456 * (v + 0.044715 * v * v * v)
    tl.store(o + i, 0.5 * v * (1 + libdevice.tanh(u)), mask=m)


@triton.jit
def mathzoo(x, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    v = tl.load(x + i, mask=m)
    r = tl.exp(v) + tl.log(v) + tl.sin(v) + tl.cos(v) + tl.sqrt(v) + tl.rsqrt(v) + tl.erf(v) + tl.exp2(v) + tl.log2(v)
    r += tl.floor(v) + tl.ceil(v) + tl.abs(v) + tl.sqrt_rn(v) + tl.div_rn(v, 3.0) + tl.fma(v, v, v) + tl.sigmoid(v)
    r += libdevice.pow(v, 1.7) + libdevice.atan(v) + libdevice.expm1(v) + libdevice.log1p(v) + libdevice.rint(v)
    tl.store(o + i, tl.where(r > 0, r, tl.maximum(v, -v)), mask=m)


@triton.jit
def intzoo(x, y, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    a = tl.load(x + i, mask=m, other=1)
    b = tl.load(y + i, mask=m, other=1)
    r = (
        a // b
        + a % b
        + (a << 3)
        + (a >> 2)
        + (a & b)
        + (a ^ b)
        + (a | b)
        + tl.umulhi(a.to(tl.uint32), b.to(tl.uint32)).to(tl.int32)
    )
    r += tl.minimum(a, b) + tl.maximum(a, b) + tl.abs(a) + (a.to(tl.int64) * b.to(tl.int64) >> 32).to(tl.int32) + (~a)
    tl.store(o + i, r, mask=m)


@triton.jit
def fp64axpy(x, y, o, a, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    tl.store(o + i, tl.exp(tl.load(x + i, mask=m)) * a + tl.load(y + i, mask=m), mask=m)


@triton.jit
def rope(q, cos, sin, o, s, D: tl.constexpr):
    r = tl.program_id(0)
    h = tl.program_id(1)
    i = tl.arange(0, D // 2)
    a = tl.load(q + (r * s + h * D) + i).to(tl.float32)
    b = tl.load(q + (r * s + h * D) + i + D // 2).to(tl.float32)
    c = tl.load(cos + r * D + i)
    sn = tl.load(sin + r * D + i)
    tl.store(o + (r * s + h * D) + i, a * c - b * sn)
    tl.store(o + (r * s + h * D) + i + D // 2, b * c + a * sn)


@triton.jit
def dropout(x, o, p, seed, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    v = tl.load(x + i, mask=m)
    keep = tl.rand(seed, i) > p
    tl.store(o + i, tl.where(keep, v / (1 - p), 0.0), mask=m)


@triton.jit
def randn(o, seed, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + i, tl.randn(seed, i), mask=i < n)


@triton.jit
def quant_i8(x, o, s, n, B: tl.constexpr):
    r = tl.program_id(0)
    i = tl.arange(0, B)
    m = i < n
    v = tl.load(x + r * n + i, mask=m, other=0.0).to(tl.float32)
    sc = tl.max(tl.abs(v)) / 127.0
    q = libdevice.round(v / sc)
    tl.store(o + r * n + i, q.to(tl.int8), mask=m)
    tl.store(s + r, sc)


@triton.jit
def quant_fp8(x, o, s, n, B: tl.constexpr):
    r = tl.program_id(0)
    i = tl.arange(0, B)
    m = i < n
    v = tl.load(x + r * n + i, mask=m, other=0.0).to(tl.float32)
    sc = tl.max(tl.abs(v)) / 448.0
    tl.store(o + r * n + i, (v / sc).to(o.dtype.element_ty), mask=m)
    tl.store(s + r, sc)


@triton.jit
def transpose(x, o, M, N, BM: tl.constexpr, BN: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    m = (rm < M)[:, None] & (rn < N)[None, :]
    v = tl.load(x + rm[:, None] * N + rn[None, :], mask=m)
    tl.store(o + rn[:, None] * M + rm[None, :], tl.trans(v), mask=tl.trans(m))


CASES = (
    *(
        Case(f"vadd_{dtype}", vadd, (f"*{dtype}",) * 3 + ("i32",), {"B": 1024})
        for dtype in ("fp32", "fp16", "bf16", "i32", "i8")
    ),
    Case("gelu_tanh_fp16", gelu_tanh, ("*fp16", "*fp16", "i32"), {"B": 1024}),
    Case("mathzoo_fp32", mathzoo, ("*fp32", "*fp32", "i32"), {"B": 256}),
    Case("intzoo_i32", intzoo, ("*i32", "*i32", "*i32", "i32"), {"B": 256}),
    Case("fp64axpy", fp64axpy, ("*fp64", "*fp64", "*fp64", "fp64", "i32"), {"B": 256}),
    Case("rope_bf16", rope, ("*bf16", "*fp32", "*fp32", "*bf16", "i32"), {"D": 128}),
    Case("dropout_philox", dropout, ("*fp32", "*fp32", "fp32", "i32", "i32"), {"B": 1024}),
    Case("randn", randn, ("*fp32", "i32", "i32"), {"B": 1024}),
    Case("quant_int8", quant_i8, ("*bf16", "*i8", "*fp32", "i32"), {"B": 1024}),
    Case("quant_fp8e4", quant_fp8, ("*bf16", "*fp8e4nv", "*fp32", "i32"), {"B": 1024}, archs=HOPPER_UP),
    Case("quant_fp8e5", quant_fp8, ("*bf16", "*fp8e5", "*fp32", "i32"), {"B": 1024}),
    Case("transpose_fp16", transpose, ("*fp16", "*fp16", "i32", "i32"), {"BM": 64, "BN": 64}),
)

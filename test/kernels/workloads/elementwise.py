"""Workloads of kernels/elementwise.py."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch

from kernels.elementwise import CASES
from kernels.workload import Arguments, Results, Workload
from kernels.workloads.tensors import canary, integers, normal

CASE = {case.name: case for case in CASES}
INT = {"vadd_i32": torch.int32, "vadd_i8": torch.int8}
FLOAT = {"vadd_fp32": torch.float32, "vadd_fp16": torch.float16, "vadd_bf16": torch.bfloat16}


def vadd(name: str, count: int, variant: str = "") -> Workload:
    def build(generator: torch.Generator) -> Arguments:
        if name in INT:
            bounds = torch.iinfo(INT[name])
            x, y = (integers(generator, bounds.min, bounds.max, count, dtype=INT[name]) for _ in range(2))
        else:
            x, y = (normal(generator, count, dtype=FLOAT[name]) for _ in range(2))
        return {"x": x, "y": y, "o": canary(count + 64, dtype=x.dtype), "n": count}

    def reference(before: Arguments) -> Results:
        return {"o": torch.cat([before["x"] + before["y"], before["o"][count:]])}

    return Workload(CASE[name], (math.ceil(count / 1024),), build, reference, variant=variant)


def unary(name: str, block: int, values: Callable, function: Callable, tolerance=None) -> Workload:
    def build(generator: torch.Generator) -> Arguments:
        x = values(generator)
        return {"x": x, "o": canary(len(x), dtype=x.dtype), "n": len(x)}

    def reference(before: Arguments) -> Results:
        return {"o": function(before["x"].double())}

    count = len(values(torch.Generator()))
    return Workload(CASE[name], (math.ceil(count / block),), build, reference, tolerance=tolerance)


def gelu(v: torch.Tensor) -> torch.Tensor:
    return 0.5 * v * (1 + torch.tanh(0.79788456 * (v + 0.044715 * v**3)))


def mathzoo_values(generator: torch.Generator) -> torch.Tensor:
    edges = torch.tensor([0.0, -0.0, -1.5, math.inf, -math.inf, math.nan, 0.5, 1.0, 2.5, 1e-40])
    return torch.cat([edges, torch.rand(300, generator=generator) * 4 + 0.01])


def mathzoo(v: torch.Tensor) -> torch.Tensor:
    flushed = torch.where(v.abs() < 2.0**-126, 0.0, v)  # rsqrt.approx.ftz: 1 / sqrt of a denormal is infinite.
    r = v.exp() + v.log() + v.sin() + v.cos() + v.sqrt() + flushed.rsqrt() + torch.erf(v) + v.exp2() + v.log2()
    r = r + v.floor() + v.ceil() + v.abs() + v.sqrt() + v / 3 + (v * v + v) + v.sigmoid()
    r = r + v**1.7 + v.atan() + v.expm1() + v.log1p() + v.round()
    return torch.where(r > 0, r, v.abs())


def intzoo_arguments(generator: torch.Generator) -> Arguments:
    low, high = -(2**31), 2**31
    x = torch.cat([torch.tensor([low, high - 1, 0, -1, 7, -7]), torch.randint(low, high, (494,), generator=generator)])
    y = torch.cat([torch.tensor([3, -3, 5, high - 1, -2, 2]), torch.randint(1, high, (494,), generator=generator)])
    y[100:] >>= torch.arange(400) % 31
    y[200:300] *= -1
    y[y == 0] = 9
    return {"x": x.int(), "y": y.int(), "o": canary(500, dtype=torch.int32), "n": 500}


def intzoo(before: Arguments) -> Results:
    a, b = before["x"].long(), before["y"].long()
    quotient = torch.div(a, b, rounding_mode="trunc")
    unsigned = [before[name].numpy().view(np.uint32).astype(np.uint64) for name in ("x", "y")]
    high = torch.from_numpy((unsigned[0] * unsigned[1] >> np.uint64(32)).astype(np.int64))
    r = quotient + (a - quotient * b) + (a << 3) + (a >> 2) + (a & b) + (a ^ b) + (a | b) + high
    r = r + torch.minimum(a, b) + torch.maximum(a, b) + a.abs() + (a * b >> 32) + ~a
    return {"o": r.int()}


def fp64axpy_arguments(generator: torch.Generator) -> Arguments:
    x, y = (torch.randn(300, generator=generator, dtype=torch.float64) for _ in range(2))
    return {"x": x, "y": y, "o": canary(300, dtype=torch.float64), "a": 1.25, "n": 300}


def rope_arguments(generator: torch.Generator) -> Arguments:
    rows, heads, width = 3, 2, 128
    q = normal(generator, rows, heads * width, dtype=torch.bfloat16)
    angle = torch.rand(rows, width, generator=generator) * 6.28
    return {"q": q, "cos": angle.cos(), "sin": angle.sin(), "o": torch.zeros_like(q), "s": heads * width}


def rope(before: Arguments) -> Results:
    q = before["q"].float().reshape(3, 2, 2, 64)
    c, s = (before[name][:, None, :64] for name in ("cos", "sin"))
    a, b = q[:, :, 0], q[:, :, 1]
    return {"o": torch.stack([a * c - b * s, b * c + a * s], dim=2).reshape(3, 256).bfloat16()}


def philox(seed: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Two of the four words of Philox4x32-10 with counters (0..count, 0, 0, 0)."""
    mask = np.uint64(0xFFFFFFFF)
    c = [np.arange(count, dtype=np.uint64), *(np.zeros(count, np.uint64) for _ in range(3))]
    key = [np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32)]
    for _ in range(10):
        low, high = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(high >> 32) ^ c[1] ^ key[0], high & mask, (low >> 32) ^ c[3] ^ key[1], low & mask]
        key = [(key[0] + np.uint64(0x9E3779B9)) & mask, (key[1] + np.uint64(0xBB67AE85)) & mask]
    return c[0].astype(np.uint32), c[1].astype(np.uint32)


def uniform(words: np.ndarray) -> torch.Tensor:
    signed = words.view(np.int32)
    return torch.from_numpy(np.where(signed < 0, ~signed, signed).astype(np.float32) * np.float32(4.6566127342e-10))


def dropout_arguments(generator: torch.Generator) -> Arguments:
    return {"x": normal(generator, 1500), "o": canary(1500), "p": 0.25, "seed": 1234, "n": 1500}


def dropout(before: Arguments) -> Results:
    keep = uniform(philox(before["seed"], 1500)[0]) > before["p"]
    return {"o": torch.where(keep, before["x"] / (1 - before["p"]), 0.0)}


def randn(before: Arguments) -> Results:
    u1, u2 = (uniform(words).double() for words in philox(before["seed"], 1500))
    return {"o": torch.sqrt(-2 * u1.clamp(min=1e-7).log()) * torch.cos(2 * math.pi * u2)}


def quantised(peak: int, dtype: torch.dtype) -> Callable[[torch.Generator], Arguments]:
    """Rows whose scale is a power of two, so that the quotient is exact and rounding alone decides."""

    def build(generator: torch.Generator) -> Arguments:
        x = normal(generator, 3, 1000)
        x = x / x.abs().amax(1, keepdim=True) * peak
        x[:, 17] = peak
        x = (x.bfloat16() * torch.tensor([0.25, 1.0, 0.0078125])[:, None]).bfloat16()
        return {"x": x, "o": torch.zeros(3, 1000, dtype=dtype), "s": canary(3), "n": 1000}

    return build


def quantise(before: Arguments) -> Results:
    x, integral = before["x"].float(), before["o"].dtype == torch.int8
    scale = x.abs().amax(1) / (127.0 if integral else 448.0)
    q = x / scale[:, None]
    if integral:
        q = torch.trunc(q + torch.copysign(torch.tensor(0.5), q))
    return {"o": q.to(before["o"].dtype), "s": scale}


def transpose(rows: int, columns: int, variant: str = "") -> Workload:
    def build(generator: torch.Generator) -> Arguments:
        x = normal(generator, rows, columns, dtype=torch.float16)
        return {"x": x, "o": canary(columns, rows, dtype=torch.float16), "M": rows, "N": columns}

    grid = (math.ceil(rows / 64), math.ceil(columns / 64))
    return Workload(CASE["transpose_fp16"], grid, build, lambda before: {"o": before["x"].T}, variant=variant)


WORKLOADS = (
    *(vadd(name, 2128) for name in (*FLOAT, *INT)),
    vadd("vadd_fp16", 1003, "odd"),
    vadd("vadd_i8", 17, "tiny"),
    unary("gelu_tanh_fp16", 1024, lambda generator: 3 * normal(generator, 1500, dtype=torch.float16), gelu),
    unary("mathzoo_fp32", 256, mathzoo_values, mathzoo, (1e-5, 1e-5)),
    Workload(CASE["intzoo_i32"], (2,), intzoo_arguments, intzoo),
    Workload(CASE["fp64axpy"], (2,), fp64axpy_arguments, lambda before: {"o": before["x"].exp() * 1.25 + before["y"]}),
    Workload(CASE["rope_bf16"], (3, 2), rope_arguments, rope),
    Workload(CASE["dropout_philox"], (2,), dropout_arguments, dropout),
    Workload(
        CASE["randn"],
        (2,),
        lambda generator: {"o": canary(1500), "seed": 42, "n": 1500},
        randn,
        tolerance=(1e-4, 1e-5),
    ),
    Workload(CASE["quant_int8"], (3,), quantised(127, torch.int8), quantise),
    Workload(CASE["quant_fp8e5"], (3,), quantised(448, torch.float8_e5m2), quantise),
    transpose(100, 72),
    transpose(96, 80, "aligned"),
)

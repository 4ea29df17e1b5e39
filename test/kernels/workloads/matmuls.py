"""Workloads of kernels/matmuls.py."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from kernels.matmuls import CASES
from kernels.workload import Arguments, Results, Workload
from kernels.workloads.tensors import canary, integers, normal

CASE = {case.name: case for case in CASES}
F16, F32, F64, BF16 = torch.float16, torch.float32, torch.float64, torch.bfloat16

Fill = Callable[[torch.Generator, int, int], torch.Tensor]


def tiled(name: str, size: tuple[int, int, int], fill: Fill, result: torch.dtype, **options) -> Workload:
    """The `matmul` kernel; `size` is (M, N, K), row-major operands."""
    m, n, k = size

    def build(generator: torch.Generator) -> Arguments:
        sizes = {"M": m, "N": n, "K": k, "sam": k, "sak": 1, "sbk": n, "sbn": 1, "scm": n, "scn": 1}
        return {"A": fill(generator, m, k), "B": fill(generator, k, n), "C": canary(m, n, dtype=result)} | sizes

    case = CASE[name]
    programs = math.ceil(m / case.constexprs["BM"]) * math.ceil(n / case.constexprs["BN"])
    return Workload(case, (programs,), build, lambda before: {"C": product(before["A"], before["B"])}, **options)


def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a.double() @ b.double()


def of(dtype: torch.dtype, scale: float = 1.0) -> Fill:
    return lambda generator, rows, columns: (scale * normal(generator, rows, columns)).to(dtype)


def tf32_exact(generator: torch.Generator, rows: int, columns: int) -> torch.Tensor:
    """Values with a mantissa of ten bits, which TF32 holds without rounding."""
    return normal(generator, rows, columns, dtype=F16).float()


def int8(generator: torch.Generator, rows: int, columns: int) -> torch.Tensor:
    return integers(generator, -128, 128, rows, columns, dtype=torch.int8)


def persistent_arguments(generator: torch.Generator) -> Arguments:
    m, n, k = 200, 208, 144
    a, b = normal(generator, m, k, dtype=F16), normal(generator, n, k, dtype=F16)
    return {"A": a, "B": b, "C": canary(m, n, dtype=F16), "M": m, "N": n, "K": k}


GROUPS = ((128, 128, 64), (256, 128, 96), (128, 256, 32))


def grouped_arguments(generator: torch.Generator) -> Arguments:
    operands = {}
    for index, (m, n, k) in enumerate(GROUPS):
        operands[f"_a{index}"] = normal(generator, m, k, dtype=F16)
        operands[f"_b{index}"] = normal(generator, k, n, dtype=F16)
        operands[f"_c{index}"] = canary(m, n, dtype=F16)
    addresses = {
        parameter: torch.tensor([operands[f"_{letter}{index}"].data_ptr() for index in range(len(GROUPS))])
        for parameter, letter in (("pa", "a"), ("pb", "b"), ("pc", "c"))
    }
    sizes = torch.tensor(GROUPS, dtype=torch.int32)
    strides = torch.tensor([(k, n, n) for _, n, k in GROUPS], dtype=torch.int32)
    return operands | addresses | {"sizes": sizes, "lds": strides, "gs": len(GROUPS)}


def grouped(before: Arguments) -> Results:
    return {f"_c{index}": product(before[f"_a{index}"], before[f"_b{index}"]) for index in range(len(GROUPS))}


def w4a16_arguments(generator: torch.Generator) -> Arguments:
    m, n, k = 64, 128, 192
    packed = integers(generator, -(2**31), 2**31, k // 8, n)
    scales = (torch.rand(2, n, generator=generator) * 0.1).to(F16)
    return {"A": normal(generator, m, k, dtype=F16), "Bq": packed, "S": scales, "C": canary(m, n, dtype=F16)} | {
        "M": m,
        "N": n,
        "K": k,
    }


def w4a16(before: Arguments) -> Results:
    row = torch.arange(192)
    nibble = (before["Bq"][row // 8] >> (row % 8 * 4)[:, None]) & 15
    weight = (nibble - 8).to(F16) * before["S"][row // 128]
    return {"C": product(before["A"], weight)}


def scaled_arguments(generator: torch.Generator) -> Arguments:
    m, n, k = 128, 128, 256
    a, b = normal(generator, m, k, dtype=torch.float8_e5m2), normal(generator, k, n, dtype=torch.float8_e5m2)
    scales = {
        name: integers(generator, 120, 132, rows, k // 32, dtype=torch.uint8) for name, rows in (("SA", m), ("SB", n))
    }
    return {"A": a, "B": b, "C": canary(m, n), "M": m, "N": n, "K": k} | scales


def scaled(before: Arguments) -> Results:
    scale_a, scale_b = ((2.0 ** (before[name].double() - 127)).repeat_interleave(32, dim=1) for name in ("SA", "SB"))
    return {"C": (before["A"].double() * scale_a) @ (before["B"].double() * scale_b.T)}


SMALL = (200, 208, 144)
WORKLOADS = (
    tiled("matmul_fp16", SMALL, of(F16), F16, tolerance=(2e-3, 2e-3)),
    tiled("matmul_fp16", (100, 50, 37), of(F16), F16, tolerance=(2e-3, 2e-3), variant="odd"),
    tiled("matmul_bf16", SMALL, of(BF16), BF16, tolerance=(1.6e-2, 2e-3)),
    tiled("matmul_tf32", SMALL, tf32_exact, F32, tolerance=(1e-5, 1e-4)),
    tiled("matmul_tf32", SMALL, of(F32), F32, tolerance=(1e-2, 5e-2), variant="rounded"),
    tiled("matmul_fp32_ieee", (100, 80, 72), of(F32), F32, tolerance=(1e-5, 1e-4)),
    tiled("matmul_tf32x3", (100, 80, 72), of(F32), F32, tolerance=(1e-5, 1e-4)),
    tiled("matmul_fp8e5", SMALL, of(torch.float8_e5m2), F16, tolerance=(2e-3, 2e-3)),
    tiled("matmul_int8", SMALL, int8, torch.int32),
    tiled("matmul_fp16_small", (40, 80, 144), of(F16), F16, tolerance=(2e-3, 2e-3)),
    tiled("matmul_fp64", (40, 48, 40), lambda generator, *shape: normal(generator, *shape, dtype=F64), F64),
    tiled("matmul_fp16acc16", SMALL, of(F16, 0.25), F16, tolerance=(1e-2, 2e-2)),
    Workload(
        CASE["matmul_persistent_tma"],
        (2,),
        persistent_arguments,
        lambda before: {"C": product(before["A"], before["B"].T)},
        constexprs={"NS": 2},
        tolerance=(2e-3, 2e-3),
    ),
    Workload(CASE["grouped_gemm"], (2,), grouped_arguments, grouped, constexprs={"NS": 2}, tolerance=(2e-3, 2e-3)),
    Workload(CASE["w4a16_gemm"], (1, 2), w4a16_arguments, w4a16, tolerance=(2e-3, 2e-3)),
    Workload(CASE["dot_scaled_mxfp8"], (1, 1), scaled_arguments, scaled, tolerance=(1e-5, 2e-2)),
)

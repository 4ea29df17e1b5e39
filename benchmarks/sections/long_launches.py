"""Launches of 20,000 cycles and more, of kernels that users know, to measure accuracy on beside the small ones."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from kernels.cases import CASES, HOPPER_WORKLOADS, WORKLOADS
from kernels.workload import Workload
from kernels.workloads.attention import forward
from kernels.workloads.hopper import attention_ws, gemm
from kernels.workloads.matmuls import int8, of, tf32_exact, tiled
from kernels.workloads.reductions import softmax
from kernels.workloads.tensors import canary, integers, normal

if TYPE_CHECKING:
    from kernels.workload import Arguments

F16, F32, BF16 = torch.float16, torch.float32, torch.bfloat16
LONG = "long"


def tma_arguments(generator: torch.Generator) -> Arguments:
    m, n, k = 512, 256, 1024
    a, b = normal(generator, m, k, dtype=F16), normal(generator, n, k, dtype=F16)
    return {"A": a, "B": b, "C": canary(m, n, dtype=F16), "M": m, "N": n, "K": k}


def grouped_arguments(generator: torch.Generator) -> Arguments:
    groups = ((512, 256, 512), (256, 512, 768), (256, 256, 1024))
    operands = {}
    for index, (m, n, k) in enumerate(groups):
        operands[f"_a{index}"] = normal(generator, m, k, dtype=F16)
        operands[f"_b{index}"] = normal(generator, k, n, dtype=F16)
        operands[f"_c{index}"] = canary(m, n, dtype=F16)
    addresses = {
        parameter: torch.tensor([operands[f"_{letter}{index}"].data_ptr() for index in range(len(groups))])
        for parameter, letter in (("pa", "a"), ("pb", "b"), ("pc", "c"))
    }
    sizes = torch.tensor(groups, dtype=torch.int32)
    strides = torch.tensor([(k, n, n) for _, n, k in groups], dtype=torch.int32)
    return operands | addresses | {"sizes": sizes, "lds": strides, "gs": len(groups)}


def w4a16_arguments(generator: torch.Generator) -> Arguments:
    m, n, k = 64, 128, 2048
    packed = integers(generator, -(2**31), 2**31, k // 8, n)
    scales = (torch.rand(k // 128, n, generator=generator) * 0.1).to(F16)
    tensors = {"A": normal(generator, m, k, dtype=F16), "Bq": packed, "S": scales, "C": canary(m, n, dtype=F16)}
    return tensors | {"M": m, "N": n, "K": k}


def backward_arguments(generator: torch.Generator) -> Arguments:
    heads, length, width = 1, 2048, 64
    q, k, v, do = (normal(generator, heads, length, width, dtype=F16) * 0.5 for _ in range(4))
    gradients = {name: canary(heads, length, width, dtype=F16) for name in ("DK", "DV")}
    rows = {"M": 6 + normal(generator, heads, length), "Dl": 0.1 * normal(generator, heads, length)}
    return {"Q": q, "K": k, "V": v, "DO": do, "sc": 0.125, "T": length} | rows | gradients


def layernorm_arguments(generator: torch.Generator) -> Arguments:
    rows, columns = 4, 32768
    x = normal(generator, rows, columns, dtype=F16)
    weight, bias = (normal(generator, columns, dtype=F16) for _ in range(2))
    outputs = {"Y": canary(rows, columns, dtype=F16), "Mean": canary(rows), "Rstd": canary(rows)}
    return {"X": x, "W": weight, "Bi": bias, "s": columns, "N": columns, "eps": 1e-5} | outputs


def cross_entropy_arguments(generator: torch.Generator) -> Arguments:
    rows, words = 4, 64_000
    logits = 3 * normal(generator, rows, words, dtype=BF16)
    return {"L": logits, "T": torch.arange(rows), "Loss": canary(rows), "s": words, "V": words}


MATMULS = (
    tiled("matmul_fp16", (256, 256, 4096), of(F16), F16, variant=LONG),
    tiled("matmul_tf32", (256, 256, 2048), tf32_exact, F32, variant=LONG),
    tiled("matmul_int8", (256, 256, 4096), int8, torch.int32, variant=LONG),
    replace(WORKLOADS["matmul_persistent_tma"], build=tma_arguments, variant=LONG),
    Workload(CASES["grouped_gemm"], (4,), grouped_arguments, constexprs={"NS": 4}, variant=LONG),
    Workload(CASES["w4a16_gemm"], (1, 2), w4a16_arguments, variant=LONG),
)
OTHERS = (
    forward("fa_fwd_fp16", F16, length=2048, causal=False, variant=LONG),
    forward("fa_fwd_bf16_causal", BF16, length=2048, causal=True, variant=LONG),
    Workload(CASES["fa_bwd_dkdv"], (16, 1), backward_arguments, variant=LONG),
    Workload(CASES["layernorm_fwd"], (4,), layernorm_arguments, variant=LONG),
    softmax("softmax_persistent", 3, (96, 1500, 1504), F32, persistent=True, variant=LONG),
    Workload(CASES["cross_entropy"], (4,), cross_entropy_arguments, variant=LONG),
)
SPECIALISED = (
    replace(HOPPER_WORKLOADS["matmul_persistent_tma_ws"], build=tma_arguments, variant=LONG),
    replace(HOPPER_WORKLOADS["g_persistent_matmul_ws"], build=gemm(512, 256, 1024, "M", "N", "K"), variant=LONG),
    replace(attention_ws(2, 2048), variant=LONG),
)
LONG_LAUNCHES = {
    "a100": (*MATMULS, *OTHERS),
    "h100": (*(each for each in (*MATMULS, *OTHERS) if 90 in each.case.archs), *SPECIALISED),
}

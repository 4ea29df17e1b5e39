"""Workloads of the kernels that need sm_90: tensor descriptors, wgmma, clusters, warp specialisation."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor as GluonDescriptor
from triton.tools.tensor_descriptor import TensorDescriptor

from kernels import attention, elementwise, gluon_kernels, hopper_kernels, language, matmuls
from kernels.gluon_kernels import SWIZZLED
from kernels.workload import Arguments, Results, Workload
from kernels.workloads.elementwise import quantise, quantised
from kernels.workloads.language import EXACT, shifted_sums, sums_arguments
from kernels.workloads.matmuls import SMALL, of, persistent_arguments, product, tiled
from kernels.workloads.tensors import canary, normal

CASE = {
    case.name: case
    for family in (attention, elementwise, gluon_kernels, hopper_kernels, language, matmuls)
    for case in family.CASES
}  # fmt: skip
F16, F32 = torch.float16, torch.float32
FLOAT8 = torch.float8_e4m3fn
HALF = (2e-3, 2e-3)


def described(tensors: dict[str, torch.Tensor], blocks: dict[str, list[int]], *, gluon: bool) -> Arguments:
    """The tensors under `_name`, and a descriptor of each under `name`."""
    arguments: Arguments = {f"_{name}": tensor for name, tensor in tensors.items()}
    for name, tensor in tensors.items():
        arguments[name] = (
            GluonDescriptor.from_tensor(tensor, blocks[name], SWIZZLED)
            if gluon
            else TensorDescriptor.from_tensor(tensor, blocks[name])
        )
    return arguments


def tma_copy(generator: torch.Generator) -> Arguments:
    tensors = {"ad": normal(generator, 100, 48, dtype=F16), "bd": canary(100, 48, dtype=F16)}
    return described(tensors, {"ad": [64, 64], "bd": [64, 64]}, gluon=True)


def gemm(m: int, n: int, k: int, *sizes: str) -> Callable[[torch.Generator], Arguments]:
    """Arguments of the Gluon kernels; `sizes` are those of M, N and K that they take."""

    def build(generator: torch.Generator) -> Arguments:
        a, b = normal(generator, m, k, dtype=F16), normal(generator, k, n, dtype=F16)
        tensors = {"ad": a, "bd": b, "cd": canary(m, n, dtype=F16)}
        blocks = {"ad": [64, 64], "bd": [64, 128], "cd": [64, 128]}
        return described(tensors, blocks, gluon=True) | {
            name: {"M": m, "N": n, "K": k}[name] for name in sizes
        }  # fmt: skip

    return build


def gemm_result(before: Arguments) -> Results:
    return {"_cd": product(before["_ad"], before["_bd"])}


def attention_arguments(gluon: bool, names: str, heads: int, steps: int, blocks: list[int]) -> Callable[..., Arguments]:
    def build(generator: torch.Generator) -> Arguments:
        query, key, value, output = names.split()
        tensors = {name: normal(generator, heads * steps, 64, dtype=F16) for name in (query, key, value)}
        tensors[output] = canary(heads * steps, 64, dtype=F16)
        rows = dict(zip((query, key, value, output), blocks, strict=True))
        return described(tensors, {name: [rows[name], 64] for name in tensors}, gluon=gluon) | {"T": steps}

    return build


def softmax_attention(before: Arguments, names: str, heads: int, scale: float) -> Results:
    query, key, value = (before[f"_{name}"].double().reshape(heads, -1, 64) for name in names.split()[:3])
    weight = torch.softmax(query @ key.transpose(1, 2) * scale * math.log(2), dim=-1)
    return {f"_{names.split()[3]}": (weight @ value).reshape(-1, 64)}


def fa_tma(heads: int, steps: int) -> Workload:
    names, scale = "dq dk dv do", 0.18
    build = attention_arguments(False, names, heads, steps, [128, 64, 64, 128])
    return Workload(
        CASE["fa_tma"], (steps // 128, heads), lambda generator: build(generator) | {"sc": scale},
        lambda before: softmax_attention(before, names, heads, scale), tolerance=HALF,
    )  # fmt: skip


def fa_fp8() -> Workload:
    heads, steps, width = 2, 128, 128

    def build(generator: torch.Generator) -> Arguments:
        q, k, v = (normal(generator, heads, steps, width, dtype=torch.float8_e5m2) for _ in range(3))
        outputs = {"O": canary(heads, steps, width, dtype=torch.float8_e5m2), "L": canary(heads, steps)}
        sizes = {"sc": 0.0625, "sz": heads * steps * width, "sh": steps * width, "T": steps, "H": heads}
        return {"Q": q, "K": k, "V": v} | outputs | sizes

    def reference(before: Arguments) -> Results:
        q, k, v = (before[name].double() for name in ("Q", "K", "V"))
        scores = q @ k.transpose(1, 2) * before["sc"]
        return {"O": scores.softmax(2) @ v, "L": scores.logsumexp(2) / math.log(2)}

    # Weights and results have two bits of mantissa.
    return Workload(CASE["fa_fwd_fp8"], (1, heads), build, reference, tolerance=(0.13, 0.04))


def attention_ws(heads: int, steps: int) -> Workload:
    names, scale = "qd kd vd od", 0.18
    build = attention_arguments(True, names, heads, steps, [64] * 4)
    return Workload(
        CASE["g_attention_ws"], (steps // 64, heads), lambda generator: build(generator) | {"scale": scale},
        lambda before: softmax_attention(before, names, heads, scale), tolerance=HALF,
    )  # fmt: skip


def two_ctas(generator: torch.Generator) -> Arguments:
    m, n, k = 256, 128, 128
    a, b = normal(generator, m, k, dtype=F16), normal(generator, k, n, dtype=F16)
    return {"A": a, "B": b, "C": canary(m, n, dtype=F16), "M": m, "N": n, "K": k}


def reduce_arguments(generator: torch.Generator) -> Arguments:
    tensors = {"desc": normal(generator, 80, 40)}
    return described(tensors, {"desc": [32, 32]}, gluon=False) | {"x": normal(generator, 32, 32)}


def reduced(before: Arguments) -> Results:
    result = before["_desc"].double()
    for row in range(0, 80, 32):
        rows = min(32, 80 - row)
        result[row : row + rows, :32] += before["x"][:rows].double()
    return {"_desc": result}


def cluster_arguments(generator: torch.Generator) -> Arguments:
    return {"x": normal(generator, 512).abs(), "y": canary(512)}


def persistent(name: str) -> Workload:
    return Workload(
        CASE[name], (2,), persistent_arguments, lambda before: {"C": product(before["A"], before["B"].T)},
        constexprs={"NS": 2}, tolerance=HALF,
    )  # fmt: skip


WORKLOADS = (
    Workload(CASE["quant_fp8e4"], (3,), quantised(448, FLOAT8), quantise),
    tiled("matmul_fp8e4", SMALL, of(FLOAT8), F16, tolerance=HALF),
    persistent("matmul_persistent_tma_ws"),
    Workload(
        CASE["matmul_2cta"], (1, 1), two_ctas, lambda before: {"C": product(before["A"], before["B"])}, tolerance=HALF
    ),
    fa_tma(2, 256),
    fa_fp8(),
    Workload(CASE["tma_reduce_add"], (3,), reduce_arguments, reduced),
    Workload(CASE["g_tma_copy"], (2,), tma_copy, lambda before: {"_bd": before["_ad"]}, tolerance=(0, 0)),
    Workload(CASE["g_wgmma"], (3, 2), gemm(160, 208, 200, "K"), gemm_result, tolerance=HALF),
    Workload(CASE["g_warp_specialize_wgmma"], (2, 1), gemm(128, 128, 320, "K"), gemm_result, tolerance=HALF),
    Workload(CASE["g_persistent_matmul_ws"], (2,), gemm(200, 200, 136, "M", "N", "K"), gemm_result, tolerance=HALF),
    attention_ws(2, 192),
    Workload(
        CASE["g_cluster_2cta"],
        (1,),
        cluster_arguments,
        lambda before: {"y": before["x"].double() / before["x"].double().sum()},
    ),
    *(Workload(CASE[f"cluster_{ctas}"], (2,), sums_arguments, shifted_sums, tolerance=EXACT) for ctas in (2, 4)),
)

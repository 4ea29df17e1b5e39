"""Workloads of kernels/reductions.py."""

from __future__ import annotations

import torch

from kernels.reductions import CASES
from kernels.workload import Arguments, Results, Workload
from kernels.workloads.tensors import canary, half_steps, integers, normal

CASE = {case.name: case for case in CASES}


def softmax(
    name: str, grid: int, size: tuple[int, int, int], dtype: torch.dtype, *, persistent=False, **options
) -> Workload:
    """`size` is (rows, columns, row stride)."""
    rows, columns, stride = size

    def build(generator: torch.Generator) -> Arguments:
        x = 2 * normal(generator, rows, stride, dtype=dtype)
        made = {"o": canary(rows, stride, dtype=dtype), "x": x, "sx": stride, "so": stride, "n": columns}
        return made | ({"rows": rows} if persistent else {})

    def reference(before: Arguments) -> Results:
        inside = before["x"][:, :columns].double().softmax(1)
        return {"o": torch.cat([inside, before["o"][:, columns:].double()], dim=1)}

    return Workload(CASE[name], (grid,), build, reference, **options)


def reduce_rows_arguments(generator: torch.Generator) -> Arguments:
    return {"x": normal(generator, 64, 300, dtype=torch.float16), "o": canary(64), "N": 300}


def argmax_arguments(generator: torch.Generator) -> Arguments:
    x = integers(generator, -50, 51, 3, 1500).float()  # Many ties: the first one must win.
    return {"x": x, "o": canary(3, dtype=torch.int32), "v": canary(3), "N": 1500}


def argmax(before: Arguments) -> Results:
    value = before["x"].amax(1)
    first = (before["x"] == value[:, None]).int().argmax(1)
    return {"o": first.int(), "v": value}


def layernorm_arguments(generator: torch.Generator) -> Arguments:
    x = normal(generator, 3, 1504, dtype=torch.float16)
    weight, bias = (normal(generator, 1500, dtype=torch.float16) for _ in range(2))
    outputs = {"Y": canary(3, 1504, dtype=torch.float16), "Mean": canary(3), "Rstd": canary(3)}
    return {"X": x, "W": weight, "Bi": bias, "s": 1504, "N": 1500, "eps": 1e-5} | outputs


def layernorm(before: Arguments) -> Results:
    x = before["X"][:, :1500].double()
    mean, rstd = x.mean(1), 1 / torch.sqrt(x.var(1, correction=0) + before["eps"])
    y = (x - mean[:, None]) * rstd[:, None] * before["W"].double() + before["Bi"].double()
    return {"Y": torch.cat([y, before["Y"][:, 1500:].double()], dim=1), "Mean": mean, "Rstd": rstd}


def layernorm_bwd_arguments(generator: torch.Generator) -> Arguments:
    rows, columns, groups = 6, 1000, 2
    # Mean, Rstd and the gradients are such that the partial sums are exact: any order of the lock gives the same bits.
    x, dy, weight = (
        half_steps(generator, *shape, dtype=torch.float16) for shape in ((rows, columns), (rows, columns), (columns,))
    )
    partial = {
        "DW": torch.zeros(groups, columns, dtype=torch.float16),
        "DB": torch.zeros(groups, columns, dtype=torch.float16),
    }
    statistics = {"Mean": half_steps(generator, rows), "Rstd": torch.full((rows,), 0.5)}
    rest = {"Lock": torch.zeros(2 * groups, dtype=torch.int32), "s": columns, "N": columns}
    return (
        {"DX": canary(rows, columns, dtype=torch.float16), "DY": dy, "X": x, "W": weight} | partial | statistics | rest
    )


def layernorm_bwd(before: Arguments) -> Results:
    x, dy, weight = (before[name].double() for name in ("X", "DY", "W"))
    rstd = before["Rstd"].double()[:, None]
    normed = (x - before["Mean"].double()[:, None]) * rstd
    wdy = weight * dy
    c1, c2 = (normed * wdy).mean(1, keepdim=True), wdy.mean(1, keepdim=True)
    group = torch.arange(6) % 2
    dw, db = (torch.zeros(2, 1000, dtype=torch.float64).index_add_(0, group, part) for part in (dy * normed, dy))
    return {"DX": (wdy - (normed * c1 + c2)) * rstd, "DW": dw, "DB": db, "Lock": torch.tensor([0, 0, 1, 1])}


def rmsnorm_arguments(generator: torch.Generator) -> Arguments:
    x, weight = normal(generator, 2, 3000, dtype=torch.bfloat16), normal(generator, 3000, dtype=torch.bfloat16)
    return {"X": x, "W": weight, "Y": canary(2, 3000, dtype=torch.bfloat16), "N": 3000, "eps": 1e-6}


def rmsnorm(before: Arguments) -> Results:
    x = before["X"].double()
    return {"Y": x * torch.rsqrt((x * x).mean(1, keepdim=True) + before["eps"]) * before["W"].double()}


def cross_entropy_arguments(generator: torch.Generator) -> Arguments:
    logits = 3 * normal(generator, 3, 5008, dtype=torch.bfloat16)
    return {"L": logits, "T": torch.tensor([0, 4999, 2048]), "Loss": canary(3), "s": 5008, "V": 5000}


def cross_entropy(before: Arguments) -> Results:
    logits = before["L"][:, :5000].double()
    return {"Loss": torch.nn.functional.cross_entropy(logits, before["T"], reduction="none")}


def welford_arguments(generator: torch.Generator) -> Arguments:
    return {"X": normal(generator, 3, 1000) + 5, "M": canary(3), "V": canary(3), "N": 1000}


def welford(before: Arguments) -> Results:
    x = before["X"].double()
    return {"M": x.mean(1), "V": x.var(1, correction=0)}


F16, F32 = torch.float16, torch.float32
WORKLOADS = (
    softmax("softmax_fp32", 5, (5, 781, 800), F32),
    softmax("softmax_fp16_w8", 2, (2, 5000, 5008), F16, tolerance=(2e-2, 1e-5)),
    softmax("softmax_persistent", 3, (7, 1500, 1504), F32, persistent=True),
    Workload(
        CASE["reduce_rows"],
        (2,),
        reduce_rows_arguments,
        lambda before: {"o": before["x"].double().sum(1)},
        tolerance=(1e-5, 1e-4),
    ),
    Workload(CASE["argmax"], (3,), argmax_arguments, argmax),
    Workload(CASE["layernorm_fwd"], (3,), layernorm_arguments, layernorm),
    Workload(CASE["layernorm_bwd_lock"], (6,), layernorm_bwd_arguments, layernorm_bwd, constexprs={"G": 2}),
    Workload(CASE["rmsnorm_bf16"], (2,), rmsnorm_arguments, rmsnorm),
    Workload(CASE["cross_entropy"], (3,), cross_entropy_arguments, cross_entropy, tolerance=(1e-5, 1e-5)),
    Workload(CASE["welford"], (3,), welford_arguments, welford, tolerance=(1e-5, 1e-6)),
)

"""Workloads of kernels/attention.py."""

from __future__ import annotations

import math

import torch

from kernels.attention import CASES
from kernels.workload import Arguments, Results, Workload
from kernels.workloads.tensors import canary, normal

CASE = {case.name: case for case in CASES}


def forward(name: str, dtype: torch.dtype, *, length: int, causal: bool, variant: str = "") -> Workload:
    """Two heads of width 64."""
    heads, width = 2, 64

    def build(generator: torch.Generator) -> Arguments:
        q, k, v = (normal(generator, heads, length, width, dtype=dtype) for _ in range(3))
        outputs = {"O": canary(heads, length, width, dtype=dtype), "L": canary(heads, length)}
        sizes = {"sc": 0.125, "sz": heads * length * width, "sh": length * width, "T": length, "H": heads}
        return {"Q": q, "K": k, "V": v} | outputs | sizes

    def reference(before: Arguments) -> Results:
        padding = (0, 0, 0, -length % 64)  # Keys past the end score 0: the kernel masks their loads, not their scores.
        q = before["Q"].double()
        k, v = (torch.nn.functional.pad(before[name].double(), padding) for name in ("K", "V"))
        scores = q @ k.transpose(1, 2) * before["sc"]
        if causal:
            row, column = torch.arange(length)[:, None], torch.arange(k.shape[1])[None, :]
            scores = torch.where(row >= column, scores, -math.inf)
        return {"O": scores.softmax(2) @ v, "L": scores.logsumexp(2) / math.log(2)}

    grid = (math.ceil(length / 128), heads)
    tolerance = (2e-2, 5e-3) if dtype == torch.bfloat16 else (4e-3, 1e-3)
    return Workload(CASE[name], grid, build, reference, tolerance=tolerance, variant=variant)


def backward_arguments(generator: torch.Generator) -> Arguments:
    heads, length, width = 2, 256, 64
    q, k, v, do = (normal(generator, heads, length, width, dtype=torch.float16) * 0.5 for _ in range(4))
    scores = q.float() @ k.float().transpose(1, 2)
    lse = torch.log2(torch.exp2(scores).sum(2))
    gradients = {name: canary(heads, length, width, dtype=torch.float16) for name in ("DK", "DV")}
    delta = 0.1 * normal(generator, heads, length)
    return {"Q": q, "K": k, "V": v, "DO": do, "M": lse, "Dl": delta, "sc": 0.125, "T": length} | gradients


def backward(before: Arguments) -> Results:
    q, k, v, do = (before[name].double() for name in ("Q", "K", "V", "DO"))
    p = torch.exp2(q @ k.transpose(1, 2) - before["M"].double()[:, :, None])
    ds = p * (do @ v.transpose(1, 2) - before["Dl"].double()[:, :, None])
    return {"DV": p.transpose(1, 2) @ do, "DK": ds.transpose(1, 2) @ q * before["sc"]}


WORKLOADS = (
    forward("fa_fwd_fp16", torch.float16, length=200, causal=False),
    forward("fa_fwd_fp16", torch.float16, length=256, causal=False, variant="even"),
    forward("fa_fwd_bf16_causal", torch.bfloat16, length=200, causal=True),
    Workload(CASE["fa_bwd_dkdv"], (2, 2), backward_arguments, backward, tolerance=(5e-3, 2e-3)),
)

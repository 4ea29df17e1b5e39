"""Workloads of kernels/gluon_kernels.py."""

from __future__ import annotations

import torch

from kernels.gluon_kernels import CASES
from kernels.workload import Arguments, Workload
from kernels.workloads.tensors import canary, normal

CASE = {case.name: case for case in CASES}


def async_copy(count: int, variant: str = "") -> Workload:
    def build(generator: torch.Generator) -> Arguments:
        return {"x": normal(generator, count), "y": canary(512), "xs": 512, "n": count}

    def reference(before: Arguments) -> dict[str, torch.Tensor]:
        padded = torch.nn.functional.pad(before["x"].double(), (0, -count % 512))
        return {"y": padded.reshape(-1, 512).sum(0)}

    return Workload(CASE["g_async_copy"], (1,), build, reference, variant=variant)


def mma_arguments(generator: torch.Generator) -> Arguments:
    a, b = (normal(generator, 64, 64, dtype=torch.float16) for _ in range(2))
    return {"a": a, "b": b, "c": canary(64, 64)}


WORKLOADS = (
    Workload(
        CASE["g_memcpy"],
        (2,),
        lambda generator: {"x": normal(generator, 2000), "y": canary(2064), "n": 2000},
        lambda before: {"y": torch.cat([before["x"], before["y"][2000:]])},
        tolerance=(0, 0),
    ),
    async_copy(512 * 5),
    async_copy(512 * 3 + 144, "partial"),
    Workload(
        CASE["g_cp_mbarrier"],
        (1,),
        lambda generator: {"x": normal(generator, 512), "y": canary(512)},
        lambda before: {"y": before["x"]},
        tolerance=(0, 0),
    ),
    Workload(
        CASE["g_mma_v2"],
        (1,),
        mma_arguments,
        lambda before: {"c": before["a"].double() @ before["b"].double()},
        tolerance=(1e-5, 1e-4),
    ),
)

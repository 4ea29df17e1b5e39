"""Workloads of kernels/language.py."""

from __future__ import annotations

import torch

from kernels.language import CASES
from kernels.workload import Arguments, Results, Workload
from kernels.workloads.tensors import canary, half_steps

CASE = {case.name: case for case in CASES}
ROWS = 3
EXACT = (0, 0)


def tree_arguments(generator: torch.Generator) -> Arguments:
    return {"x": half_steps(generator, ROWS + 1, 128), "o": canary(128), "rows": ROWS}


def noinline_tree(before: Arguments) -> Results:
    x = before["x"] * 0.5
    return {"o": (x[:ROWS] + x[1:]).sum(0)}


def mapped_arguments(generator: torch.Generator) -> Arguments:
    x, y = (torch.randint(0, 3, (256,), generator=generator).int() for _ in range(2))
    return {"x": x, "y": y, "o": canary(256, dtype=torch.int32)}


def mapped(before: Arguments) -> Results:
    return {"o": (before["x"] - before["y"]).sign()}


def sums_arguments(generator: torch.Generator) -> Arguments:
    return {"x": half_steps(generator, ROWS, 2048), "o": canary(ROWS, 2048), "rows": ROWS}


def shifted_sums(before: Arguments) -> Results:
    x = before["x"].view(ROWS, 2, 1024)
    return {"o": (x + x.sum(2, keepdim=True)).view(ROWS, 2048)}


WORKLOADS = (
    Workload(CASE["noinline_tree"], (1,), tree_arguments, noinline_tree, tolerance=EXACT),
    Workload(CASE["mapped_compare"], (1,), mapped_arguments, mapped),
    *(
        Workload(CASE[f"warps_{warps}"], (2,), sums_arguments, shifted_sums, tolerance=EXACT)
        for warps in (1, 2, 8, 16, 32)
    ),
)

"""Workloads of kernels/control_flow.py: the references are the same programs, in Python."""

from __future__ import annotations

import torch

from kernels.control_flow import CASES
from kernels.workload import Arguments, Results, Workload
from kernels.workloads.tensors import canary, half_steps

CASE = {case.name: case for case in CASES}
EXACT = (0, 0)
TRIPS = ((3, 0, 5, 1), (0, 0, 0, 0), (2, 7, 1, 4))
CODES = ((2, 0, -3, 4, 1), (0, 0, 0, 0, 0), (-1, 5, -2, 6, 3))
BUDGETS = (90, 0, 1)


def nested_arguments(generator: torch.Generator) -> Arguments:
    trips = torch.tensor(TRIPS, dtype=torch.int32)
    return {"x": half_steps(generator, 8, 256), "trips": trips, "o": canary(3, 256), "rows": 4, "stride": 256}


def nested_loops(before: Arguments) -> Results:
    x, rows = before["x"], []
    for trips in TRIPS:
        parts = [x[:inner].sum(0) * (r + 1) - x[:inner:2].sum(0) for r, inner in enumerate(trips)]
        rows.append(torch.stack(parts).sum(0))
    return {"o": torch.stack(rows)}


def while_arguments(generator: torch.Generator) -> Arguments:
    seeds = torch.randint(1, 30, (128,), generator=generator).int()
    budgets = torch.tensor(BUDGETS, dtype=torch.int32)
    return {"seeds": seeds, "o": canary(3, 128, dtype=torch.int32), "budgets": budgets, "width": 3}


def while_for_while(before: Arguments) -> Results:
    seeds, rows = before["seeds"], []
    for pid, budget in enumerate(BUDGETS):
        steps, total = 0, torch.zeros(128, dtype=torch.int32)
        while budget > 0:
            for j in range(3):
                n = int(seeds[pid * 3 + j])
                while n > 1:
                    n = n // 2 if n % 2 == 0 else 3 * n + 1
                    steps += 1
                total += seeds + steps
            budget -= steps + 1
        rows.append(total)
    return {"o": torch.stack(rows)}


def early_return_arguments(generator: torch.Generator) -> Arguments:
    codes = torch.tensor([0, 1, 2, 3, 2, 0], dtype=torch.int32)
    return {"x": half_steps(generator, 8, 256), "codes": codes, "o": canary(8, 256), "n": 6}


def early_return(before: Arguments) -> Results:
    x, out = before["x"], before["o"].clone()
    for pid in range(6):
        code, v = int(before["codes"][pid]), x[pid]
        added = {0: 0.0, 1: v.sum(), 2: x[: pid + 1].sum(0), 3: -2 * v}[code]
        out[pid] = v + added
    return {"o": out}


def branchy_arguments(generator: torch.Generator) -> Arguments:
    codes = torch.tensor(CODES, dtype=torch.int32)
    return {"x": half_steps(generator, 8, 256), "codes": codes, "o": canary(3, 256), "steps": 5}


def branchy_loop(before: Arguments) -> Results:
    x, rows = before["x"], []
    for codes in CODES:
        acc = torch.zeros(256)
        for code in codes:
            if code > 0:
                acc = acc + x[code]
                acc = acc + acc.max() if code > 3 else acc
            elif code < 0:
                acc = acc - x[:-code].sum(0)
        rows.append(acc)
    return {"o": torch.stack(rows)}


WORKLOADS = (
    Workload(CASE["nested_loops"], (3,), nested_arguments, nested_loops, tolerance=EXACT),
    Workload(CASE["while_for_while"], (3,), while_arguments, while_for_while),
    Workload(CASE["early_return"], (8,), early_return_arguments, early_return, tolerance=EXACT),
    Workload(CASE["branchy_loop"], (3,), branchy_arguments, branchy_loop, tolerance=EXACT),
)

"""Workloads of kernels/indexing.py."""

from __future__ import annotations

import torch

from kernels.indexing import CASES
from kernels.workload import Arguments, Results, Workload
from kernels.workloads.tensors import canary, half_steps, integers, normal

CASE = {case.name: case for case in CASES}


def scan_arguments(generator: torch.Generator) -> Arguments:
    a, b = torch.rand(128, 32, generator=generator), normal(generator, 128, 32)
    return {"a": a, "b": b, "o": canary(128, 32), "T": 128, "D": 32}


def linear_recurrence(before: Arguments) -> Results:
    state, rows = torch.zeros(32, dtype=torch.float64), []
    for a, b in zip(before["a"].double(), before["b"].double(), strict=True):
        state = a * state + b
        rows.append(state)
    return {"o": torch.stack(rows)}


def histogram_arguments(generator: torch.Generator) -> Arguments:
    x = integers(generator, 0, 256, 2000)
    return {"x": x, "o": torch.zeros(256, dtype=torch.int32), "n": 2000}


def histogram(before: Arguments) -> Results:
    counts = torch.bincount(before["x"], minlength=256)
    counts[0] += 48  # Lanes past the end load 0 and are counted.
    return {"o": counts}


def gather_arguments(generator: torch.Generator) -> Arguments:
    return {"x": normal(generator, 64, 32), "idx": integers(generator, 0, 64, 64, 32), "o": canary(64, 32)}


def embedding_arguments(generator: torch.Generator) -> Arguments:
    table = normal(generator, 10, 1024, dtype=torch.bfloat16)
    return {"ids": torch.tensor([3, 0, 9, 3]), "W": table, "o": canary(4, 1024, dtype=torch.bfloat16)}


def embedding_bwd(name: str, dtype: torch.dtype) -> Workload:
    def build(generator: torch.Generator) -> Arguments:
        start = half_steps(generator, 4, 1024, dtype=dtype)
        return {"ids": torch.tensor([3, 0, 3, 1, 3]), "dW": start, "g": half_steps(generator, 5, 1024, dtype=dtype)}

    def reference(before: Arguments) -> Results:
        return {"dW": before["dW"].double().index_add(0, before["ids"], before["g"].double())}

    return Workload(CASE[name], (5,), build, reference, tolerance=(0, 0))


def atomics_arguments(generator: torch.Generator) -> Arguments:
    p = torch.tensor([-5, 5, 0x7FFFFFF0, 0x10, 0, 1000], dtype=torch.int32)
    return {"p": p, "q": integers(generator, 1, 10_000, 300), "n": 300}


def check_atomics(before: Arguments, after: Arguments) -> None:
    p, values = before["p"].tolist(), before["q"].tolist()
    expected = [max(p[0], *values), min(p[1], *values), p[2], p[3], p[4], p[5] + sum(values)]
    for value in values:
        expected[2] &= value
        expected[3] |= value
        expected[4] ^= value
    assert after["p"].tolist() == expected
    # Whatever the order: each addition starts from the sum that another one left behind.
    seen = after["q"].tolist()
    left_behind = [old + value for old, value in zip(seen, values, strict=True)]
    assert sorted([*seen, expected[5]]) == sorted([p[5], *left_behind])


def split_join_flip(before: Arguments) -> Results:
    x = before["x"]
    return {"o": torch.cat([x.reshape(512, 2).flip(1).flatten(), x.flip(0)])}


def check_timer(before: Arguments, after: Arguments) -> None:
    # A warp reads timer and SM id once: what is left after the shift is one value in each warp of 32 lanes.
    rest = (after["o"].long() - 8 * before["x"].long()) % 2**32
    assert (rest.reshape(4, 32) == rest.reshape(4, 32)[:, :1]).all()


WORKLOADS = (
    Workload(
        CASE["cumsum_fp32"],
        (2,),
        lambda generator: {"x": normal(generator, 2, 1000), "o": canary(2, 1000), "N": 1000},
        lambda before: {"o": before["x"].double().cumsum(1)},
        tolerance=(1e-5, 1e-4),
    ),
    Workload(CASE["assoc_scan"], (2,), scan_arguments, linear_recurrence, tolerance=(1e-5, 1e-5)),
    Workload(
        CASE["sort_i32"],
        (2,),
        lambda generator: {"x": integers(generator, -300, 300, 2, 256), "o": canary(2, 256, dtype=torch.int32)},
        lambda before: {"o": before["x"].sort(1).values},
    ),
    Workload(
        CASE["topk_fp32"],
        (2,),
        lambda generator: {"x": normal(generator, 2, 256), "o": canary(2, 8)},
        lambda before: {"o": before["x"].topk(8, 1).values},
        tolerance=(0, 0),
    ),
    Workload(CASE["histogram"], (2,), histogram_arguments, histogram),
    Workload(
        CASE["tl_gather"],
        (1,),
        gather_arguments,
        lambda before: {"o": before["x"].gather(0, before["idx"].long())},
        tolerance=(0, 0),
    ),
    Workload(
        CASE["embedding_fwd"],
        (4,),
        embedding_arguments,
        lambda before: {"o": before["W"][before["ids"]]},
        tolerance=(0, 0),
    ),
    embedding_bwd("embedding_bwd_f32", torch.float32),
    embedding_bwd("embedding_bwd_f16", torch.float16),
    embedding_bwd("embedding_bwd_bf16", torch.bfloat16),
    Workload(CASE["atomics_i32"], (2,), atomics_arguments, check=check_atomics),
    Workload(
        CASE["split_join_flip"],
        (1,),
        lambda generator: {"x": normal(generator, 1024), "o": canary(2048)},
        split_join_flip,
        tolerance=(0, 0),
    ),
    # Prints and asserts, computes nothing: that it runs is what can be checked here.
    Workload(CASE["assert_print"], (1,), lambda generator: {"x": torch.rand(128, generator=generator) + 0.5, "n": 128}),
    Workload(
        CASE["inline_asm_timer"],
        (1,),
        lambda generator: {"x": integers(generator, 0, 1000, 128), "o": canary(128, dtype=torch.int32)},
        check=check_timer,
    ),
)

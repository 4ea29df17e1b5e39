"""Kernels for corners of the language: functions that are not inlined, functions mapped over elements, many warps."""

from __future__ import annotations

import triton
import triton.language as tl

from kernels.registry import Case


@triton.jit(noinline=True)
def scaled_row(x, row, B: tl.constexpr):
    return tl.load(x + row * B + tl.arange(0, B)) * 0.5


@triton.jit(noinline=True)
def sum_of_two_rows(x, row, B: tl.constexpr):
    return scaled_row(x, row, B) + scaled_row(x, row + 1, B)


# A tree of calls: the kernel calls a function that calls another one twice.
@triton.jit
def noinline_tree(x, o, rows, B: tl.constexpr):
    total = tl.zeros([B], tl.float32)
    for row in range(rows):
        total += sum_of_two_rows(x, row, B)
    tl.store(o + tl.arange(0, B), total)


@triton.jit
def compare(a, b):
    if a < b:
        return -1
    elif a == b:
        return 0
    else:
        return 1


# Each element takes its own way through `compare`.
@triton.jit
def mapped(x, y, o, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + i, tl.map_elementwise(compare, tl.load(x + i), tl.load(y + i)))


# For any number of warps, and of CTAs in a cluster: a loop that may not run, around a reduction over the CTA.
@triton.jit
def shifted_sums(x, o, rows, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    for row in range(rows):
        v = tl.load(x + row * 2 * B + i)
        tl.store(o + row * 2 * B + i, v + tl.sum(v, 0))


CASES = (
    Case("noinline_tree", noinline_tree, ("*fp32", "*fp32", "i32"), {"B": 128}),
    Case("mapped_compare", mapped, ("*i32", "*i32", "*i32"), {"B": 256}),
    *(
        Case(f"warps_{warps}", shifted_sums, ("*fp32", "*fp32", "i32"), {"B": 1024}, {"num_warps": warps})
        for warps in (1, 2, 8, 16, 32)
    ),
    *(
        Case(f"cluster_{ctas}", shifted_sums, ("*fp32", "*fp32", "i32"), {"B": 1024}, {"num_ctas": ctas}, (90, 100))
        for ctas in (2, 4)
    ),
)

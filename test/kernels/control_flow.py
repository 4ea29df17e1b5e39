"""Kernels whose control flow depends on data: what a trace must survive without storing any of it."""

from __future__ import annotations

import triton
import triton.language as tl

from kernels.registry import Case


# Row r of the lower triangle: the trip count of the inner loop changes with the outer one, and may be 0.
@triton.jit
def nested_loops(x, trips, o, rows, stride, B: tl.constexpr):
    pid = tl.program_id(0)
    i = tl.arange(0, B)
    total = tl.zeros([B], tl.float32)
    for r in range(rows):
        inner = tl.load(trips + pid * rows + r)
        part = tl.zeros([B], tl.float32)
        for k in range(inner):
            part += tl.load(x + k * stride + i)
        total += part * (r + 1)
        for k in range(0, inner, 2):
            total -= tl.load(x + k * stride + i)
    tl.store(o + pid * B + i, total)


# Collatz lengths: a while whose trip count is data, inside a for, inside a while that runs until a budget is used up.
@triton.jit
def while_for_while(seeds, o, budgets, width, C: tl.constexpr):
    pid = tl.program_id(0)
    i = tl.arange(0, C)
    budget = tl.load(budgets + pid)
    steps = 0
    total = tl.zeros([C], tl.int32)
    while budget > 0:
        for j in range(width):
            n = tl.load(seeds + pid * width + j)
            while n > 1:
                n = tl.where(n % 2 == 0, n // 2, 3 * n + 1)
                steps += 1
            total += tl.load(seeds + i) + steps
        budget -= steps + 1
    tl.store(o + pid * C + i, total)


# CTAs past `n` return at once; the others load what their row's code asks for.
@triton.jit
def early_return(x, codes, o, n, B: tl.constexpr):
    pid = tl.program_id(0)
    i = tl.arange(0, B)
    if pid >= n:
        return
    code = tl.load(codes + pid)
    v = tl.load(x + pid * B + i)
    if code == 0:
        tl.store(o + pid * B + i, v)
        return
    if code == 1:
        v = v + tl.sum(v, 0)
    elif code == 2:
        for k in range(pid + 1):
            v += tl.load(x + k * B + i)
    else:
        v = -v
    tl.store(o + pid * B + i, v)


# Each iteration takes one of three ways, chosen by data; one of the ways holds a loop of its own.
@triton.jit
def branchy_loop(x, codes, o, steps, B: tl.constexpr):
    pid = tl.program_id(0)
    i = tl.arange(0, B)
    acc = tl.zeros([B], tl.float32)
    for s in range(steps):
        code = tl.load(codes + pid * steps + s)
        if code > 0:
            acc += tl.load(x + code * B + i)
            if code > 3:
                acc += tl.max(acc, 0)
        elif code < 0:
            for k in range(-code):
                acc -= tl.load(x + k * B + i)
    tl.store(o + pid * B + i, acc)


CASES = (
    Case("nested_loops", nested_loops, ("*fp32", "*i32", "*fp32", "i32", "i32"), {"B": 256}),
    Case("while_for_while", while_for_while, ("*i32", "*i32", "*i32", "i32"), {"C": 128}),
    Case("early_return", early_return, ("*fp32", "*i32", "*fp32", "i32"), {"B": 256}),
    Case("branchy_loop", branchy_loop, ("*fp32", "*i32", "*fp32", "i32"), {"B": 256}),
)

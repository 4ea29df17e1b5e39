"""Host speed of the SIMT device, timing model on, one host thread."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, Any

import torch

from kernels.elementwise import vadd
from kernels.matmuls import matmul
from kernels.reductions import layernorm_fwd, softmax
from sections.table import table
from support.launch import simt

if TYPE_CHECKING:
    from collections.abc import Callable

REPEATS = 3


def softmax_case() -> tuple[str, Callable[[], Any]]:
    rows, columns = 2048, 1024
    x, o = torch.randn(rows, columns), torch.empty(rows, columns)
    return f"softmax {rows}x{columns} fp32", lambda: softmax[(rows,)](o, x, columns, columns, columns, B=1024)


def vadd_case() -> tuple[str, Callable[[], Any]]:
    count = 1 << 20
    x, y, o = (torch.randn(count) for _ in range(3))
    return "vadd 2^20 fp32", lambda: vadd[(count // 1024,)](x, y, o, count, B=1024)


def layernorm_case() -> tuple[str, Callable[[], Any]]:
    rows, columns = 512, 2048
    x, y = torch.randn(rows, columns).half(), torch.empty(rows, columns, dtype=torch.float16)
    weight, bias = torch.randn(columns).half(), torch.randn(columns).half()
    mean, rstd = torch.empty(rows), torch.empty(rows)
    return f"layernorm {rows}x{columns} fp16", lambda: layernorm_fwd[(rows,)](
        x, y, weight, bias, mean, rstd, columns, columns, 1e-5, B=1024
    )


def matmul_case(size: int) -> tuple[str, Callable[[], Any]]:
    a, b = torch.randn(size, size).half(), torch.randn(size, size).half()
    c = torch.empty(size, size, dtype=torch.float16)
    import triton.language as tl

    constexprs = {"BM": 128, "BN": 128, "BK": 64, "G": 8, "P": "tf32", "AT": tl.float32}
    strides = (size, 1, size, 1, size, 1)
    grid = ((size // 128) ** 2,)
    return f"matmul {size}^3 fp16", lambda: matmul[grid](
        a, b, c, size, size, size, *strides, **constexprs, num_warps=4, num_stages=3
    )


def run() -> tuple[str, int]:
    """Launch each case a few times; the median counts."""
    rows = []
    with simt(threads=1) as driver:
        for name, launch in (vadd_case(), softmax_case(), layernorm_case(), matmul_case(512)):
            launch()  # Compiles.
            seconds = []
            for _ in range(REPEATS):
                with driver.observed() as launches:
                    start = time.process_time()
                    launch()
                    seconds.append(time.process_time() - start)
            result = launches[-1].result
            median = statistics.median(seconds)
            instructions = int(result.warp_instructions)
            rows.append([name, instructions / 1e6, median, instructions / median / 1e6, int(result.cycles)])
    columns = ("kernel", "M warp instructions", "CPU seconds", "M warp instructions/CPU s", "simulated cycles")
    text = "## Host speed of the SIMT device (one thread, with timing)\n\n"
    text += "CPU seconds of the process for one launch, the median of three; all host instruction sets the CPU has.\n\n"
    return text + table(columns, rows), 0

"""Host speed of the SIMT device, timing model on, one host thread."""

from __future__ import annotations

import functools
import os
import statistics
import time
from typing import TYPE_CHECKING, Any

import torch
from kperfir._native import simt as native

from kernels.attention import fa_fwd
from kernels.elementwise import vadd
from kernels.matmuls import matmul
from kernels.reductions import layernorm_fwd, softmax
from sections.table import table
from support.launch import simt

if TYPE_CHECKING:
    from collections.abc import Callable

REPEATS = 5
LONG_SECONDS = 2  # A launch that takes longer is measured once.


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


def attention_case(heads: int, length: int) -> tuple[str, Callable[[], Any]]:
    width = 64
    q, k, v, o = (torch.randn(heads, length, width).half() for _ in range(4))
    logsumexp = torch.empty(heads, length)
    sizes = (0.125, heads * length * width, length * width, length, heads)
    return f"flash attention H{heads} T{length} D{width} fp16", lambda: fa_fwd[(length // 128, heads)](
        q, k, v, o, logsumexp, *sizes, D=width, BM=128, BN=64, CAUSAL=False, num_warps=4, num_stages=2
    )


class OneInstructionSet:
    """The native module, its kernels bound to one host instruction set."""

    def __init__(self, native: Any, isa: str) -> None:
        self._native = native
        self.Module = functools.partial(native.Module, isa=isa)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._native, name)


def measure(driver: Any, launch: Callable[[], Any]) -> tuple[float, Any]:
    """Launch a few times; return the median of the CPU seconds, and the device's result."""
    launch()  # Compiles.
    seconds = []
    for _ in range(REPEATS):
        with driver.observed() as launches:
            start = time.process_time()
            launch()
            seconds.append(time.process_time() - start)
        if seconds[-1] > LONG_SECONDS:
            break
    return statistics.median(seconds), launches[-1].result


def run() -> tuple[str, int]:
    """Measure each case with each host instruction set."""
    names: list[str] = []
    figures: dict[str, list[float]] = {}
    instruction_sets = native.host_instruction_sets()
    cases = (vadd_case(), softmax_case(), layernorm_case(), matmul_case(512), attention_case(16, 2048))
    for isa in instruction_sets:
        with simt(threads=1) as driver:
            driver._native = OneInstructionSet(driver._native, isa)
            for kernel in (vadd, softmax, layernorm_fwd, matmul, fa_fwd):
                kernel.device_caches.clear()  # Kernels that are loaded are bound to another one.
            for name, launch in cases:
                seconds, result = measure(driver, launch)
                instructions = int(result.warp_instructions)
                if name not in figures:
                    names.append(name)
                    figures[name] = [instructions / 1e6, int(result.cycles)]
                figures[name].append(instructions / seconds / 1e6)
    columns = ("kernel", "M warp instructions", "simulated cycles", *(f"{isa}: M/CPU s" for isa in instruction_sets))
    text = "## Host speed of the SIMT device (one thread, with timing)\n\n"
    text += "Warp instructions per CPU second of the process, the median of "
    text += f"{REPEATS} launches, with each of the host's instruction sets. "
    text += f"Load of the machine while it measured: {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs.\n\n"
    return text + table(columns, [[name, *figures[name]] for name in names]), 0

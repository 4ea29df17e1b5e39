"""Host speed of the SIMT device, timing model on, one host thread."""

from __future__ import annotations

import functools
import json
import os
import statistics
import subprocess
import sys
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

REPEATS = 15
LONG_SECONDS = 1  # A launch that takes longer is measured once.


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
    """Measure each case with each host instruction set, each in a process of its own: its memory is as it should be."""
    instruction_sets = native.host_instruction_sets()
    rows = []
    for case in MEASURED:
        found = [_measure_apart(case, isa) for isa in instruction_sets]
        name, instructions, cycles, _ = found[0]
        speeds = [instructions / seconds / 1e6 for _, _, _, seconds in found]
        rows.append([name, instructions / 1e6, cycles, *speeds])
    columns = ("kernel", "M warp instructions", "simulated cycles", *(f"{isa}: M/CPU s" for isa in instruction_sets))
    text = "## Host speed of the SIMT device (one thread, with timing)\n\n"
    text += "Warp instructions per CPU second of the process, the median of "
    text += f"{REPEATS} launches, with each of the host's instruction sets. "
    text += f"Load of the machine while it measured: {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs.\n\n"
    return text + table(columns, rows), 0


def _measure_apart(case: str, isa: str) -> tuple[str, int, int, float]:
    """Name, instructions, simulated cycles and CPU seconds of a launch."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    child = subprocess.run(
        [sys.executable, "-P", "-m", "sections.simt", case, isa],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    name, instructions, cycles, seconds = json.loads(child.stdout)
    return name, instructions, cycles, seconds


def main(case: str, isa: str) -> None:
    """Measure one case with one instruction set; print what `_measure_apart` returns as JSON."""
    name, launch = CASES[case]()
    with simt(threads=1) as driver:
        driver._native = OneInstructionSet(driver._native, isa)
        seconds, result = measure(driver, launch)
    print(json.dumps([name, int(result.warp_instructions), int(result.cycles), seconds]))


CASES: dict[str, Callable[[], tuple[str, Callable[[], Any]]]] = {
    "vadd": vadd_case,
    "softmax": softmax_case,
    "layernorm": layernorm_case,
    "matmul": lambda: matmul_case(512),
    "attention": lambda: attention_case(16, 2048),
    "attention-short": lambda: attention_case(16, 512),
}
MEASURED = ("vadd", "softmax", "layernorm", "matmul", "attention")

if __name__ == "__main__":
    main(*sys.argv[1:])

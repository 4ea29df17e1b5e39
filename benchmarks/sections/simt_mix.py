"""Host speed of the SIMT device by what a kernel does, and of sampled launches.

One loop of PTX for each mix: what the loop is made of takes nearly all of the time.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import triton.language as tl
from kperfir._native import simt as native

from kernels.matmuls import matmul
from kernels.reductions import softmax
from sections.table import table
from support import ptx_lab
from support.launch import simt

if TYPE_CHECKING:
    from collections.abc import Callable

CTAS, WARPS = 432, 4  # One CTA of 4 warps four times on each SM of an A100.
ROUNDS = 24
REPEATS = 5
WORDS = 1 << 20


@dataclass(frozen=True, slots=True)
class Mix:
    """A loop's body: `line` with {i} from 0 to `count` - 1."""

    name: str
    line: str
    count: int = 16
    before: str = ""


MIXES = (
    Mix("ALU (add, xor, shift)", "add.u32 %r{a}, %r{a}, %r0; xor.b32 %r{b}, %r{a}, %r{b}; shr.u32 %r{a}, %r{b}, 1;", 6),
    Mix("fp32 FMA", "fma.rn.f32 %f{a}, %f{b}, %f40, %f{a};"),
    Mix("SFU (ex2, rcp)", "ex2.approx.f32 %f{a}, %f{a}; rcp.approx.f32 %f{b}, %f{b};", 8),
    Mix(
        "shared memory",
        "st.shared.u32 [%r40+{i}], %r{a}; ld.shared.u32 %r{b}, [%r40+{i}];",
        1,
        "shl.b32 %r40, %r0, 2;",
    ),
    Mix(
        "global streaming",
        "ld.global.v4.u32 {{%r{a}, %r{b}, %r30, %r31}}, [%rd3]; st.global.v4.u32 [%rd3], {{%r{b}, %r{a}, %r30, %r31}};"
        " add.u64 %rd3, %rd3, 65536;",
        1,
        "mov.u32 %r40, %ctaid.x; mad.lo.u32 %r40, %r40, %ntid.x, %r0; and.b32 %r40, %r40, 4095;"
        " mul.wide.u32 %rd2, %r40, 16; add.u64 %rd3, %rd0, %rd2;",
    ),
    Mix(
        "atomics",
        "red.global.add.u32 [%rd3+{i}], %r{a}; atom.global.add.u32 %r{b}, [%rd3+{i}], 1;",
        1,
        "mul.wide.u32 %rd2, %r0, 4; add.u64 %rd3, %rd0, %rd2;",
    ),
    Mix(
        "mma.sync m16n8k16",
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{%f{q0},%f{q1},%f{q2},%f{q3}}}, {{%r1,%r2,%r3,%r4}},"
        " {{%r5,%r6}}, {{%f{q0},%f{q1},%f{q2},%f{q3}}};",
        8,
    ),
)


def body(mix: Mix) -> str:
    """The kernel: every register starts with a value, the loop runs a few times, nothing is stored in the end."""
    lines = [f"mov.u32 %r{i}, {i}; mov.f32 %f{i}, 0f3F000000;" for i in range(1, 32)]
    lines += ["mov.f32 %f40, 0f3F800000;", mix.before, f"mov.u32 %r50, {ROUNDS};", "LOOP:"]
    for i in range(mix.count):
        first = 1 + i * 2 % 24
        quad = {f"q{k}": 1 + i % 6 * 4 + k for k in range(4)}
        lines.append(mix.line.format(i=i * 4, a=first, b=first + 1, **quad))
    lines += ["sub.u32 %r50, %r50, 1;", "setp.ne.u32 %p1, %r50, 0;", "@%p1 bra LOOP;"]
    return "\n".join(lines)


def launcher(mix: Mix, isa: str) -> Callable[[], Any]:
    """A function that launches the mix on a device of its own."""
    memory = np.zeros(WORDS, np.uint32)
    module = native.Module(ptx_lab.ptx(body(mix), 1), isa=isa)
    device = ptx_lab.device()
    shape = {"threads": 32 * WARPS, "grid": (CTAS, 1, 1), "shared": 4096}
    return lambda: ptx_lab.launch(module, memory, on=device, **shape)


def measure(launch: Callable[[], Any]) -> tuple[float, int]:
    """CPU seconds of a launch, the median of a few, and its warp instructions."""
    instructions = int(launch().warp_instructions)
    seconds = []
    for _ in range(REPEATS):
        start = time.process_time()
        launch()
        seconds.append(time.process_time() - start)
    return statistics.median(seconds), instructions


def mixes() -> str:
    """The table of mixes."""
    instruction_sets = native.host_instruction_sets()
    rows: list[list[object]] = []
    for mix in MIXES:
        row: list[object] = [mix.name]
        for isa in instruction_sets:
            seconds, instructions = measure(launcher(mix, isa))
            row.append(instructions / seconds / 1e6)
        rows.append(row)
    columns = ("mix", *(f"{isa}: M/CPU s" for isa in instruction_sets))
    text = "### By instruction mix\n\nWarp instructions per CPU second, one thread, with timing: loops of one kind.\n\n"
    return text + table(columns, rows)


def softmax_of(rows: int) -> tuple[str, Callable[[], Any]]:
    """A name and a launch."""
    x, o = torch.randn(rows, 1024), torch.empty(rows, 1024)
    return f"softmax {rows}x1024 fp32", lambda: softmax[(rows,)](o, x, 1024, 1024, 1024, B=1024)


def matmul_of(size: int, depth: int) -> tuple[str, Callable[[], Any]]:
    """A name and a launch."""
    a, b = torch.randn(size, depth).half(), torch.randn(depth, size).half()
    c = torch.empty(size, size, dtype=torch.float16)
    constexprs = {"BM": 128, "BN": 128, "BK": 64, "G": 8, "P": "tf32", "AT": tl.float32}
    strides = (depth, 1, size, 1, size, 1)
    return f"matmul {size}x{size}x{depth} fp16", lambda: matmul[((size // 128) ** 2,)](
        a, b, c, size, size, depth, *strides, **constexprs, num_warps=4, num_stages=3
    )


def sampled() -> str:
    """The table of sampled launches. Each is the first one of a device: caches are cold."""
    rows: list[list[object]] = []
    for name, launch in (softmax_of(32768), matmul_of(8192, 256)):
        with simt(threads=1, scheduler_seed=1):
            launch()  # Compiles.
        full = 0
        for waves in (0, 3, 5):
            with simt(threads=1, waves=waves) as driver, driver.observed() as launches:
                start = time.process_time()
                launch()
                seconds = time.process_time() - start
            result = launches[-1].result
            full = full or result.cycles
            untimed = sum(end - begin for begin, end in result.untimed_ctas)
            error = f"{100 * (result.cycles / full - 1):+.1f} %"
            rows.append([name, waves or "all", result.ctas - untimed, result.cycles, error, seconds])
    columns = ("kernel", "waves in detail", "CTAs in detail", "cycles", "error", "CPU seconds")
    text = "### Sampled launches\n\n`TRITON_KPERF_SIMT_WAVES`: results are the same, cycles are an estimate.\n\n"
    return text + table(columns, rows)


def run() -> tuple[str, int]:
    """Measure the mixes and sampled launches."""
    return "\n".join((mixes(), sampled())), 0

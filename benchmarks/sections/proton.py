"""kperfir and Proton side by side: the same wheel, the same kernels, records at the same places, in one run."""

from __future__ import annotations

import contextlib
import re
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import triton

from kernels.cases import CASES, HOPPER_WORKLOADS, WORKLOADS
from kperfir.capture.layout_json import parse_layout
from kperfir.compile.proton import proton_instrumentation
from kperfir.config import KINDS, resolve
from sections.table import table
from support.compiling import attempt, instrumentation
from support.launch import run_plain, run_profiled
from support.sass import Loop, disassemble, find_loop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

KERNELS = (
    "vadd_fp32",
    "softmax_fp32",
    "layernorm_fwd",
    "matmul_fp16",
    "matmul_persistent_tma",
    "matmul_persistent_tma_ws",
    "fa_fwd_fp16",
    "fa_bwd_dkdv",
    "nested_loops",
)
TARGETS = {"sm_80": 80, "sm_90": 90, "sm_100": 100}
CHIPS = {"a100": 80, "h100": 90}
COMPILES = 2
# What Proton can be given too: a region with a start and an end. Policies are sets of kinds; this is auto without one.
REGIONS = tuple(kind for kind in KINDS if kind not in ("iteration", "call", "mark"))

HEADING = """## Beside Proton

The same kernels, the same wheel, records around the same regions: those of the default policy but for iterations, which
Proton cannot be given. Both in their default mode: clocks of 4 bytes here, of 8 bytes there. Pairs are kperfir's figure
and Proton's. Instructions per record are of the whole kernel, less what the first region (the kernel's) costs.
Those in the loop are net of the largest loop as ptxas has made it: where ptxas unrolls it with records and not without,
or the other way round (`nested_loops`: three records cost ten instructions an iteration), two different loops meet.
"""

_USAGE = re.compile(r"REG:(\d+) STACK:(\d+)")


@dataclass(frozen=True, slots=True)
class Code:
    """Machine code of one variant; `milliseconds` is what compiling it took."""

    instructions: int
    loop: Loop | None
    registers: int
    stack: int
    shared: int
    records: int
    milliseconds: float


def run() -> tuple[str, int]:
    """Compile and run every kernel plain, with kperfir, and with Proton in its default mode."""
    parts = [HEADING]
    parts += [f"### Machine code, {target}\n\n{machine_code(target)}" for target in TARGETS]
    parts.append(f"### Simulated cycles\n\n{simulated()}")
    return "\n".join(parts), 0


def machine_code(target: str) -> str:
    """A row per kernel; pairs of figures are kperfir's and Proton's."""
    rows = []
    compile_with(contextlib.nullcontext, KERNELS[0], target, times=1)  # What Triton and LLVM do once.
    for name in KERNELS:
        if TARGETS[target] not in CASES[name].archs:
            continue
        plain = compile_with(contextlib.nullcontext, name, target)
        ours = compile_with(lambda: instrumentation(regions=REGIONS), name, target)
        theirs = compile_with(lambda: protons(REGIONS, TARGETS[target]), name, target)
        fixed_ours = compile_with(lambda: instrumentation(regions=("kernel",)), name, target, times=1)
        fixed_theirs = compile_with(lambda: protons(("kernel",), TARGETS[target]), name, target, times=1)
        rows.append([
            name, f"{ours.records} / {theirs.records}",
            pair(fixed_ours.instructions - plain.instructions, fixed_theirs.instructions - plain.instructions),
            pair(per_record(ours, fixed_ours), per_record(theirs, fixed_theirs)),
            pair(in_loop(plain, ours), in_loop(plain, theirs)),
            f"{plain.registers} / {ours.registers} / {theirs.registers}",
            f"{plain.stack} / {ours.stack} / {theirs.stack}", f"{plain.shared} / {ours.shared} / {theirs.shared}",
            pair(ours.milliseconds / plain.milliseconds, theirs.milliseconds / plain.milliseconds),
        ])  # fmt: skip
    columns = (
        "kernel", "records", "instructions for one region", "per further record", "per record in the loop",
        "registers: plain / kperfir / Proton", "stack bytes", "shared bytes", "time to compile / plain",
    )  # fmt: skip
    return table(columns, rows)


def pair(ours: float | None, theirs: float | None) -> str:
    return " / ".join("" if value is None else f"{value:.3g}" for value in (ours, theirs))


def per_record(all_regions: Code, one_region: Code) -> float | None:
    more = all_regions.records - one_region.records
    return (all_regions.instructions - one_region.instructions) / more if more else None


def in_loop(plain: Code, code: Code) -> float | None:
    """Net instructions that the largest loop gained per clock that is read in it."""
    if plain.loop is None or code.loop is None:
        return None
    clocks = code.loop.count("SR_CLOCK")
    return (code.loop.useful - plain.loop.useful) / clocks if clocks else None


@contextlib.contextmanager
def protons(regions: tuple[str, ...], arch: int) -> Iterator[Any]:
    """Proton's records; the number of them is what `compile_with` asks for."""
    with proton_instrumentation(resolve({}, regions=regions), arch=arch) as records:
        yield records


def compile_with(
    variant: Callable[[], contextlib.AbstractContextManager[Any]], name: str, target: str, *, times: int = COMPILES
) -> Code:
    """Compile a kernel in a context, without the cache, so many `times`."""
    spent = []
    with triton.knobs.compilation.scope():
        triton.knobs.compilation.always_compile = True
        with variant() as records:
            for _ in range(times):
                started = time.process_time()
                made = attempt(CASES[name], target)
                spent.append(1000 * (time.process_time() - started))
    if made.compiled is None:
        raise RuntimeError(f"{name} for {target}: {made.error}")
    lines = disassemble(made.compiled.asm["cubin"])
    registers, stack = usage(made.compiled.asm["cubin"])
    try:
        loop = find_loop(lines, ".")
    except ValueError:
        loop = None
    count = records.count if records is not None else 0
    if made.layout:
        count = sum(len(frame.stamps) for frame in parse_layout(made.layout).frames)
    instructions = sum(not line.endswith(":") for line in lines)
    return Code(
        instructions, loop, registers, stack, made.compiled.metadata.shared, count, statistics.median(spent)
    )  # fmt: skip


def usage(cubin: bytes) -> tuple[int, int]:
    """Registers and bytes of stack per thread."""
    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        text = subprocess.run([tool, "-res-usage", file.name], check=True, capture_output=True, text=True).stdout
    found = _USAGE.findall(text)
    return max(int(registers) for registers, _ in found), max(int(stack) for _, stack in found)


def simulated() -> str:
    """Cycles of a launch on each chip."""
    rows = []
    workloads = WORKLOADS | HOPPER_WORKLOADS
    for chip, arch in CHIPS.items():
        for name in KERNELS:
            if arch not in CASES[name].archs:
                continue
            plain = run_plain(workloads[name], chip=chip).cycles
            with proton_instrumentation(resolve({}, regions=REGIONS), arch=arch):
                theirs = run_plain(workloads[name], chip=chip).cycles
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "out.kpf"
                ours = run_profiled(workloads[name], path, simt_chip=chip, regions=REGIONS).cycles
            rows.append([chip, name, plain, ours / plain, theirs / plain])
    return table(("chip", "kernel", "plain cycles", "kperfir / plain", "Proton / plain"), rows)

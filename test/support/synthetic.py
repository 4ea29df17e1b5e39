"""A realistic .kpf without a compiler or device: a tiled matmul, through the reference encoder.

    write_matmul_capture(tmp_path / "x.kpf", CaptureShape(launches=2))

The result also holds what really happened, to compare with what is decoded.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kperfir.capture.writer import CaptureWriter, LaunchInfo, ProcessInfo
from support.programs import CtaRun, CtaSetting, Loop, Mark, Plan, Region, Role, Work, plan_program, run_cta

if TYPE_CHECKING:
    from pathlib import Path

    from kperfir.capture.layout import BufferLayout

CLOCK_HZ = 1.41e9


@dataclass(frozen=True)
class CaptureShape:
    """What to write. CTAs run on `sms` SMs, round robin; the last `left_out` of them record nothing.

    Too few `words_per_warp` drop records.
    """

    ctas: int = 4
    warps: int = 4
    iterations: int = 8
    sms: int = 2
    launches: int = 1
    strategy: str = "saturate"
    words_per_warp: int = 512
    specialised: bool = False
    seed: int = 0
    simulated: bool = True
    timer_ns: int = 5_000_000
    batch: int = 1
    left_out: int = 0


def matmul_plan(shape: CaptureShape) -> Plan:
    """Load ahead; per iteration wait, read, multiply, load the next tile; store.

    With `specialised`, a partition of one warp does the loading.
    """
    copies = [Region("async_copy", [Work(20, 60)], line=21), Region("async_copy", [Work(20, 60)], line=22)]
    compute = [
        Region("async_wait", [Work(40, 700)], line=20),
        Region("local_load", [Work(30, 90)], line=20),
        Region("dot", [Work(180, 260)], line=24),
    ]
    loop = Loop(compute if shape.specialised else [*compute, *copies], trips=(shape.iterations,), line=20)
    store = Region("store", [Work(200, 500)], line=30)
    prologue = [] if shape.specialised else copies
    body = [Work(10, 40), *prologue, Work(), loop, Mark(29), store]
    roles = [Role("default", shape.warps, [Region("kernel", body, line=10)])]
    if shape.specialised:
        loads = Loop(copies, trips=(shape.iterations,), line=20)
        roles.append(Role("partition0", 1, [Region("kernel", [loads], line=10)]))
    return plan_program(roles, kernel="matmul_kernel")


def run_launch(
    plan: Plan, layout: BufferLayout, shape: CaptureShape, rng: random.Random, start_cycle: int
) -> list[CtaRun]:
    """Execute the CTAs of one launch in waves over the SMs. Clocks of the SMs differ by a constant."""
    runs = []
    free_at = [start_cycle] * shape.sms
    for cta in range(shape.ctas):
        sm = cta % shape.sms
        setting = CtaSetting(
            ctaid=(cta, 0, 0),
            sm=sm,
            start_clock=free_at[sm] + 1_000_003 * sm,
            clock_hz=CLOCK_HZ,
            start_ns=shape.timer_ns + int(free_at[sm] * 1e9 / CLOCK_HZ),
            skew=12,
        )
        run = run_cta(plan, layout, rng, setting)
        free_at[sm] += run.header.end_clock - run.header.start_clock + 300
        runs.append(run)
    return runs


def describe_process(shape: CaptureShape) -> ProcessInfo:
    device = "simt:a100" if shape.simulated else "NVIDIA A100"
    return ProcessInfo.of_this_process(device=device, simulated=shape.simulated, chip="a100", clock_hz=CLOCK_HZ)


def write_matmul_capture(
    path: Path, shape: CaptureShape | None = None, process: ProcessInfo | None = None
) -> list[list[CtaRun]]:
    """Write a finished capture to `path`; the CTAs of each launch, with what really happened in them."""
    shape = shape or CaptureShape()
    return write_capture(path, matmul_plan(shape), shape, process)


def write_capture(
    path: Path, plan: Plan, shape: CaptureShape, process: ProcessInfo | None = None
) -> list[list[CtaRun]]:
    """The same of another program; of `shape` its size counts."""
    rng = random.Random(shape.seed)
    layout = plan.layout(strategy=shape.strategy, words_per_warp=shape.words_per_warp, frame_align=shape.batch)
    launches, cycle = [], 10_000
    with CaptureWriter(path, process or describe_process(shape)) as writer:
        kernel = writer.add_kernel(layout.text, {"registers": 96})
        for _ in range(shape.launches):
            runs = run_launch(plan, layout, shape, rng, cycle)
            cycle = max(run.header.end_clock for run in runs) + 5_000
            recorded = runs[: len(runs) - shape.left_out]
            missing = bytes(shape.left_out * layout.cta_bytes)
            data = np.frombuffer(b"".join(run.data for run in recorded) + missing, np.uint8)
            longest = max(run.header.end_clock - run.header.start_clock for run in runs)
            info = LaunchInfo((shape.ctas, 1, 1), cycles=longest if shape.simulated else None, clock_hz=CLOCK_HZ)
            writer.add_launch(kernel, info, data)
            launches.append(runs)
    return launches

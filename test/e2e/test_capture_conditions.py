"""The same truth under other conditions: records in global memory, several launches, host threads, a wrapping clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
import triton
import triton.language as tl

import kperfir
from kernels.cases import WORKLOADS
from kernels.registry import Case
from kernels.workload import Workload
from kperfir.runtime.simt import active_simt_driver
from support.ground_truth import compare_stamps, executed_stamps
from support.launch import layout_of, run_profiled

if TYPE_CHECKING:
    from pathlib import Path

WRAP_CYCLES = 1 << 32


@pytest.mark.parametrize("strategy", ["saturate", "ring"])
@pytest.mark.parametrize("name", ["matmul_fp16", "layernorm_fwd", "while_for_while"])
def test_records_in_global_memory_equal_the_log(name: str, strategy: str, tmp_path: Path):
    run = run_profiled(
        WORKLOADS[name], tmp_path / "out.kpf", log=True, buffer="global", buffer_bytes=64 << 10, strategy=strategy
    )
    assert layout_of(run)["buffer"] == "global"
    compared = compare_stamps(run, strategy=strategy)
    assert compared.decoded == compared.executed > 0
    WORKLOADS[name].verify(run.arguments)


# Clock and caches of a device go on from launch to launch: seeds that no other test has give devices of their own.
@pytest.mark.parametrize(("name", "seed"), [("matmul_fp16", 101), ("layernorm_bwd_lock", 102), ("atomics_i32", 103)])
def test_capture_is_the_same_for_any_number_of_host_threads(name: str, seed: int, tmp_path: Path):
    one, two, four = (
        run_profiled(WORKLOADS[name], tmp_path / f"{threads}.kpf", simt_threads=threads, simt_seed=seed)
        for threads in (1, 2, 4)
    )
    assert one.cycles == two.cycles == four.cycles
    assert one.timeline.stamps.equals(two.timeline.stamps)
    assert one.timeline.stamps.equals(four.timeline.stamps)


def test_every_launch_of_a_session_has_its_own_stamps(tmp_path: Path):
    names = ("softmax_fp32", "matmul_fp16_small", "softmax_fp32")
    with kperfir.profile(tmp_path / "out.kpf", device="simt", simt_threads=1) as profile:
        driver = active_simt_driver()
        assert driver is not None
        with driver.observed(log=True) as launches:
            for name in names:
                WORKLOADS[name].launch(WORKLOADS[name].arguments())
    timeline = profile.load()
    assert timeline.launches["kernel"].tolist() == ["softmax", "matmul", "softmax"]
    assert timeline.launches["launch"].tolist() == [0, 1, 2]
    for number, launch in enumerate(launches):
        found = timeline.stamps.query("launch == @number").sort_values(["cta", "warp", "clock"], kind="stable")
        assert found["clock"].tolist() == executed_stamps(launch)["issue"].tolist()
        assert timeline.launches["cycles"][number] == launch.result.cycles


@triton.jit
def sleeper(x, o, steps, B: tl.constexpr):
    i = tl.arange(0, B)
    acc = tl.zeros([B], tl.float32)
    for step in range(steps):
        acc += tl.load(x + i)
        woken = tl.inline_asm_elementwise(
            "nanosleep.u32 1000000; mov.b32 $0, $1;", "=r,r", [step], dtype=tl.int32, is_pure=False, pack=1
        )
        acc += woken * 0
    tl.store(o + i, acc)


def test_time_goes_on_where_the_32_bit_clock_wraps(tmp_path: Path):
    steps = 3200  # A millisecond each: 4.5e9 cycles of 1.41 GHz.
    workload = Workload(
        Case("sleeper", sleeper, ("*fp32", "*fp32", "i32"), {"B": 128}),
        (1,),
        lambda generator: {"x": torch.ones(128), "o": torch.zeros(128), "steps": steps},
        lambda before: {"o": torch.full((128,), float(steps))},
    )
    run = run_profiled(workload, tmp_path / "out.kpf", log=True, buffer_bytes=1 << 20, buffer="global")
    workload.verify(run.arguments)
    assert run.cycles > WRAP_CYCLES
    compared = compare_stamps(run)
    assert compared.decoded == compared.executed > 4 * steps
    assert run.timeline.spans["complete"].all()
    loop = run.timeline.spans.query("kind == 'loop'")
    assert (loop["duration_cycles"] > WRAP_CYCLES).all()

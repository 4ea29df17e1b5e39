"""Where records are held changes nothing about them: in global memory, and with CTAs left out."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from kernels.cases import WORKLOADS
from kperfir.compile import triton_hook
from support.ground_truth import compare_stamps
from support.launch import run_profiled

if TYPE_CHECKING:
    from pathlib import Path

KERNELS = ("matmul_fp16", "softmax_fp32", "nested_loops", "early_return", "branchy_loop")
EVERY = 3


@pytest.mark.parametrize("strategy", ["saturate", "ring"])
@pytest.mark.parametrize("name", KERNELS)
def test_stamps_in_global_memory_equal_the_logged_clock(name: str, strategy: str, tmp_path: Path):
    workload = WORKLOADS[name]
    run = run_profiled(
        workload, tmp_path / "out.kpf", log=True, strategy=strategy, buffer="global", buffer_bytes=64 << 10
    )
    workload.verify(run.arguments)
    compared = compare_stamps(run, strategy=strategy)
    assert compared.decoded == compared.executed > 0


@pytest.mark.parametrize("buffer", ["shared", "global"])
@pytest.mark.parametrize("name", ["matmul_fp16", "softmax_fp32"])
def test_sampling_records_every_third_cta(name: str, buffer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    plan = triton_hook.plan_pipelines

    def sampling(options: object) -> object:
        pipelines = plan(options)  # type: ignore[arg-type]
        return dataclasses.replace(pipelines, allocation=pipelines.allocation.replace("}", f" sample-ctas={EVERY}}}"))

    monkeypatch.setattr(triton_hook, "plan_pipelines", sampling)
    workload = WORKLOADS[name]
    run = run_profiled(workload, tmp_path / "out.kpf", log=True, buffer=buffer)
    workload.verify(run.arguments)
    launch = run.timeline.launches.iloc[0]
    total = int(launch["ctas_total"])
    assert total > 1
    assert sorted(run.timeline.tracks["cta"].unique()) == list(range(0, total, EVERY))
    assert launch["ctas_recorded"] == len(range(0, total, EVERY))
    assert (run.timeline.tracks["dropped"] == 0).all()

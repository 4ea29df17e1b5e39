"""Sampled launches of whole kernels: the same results, and captures that say what was simulated."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import torch

import kperfir
from kernels.cases import HOPPER_WORKLOADS, WORKLOADS
from kernels.reductions import softmax
from kperfir.cli.main import main
from kperfir.errors import ConfigError
from kperfir.runtime.simt import active_simt_driver
from support.launch import differing_arguments, run_plain, simt
from support.small_chip import write_small_chip

if TYPE_CHECKING:
    from pathlib import Path

# cp.async and mma.sync, locks, atomics, local memory and calls, streams.
KERNELS = ("matmul_fp16", "fa_fwd_fp16", "layernorm_fwd", "atomics_i32", "g_cp_mbarrier", "noinline_tree", "vadd_fp32")


@pytest.mark.parametrize("name", KERNELS)
def test_kernel_leaves_the_same_results_when_sampled(name: str, tmp_path: Path):
    workload, chip = WORKLOADS[name], write_small_chip(tmp_path, sm_count=1, max_ctas_per_sm=1)
    full, sampled = (run_plain(workload, chip=chip, waves=waves) for waves in (0, 3))
    ctas = sampled.launch.result.ctas
    expected = [(1, ctas - 3)] if ctas > 4 else []
    assert sampled.launch.result.untimed_ctas == expected
    assert differing_arguments(full.arguments, sampled.arguments) == []


# Bulk copies and wgmma, without and with warp specialisation.
@pytest.mark.parametrize("name", ["g_wgmma", "g_attention_ws"])
def test_hopper_kernel_leaves_the_same_results_when_sampled(name: str, tmp_path: Path):
    workload, chip = HOPPER_WORKLOADS[name], write_small_chip(tmp_path, "h100", sm_count=1, max_ctas_per_sm=1)
    full, sampled = (run_plain(workload, chip=chip, waves=waves) for waves in (0, 3))
    assert sampled.launch.result.untimed_ctas == [(1, 3)]
    assert differing_arguments(full.arguments, sampled.arguments) == []


def test_capture_of_a_sampled_launch_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    chip = write_small_chip(tmp_path, sm_count=4)
    rows, columns = 500, 256
    x, o = torch.randn(rows, columns), torch.empty(rows, columns)
    path = tmp_path / "out.kpf"
    with kperfir.profile(path, device="simt", simt_chip=chip, simt_threads=1, simt_waves=3):
        driver = active_simt_driver()
        assert driver is not None
        with driver.observed() as launches:
            softmax[(rows,)](o, x, columns, columns, columns, B=256)
    torch.testing.assert_close(o, torch.softmax(x, 1))
    [(begin, end)] = launches[0].result.untimed_ctas
    assert 0 < begin < end < rows

    timeline = kperfir.load(path)
    detailed = rows - (end - begin)
    assert sorted(timeline.tracks["cta"].unique()) == [*range(begin), *range(end, rows)]
    assert timeline.launches["ctas_recorded"].tolist() == [detailed]
    assert timeline.launches["cycles"].tolist() == [launches[0].result.cycles]
    note = f"out.kpf: 1 launch of softmax sampled: {detailed} of {rows} CTAs simulated in detail, {begin} to {end - 1}"
    assert any(text.startswith(note) and "estimate" in text for text in timeline.notes)

    for verb in ("report", "inspect"):
        assert main([verb, str(path), "--json"]) in (0, 3)
        contents = json.loads(capsys.readouterr().out)
        assert any(text.startswith(note) for text in contents["notes"])
    assert contents["launches"][0]["facts"]["untimed_ctas"] == [[begin, end]]


def test_cycles_of_a_large_softmax_are_estimated_to_three_percent(tmp_path: Path):
    chip = write_small_chip(tmp_path, sm_count=8, l2_slices=6, dram_channels=3)
    rows, columns = 1700, 256
    x, o = torch.randn(rows, columns), torch.empty(rows, columns)
    cycles = []
    for waves in (0, 3):
        with simt(chip=chip, waves=waves) as driver, driver.observed() as launches:
            softmax[(rows,)](o, x, columns, columns, columns, B=256)
        cycles.append(launches[0].result.cycles)
        assert bool(launches[0].result.untimed_ctas) == bool(waves)
    assert cycles[1] == pytest.approx(cycles[0], rel=0.03)


def test_too_few_waves_are_refused(tmp_path: Path):
    with pytest.raises(ConfigError, match="3 and more"), kperfir.profile(tmp_path / "out.kpf", simt_waves=2):
        pass

"""Every decoded timestamp is the clock value that the device's event log has for its instruction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kernels.cases import WORKLOADS
from support.ground_truth import check_enclosure, compare_stamps
from support.launch import layout_of, run_profiled

if TYPE_CHECKING:
    from pathlib import Path

STRATEGIES = ("saturate", "ring")
KERNELS = (
    "matmul_fp16",
    "softmax_fp32",
    "layernorm_fwd",
    "fa_fwd_fp16",
    "matmul_persistent_tma",
    # Control flow that a decoder cannot know: varying trip counts, whiles in fors in whiles, branches, early returns.
    "nested_loops",
    "while_for_while",
    "branchy_loop",
    "early_return",
    "grouped_gemm",
    "layernorm_bwd_lock",
)
WORD_BYTES = 4
SEGMENT_ALIGNMENT = 16


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", KERNELS)
def test_every_stamp_equals_the_logged_clock(name: str, strategy: str, tmp_path: Path):
    run = run_profiled(WORKLOADS[name], tmp_path / "out.kpf", log=True, strategy=strategy, buffer_bytes=64 << 10)
    compared = compare_stamps(run, strategy=strategy)
    assert compared.decoded == compared.executed > 0


@pytest.mark.parametrize("frames", [2, 3])
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", ["matmul_fp16", "nested_loops", "while_for_while", "branchy_loop", "fa_fwd_fp16"])
def test_drops_are_exact_when_the_buffer_is_tiny(name: str, strategy: str, frames: int, tmp_path: Path):
    workload = WORKLOADS[name]
    layout = layout_of(run_profiled(workload, tmp_path / "whole.kpf"))
    bytes_per_warp = rounded_up(frames * layout["max_frame_words"] * WORD_BYTES, SEGMENT_ALIGNMENT)
    run = run_profiled(
        workload,
        tmp_path / "tiny.kpf",
        log=True,
        strategy=strategy,
        buffer_bytes=layout["total_warps"] * bytes_per_warp,
    )
    compared = compare_stamps(run, strategy=strategy)
    assert compared.decoded > 0
    assert compared.dropped > 0
    assert any("dropped" in note for note in run.timeline.notes)


@pytest.mark.parametrize("name", KERNELS)
def test_regions_enclose_their_instructions(name: str, tmp_path: Path):
    run = run_profiled(WORKLOADS[name], tmp_path / "out.kpf", log=True, buffer_bytes=64 << 10)
    checked = check_enclosure(run)
    assert sum(checked.values()) > 0


def rounded_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit

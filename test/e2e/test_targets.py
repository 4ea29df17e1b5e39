"""Instrumented kernels compile to machine code for every target, with one clock read for each stamp.

AMD's assembler is part of the compilation, so that what it accepts is what is tested; none of this is run.
"""

from __future__ import annotations

import json
import re

import pytest

from kernels.cases import CASES
from support.compiling import attempt, instrumentation

KERNELS = ("softmax_fp32", "early_return", "layernorm_bwd_lock", "noinline_tree")
NVIDIA_KERNELS = (*KERNELS, "matmul_fp16", "matmul_persistent_tma", "fa_tma_ws", "dot_scaled_mxfp8")
# How each generation reads the clock for a stamp.
STAMPS = {
    "gfx942": r"\bs_memtime\b",
    "gfx950": r"\bs_memtime\b",
    "gfx1100": r"\bMSG_RTN_GET_REALTIME\b",
    "gfx1201": r"hwreg\(HW_REG_SHADER_CYCLES_LO\)",
}
PLACES = [("saturate", "shared"), ("ring", "global")]


@pytest.mark.parametrize("name", NVIDIA_KERNELS)
@pytest.mark.parametrize("target", ["sm_89", "sm_120"])
def test_kernel_compiles_with_records_for_consumer_gpus(target: str, name: str):
    with instrumentation():
        tried = attempt(CASES[name], target)
    assert tried.layout, tried.error or tried.reason
    asm = tried.compiled.asm
    # What the layout has; a kernel that would spill is recorded more cheaply than its TTGIR says.
    stamps = sum(len(frame["stamps"]) for frame in json.loads(tried.layout)["frames"])
    assert len(re.findall(r"mov\.u32 %\w+, %clock; // kperf stamp", asm["ptx"])) == stamps > 0


@pytest.mark.parametrize(("strategy", "buffer"), PLACES)
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("target", STAMPS)
def test_every_stamp_is_a_clock_read_on_amd(target: str, name: str, strategy: str, buffer: str):
    with instrumentation(strategy=strategy, buffer=buffer):
        tried = attempt(CASES[name], target)
    assert tried.layout, tried.error or tried.reason
    asm = tried.compiled.asm
    stamps = asm["ttgir"].count("kperf_gpu.stamp")
    # LLVM may copy a block, never drop a read. Anchors read a clock as well.
    assert len(re.findall(STAMPS[target], asm["amdgcn"])) >= stamps > 0


@pytest.mark.parametrize("target", STAMPS)
def test_selection_of_ctas_asks_the_runtime_for_the_grid_on_amd(target: str):
    with instrumentation(ctas="1:9:2"):
        tried = attempt(CASES["softmax_fp32"], target)
    assert tried.layout, tried.error or tried.reason
    # What is not used is not passed; the code object says what is.
    hidden = re.findall(r"hidden_block_count_[xyz]", tried.compiled.asm["amdgcn"])
    assert {"hidden_block_count_x", "hidden_block_count_y"} <= set(hidden)


@pytest.mark.parametrize("target", ["gfx942", "gfx950"])
def test_stamps_do_not_wait_for_lds_one_by_one(target: str):
    """A clock read goes through the counter of LDS accesses; waiting for each would drain them each time."""
    case = CASES["fa_fwd_fp16"]
    plain = attempt(case, target).compiled.asm["amdgcn"]
    with instrumentation():
        instrumented = attempt(case, target).compiled.asm["amdgcn"]
    waits = [len(re.findall(r"lgkmcnt\(0\)", text)) for text in (plain, instrumented)]
    stamps = len(re.findall(r"\bs_memtime\b", instrumented))
    assert waits[1] - waits[0] < stamps / 2
    # Nothing else changed: the same matrix instructions, no spill.
    assert instrumented.count("v_mfma") == plain.count("v_mfma") > 0
    assert "scratch_store" not in instrumented

"""No stamp is lost or merged between the IR in which it is planned and the machine code."""

from __future__ import annotations

import re

import pytest

from kernels.cases import CASES
from support.compiling import attempt, instrumentation
from support.sass import disassemble

KERNELS = [
    ("sm_80", "matmul_fp16"),
    ("sm_80", "softmax_fp32"),
    ("sm_80", "layernorm_fwd"),
    ("sm_80", "fa_fwd_fp16"),
    ("sm_90", "matmul_fp16"),
    ("sm_90", "matmul_persistent_tma"),
    ("sm_90", "fa_fwd_fp16"),
    ("sm_90", "g_warp_specialize_wgmma"),
    ("sm_100", "matmul_fp16"),
]


@pytest.mark.parametrize(("target", "name"), KERNELS)
def test_every_stamp_is_a_clock_read(target: str, name: str):
    with instrumentation():
        tried = attempt(CASES[name], target)
    assert tried.layout, tried.reason
    asm = tried.compiled.asm
    stamps = asm["ttgir"].count("kperf_gpu.stamp")
    assert stamps > 0
    assert len(re.findall(r"mov\.u32 %\w+, %clock; // kperf stamp", asm["ptx"])) == stamps
    # ptxas reads the 32-bit clock by one instruction; the anchors read the 64-bit one. It unrolls short loops, records
    # included: a stamp then has several places, which is nothing to a decoder that goes by frame and slot.
    clocks = [line for line in disassemble(asm["cubin"]) if re.search(r"CS2R\.32 .*SR_CLOCKLO", line)]
    assert len(clocks) == stamps if name == "matmul_fp16" else len(clocks) >= stamps


@pytest.mark.parametrize("target", ["sm_90", "sm_100"])
def test_records_add_no_barrier_that_counts_all_warps(target: str):
    """A bare `bar.sync 0` would wait for the warps of partitions, which are past theirs, for ever.

    Barriers with a thread count are Triton's: it may place one more where a record follows a wait.
    """
    names = [name for name, case in CASES.items() if "warp_specialize" in name and int(target[3:]) in case.archs]
    assert names
    for name in names:
        plain = attempt(CASES[name], target)
        with instrumentation():
            instrumented = attempt(CASES[name], target)
        assert instrumented.layout, instrumented.reason
        bare = [
            re.findall(r"\bbar(?:rier)?\S*sync\S*\s+\d+;", run.compiled.asm["ptx"]) for run in (plain, instrumented)
        ]
        assert sorted(bare[0]) == sorted(bare[1])

"""What records cost in the loop of a matmul, counted from the machine code that ptxas makes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from kernels.cases import CASES, WORKLOADS
from kernels.matmuls import tiled
from kperfir.code.parts import Part
from support.compiling import attempt, instrumentation
from support.launch import run_plain, run_profiled
from support.sass import Loop, disassemble, find_loop

if TYPE_CHECKING:
    from pathlib import Path

MATMUL = tiled("matmul_128x128x32", "fp16", "fp16", tile=(128, 128, 32), options={"num_warps": 4, "num_stages": 3})
MATRIX = r"HMMA|HGMMA|UTC\w*MMA"
CLOCK = r"\bCS2R(\.32)? .*SR_CLOCKLO"
# Registers that do not fit are kept on the stack.
SPILL = r"\b(STL|LDL)\b"


def compile_both(target: str, **options: int) -> tuple[list[str], list[str]]:
    """Machine code of the kernel as it is, and with records."""
    plain = attempt(MATMUL, target)
    with instrumentation(**options):
        instrumented = attempt(MATMUL, target)
    assert instrumented.layout, instrumented.reason
    return disassemble(plain.compiled.asm["cubin"]), disassemble(instrumented.compiled.asm["cubin"])


def cost_per_record(plain: Loop, instrumented: Loop) -> float:
    """Added instructions for each stored stamp, without ptxas's fillers."""
    return (instrumented.useful - plain.useful) / instrumented.count(CLOCK)


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_100"])
def test_records_in_the_matmul_loop_are_cheap(target: str):
    plain, instrumented = (find_loop(lines, MATRIX) for lines in compile_both(target))
    assert instrumented.count(CLOCK) >= 7
    # The same work: records must not make the compiler do something else.
    assert instrumented.count(MATRIX) == plain.count(MATRIX)
    assert instrumented.count("LDGSTS") == plain.count("LDGSTS")
    assert instrumented.count(r"\bBAR\b") == plain.count(r"\bBAR\b")
    assert cost_per_record(plain, instrumented) <= 2.2


@pytest.mark.parametrize(("target", "limit"), [("sm_80", 2.2), ("sm_90", 2.2), ("sm_100", 2.4)])
def test_records_that_are_stored_one_at_a_time_are_cheap(target: str, limit: float):
    plain, instrumented = (find_loop(lines, MATRIX) for lines in compile_both(target, batch=1))
    assert instrumented.count(MATRIX) == plain.count(MATRIX)
    assert cost_per_record(plain, instrumented) <= limit


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_100"])
def test_records_add_no_spill(target: str):
    plain, instrumented = compile_both(target)
    count = [sum(bool(re.search(SPILL, line)) for line in lines) for lines in (plain, instrumented)]
    assert count[1] <= count[0]


# With four, the matmul has no registers left on sm_80, and is recorded otherwise.
@pytest.mark.parametrize(("target", "batch", "limit"), [("sm_80", 2, 1.5), ("sm_90", 4, 1.5), ("sm_100", 4, 1.7)])
def test_records_that_are_stored_together_take_fewer_instructions(target: str, batch: int, limit: float):
    plain, batched = (find_loop(lines, MATRIX) for lines in compile_both(target, batch=batch))
    assert batched.count(MATRIX) == plain.count(MATRIX)
    records = batched.count(CLOCK)
    stores = batched.count(r"\bSTS\b") - plain.count(r"\bSTS\b")
    assert stores == -(-(records + 1) // batch), "of the tag, too"
    assert cost_per_record(plain, batched) <= limit


@pytest.mark.parametrize(("target", "limit"), [("sm_80", 85), ("sm_90", 95), ("sm_100", 95)])
def test_recording_one_region_adds_few_instructions(target: str, limit: int):
    plain = attempt(CASES["vadd_fp32"], target)
    with instrumentation(regions=("kernel",)):
        instrumented = attempt(CASES["vadd_fp32"], target)
    codes = [disassemble(each.compiled.asm["cubin"]) for each in (plain, instrumented)]
    counts = [sum(not line.endswith(":") for line in code) for code in codes]
    assert counts[1] - counts[0] <= limit


def test_set_up_and_copy_out_cost_a_launch_few_cycles(tmp_path: Path):
    workload = WORKLOADS["vadd_fp32"]
    plain, profiled = run_plain(workload), run_profiled(workload, tmp_path / "out.kpf")
    cost = {
        part: profiled.cycles
        - run_profiled(workload, tmp_path / "part.kpf", ghost=profiled, parts=frozenset({part})).cycles
        for part in Part
    }
    assert profiled.cycles - plain.cycles <= 220
    assert 0 < cost[Part.SET_UP] <= 60
    assert 0 < cost[Part.COPY_OUT] <= 170
    assert 0 < cost[Part.RECORDS] <= 80

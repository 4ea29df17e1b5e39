"""On = off: instrumentation changes no bit of any result that does not depend on the scheduler anyway.

The same runs are held against the event log: what was recorded is true for the whole corpus, not only for the kernels
of test_ground_truth.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kernels.cases import WORKLOADS
from support.ground_truth import check_enclosure, compare_stamps
from support.launch import differing_arguments, run_plain, run_profiled

if TYPE_CHECKING:
    from pathlib import Path

SCHEDULER_SEEDS = (0, 1, 2)
# These give away the order or the time of execution; what must hold of any order is checked instead.
TIME_DEPENDENT = {"atomics_i32", "inline_asm_timer"}
# A dot that is no matrix instruction but many FMAs.
WITHOUT_MATRIX_INSTRUCTIONS = {"matmul_fp32_ieee"}
# Whose loads are in functions that are not inlined: no region is around each, only one around the call.
WITH_CALLS = {"noinline_tree"}


@pytest.mark.parametrize("name", WORKLOADS)
def test_instrumented_result_is_bit_for_bit_the_plain_one(name: str, tmp_path: Path):
    workload = WORKLOADS[name]
    plain, *others = (run_plain(workload, scheduler_seed=seed) for seed in SCHEDULER_SEEDS)
    profiled = run_profiled(workload, tmp_path / "out.kpf", log=True)

    assert compare_stamps(profiled).decoded > 0, "the kernel was not instrumented"
    if name not in WITHOUT_MATRIX_INSTRUCTIONS | WITH_CALLS:
        check_enclosure(profiled)
    workload.verify(profiled.arguments)
    if name in TIME_DEPENDENT:
        return
    for other in others:
        assert differing_arguments(plain.arguments, other.arguments) == []
    assert differing_arguments(plain.arguments, profiled.arguments) == []

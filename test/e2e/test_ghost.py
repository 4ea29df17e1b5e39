"""Ghost mode: records that cost nothing leave the time of the kernel as it is without them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kernels.cases import HOPPER_WORKLOADS, WORKLOADS
from kperfir.runtime.ghost import free_instructions
from support.launch import differing_arguments, run_plain, run_profiled

if TYPE_CHECKING:
    from pathlib import Path

WORK = {"a100": WORKLOADS, "h100": WORKLOADS | HOPPER_WORKLOADS}
# How far the cycles may be from those of the plain kernel. Not 0 where records keep LLVM from what it does without:
# docs/accuracy.md says what.
BOUNDS = {
    ("a100", "vadd_fp32"): 0.02,
    ("a100", "softmax_fp32"): 0.015,
    ("h100", "matmul_persistent_tma"): 0.01,
}


@pytest.mark.parametrize(("chip", "name"), BOUNDS)
def test_free_records_leave_the_cycles_of_the_plain_kernel(chip: str, name: str, tmp_path: Path):
    workload = WORK[chip][name]
    plain = run_plain(workload, chip=chip)
    ghost = run_profiled(workload, tmp_path / "ghost.kpf", ghost=plain, simt_chip=chip)
    profiled = run_profiled(workload, tmp_path / "out.kpf", simt_chip=chip)
    assert abs(ghost.cycles - plain.cycles) <= BOUNDS[chip, name] * plain.cycles
    assert profiled.cycles > ghost.cycles
    # They execute all the same: the same results, the same records.
    assert ghost.launch.result.occupancy == plain.launch.result.occupancy
    assert differing_arguments(ghost.arguments, plain.arguments) == []
    assert ghost.timeline.tracks["records"].tolist() == profiled.timeline.tracks["records"].tolist()
    assert ghost.timeline.spans["region"].tolist() == profiled.timeline.spans["region"].tolist()


def test_nothing_of_a_plain_kernel_is_free():
    plain = run_plain(WORKLOADS["matmul_fp16"])
    assert not any(free_instructions(plain.launch.kernel))

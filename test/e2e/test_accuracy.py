"""What a capture says of regions, corrected, against the truth of the timing model; docs/accuracy.md has all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kernels.cases import HOPPER_WORKLOADS, WORKLOADS
from support.accuracy import measure

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("name", "batch"), [("nested_loops", 1), ("nested_loops", 4), ("fa_fwd_fp16", 4), ("branchy_loop", 2)]
)
def test_corrected_regions_are_near_the_truth(name: str, batch: int, tmp_path: Path):
    found = measure(WORKLOADS[name], tmp_path, chip="a100", batch=batch)
    assert abs(found.ghost_error) <= 0.01
    assert found.median_excess <= 1
    assert found.p95_excess <= 1.5
    assert abs(found.kernel_error) <= 0.01 < found.kernel_error_raw
    assert found.covered >= 0.95


# What is known of these comes from other warps: those that reductions wait for, and the ones that issue bulk copies.
@pytest.mark.parametrize(("chip", "name"), [("h100", "warps_8"), ("h100", "matmul_2cta")])
def test_time_is_right_where_warps_wait_for_each_other(chip: str, name: str, tmp_path: Path):
    found = measure(HOPPER_WORKLOADS[name], tmp_path, chip=chip)
    assert abs(found.kernel_error) <= 0.01

"""Every kernel that compiles for sm_90 runs on the SIMT device, computes what it must, and so it does instrumented."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kernels.cases import CASES, HOPPER_WORKLOADS
from kperfir.runtime import select
from support.ground_truth import check_enclosure, compare_stamps
from support.launch import differing_arguments, run_plain, run_profiled

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import RunPython

CHIP = "h100"
# These give away the order or the time of execution.
TIME_DEPENDENT = {"atomics_i32", "inline_asm_timer"}
# A dot that is no matrix instruction but many FMAs.
WITHOUT_MATRIX_INSTRUCTIONS = {"matmul_fp32_ieee"}
# Waits that belong to another operation: to a wgmma that is not asynchronous, to making a descriptor.
SYNCHRONOUS = {"wgmma_wait"}
MAKES_DESCRIPTORS = {"async_wait"}
WAITS_ELSEWHERE = {
    "g_attention_ws": SYNCHRONOUS,
    "g_warp_specialize_wgmma": SYNCHRONOUS,
    "g_persistent_matmul_ws": SYNCHRONOUS,
    "matmul_persistent_tma": MAKES_DESCRIPTORS,
    "matmul_persistent_tma_ws": MAKES_DESCRIPTORS,
    "matmul_2cta": MAKES_DESCRIPTORS,
}
# Triton 3.9 cannot specialise warps around host descriptors on sm_90.
NOT_COMPILED = {"matmul_hostdesc_ws", "fa_tma_ws"}
UNITS = {
    "g_attention_ws": ("wgmma.mma_async", "cp.async.bulk.tensor", "mbarrier.try_wait", "setmaxnreg"),
    "g_persistent_matmul_ws": ("wgmma.mma_async", "cp.async.bulk.tensor", "mbarrier.try_wait", "setmaxnreg"),
    "g_cluster_2cta": ("mapa", "ld.shared::cluster", "barrier.cluster"),
    "matmul_persistent_tma": ("tensormap.replace", "tensormap.cp_fenceproxy", "cp.async.bulk.tensor"),
    "tma_reduce_add": ("cp.reduce.async.bulk.tensor",),
}


@pytest.mark.parametrize("name", HOPPER_WORKLOADS)
def test_kernel_matches_reference_plain_and_instrumented(name: str, tmp_path: Path):
    workload = HOPPER_WORKLOADS[name]
    plain, other = (run_plain(workload, scheduler_seed=seed, chip=CHIP) for seed in (0, 1))
    workload.verify(plain.arguments)
    profiled = run_profiled(workload, tmp_path / "out.kpf", log=True, simt_chip=CHIP)
    workload.verify(profiled.arguments)
    assert compare_stamps(profiled).decoded > 0, "the kernel was not instrumented"
    if name not in WITHOUT_MATRIX_INSTRUCTIONS:
        check_enclosure(profiled, without=WAITS_ELSEWHERE.get(name, ()))
    if name not in TIME_DEPENDENT:
        assert differing_arguments(plain.arguments, other.arguments) == []
        assert differing_arguments(plain.arguments, profiled.arguments) == []


@pytest.mark.parametrize("name", UNITS)
def test_kernel_uses_the_units_of_sm90(name: str):
    run = run_plain(HOPPER_WORKLOADS[name], chip=CHIP)
    for instruction in UNITS[name]:
        assert instruction in run.compiled.asm["ptx"]


def test_every_case_of_sm90_that_compiles_has_a_workload():
    corpus = {name for name, case in CASES.items() if 90 in case.archs}
    assert corpus - {workload.case.name for workload in HOPPER_WORKLOADS.values()} == NOT_COMPILED


@pytest.mark.parametrize("name", sorted(NOT_COMPILED))
def test_cases_without_a_workload_are_those_that_triton_cannot_compile(name: str, run_python: RunPython):
    child = run_python("-c", f"from kernels.cases import CASES; CASES[{name!r}].compile(90)")
    assert child.returncode == 1
    assert "PassManager::run failed" in child.stderr


@pytest.mark.parametrize("name", ["g_attention_ws", "g_cluster_2cta", "matmul_persistent_tma"])
def test_cycles_do_not_depend_on_host_threads(name: str):
    runs = []
    for threads in (1, 3):
        select._simt_driver.cache_clear()  # A device's caches know what ran on it before.
        runs.append(run_plain(HOPPER_WORKLOADS[name], chip=CHIP, threads=threads))
    assert runs[0].cycles == runs[1].cycles
    assert differing_arguments(runs[0].arguments, runs[1].arguments) == []

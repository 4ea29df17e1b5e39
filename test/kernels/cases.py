"""All cases and all workloads, by name: WORKLOADS run from sm_80 on."""

from __future__ import annotations

from kernels import control_flow, gluon_kernels, hopper_kernels, language, triton_kernels
from kernels.workload import Workload
from kernels.workloads import attention, elementwise, gluon, hopper, indexing, matmuls, reductions
from kernels.workloads import control_flow as control_flow_workloads
from kernels.workloads import language as language_workloads

_FAMILIES_OF_CASES = (triton_kernels, gluon_kernels, hopper_kernels, control_flow, language)
CASES = {case.name: case for family in _FAMILIES_OF_CASES for case in family.CASES}

FAMILIES = (elementwise, reductions, indexing, matmuls, attention, gluon, control_flow_workloads, language_workloads)
WORKLOADS: dict[str, Workload] = {workload.name: workload for family in FAMILIES for workload in family.WORKLOADS}

# What only sm_90 and later can run, and all else that it can.
HOPPER_WORKLOADS: dict[str, Workload] = {
    workload.name: workload for workload in (*hopper.WORKLOADS, *WORKLOADS.values()) if 90 in workload.case.archs
}

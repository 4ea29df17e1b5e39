"""All cases and all workloads, by name."""

from __future__ import annotations

from kernels import control_flow, gluon_kernels, language, triton_kernels
from kernels.workload import Workload
from kernels.workloads import attention, elementwise, gluon, indexing, matmuls, reductions
from kernels.workloads import control_flow as control_flow_workloads
from kernels.workloads import language as language_workloads

CASES = {case.name: case for case in triton_kernels.CASES + gluon_kernels.CASES + control_flow.CASES + language.CASES}

FAMILIES = (elementwise, reductions, indexing, matmuls, attention, gluon, control_flow_workloads, language_workloads)
WORKLOADS: dict[str, Workload] = {workload.name: workload for family in FAMILIES for workload in family.WORKLOADS}

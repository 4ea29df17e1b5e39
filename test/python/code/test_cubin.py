"""Registers of a cubin, against what NVIDIA's own tool prints."""

from __future__ import annotations

import pytest

from kernels.cases import CASES
from kperfir.audit.builds import resource_usage
from kperfir.audit.resources import read_usage
from kperfir.code.cubin import registers
from support.compiling import attempt


@pytest.mark.parametrize(
    ("name", "target"), [("softmax_fp32", "sm_80"), ("vadd_fp32", "sm_90"), ("vadd_fp32", "sm_100")]
)
def test_registers_are_those_that_cuobjdump_prints(name: str, target: str) -> None:
    compiled = attempt(CASES[name], target).compiled
    cubin = compiled.asm["cubin"]
    assert registers(cubin) == read_usage(resource_usage(cubin, compiled.metadata.name))[0]


@pytest.mark.parametrize("length", [0, 10, 64, 200, 1000])
def test_damaged_file_has_no_registers(length: int) -> None:
    cubin = attempt(CASES["vadd_fp32"], "sm_80").compiled.asm["cubin"]
    assert registers(cubin[:length]) is None

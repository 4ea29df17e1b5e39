"""The references themselves, against an implementation that shares nothing with ours: Triton's interpreter."""

from __future__ import annotations

import json

import pytest

from kernels.cases import CASES, WORKLOADS

# What Triton 3.9's interpreter cannot do; hardware and Triton's compiler can.
NO_LIBDEVICE = "libdevice functions are absent"
NO_BF16 = "arithmetic on bf16 is done on the bits as integers"
BEYOND_INTERPRETER = {
    "gelu_tanh_fp16": NO_LIBDEVICE,
    "mathzoo_fp32": NO_LIBDEVICE,
    "quant_int8": NO_LIBDEVICE,
    "vadd_bf16": NO_BF16,
    "embedding_bwd_bf16": NO_BF16,
    "matmul_bf16": NO_BF16,
    "fa_fwd_bf16_causal": NO_BF16,
    "quant_fp8e5": "rounding to fp8 drops the carry out of the mantissa",
    "inline_asm_timer": "inline PTX is absent",
    "mapped_compare": "map_elementwise cannot branch",
}
INTERPRETED = [
    name
    for name, workload in WORKLOADS.items()
    if name not in BEYOND_INTERPRETER and not workload.case.kernel.is_gluon()
]


@pytest.fixture(scope="module")
def interpreted(run_python) -> dict[str, str]:
    result = run_python("-W", "ignore", "-m", "support.interpret", *INTERPRETED, TRITON_INTERPRET="1")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", INTERPRETED)
def test_reference_agrees_with_interpreter(name: str, interpreted: dict[str, str]):
    assert interpreted[name] == ""


def test_every_sm80_case_has_a_workload_and_most_a_reference():
    corpus = {name for name, case in CASES.items() if 80 in case.archs}
    assert corpus == {workload.case.name for workload in WORKLOADS.values()}
    referenced = {workload.case.name for workload in WORKLOADS.values() if workload.has_reference}
    assert corpus - referenced == {"assert_print"}


def test_reference_rejects_a_wrong_result():
    workload = WORKLOADS["vadd_fp32"]
    arguments = workload.arguments()
    arguments["o"][: arguments["n"]] = arguments["x"] + arguments["y"]
    workload.verify(arguments)
    arguments["o"][arguments["n"]] += 1  # One element past the mask.
    with pytest.raises(AssertionError, match="vadd_fp32: o"):
        workload.verify(arguments)

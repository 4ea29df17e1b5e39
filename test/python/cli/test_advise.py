"""`kperfir advise`: text and JSON."""

from __future__ import annotations

import json


def test_json_lists_kernels_with_their_findings(kperfir, whole) -> None:
    answer = kperfir("advise", whole, "--json")
    assert answer.code == 0
    data = json.loads(answer.out)
    assert data["kperfir_advice"] == 1
    assert [kernel["kernel"] for kernel in data["kernels"]] == ["matmul_kernel"]
    assert all(finding["speedup"] <= finding["bound"] for kernel in data["kernels"] for finding in kernel["findings"])


def test_text_names_the_kernel(kperfir, whole) -> None:
    answer = kperfir("advise", whole)
    assert answer.code == 0
    assert "matmul_kernel: " in answer.out


def test_dropped_records_are_exit_code_3(kperfir, lossy) -> None:
    assert kperfir("advise", lossy).code == 3


def test_unknown_kernel_is_wrong_usage(kperfir, whole) -> None:
    assert kperfir("advise", whole, "--kernel", "nothing*").code == 2

"""Operations of real kernel libraries with their own host code: a fixed few; `make corpus` goes through all."""

from __future__ import annotations

import json

import pytest

from conftest import RunPython

# Reductions over rows, atomics, matrix products in loops, a scan along time, and several kernels in a row.
OPERATIONS = [
    ("liger", "rms_norm", 2), ("liger", "cross_entropy", 1), ("liger", "rope", 1),
    ("fla", "chunk_retention", 4), ("fla", "fused_recurrent_gla", 2), ("fla", "token_shift", 1),
]  # fmt: skip


@pytest.mark.parametrize(("library", "name", "kernels"), OPERATIONS, ids=[f"{one[0]}-{one[1]}" for one in OPERATIONS])
def test_operation_is_instrumented_and_computes_the_same(
    library: str, name: str, kernels: int, run_python: RunPython
) -> None:
    done = run_python("-m", "libraries.check", library, name)
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout.splitlines()[-1])
    assert outcome["error"] == ""
    assert outcome["differing"] == []
    assert len(outcome["kernels"]) >= kernels
    for kernel_name, kernel in outcome["kernels"].items():
        assert kernel["fallback"] == "", kernel_name
        assert kernel["compiled"] == {"sm_90": "", "sm_100": ""}, kernel_name
        assert kernel["launches"] > 0, kernel_name
        assert kernel["records"] > 0, kernel_name
        assert kernel["unbalanced"] == 0, kernel_name

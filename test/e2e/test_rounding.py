"""Records do not change how LLVM rounds: which product of a sum becomes part of a fused multiply-add."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import triton
import triton.language as tl

import kperfir
from support.launch import simt

STEPS, WIDTH = 16, 128


@triton.jit
def gated_recurrence(gates, keys, values, out, steps, B: tl.constexpr):
    i = tl.arange(0, B)
    state = tl.zeros((B,), tl.float32)
    for step in range(steps):
        gate = tl.load(gates + step * B + i)
        key = tl.load(keys + step * B + i)
        value = tl.load(values + step * B + i)
        state = state * tl.exp(gate) + key * value
    tl.store(out + i, state)


def run(**options: bool) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.randn(STEPS * WIDTH, generator=generator) for _ in range(3)]
    out = torch.zeros(WIDTH)
    gated_recurrence[(1,)](*inputs, out, STEPS, WIDTH, **options)
    return out


def test_sum_of_two_products_is_fused_as_without_records(tmp_path: Path) -> None:
    with simt():
        plain, unfused = run(), run(enable_fp_fusion=False)
    with kperfir.profile(tmp_path / "out.kpf", device="simt") as profile:
        recorded, recorded_unfused = run(), run(enable_fp_fusion=False)
    assert not torch.equal(plain, unfused), "fusion makes a difference here"
    assert torch.equal(plain, recorded)
    assert torch.equal(unfused, recorded_unfused)
    assert profile.summary.kept == {"gated_recurrence": 2}


# What does not match: the sums themselves, or, where LLVM has made other sums of one tensor's elements, the assembly.
MISMATCHES = {
    "sums": {"with_sums_of": None},
    "assembly": {"has_other_closed_sums": True, "has_same_arithmetic": False},
}


@pytest.mark.parametrize("mismatch", MISMATCHES)
def test_kernel_whose_sums_cannot_be_matched_runs_without_records(
    mismatch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kperfir.compile import workshop

    for name, answer in MISMATCHES[mismatch].items():
        monkeypatch.setattr(workshop, name, lambda instrumented, plain, answer=answer: answer)
    monkeypatch.setattr(triton.knobs.compilation, "always_compile", True)
    gated_recurrence.device_caches.clear()
    with simt():
        plain = run()
    with (
        pytest.warns(kperfir.KPerfWarning, match="LLVM would fuse other products with sums"),
        kperfir.profile(tmp_path / "out.kpf", device="simt") as profile,
    ):
        recorded = run()
    assert torch.equal(plain, recorded)
    assert profile.summary.skipped == {("gated_recurrence", "not-instrumented"): 1}


def test_kernel_with_other_sums_of_one_tensor_is_compared_as_assembly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kperfir.compile import workshop

    compared: list[bool] = []

    def compare(instrumented: str, plain: str) -> bool:
        assert ".version" in instrumented
        assert "%clock" in instrumented
        assert "%clock" not in plain
        compared.append(same(instrumented, plain))
        return compared[-1]

    same = workshop.has_same_arithmetic
    monkeypatch.setattr(workshop, "has_other_closed_sums", lambda instrumented, plain: True)
    monkeypatch.setattr(workshop, "has_same_arithmetic", compare)
    monkeypatch.setattr(triton.knobs.compilation, "always_compile", True)
    gated_recurrence.device_caches.clear()
    with kperfir.profile(tmp_path / "out.kpf", device="simt") as profile:
        run()
    assert compared == [True]
    assert profile.summary.kept == {"gated_recurrence": 1}

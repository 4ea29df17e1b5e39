"""Element types of a bundle as numbers, and when two results agree."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from kperfir.bundle.values import TOLERANCE, compare, numbers

TORCH = {
    "fp64": torch.float64,
    "fp32": torch.float32,
    "fp16": torch.float16,
    "bf16": torch.bfloat16,
    "fp8e4nv": torch.float8_e4m3fn,
    "fp8e5": torch.float8_e5m2,
}


def bytes_of(tensor: torch.Tensor) -> bytes:
    return tensor.contiguous().view(torch.uint8).numpy().tobytes()


@pytest.mark.parametrize("dtype", TORCH)
def test_every_value_of_a_small_type_is_what_torch_says(dtype: str) -> None:
    width = torch.empty(0, dtype=TORCH[dtype]).element_size()
    if width > 2:
        raw = torch.randn(1000, dtype=TORCH[dtype])
    else:
        codes = torch.arange(1 << 8 * width, dtype=torch.int32).to(torch.uint8 if width == 1 else torch.uint16)
        raw = codes.view(TORCH[dtype])
    np.testing.assert_array_equal(numbers(dtype, bytes_of(raw)), raw.double().numpy())


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_difference_beyond_the_tolerance_is_counted(dtype: str) -> None:
    expected = torch.full((64,), 2.0).to(TORCH[dtype])
    found = expected.clone()
    found[3] = 3.0
    difference = compare(dtype, bytes_of(expected), bytes_of(found))
    assert (difference.unequal, difference.beyond, difference.worst) == (1, 1, 0.5)
    same = compare(dtype, bytes_of(expected), bytes_of(expected))
    assert (same.unequal, same.beyond, same.worst) == (0, 0, 0.0)


def test_rounding_is_within_the_tolerance_but_no_longer_equal() -> None:
    expected = torch.linspace(1, 2, 100).half()
    found = (expected.float() * 1.001).half()
    difference = compare("fp16", bytes_of(expected), bytes_of(found))
    assert difference.unequal > 50
    assert difference.beyond == 0
    assert 0 < difference.worst < 0.005


def test_small_values_among_large_ones_are_judged_by_the_large_ones() -> None:
    expected = np.array([100.0, 100.0, 1e-6], np.float32)
    found = np.array([100.0, 100.0, 2e-5], np.float32)  # What cancellation leaves.
    assert compare("fp32", expected.tobytes(), found.tobytes()).beyond == 0


def test_infinities_and_nans_agree_with_themselves_only() -> None:
    expected = np.array([np.inf, np.nan, -np.inf, 1.0], np.float32)
    assert compare("fp32", expected.tobytes(), expected.tobytes()).unequal == 0
    found = np.array([-np.inf, 1.0, -np.inf, np.nan], np.float32)
    difference = compare("fp32", expected.tobytes(), found.tobytes())
    assert (difference.unequal, difference.beyond, difference.worst) == (3, 3, np.inf)


def test_integers_and_mixed_memory_agree_only_byte_for_byte() -> None:
    assert compare("i32", bytes([1, 0, 0, 0, 9]), bytes([1, 0, 0, 0, 9])).beyond == 0
    assert compare("i32", bytes([1, 0, 0, 0]), bytes([1, 0, 0, 1])).beyond == 1

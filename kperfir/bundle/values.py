"""Arrays of a bundle as numbers: what element types mean, and whether two results agree.

difference = compare("fp16", expected, found)     # bytes of each
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Relative tolerance by element type: a few units in the last place of the type, or of tf32 for fp32, since other
# hardware adds in another order. Integers must agree exactly.
TOLERANCE = {"fp64": 1e-10, "fp32": 2e-3, "fp16": 1e-2, "bf16": 3e-2, "fp8e4nv": 0.13, "fp8e5": 0.26}
_NUMPY = {"fp64": np.float64, "fp32": np.float32, "fp16": np.float16}


@dataclass(frozen=True, slots=True)
class Difference:
    """How two arrays differ.

    Attributes:
        unequal: Elements that differ in a bit.
        beyond: Elements that differ by more than the tolerance of their type.
        worst: The largest difference, relative to the larger of the element and the mean magnitude; 0 for integers.
    """

    unequal: int
    beyond: int
    worst: float


def compare(dtype: str, expected: bytes, found: bytes) -> Difference:
    """Compare the bytes of two arrays of one size."""
    tolerance = TOLERANCE.get(dtype)
    if tolerance is None:
        unequal = int((np.frombuffer(expected, np.uint8) != np.frombuffer(found, np.uint8)).sum())
        return Difference(unequal, unequal, 0.0)
    one, other = numbers(dtype, expected), numbers(dtype, found)
    differs = (one != other) & ~(np.isnan(one) & np.isnan(other))
    finite = np.isfinite(one) & np.isfinite(other)
    relative = np.where(differs, np.inf, 0.0)
    if finite.any():
        magnitude = np.abs(one[finite])
        scale = np.maximum(magnitude, max(float(magnitude.mean()), np.finfo(np.float64).tiny))
        relative[finite] = np.abs(one[finite] - other[finite]) / scale
    worst = float(relative.max()) if len(relative) else 0.0
    return Difference(int(differs.sum()), int((relative > tolerance).sum()), worst)


def numbers(dtype: str, data: bytes) -> NDArray[np.float64]:
    """Return the elements of a floating type as float64, shape ``(n,)``."""
    values: NDArray[Any]
    with np.errstate(invalid="ignore"):  # A signalling NaN is a value like any other here.
        if dtype == "bf16":  # The upper half of an fp32.
            values = (np.frombuffer(data, np.uint16).astype(np.uint32) << 16).view(np.float32)
        elif dtype == "fp8e5":  # The upper half of an fp16.
            values = (np.frombuffer(data, np.uint8).astype(np.uint16) << 8).view(np.float16)
        elif dtype == "fp8e4nv":
            values = _E4M3[np.frombuffer(data, np.uint8)]
        else:
            values = np.frombuffer(data, _NUMPY[dtype])
        return values.astype(np.float64)


def _e4m3(byte: int) -> float:
    exponent, mantissa = byte >> 3 & 15, byte & 7
    if byte & 127 == 127:
        return float("nan")
    value = mantissa * 2.0**-9 if exponent == 0 else (1 + mantissa / 8) * 2.0 ** (exponent - 7)
    return -value if byte & 128 else value


_E4M3: NDArray[Any] = np.array([_e4m3(byte) for byte in range(256)])

"""The two 8-bit float formats of matrix instructions."""

from __future__ import annotations

import numpy as np

# Bits of the mantissa, bias of the exponent.
FLOAT8 = {"e4m3": (3, 7), "e5m2": (2, 15)}


def encode8(values: np.ndarray, kind: str) -> np.ndarray:
    """Bits of `values`, which must be normal numbers of the format, or zero."""
    mantissa_bits, bias = FLOAT8[kind]
    mantissa, exponent = np.frexp(np.abs(values))
    fraction = np.round((mantissa * 2 - 1) * (1 << mantissa_bits)).astype(np.int64)
    biased = (exponent - 1 + bias).astype(np.int64)
    bits = np.where(values == 0, 0, biased << mantissa_bits | fraction)
    return (bits | (values < 0) * 0x80).astype(np.uint8)

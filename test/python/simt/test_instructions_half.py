"""f16, bf16 and packed pairs against exact fractions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support import exact_float as exact
from support.exact_float import BF16, F16, Format
from support.ptx_lanes import FLOATS, check, combinations

if TYPE_CHECKING:
    from collections.abc import Callable

FORMATS = {"f16": F16, "bf16": BF16}
ARITHMETIC = {
    "add": (exact.add, 2),
    "sub": (exact.subtract, 2),
    "mul": (exact.multiply, 2),
    "fma.rn": (exact.fused_multiply_add, 3),
}


def relu(form: Format, bits: int) -> int:
    return 0 if bits & form.sign and not exact.is_nan(form, bits) else bits


def adjusted(form: Format, suffix: str, function: Callable[..., int]) -> Callable[..., int]:
    def apply(*operands: int) -> int:
        if "ftz" in suffix:
            operands = tuple(exact.flush(form, bits) for bits in operands)
        result = function(*operands)
        if "ftz" in suffix:
            result = exact.flush(form, result)
        if "sat" in suffix:
            result = exact.saturate(form, result)
        return relu(form, result) if "relu" in suffix else result

    return apply


def check_pair(name: str, kind: str, count: int, reference: Callable[..., int], *, limit: int = 2500) -> None:
    """Check the instruction on one value and on packed ones."""
    columns = combinations(*[FLOATS[kind]] * count, limit=limit)
    check(f"{name}.{kind}", "b16", ["b16"] * count, columns, reference)
    packed = [[v | w << 16 for v, w in zip(c, reversed(c), strict=True)] for c in columns]

    def both(*bits: int) -> int:
        return reference(*[b & 0xFFFF for b in bits]) | reference(*[b >> 16 for b in bits]) << 16

    check(f"{name}.{kind}x2", "b32", ["b32"] * count, packed, both)


@pytest.mark.parametrize("suffix", ["", ".ftz", ".sat", ".ftz.sat"])
@pytest.mark.parametrize("name", ARITHMETIC)
def test_half_arithmetic(name: str, suffix: str) -> None:
    function, count = ARITHMETIC[name]
    check_pair(name + suffix, "f16", count, adjusted(F16, suffix, lambda *b: function(F16, "rn", *b)))


@pytest.mark.parametrize("name", ARITHMETIC)
def test_bfloat_arithmetic(name: str) -> None:
    function, count = ARITHMETIC[name]
    check_pair(name, "bf16", count, lambda *b: function(BF16, "rn", *b))


@pytest.mark.parametrize(("kind", "suffix"), [("f16", ".relu"), ("f16", ".ftz.relu"), ("bf16", ".relu")])
def test_fma_with_relu(kind: str, suffix: str) -> None:
    form = FORMATS[kind]
    reference = adjusted(form, suffix, lambda *b: exact.fused_multiply_add(form, "rn", *b))
    check_pair(f"fma.rn{suffix}", kind, 3, reference)


@pytest.mark.parametrize("name", ["add", "mul"])
def test_rounding_to_nearest_may_be_spelled_out(name: str) -> None:
    function, _ = ARITHMETIC[name]
    check_pair(f"{name}.rn", "bf16", 2, lambda *b: function(BF16, "rn", *b), limit=200)


def random_halves(kind: str, count: int) -> list[list[int]]:
    """Many values whose sums fall between two representable ones."""
    import numpy as np

    random = np.random.default_rng(1)
    return [[int(v) for v in random.integers(0, 1 << 16, 3000)] for _ in range(count)]


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_fma_rounds_once(kind: str) -> None:
    form = FORMATS[kind]
    columns = random_halves(kind, 3)
    check(f"fma.rn.{kind}", "b16", ["b16"] * 3, columns, lambda *b: exact.fused_multiply_add(form, "rn", *b))
    check(f"mul.{kind}", "b16", ["b16"] * 2, columns[:2], lambda *b: exact.multiply(form, "rn", *b))


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_signs(kind: str) -> None:
    form = FORMATS[kind]
    for ftz in ["", ".ftz"] if kind == "f16" else [""]:
        check_pair(f"neg{ftz}", kind, 1, adjusted(form, ftz, lambda a: a ^ 0x8000))
        check_pair(f"abs{ftz}", kind, 1, adjusted(form, ftz, lambda a: a & 0x7FFF))


@pytest.mark.parametrize("kind", ["f16", "bf16"])
@pytest.mark.parametrize(("name", "function"), [("min", exact.minimum), ("max", exact.maximum)])
def test_extremes(name: str, function: Callable[..., int], kind: str) -> None:
    form = FORMATS[kind]

    def plain(a: int, b: int) -> int:
        return function(form, a, b)

    def nan(a: int, b: int) -> int:
        return form.nan if exact.is_nan(form, a) or exact.is_nan(form, b) else plain(a, b)

    def xorsign(a: int, b: int) -> int:
        return plain(a & 0x7FFF, b & 0x7FFF) & 0x7FFF | (a ^ b) & 0x8000

    for ftz in ["", ".ftz"] if kind == "f16" else [""]:
        check_pair(f"{name}{ftz}", kind, 2, adjusted(form, ftz, plain))
        check_pair(f"{name}{ftz}.NaN", kind, 2, adjusted(form, ftz, nan))
    check_pair(f"{name}.xorsign.abs", kind, 2, xorsign)

"""IEEE arithmetic on f32 and f64 against exact fractions: every rounding mode, flush-to-zero, saturation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support import exact_float as exact
from support.exact_float import F32, F64, Format
from support.ptx_lanes import FLOATS, check, combinations

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Operation = Callable[..., int]

FORMATS = {"f32": F32, "f64": F64}
ROUNDINGS = ["", ".rn", ".rz", ".rm", ".rp"]
REQUIRED_ROUNDINGS = [".rn", ".rz", ".rm", ".rp"]


def mode_of(rounding: str) -> str:
    return rounding[1:] or "rn"


def adjusted(form: Format, suffix: str, function: Operation) -> Operation:
    """Apply `.ftz` and `.sat` around `function`."""

    def apply(*operands: int) -> int:
        if "ftz" in suffix:
            operands = tuple(exact.flush(form, bits) for bits in operands)
        result = function(*operands)
        if "ftz" in suffix:
            result = exact.flush(form, result)
        return exact.saturate(form, result) if "sat" in suffix else result

    return apply


def columns_of(kind: str, count: int, limit: int = 1200) -> list[list[int]]:
    return combinations(*[FLOATS[kind]] * count, limit=limit)


ARITHMETIC = {
    "add": (exact.add, 2),
    "sub": (exact.subtract, 2),
    "mul": (exact.multiply, 2),
    "fma": (exact.fused_multiply_add, 3),
}


@pytest.mark.parametrize("suffix", ["", ".ftz", ".sat", ".ftz.sat"])
@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("name", ARITHMETIC)
def test_single_arithmetic(name: str, rounding: str, suffix: str) -> None:
    if name == "fma" and not rounding:
        rounding = ".rn"
    function, count = ARITHMETIC[name]
    reference = adjusted(F32, suffix, lambda *bits: function(F32, mode_of(rounding), *bits))
    check(f"{name}{rounding}{suffix}.f32", "f32", ["f32"] * count, columns_of("f32", count), reference)


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("name", ARITHMETIC)
def test_double_arithmetic(name: str, rounding: str) -> None:
    if name == "fma" and not rounding:
        rounding = ".rn"
    function, count = ARITHMETIC[name]
    check(
        f"{name}{rounding}.f64", "f64", ["f64"] * count, columns_of("f64", count),
        lambda *bits: function(F64, mode_of(rounding), *bits),
    )  # fmt: skip


@pytest.mark.parametrize("suffix", ["", ".ftz", ".sat", ".ftz.sat"])
def test_single_mad_is_fused(suffix: str) -> None:
    reference = adjusted(F32, suffix, lambda *b: exact.fused_multiply_add(F32, "rn", *b))
    check(f"mad.rn{suffix}.f32", "f32", ["f32"] * 3, columns_of("f32", 3), reference)


@pytest.mark.parametrize("rounding", REQUIRED_ROUNDINGS)
def test_double_mad_is_fused(rounding: str) -> None:
    mode = mode_of(rounding)
    reference = lambda *b: exact.fused_multiply_add(F64, mode, *b)  # noqa: E731
    check(f"mad{rounding}.f64", "f64", ["f64"] * 3, columns_of("f64", 3), reference)


@pytest.mark.parametrize("suffix", ["", ".ftz"])
@pytest.mark.parametrize("rounding", [*REQUIRED_ROUNDINGS, ".approx", ".full"])
def test_single_division(rounding: str, suffix: str) -> None:
    mode = "rn" if rounding in (".approx", ".full") else mode_of(rounding)
    reference = adjusted(F32, suffix, lambda a, b: exact.divide(F32, mode, a, b))
    check(f"div{rounding}{suffix}.f32", "f32", ["f32"] * 2, columns_of("f32", 2, 3000), reference)


@pytest.mark.parametrize("suffix", ["", ".ftz"])
@pytest.mark.parametrize("rounding", [*REQUIRED_ROUNDINGS, ".approx"])
def test_single_reciprocal_and_root(rounding: str, suffix: str) -> None:
    mode = "rn" if rounding == ".approx" else mode_of(rounding)
    one = 0x3F800000
    check(
        f"rcp{rounding}{suffix}.f32", "f32", ["f32"], [FLOATS["f32"]],
        adjusted(F32, suffix, lambda a: exact.divide(F32, mode, one, a)),
    )  # fmt: skip
    check(
        f"sqrt{rounding}{suffix}.f32", "f32", ["f32"], [FLOATS["f32"]],
        adjusted(F32, suffix, lambda a: exact.square_root(F32, mode, a)),
    )  # fmt: skip


@pytest.mark.parametrize("rounding", REQUIRED_ROUNDINGS)
def test_double_division_reciprocal_and_root(rounding: str) -> None:
    mode, one = mode_of(rounding), 0x3FF0000000000000
    check(f"div{rounding}.f64", "f64", ["f64"] * 2, columns_of("f64", 2), lambda a, b: exact.divide(F64, mode, a, b))
    check(f"rcp{rounding}.f64", "f64", ["f64"], [FLOATS["f64"]], lambda a: exact.divide(F64, mode, one, a))
    check(f"sqrt{rounding}.f64", "f64", ["f64"], [FLOATS["f64"]], lambda a: exact.square_root(F64, mode, a))


def with_nan(form: Format, function: Operation) -> Operation:
    return lambda *bits: form.nan if any(exact.is_nan(form, b) for b in bits) else function(form, *bits)


def magnitudes(form: Format, function: Operation) -> Operation:
    """`.xorsign.abs`."""

    def apply(a: int, b: int) -> int:
        result = function(a & (form.sign - 1), b & (form.sign - 1))
        return result & (form.sign - 1) | (a ^ b) & form.sign

    return apply


@pytest.mark.parametrize(("name", "function"), [("min", exact.minimum), ("max", exact.maximum)])
@pytest.mark.parametrize("ftz", ["", ".ftz"])
def test_single_extremes(ftz: str, name: str, function: Operation) -> None:
    columns = columns_of("f32", 2, 3000)

    def plain(*bits: int) -> int:
        return function(F32, *bits)

    nan = with_nan(F32, function)
    check(f"{name}{ftz}.f32", "f32", ["f32"] * 2, columns, adjusted(F32, ftz, plain))
    check(f"{name}{ftz}.NaN.f32", "f32", ["f32"] * 2, columns, adjusted(F32, ftz, nan))
    check(f"{name}{ftz}.xorsign.abs.f32", "f32", ["f32"] * 2, columns, adjusted(F32, ftz, magnitudes(F32, plain)))
    check(f"{name}{ftz}.NaN.xorsign.abs.f32", "f32", ["f32"] * 2, columns, adjusted(F32, ftz, magnitudes(F32, nan)))
    triples = columns_of("f32", 3)
    check(f"{name}{ftz}.f32", "f32", ["f32"] * 3, triples, adjusted(F32, ftz, lambda a, b, c: plain(plain(a, b), c)))
    check(f"{name}{ftz}.NaN.f32", "f32", ["f32"] * 3, triples, adjusted(F32, ftz, lambda a, b, c: nan(nan(a, b), c)))
    for suffix, pick in (("", plain), (".NaN", nan)):

        def largest(a: int, b: int, c: int, pick: Operation = pick) -> int:
            return pick(pick(a & 0x7FFFFFFF, b & 0x7FFFFFFF), c & 0x7FFFFFFF)

        check(f"{name}{ftz}{suffix}.abs.f32", "f32", ["f32"] * 3, triples, adjusted(F32, ftz, largest))


@pytest.mark.parametrize(("name", "function"), [("min", exact.minimum), ("max", exact.maximum)])
def test_double_extremes(name: str, function: Operation) -> None:
    check(f"{name}.f64", "f64", ["f64"] * 2, columns_of("f64", 2), lambda a, b: function(F64, a, b))


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_sign_operations(kind: str) -> None:
    form = FORMATS[kind]
    low = form.sign - 1
    for ftz in ["", ".ftz"] if kind == "f32" else [""]:
        check(f"abs{ftz}.{kind}", kind, [kind], [FLOATS[kind]], adjusted(form, ftz, lambda a: a & low))
        check(f"neg{ftz}.{kind}", kind, [kind], [FLOATS[kind]], adjusted(form, ftz, lambda a: a ^ form.sign))
    check(f"copysign.{kind}", kind, [kind] * 2, columns_of(kind, 2), lambda a, b: b & low | a & form.sign)


def kinds_of(form: Format, bits: int) -> dict[str, bool]:
    magnitude = bits & (form.sign - 1)
    exponent = magnitude & form.infinity
    return {
        "finite": magnitude < form.infinity,
        "infinite": magnitude == form.infinity,
        "number": magnitude <= form.infinity,
        "notanumber": magnitude > form.infinity,
        "normal": exponent not in (0, form.infinity),
        "subnormal": exponent == 0 and magnitude != 0,
    }


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_testp(kind: str) -> None:
    for name in kinds_of(FORMATS[kind], 0):
        check(
            f"testp.{name}.{kind}", "pred", [kind], [FLOATS[kind]],
            lambda a, name=name: kinds_of(FORMATS[kind], a)[name],
        )  # fmt: skip


@pytest.mark.parametrize(("kind", "form"), [("f16", exact.F16), ("bf16", exact.BF16)])
def test_mixed_precision(kind: str, form: Format) -> None:
    """One or two 16-bit factors, everything else f32 (sm_100)."""

    def wide(bits: int) -> int:
        return exact.convert(form, F32, "rn", bits)

    columns = combinations(FLOATS[kind], FLOATS["f32"])
    check(f"add.rn.f32.{kind}", "f32", ["b16", "f32"], columns, lambda a, c: exact.add(F32, "rn", wide(a), c))
    check(f"sub.rn.f32.{kind}", "f32", ["b16", "f32"], columns, lambda a, c: exact.subtract(F32, "rn", wide(a), c))
    check(
        f"fma.rn.f32.{kind}", "f32", ["b16", "b16", "f32"], combinations(FLOATS[kind], FLOATS[kind], FLOATS["f32"]),
        lambda a, b, c: exact.fused_multiply_add(F32, "rn", wide(a), wide(b), c),
    )  # fmt: skip


def halves(columns: Sequence[Sequence[int]]) -> list[list[int]]:
    return [[v | w << 32 for v, w in zip(c, reversed(c), strict=True)] for c in columns]


@pytest.mark.parametrize("ftz", ["", ".ftz"])
@pytest.mark.parametrize("name", ARITHMETIC)
def test_packed_singles(name: str, ftz: str) -> None:
    function, count = ARITHMETIC[name]
    single = adjusted(F32, ftz, lambda *bits: function(F32, "rn", *bits))

    def both(*bits: int) -> int:
        return single(*[b & 0xFFFFFFFF for b in bits]) | single(*[b >> 32 for b in bits]) << 32

    check(f"{name}.rn{ftz}.f32x2", "b64", ["b64"] * count, halves(columns_of("f32", count, 500)), both)

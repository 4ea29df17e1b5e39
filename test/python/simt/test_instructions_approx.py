"""ex2, lg2, sin, cos, tanh, rsqrt within the errors that the PTX manual allows, their special values exactly."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest

from support import exact_float as exact
from support.exact_float import BF16, F16, F32, Format
from support.ptx_lanes import FLOATS, evaluate

NAN = 0x7FFFFFFF


def single(bits: int) -> float:
    return struct.unpack("<f", struct.pack("<I", bits))[0]


def bits_of(value: float) -> int:
    return struct.unpack("<I", struct.pack("<f", value))[0]


def sample(low: float, high: float, count: int = 4000) -> list[int]:
    return [bits_of(v) for v in np.linspace(low, high, count)]


def as_floats(array: np.ndarray) -> np.ndarray:
    return array.view(np.float32).astype(np.float64)


def everything() -> list[int]:
    random = np.random.default_rng(0).integers(0, 1 << 32, 4000)
    return FLOATS["f32"] + [int(v) for v in random]


def relative_error(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.max(np.abs(found - expected) / np.abs(expected)))


@pytest.mark.parametrize("ftz", ["", ".ftz"])
def test_ex2(ftz: str) -> None:
    columns = [everything() + sample(-130, 129) + sample(-1, 1)]
    found = evaluate(f"ex2.approx{ftz}.f32", "f32", ["f32"], *columns)
    for bits, result in zip(columns[0], found, strict=True):
        if ftz:
            bits = exact.flush(F32, bits)
        if exact.is_nan(F32, bits):
            assert result == NAN
            continue
        x = single(bits)
        expected = math.inf if x >= 128 else math.exp2(max(x, -200))
        value = single(int(result))
        if ftz and expected < 2**-126 * (1 - 2**-22):
            assert value == 0
        elif expected == math.inf or expected < 2**-151:
            assert value == expected or (expected < 1 and value == 0)
        else:
            assert abs(value - expected) <= max(expected * 2**-22, 2**-149), x


def test_ex2_of_integers_is_exact() -> None:
    found = evaluate("ex2.approx.f32", "f32", ["f32"], [bits_of(float(n)) for n in range(-149, 128)])
    assert [single(int(v)) for v in found] == [2.0**n for n in range(-149, 128)]


@pytest.mark.parametrize("ftz", ["", ".ftz"])
def test_lg2(ftz: str) -> None:
    columns = [everything() + sample(0.4, 2.5)]
    found = evaluate(f"lg2.approx{ftz}.f32", "f32", ["f32"], *columns)
    for bits, result in zip(columns[0], found, strict=True):
        if ftz:
            bits = exact.flush(F32, bits)
        if exact.is_nan(F32, bits) or (bits & F32.sign and bits != F32.sign):
            assert result == NAN
        elif bits & (F32.sign - 1) == 0:
            assert single(int(result)) == -math.inf
        elif bits == F32.infinity:
            assert result == bits
        else:
            expected = math.log2(single(bits))
            assert abs(single(int(result)) - expected) <= max(abs(expected) * 2**-22, 2**-24)


@pytest.mark.parametrize("ftz", ["", ".ftz"])
@pytest.mark.parametrize(("name", "function"), [("sin", math.sin), ("cos", math.cos)])
def test_sine_and_cosine(name: str, function: object, ftz: str) -> None:
    columns = [sample(-math.pi, math.pi) + sample(-1000, 1000)]
    found = as_floats(evaluate(f"{name}.approx{ftz}.f32", "f32", ["f32"], *columns))
    expected = np.array([function(single(b)) for b in columns[0]])  # type: ignore[operator]
    assert np.max(np.abs(found - expected)) <= 2**-21


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_sine_of_special_values(name: str) -> None:
    edges = [0, F32.sign, F32.infinity, F32.infinity | F32.sign, 0x7FC00001]
    found = [int(v) for v in evaluate(f"{name}.approx.f32", "f32", ["f32"], edges)]
    assert found == ([0, F32.sign] if name == "sin" else [0x3F800000] * 2) + [NAN] * 3


def test_sine_of_huge_values_stays_in_range() -> None:
    found = as_floats(evaluate("sin.approx.f32", "f32", ["f32"], [bits_of(v) for v in (1e9, 1e20, 3e38, -1e30)]))
    assert np.all(np.abs(found) <= 1)


def test_tanh() -> None:
    columns = [sample(-20, 20) + sample(-0.01, 0.01) + [bits_of(v) for v in (1e-6, -1e-20, 1e-38)]]
    found = as_floats(evaluate("tanh.approx.f32", "f32", ["f32"], *columns))
    x = np.array([single(b) for b in columns[0]], np.float64)
    nonzero = x != 0
    assert relative_error(found[nonzero], np.tanh(x[nonzero])) <= 2**-11
    edges = [0, F32.sign, F32.infinity, F32.infinity | F32.sign, 0x7FC00001]
    special = [int(v) for v in evaluate("tanh.approx.f32", "f32", ["f32"], edges)]
    assert special == [0, F32.sign, 0x3F800000, 0xBF800000, NAN]


@pytest.mark.parametrize("ftz", ["", ".ftz"])
def test_rsqrt(ftz: str) -> None:
    columns = [everything()]
    found = evaluate(f"rsqrt.approx{ftz}.f32", "f32", ["f32"], *columns)
    for bits, result in zip(columns[0], found, strict=True):
        if ftz:
            bits = exact.flush(F32, bits)
        if exact.is_nan(F32, bits) or (bits & F32.sign and bits != F32.sign):
            assert result == NAN
        elif bits & (F32.sign - 1) == 0:
            assert result == bits | F32.infinity
        elif bits == F32.infinity:
            assert result == 0
        else:
            expected = 1 / math.sqrt(single(bits))
            assert abs(single(int(result)) - expected) <= expected * 2**-22


def test_double_approximations_clear_the_low_word() -> None:
    values = np.array([1.0, 3.0, 0.1, -7.0, 1e300], np.float64)
    found = evaluate("rcp.approx.ftz.f64", "f64", ["f64"], values.view(np.uint64))
    assert not np.any(found & np.uint64(0xFFFFFFFF))
    assert np.allclose(found.view(np.float64), 1 / values, rtol=1e-6, atol=0)
    roots = evaluate("rsqrt.approx.ftz.f64", "f64", ["f64"], np.abs(values).view(np.uint64))
    assert not np.any(roots & np.uint64(0xFFFFFFFF))
    assert np.allclose(roots.view(np.float64), 1 / np.sqrt(np.abs(values)), rtol=1e-6, atol=0)
    full = evaluate("rsqrt.approx.f64", "f64", ["f64"], np.abs(values).view(np.uint64))
    assert np.allclose(full.view(np.float64), 1 / np.sqrt(np.abs(values)), rtol=1e-15, atol=0)


@pytest.mark.parametrize(("kind", "form", "modifier"), [("f16", F16, ""), ("bf16", BF16, ".ftz")])
def test_half_ex2(kind: str, form: Format, modifier: str) -> None:
    edges = FLOATS[kind]
    found = evaluate(f"ex2.approx{modifier}.{kind}", "b16", ["b16"], edges)
    packed = evaluate(f"ex2.approx{modifier}.{kind}x2", "b32", ["b32"], [e | e << 16 for e in edges])
    assert np.array_equal(packed & 0xFFFF, found)
    assert np.array_equal(packed >> 16, found)
    for bits, result in zip(edges, found, strict=True):
        number = exact.decode(form, exact.flush(form, bits) if modifier else bits)
        if number is None:
            assert result == form.nan
            continue
        expected = math.exp2(min(max(float(number), -200.0), 1000.0))
        if expected > 3e38:
            assert result == form.infinity
            continue
        value = exact.decode(form, int(result))
        nearest = exact.decode(form, exact.encode(form, exact.Fraction(expected)))
        if isinstance(nearest, float) or (modifier and expected < 2**-126):
            assert value in (nearest, 0)
        else:
            assert abs(float(value) - expected) <= max(expected * 2**-7, 2**-24)  # type: ignore[arg-type]


@pytest.mark.parametrize(("kind", "form"), [("f16", F16), ("bf16", BF16)])
def test_half_tanh(kind: str, form: Format) -> None:
    edges = FLOATS[kind]
    found = evaluate(f"tanh.approx.{kind}", "b16", ["b16"], edges)
    packed = evaluate(f"tanh.approx.{kind}x2", "b32", ["b32"], [e | e << 16 for e in edges])
    for bits, result, pair in zip(edges, found, packed, strict=True):
        assert int(pair) == int(result) << 16 | int(result)
        number = exact.decode(form, bits)
        if number is None:
            assert result == form.nan
        else:
            value = exact.decode(form, int(result))
            assert abs(float(value) - math.tanh(float(number))) <= 2**-8  # type: ignore[arg-type]

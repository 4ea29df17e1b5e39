"""Floating-point arithmetic by exact fractions: the slow reference for the SIMT device.

    add(F32, "rz", 0x3F800000, 0x33800000)  # bits in, bits out

A value is a `Fraction`, `math.inf`, `-math.inf` or `None` (NaN); zeros keep their sign in the bits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Format:
    """An IEEE binary format: bits of the exponent and of the stored mantissa, and its NaN."""

    exponent_bits: int
    mantissa_bits: int
    nan: int

    @property
    def bias(self) -> int:
        return (1 << (self.exponent_bits - 1)) - 1

    @property
    def sign(self) -> int:
        return 1 << (self.exponent_bits + self.mantissa_bits)

    @property
    def infinity(self) -> int:
        return ((1 << self.exponent_bits) - 1) << self.mantissa_bits


F16 = Format(5, 10, 0x7FFF)
BF16 = Format(8, 7, 0x7FFF)
F32 = Format(8, 23, 0x7FFFFFFF)
F64 = Format(11, 52, 0x7FF8000000000000)

Value = Fraction | float | None


def is_nan(form: Format, bits: int) -> bool:
    return (bits & (form.sign - 1)) > form.infinity


def decode(form: Format, bits: int) -> Value:
    """Return the value of `bits`."""
    magnitude = bits & (form.sign - 1)
    negative = bits & form.sign
    if magnitude > form.infinity:
        return None
    if magnitude == form.infinity:
        return -math.inf if negative else math.inf
    exponent = magnitude >> form.mantissa_bits
    mantissa = magnitude & ((1 << form.mantissa_bits) - 1)
    if exponent:
        mantissa |= 1 << form.mantissa_bits
    value = Fraction(mantissa) * Fraction(2) ** (max(exponent, 1) - form.bias - form.mantissa_bits)
    return -value if negative else value


def flush(form: Format, bits: int) -> int:
    """Return `bits`, a subnormal replaced by the zero of its sign."""
    return bits & form.sign if bits & form.infinity == 0 else bits


def round_integer(value: Fraction, mode: str) -> int:
    """Round to an integer. Modes: rn, rz, rm (down), rp (up), ra (nearest, ties away)."""
    below = math.floor(value)
    rest = value - below
    if mode == "rm" or rest == 0:
        return below
    if mode == "rp":
        return below + 1
    if mode == "rz":
        return below + (value < 0)
    if rest == Fraction(1, 2):
        return below + (value > 0 if mode == "ra" else below % 2)
    return below + (rest > Fraction(1, 2))


def encode(form: Format, value: Value, mode: str = "rn", *, zero_sign: bool = False) -> int:
    """Round `value` to the format. `zero_sign`: a zero is negative."""
    if value is None:
        return form.nan
    if isinstance(value, float):
        return form.infinity | (form.sign if value < 0 else 0)
    if value == 0:
        return form.sign if zero_sign else 0
    sign = form.sign if value < 0 else 0
    least = 1 - form.bias
    exponent = max(math.floor(abs(value).numerator.bit_length() - abs(value).denominator.bit_length()), least)
    while exponent > least and Fraction(2) ** exponent > abs(value):
        exponent -= 1
    while Fraction(2) ** (exponent + 1) <= abs(value):
        exponent += 1
    unit = Fraction(2) ** (exponent - form.mantissa_bits)
    mantissa = abs(round_integer(value / unit, mode))
    # A carry out of the mantissa is the next exponent, as it should be.
    magnitude = mantissa + ((exponent - least) << form.mantissa_bits)
    if magnitude >= form.infinity:
        towards_zero = mode == "rz" or (mode == "rm" and not sign) or (mode == "rp" and bool(sign))
        magnitude = form.infinity - 1 if towards_zero else form.infinity
    return magnitude | sign


def _sum(form: Format, mode: str, a: Value, b: Value, a_negative: bool, b_negative: bool) -> int:
    """a + b; the flags are the signs, for zeros."""
    if a is None or b is None:
        return form.nan
    if isinstance(a, float) or isinstance(b, float):
        if isinstance(a, float) and isinstance(b, float):
            return form.nan if a != b else encode(form, a)
        return encode(form, a if isinstance(a, float) else b)
    zero_sign = (a_negative and b_negative) if a_negative == b_negative else mode == "rm"
    return encode(form, a + b, mode, zero_sign=zero_sign)


def add(form: Format, mode: str, a: int, b: int) -> int:
    return _sum(form, mode, decode(form, a), decode(form, b), bool(a & form.sign), bool(b & form.sign))


def subtract(form: Format, mode: str, a: int, b: int) -> int:
    return form.nan if is_nan(form, b) else add(form, mode, a, b ^ form.sign)


def _product(a: Value, b: Value) -> Value:
    if a is None or b is None:
        return None
    if isinstance(a, float) or isinstance(b, float):
        if a == 0 or b == 0:
            return None
        return math.inf if (a > 0) == (b > 0) else -math.inf
    return a * b


def multiply(form: Format, mode: str, a: int, b: int) -> int:
    return encode(form, _product(decode(form, a), decode(form, b)), mode, zero_sign=bool((a ^ b) & form.sign))


def fused_multiply_add(form: Format, mode: str, a: int, b: int, c: int) -> int:
    product = _product(decode(form, a), decode(form, b))
    return _sum(form, mode, product, decode(form, c), bool((a ^ b) & form.sign), bool(c & form.sign))


def divide(form: Format, mode: str, a: int, b: int) -> int:
    x, y = decode(form, a), decode(form, b)
    negative = bool((a ^ b) & form.sign)
    infinity = -math.inf if negative else math.inf
    if x is None or y is None:
        return form.nan
    if isinstance(x, float):
        return form.nan if isinstance(y, float) else encode(form, infinity)
    if isinstance(y, float):
        return encode(form, Fraction(0), zero_sign=negative)
    if y == 0:
        return form.nan if x == 0 else encode(form, infinity)
    return encode(form, x / y, mode, zero_sign=negative)


def square_root(form: Format, mode: str, a: int) -> int:
    value = decode(form, a)
    if value is None or value < 0:
        return form.nan
    if isinstance(value, float) or value == 0:
        return a
    # So many bits below the point that the root is exact or its remainder visible.
    scaled = value * Fraction(4) ** 1400
    root = math.isqrt(scaled.numerator // scaled.denominator)
    exact = Fraction(root) ** 2 == scaled
    return encode(form, Fraction(root, 1) / Fraction(2) ** 1400 + (0 if exact else Fraction(1, 2**1500)), mode)


def convert(source: Format, target: Format, mode: str, a: int) -> int:
    return encode(target, decode(source, a), mode, zero_sign=bool(a & source.sign))


def saturate(form: Format, bits: int) -> int:
    """Clamp to [0, 1]; NaN is 0."""
    value = decode(form, bits)
    if value is None or value <= 0:
        return 0
    return encode(form, Fraction(1)) if value > 1 else bits


def minimum(form: Format, a: int, b: int) -> int:
    """A number wins over a NaN; -0 is less than +0."""
    return _extreme(form, a, b, least=True)


def maximum(form: Format, a: int, b: int) -> int:
    return _extreme(form, a, b, least=False)


def _extreme(form: Format, a: int, b: int, *, least: bool) -> int:
    if is_nan(form, a):
        return form.nan if is_nan(form, b) else b
    if is_nan(form, b):
        return a

    def order(bits: int) -> tuple[Fraction | float, bool]:
        value = decode(form, bits)
        assert value is not None
        return value, not bits & form.sign

    return min(a, b, key=order) if least else max(a, b, key=order)

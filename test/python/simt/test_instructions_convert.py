"""cvt against exact fractions: every pair of types, every rounding."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from support import exact_float as exact
from support.exact_float import BF16, F16, F32, F64, Format
from support.ptx_lanes import FLOATS, INTEGERS, check, combinations, execute, signed

FORMATS: dict[str, Format] = {"f16": F16, "bf16": BF16, "f32": F32, "f64": F64}
REGISTERS = {"f16": "b16", "bf16": "b16", "f32": "f32", "f64": "f64"}
INTS = [f"{letter}{bits}" for bits in (8, 16, 32, 64) for letter in "us"]
TO_INTEGER = {"rni": "rn", "rzi": "rz", "rmi": "rm", "rpi": "rp"}

# Every value around the limits of the integers, with fractions, in each format.
LIMITS = [
    Fraction(sign * (1 << power) + 4 * delta, 4)
    for power in (2, 3, 9, 10, 17, 18, 33, 34, 65, 66)
    for sign in (1, -1)
    for delta in (-4, -3, -2, -1, 0, 1, 2, 3, 4)
]  # fmt: skip
FLOAT_EDGES = {
    kind: sorted({*FLOATS[kind], *[exact.encode(form, v, mode) for v in LIMITS for mode in ("rz", "rp", "rm")]})
    for kind, form in FORMATS.items()
}


def bits_of(kind: str) -> int:
    return int(kind[1:])


def value(kind: str, bits: int) -> int:
    return signed(bits, bits_of(kind)) if kind[0] == "s" else bits


def register(kind: str) -> str:
    return f"b{bits_of(kind)}"


def limits(kind: str) -> tuple[int, int]:
    bits = bits_of(kind)
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if kind[0] == "s" else (0, (1 << bits) - 1)


def clamp(kind: str, number: int) -> int:
    low, high = limits(kind)
    return max(low, min(high, number))


@pytest.mark.parametrize("source", INTS)
@pytest.mark.parametrize("target", INTS)
def test_integer_to_integer(target: str, source: str) -> None:
    edges = [INTEGERS[bits_of(source)]]
    check(f"cvt.{target}.{source}", register(target), [register(source)], edges, lambda a: value(source, a))
    check(
        f"cvt.sat.{target}.{source}", register(target), [register(source)], edges,
        lambda a: clamp(target, value(source, a)),
    )  # fmt: skip


@pytest.mark.parametrize("source", ["u8", "s8", "u16", "s16", "u32", "s32"])
def test_result_is_extended_to_a_wider_register(source: str) -> None:
    """The destination register may be wider than the type."""
    for target in ("u8", "s8", "u16", "s16"):
        for wide in ("b32", "b64"):
            if bits_of(target) == 8 and wide == "b16":
                continue
            check(
                f"cvt.{target}.{source}", wide, [register(source)], [INTEGERS[bits_of(source)]],
                lambda a, target=target: value(target, value(source, a) & ((1 << bits_of(target)) - 1)),
            )  # fmt: skip


def test_source_may_lie_in_a_wider_register() -> None:
    check("cvt.u32.u16", "b32", ["b32"], [INTEGERS[32]], lambda a: a & 0xFFFF)
    check("cvt.s32.s8", "b32", ["b32"], [INTEGERS[32]], lambda a: signed(a, 8))
    check("cvt.s64.s32", "b64", ["b64"], [INTEGERS[64]], lambda a: signed(a, 32))


def to_integer(form: Format, target: str, mode: str, bits: int) -> int:
    number = exact.decode(form, bits)
    if number is None:
        wide = form is F64 or bits_of(target) == 64
        return 1 << (bits_of(target) - 1) if wide else 0
    if isinstance(number, float):
        return limits(target)[number > 0]
    return clamp(target, exact.round_integer(number, mode))


@pytest.mark.parametrize("source", FORMATS)
@pytest.mark.parametrize("rounding", TO_INTEGER)
@pytest.mark.parametrize("target", INTS)
def test_float_to_integer(target: str, rounding: str, source: str) -> None:
    form, edges = FORMATS[source], [FLOAT_EDGES[source]]
    check(
        f"cvt.{rounding}.{target}.{source}", register(target), [REGISTERS[source]], edges,
        lambda a: to_integer(form, target, TO_INTEGER[rounding], a),
    )  # fmt: skip
    if source == "f32":
        check(
            f"cvt.{rounding}.ftz.{target}.f32", register(target), ["f32"], edges,
            lambda a: to_integer(F32, target, TO_INTEGER[rounding], exact.flush(F32, a)),
        )  # fmt: skip


TIES = [
    (1 << p) + d
    for p in (8, 9, 11, 12, 24, 25, 53, 54, 62, 63)
    for d in (-3, -2, -1, 1, 2, 3, 1 << (p - 8) if p > 8 else 0)
]


@pytest.mark.parametrize("rounding", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("source", INTS)
@pytest.mark.parametrize("target", ["f32", "f64"])
def test_integer_to_float(target: str, source: str, rounding: str) -> None:
    mask = (1 << bits_of(source)) - 1
    edges = [sorted({*INTEGERS[bits_of(source)], *[t & mask for t in TIES], *[-t & mask for t in TIES]})]
    check(
        f"cvt.{rounding}.{target}.{source}", REGISTERS[target], [register(source)], edges,
        lambda a: exact.encode(FORMATS[target], Fraction(value(source, a)), rounding),
    )  # fmt: skip


@pytest.mark.parametrize("source", INTS)
@pytest.mark.parametrize("target", ["f16", "bf16"])
def test_integer_to_half(target: str, source: str) -> None:
    mask = (1 << bits_of(source)) - 1
    edges = [sorted({*INTEGERS[bits_of(source)], *[t & mask for t in TIES], *[-t & mask for t in TIES]})]
    check(
        f"cvt.rn.{target}.{source}", "b16", [register(source)], edges,
        lambda a: exact.encode(FORMATS[target], Fraction(value(source, a))),
    )  # fmt: skip


# --- float to float ------------------------------------------------------------


def neighbours(target: Format, source: Format) -> list[int]:
    """Values of the source at, and just off, the ties of the target."""
    found = set()
    for bits in FLOATS["f16" if target is F16 else "bf16" if target is BF16 else "f32"]:
        low = exact.decode(target, bits)
        high = exact.decode(target, bits + 1)
        if not isinstance(low, Fraction) or not isinstance(high, Fraction):
            continue
        for number in (low, (low + high) / 2, (low * 3 + high) / 4, low + (high - low) * Fraction(129, 256)):
            found.add(exact.encode(source, number))
    return sorted(found)


@pytest.mark.parametrize("rounding", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize(("target", "source"), [("f16", "f32"), ("f32", "f64")])
def test_narrowing(target: str, source: str, rounding: str) -> None:
    to, form = FORMATS[target], FORMATS[source]
    edges = [FLOATS[source] + neighbours(to, form)]

    def reference(bits: int, suffix: str) -> int:
        if "ftz" in suffix and form is F32:
            bits = exact.flush(form, bits)
        result = exact.convert(form, to, rounding, bits)
        if "ftz" in suffix and to is F32:
            result = exact.flush(to, result)
        return exact.saturate(to, result) if "sat" in suffix else result

    for suffix in ("", ".ftz", ".sat", ".ftz.sat"):
        check(
            f"cvt.{rounding}{suffix}.{target}.{source}", REGISTERS[target], [REGISTERS[source]], edges,
            lambda a, suffix=suffix: reference(a, suffix),
        )  # fmt: skip


@pytest.mark.parametrize(
    ("target", "source", "rounding"),
    [("bf16", "f32", "rn"), ("bf16", "f32", "rz"), ("f16", "f64", "rn"), ("bf16", "f64", "rn"), ("bf16", "f16", "rn"),
     ("f16", "bf16", "rn")],
)  # fmt: skip
def test_narrowing_to_16_bits(target: str, source: str, rounding: str) -> None:
    to, form = FORMATS[target], FORMATS[source]
    edges = [FLOATS[source] + neighbours(to, form)]
    check(
        f"cvt.{rounding}.{target}.{source}", "b16", [REGISTERS[source]], edges,
        lambda a: exact.convert(form, to, rounding, a),
    )  # fmt: skip


def relu(form: Format, bits: int) -> int:
    return 0 if bits & form.sign and not exact.is_nan(form, bits) else bits


def finite(form: Format, bits: int) -> int:
    return bits - 1 if bits & (form.sign - 1) == form.infinity else bits


@pytest.mark.parametrize("target", ["f16", "bf16"])
def test_narrowing_with_limits(target: str) -> None:
    to = FORMATS[target]
    edges = [FLOATS["f32"] + neighbours(to, F32)]
    check(f"cvt.rn.relu.{target}.f32", "b16", ["f32"], edges, lambda a: relu(to, exact.convert(F32, to, "rn", a)))
    check(
        f"cvt.rn.satfinite.{target}.f32", "b16", ["f32"], edges,
        lambda a: finite(to, exact.convert(F32, to, "rn", a)),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("target", "source"), [("f32", "f16"), ("f32", "bf16"), ("f64", "f32"), ("f64", "f16"), ("f64", "bf16")]
)
def test_widening(target: str, source: str) -> None:
    to, form = FORMATS[target], FORMATS[source]
    check(
        f"cvt.{target}.{source}", REGISTERS[target], [REGISTERS[source]], [FLOATS[source]],
        lambda a: exact.convert(form, to, "rn", a),
    )  # fmt: skip
    if target == "f32":
        check(
            f"cvt.ftz.f32.{source}", "f32", ["b16"], [FLOATS[source]],
            lambda a: exact.flush(F32, exact.convert(form, F32, "rn", a)),
        )  # fmt: skip
        for ftz in ("", ".ftz"):
            # An f16 that is subnormal is a normal f32; a bf16 may be subnormal as f32.
            check(
                f"cvt{ftz}.sat.f32.{source}", "f32", ["b16"], [FLOATS[source]],
                lambda a, ftz=ftz: exact.saturate(
                    F32, (exact.flush if ftz else canonical)(F32, exact.convert(form, F32, "rn", a))
                ),
            )  # fmt: skip
    if (target, source) == ("f64", "f32"):
        for suffix in (".ftz", ".sat", ".ftz.sat"):

            def widened(a: int, suffix: str = suffix) -> int:
                result = exact.convert(F32, F64, "rn", exact.flush(F32, a) if "ftz" in suffix else a)
                return exact.saturate(F64, result) if "sat" in suffix else result

            check(f"cvt{suffix}.f64.f32", "f64", ["f32"], [FLOATS["f32"]], widened)


@pytest.mark.parametrize("kind", ["f32", "f64", "f16"])
@pytest.mark.parametrize("rounding", TO_INTEGER)
def test_rounding_to_integral(rounding: str, kind: str) -> None:
    form = FORMATS[kind]

    def rounded(bits: int) -> int:
        number = exact.decode(form, bits)
        if not isinstance(number, Fraction):
            return exact.encode(form, number)
        whole = exact.round_integer(number, TO_INTEGER[rounding])
        return exact.encode(form, Fraction(whole), zero_sign=bool(bits & form.sign))

    edges = [FLOAT_EDGES[kind]]
    check(f"cvt.{rounding}.{kind}.{kind}", REGISTERS[kind], [REGISTERS[kind]], edges, rounded)
    check(
        f"cvt.{rounding}.sat.{kind}.{kind}", REGISTERS[kind], [REGISTERS[kind]], edges,
        lambda a: exact.saturate(form, rounded(a)),
    )  # fmt: skip
    if kind == "f32":
        check(f"cvt.{rounding}.ftz.f32.f32", "f32", ["f32"], edges, lambda a: rounded(exact.flush(F32, a)))
        check(
            f"cvt.{rounding}.ftz.sat.f32.f32", "f32", ["f32"], edges,
            lambda a: exact.saturate(F32, rounded(exact.flush(F32, a))),
        )  # fmt: skip


def canonical(form: Format, bits: int) -> int:
    return form.nan if exact.is_nan(form, bits) else bits


@pytest.mark.parametrize("kind", ["f32", "f64", "f16"])
def test_same_type(kind: str) -> None:
    form = FORMATS[kind]
    check(
        f"cvt.sat.{kind}.{kind}", REGISTERS[kind], [REGISTERS[kind]], [FLOATS[kind]],
        lambda a: exact.saturate(form, a),
    )  # fmt: skip
    check(f"cvt.{kind}.{kind}", REGISTERS[kind], [REGISTERS[kind]], [FLOATS[kind]], lambda a: canonical(form, a))
    if kind == "f32":
        check(
            "cvt.ftz.sat.f32.f32", "f32", ["f32"], [FLOATS["f32"]],
            lambda a: exact.saturate(F32, exact.flush(F32, a)),
        )  # fmt: skip
        check(
            "cvt.ftz.f32.f32", "f32", ["f32"], [FLOATS["f32"]],
            lambda a: F32.nan if exact.is_nan(F32, a) else exact.flush(F32, a),
        )  # fmt: skip


# --- tf32, pairs, fp8 -----------------------------------------------------------


@pytest.mark.parametrize(("rounding", "mode"), [("rna", "ra"), ("rn", "rn"), ("rz", "rz")])
def test_tf32(rounding: str, mode: str) -> None:
    tf32 = Format(8, 10, 0x3FFFF)
    edges = [[b for b in FLOATS["f32"] + neighbours(tf32, F32) if not exact.is_nan(F32, b)]]
    check(f"cvt.{rounding}.tf32.f32", "b32", ["f32"], edges, lambda a: exact.convert(F32, tf32, mode, a) << 13)
    if mode != "ra":
        check(
            f"cvt.{rounding}.relu.tf32.f32", "b32", ["f32"], edges,
            lambda a: relu(tf32, exact.convert(F32, tf32, mode, a)) << 13,
        )  # fmt: skip


@pytest.mark.parametrize("kind", ["f16", "bf16"])
@pytest.mark.parametrize("suffix", ["rn", "rz", "rn.relu", "rz.relu", "rn.satfinite"])
def test_pairs(suffix: str, kind: str) -> None:
    form = FORMATS[kind]

    def one(bits: int) -> int:
        result = exact.convert(F32, form, suffix[:2], bits)
        if "relu" in suffix:
            result = relu(form, result)
        return finite(form, result) if "satfinite" in suffix else result

    columns = combinations(FLOATS["f32"], FLOATS["f32"] + neighbours(form, F32))
    check(f"cvt.{suffix}.{kind}x2.f32", "b32", ["f32", "f32"], columns, lambda a, b: one(a) << 16 | one(b))


class Fp8:
    """The values of an 8-bit format by their codes."""

    def __init__(self, exponent_bits: int, largest: int) -> None:
        self.mantissa_bits = 7 - exponent_bits
        self.bias = (1 << (exponent_bits - 1)) - 1
        self.largest = largest
        self.values = [self.decode(code) for code in range(largest + 1)]

    def decode(self, code: int) -> Fraction:
        exponent, mantissa = code >> self.mantissa_bits, code & ((1 << self.mantissa_bits) - 1)
        if exponent:
            mantissa |= 1 << self.mantissa_bits
        return Fraction(mantissa) * Fraction(2) ** (max(exponent, 1) - self.bias - self.mantissa_bits)

    def encode(self, form: Format, bits: int) -> int:
        """Nearest code, ties to the even one, too large values to the largest; NaN is 0x7F."""
        number = exact.decode(form, bits)
        if number is None:
            return 0x7F
        sign = 0x80 if bits & form.sign else 0
        if isinstance(number, float):
            return sign | self.largest
        distance = [(abs(abs(number) - v), code & 1, code) for code, v in enumerate(self.values)]
        return sign | min(distance)[2]

    def half(self, code: int) -> int:
        """The f16 bits of a code."""
        magnitude = code & 0x7F
        if self.mantissa_bits == 2 and magnitude == 0x7C:
            return F16.infinity | (code & 0x80) << 8
        if magnitude > self.largest:
            return F16.nan
        return exact.encode(F16, self.values[magnitude]) | (code & 0x80) << 8


FP8 = {"e4m3": Fp8(4, 0x7E), "e5m2": Fp8(5, 0x7B)}


@pytest.mark.parametrize("kind", FP8)
@pytest.mark.parametrize("clip", ["", ".relu"])
def test_to_fp8(kind: str, clip: str) -> None:
    form = FP8[kind]
    ties = [exact.encode(F32, (a + b) / 2) for a, b in zip(form.values, form.values[1:], strict=False)]
    edges = [*FLOATS["f32"], *ties, *[exact.encode(F32, v) for v in form.values], 0x43E80000, 0x43E80001, 0x47700000]
    edges += [t | 1 << 31 for t in ties[:40]] + [t + 1 for t in ties] + [t - 1 for t in ties]

    def one(source: Format, bits: int) -> int:
        code = form.encode(source, bits)
        return 0 if clip and code & 0x80 else code

    columns = [edges, edges[7:] + edges[:7]]
    check(
        f"cvt.rn.satfinite{clip}.{kind}x2.f32", "b16", ["f32", "f32"], columns,
        lambda a, b: one(F32, a) << 8 | one(F32, b),
    )  # fmt: skip
    halves = [v | w << 16 for v, w in combinations_of_halves()]
    check(
        f"cvt.rn.satfinite{clip}.{kind}x2.f16x2", "b16", ["b32"], [halves],
        lambda a: one(F16, a >> 16) << 8 | one(F16, a & 0xFFFF),
    )  # fmt: skip


def combinations_of_halves() -> list[tuple[int, int]]:
    a, b = combinations(FLOATS["f16"], FLOATS["f16"])
    return list(zip(a, b, strict=True))


@pytest.mark.parametrize("kind", FP8)
def test_from_fp8(kind: str) -> None:
    form = FP8[kind]
    codes = [a | (a * 7 + 3 & 0xFF) << 8 for a in range(256)]
    check(f"cvt.rn.f16x2.{kind}x2", "b32", ["b16"], [codes], lambda a: form.half(a & 0xFF) | form.half(a >> 8) << 16)
    check(
        f"cvt.rn.relu.f16x2.{kind}x2", "b32", ["b16"], [codes],
        lambda a: relu(F16, form.half(a & 0xFF)) | relu(F16, form.half(a >> 8)) << 16,
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["s8", "u8", "s16", "u16"])
def test_pack(kind: str) -> None:
    bits = bits_of(kind)
    mask = (1 << bits) - 1
    words = sorted({*INTEGERS[32], 127, 128, 255, 256, 32767, 32768, 65535, 65536})

    def pair(a: int, b: int) -> int:
        return (clamp(kind, signed(a, 32)) & mask) << bits | clamp(kind, signed(b, 32)) & mask

    if bits == 16:
        check(f"cvt.pack.sat.{kind}.s32", "b32", ["b32", "b32"], combinations(words, words), pair)
    else:
        check(
            f"cvt.pack.sat.{kind}.s32.b32", "b32", ["b32"] * 3, combinations(words, words, words),
            lambda a, b, c: pair(a, b) | c << 16,
        )  # fmt: skip


def test_rounding_mode_does_not_leak() -> None:
    """An instruction with another rounding leaves the next one alone."""
    code = "add.rz.f32 a, x, y; add.rn.f32 b, x, y; cvt.rp.f32.s32 a, i; add.f32 c, x, y;"
    one, tiny = 0x3F800000, 0x337FFFFF
    _, b, c = execute(
        code, {"a": "f32", "b": "f32", "c": "f32"}, {"x": "f32", "y": "f32", "i": "b32"}, [one | 1], [tiny], [16777217]
    )
    assert int(b[0]) == int(c[0]) == exact.add(F32, "rn", one | 1, tiny)
    assert math.isfinite(float(b[0]))

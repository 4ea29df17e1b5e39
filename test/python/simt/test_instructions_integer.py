"""Integer arithmetic and bit fields against plain Python integers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.ptx_lanes import INTEGERS, check, combinations, execute, signed

if TYPE_CHECKING:
    from collections.abc import Callable

U16, U32, U64 = INTEGERS[16], INTEGERS[32], INTEGERS[64]
COUNTS = [0, 1, 5, 8, 16, 31, 32, 33, 63, 64, 65, 255, 256, 0xFFFFFFFF]
EDGES = {"b16": U16, "b32": U32, "b64": U64}
TYPES = ["u16", "s16", "u32", "s32", "u64", "s64"]


def width(kind: str) -> int:
    return int(kind[1:])


def value(kind: str, bits: int) -> int:
    return signed(bits, width(kind)) if kind[0] == "s" else bits


def clamp(number: int, low: int, high: int) -> int:
    return max(low, min(high, number))


def saturate32(number: int) -> int:
    return clamp(number, -(1 << 31), (1 << 31) - 1)


def quotient(kind: str, a: int, b: int) -> int:
    x, y = value(kind, a), value(kind, b)
    if y == 0:
        return -1
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def remainder(kind: str, a: int, b: int) -> int:
    x, y = value(kind, a), value(kind, b)
    return x if y == 0 else x - quotient(kind, a, b) * y


BINARY: dict[str, Callable[[str, int, int], int]] = {
    "add": lambda t, a, b: a + b,
    "sub": lambda t, a, b: a - b,
    "mul.lo": lambda t, a, b: a * b,
    "mul.hi": lambda t, a, b: value(t, a) * value(t, b) >> width(t),
    "div": quotient,
    "rem": remainder,
    "min": lambda t, a, b: min(value(t, a), value(t, b)),
    "max": lambda t, a, b: max(value(t, a), value(t, b)),
}


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("name", BINARY)
def test_binary(name: str, kind: str) -> None:
    register = f"b{width(kind)}"
    columns = combinations(EDGES[register], EDGES[register])
    check(f"{name}.{kind}", register, [register] * 2, columns, lambda a, b: BINARY[name](kind, a, b))


TERNARY: dict[str, Callable[[str, int, int, int], int]] = {
    "mad.lo": lambda t, a, b, c: a * b + c,
    "mad.hi": lambda t, a, b, c: (value(t, a) * value(t, b) >> width(t)) + c,
    "sad": lambda t, a, b, c: abs(value(t, a) - value(t, b)) + c,
}


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("name", TERNARY)
def test_ternary(name: str, kind: str) -> None:
    register = f"b{width(kind)}"
    columns = combinations(*[EDGES[register]] * 3)
    check(f"{name}.{kind}", register, [register] * 3, columns, lambda a, b, c: TERNARY[name](kind, a, b, c))


@pytest.mark.parametrize("kind", ["u16", "s16", "u32", "s32"])
def test_wide_products(kind: str) -> None:
    narrow, wide = f"b{width(kind)}", f"b{2 * width(kind)}"
    columns = combinations(EDGES[narrow], EDGES[narrow])
    check(f"mul.wide.{kind}", wide, [narrow] * 2, columns, lambda a, b: value(kind, a) * value(kind, b))
    columns = combinations(EDGES[narrow], EDGES[narrow], EDGES[wide])
    check(
        f"mad.wide.{kind}", wide, [narrow, narrow, wide], columns, lambda a, b, c: value(kind, a) * value(kind, b) + c
    )


@pytest.mark.parametrize(
    ("mnemonic", "reference"),
    [
        ("add.sat.s32", lambda a, b: saturate32(signed(a, 32) + signed(b, 32))),
        ("sub.sat.s32", lambda a, b: saturate32(signed(a, 32) - signed(b, 32))),
        ("min.relu.s32", lambda a, b: max(0, min(signed(a, 32), signed(b, 32)))),
        ("max.relu.s32", lambda a, b: max(0, signed(a, 32), signed(b, 32))),
        ("bmsk.clamp.b32", lambda a, b: ((1 << min(b, 32)) - 1) << min(a, 32)),
        ("bmsk.wrap.b32", lambda a, b: ((1 << (b & 31)) - 1) << (a & 31)),
    ],
)
def test_binary_on_32_bits(mnemonic: str, reference: Callable[[int, int], int]) -> None:
    check(mnemonic, "b32", ["b32", "b32"], combinations(U32, U32), reference)


def test_saturating_mad() -> None:
    check(
        "mad.hi.sat.s32", "b32", ["b32"] * 3, combinations(U32, U32, U32),
        lambda a, b, c: saturate32((signed(a, 32) * signed(b, 32) >> 32) + signed(c, 32)),
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["u32", "s32"])
@pytest.mark.parametrize("half", ["lo", "hi"])
def test_24_bit_products(half: str, kind: str) -> None:
    def product(a: int, b: int) -> int:
        x, y = (signed(v, 24) if kind == "s32" else v & 0xFFFFFF for v in (a, b))
        return x * y if half == "lo" else x * y >> 16

    check(f"mul24.{half}.{kind}", "b32", ["b32"] * 2, combinations(U32, U32), product)
    check(f"mad24.{half}.{kind}", "b32", ["b32"] * 3, combinations(U32, U32, U32), lambda a, b, c: product(a, b) + c)


@pytest.mark.parametrize("kind", ["s16", "s32", "s64"])
def test_unary_signed(kind: str) -> None:
    register = f"b{width(kind)}"
    check(f"abs.{kind}", register, [register], [EDGES[register]], lambda a: abs(value(kind, a)))
    check(f"neg.{kind}", register, [register], [EDGES[register]], lambda a: -a)


def halves(function: Callable[[int, int], int], bits: Callable[[int], int]) -> Callable[[int, int], int]:
    def apply(a: int, b: int) -> int:
        low = function(bits(a & 0xFFFF), bits(b & 0xFFFF)) & 0xFFFF
        return (function(bits(a >> 16), bits(b >> 16)) & 0xFFFF) << 16 | low

    return apply


@pytest.mark.parametrize("kind", ["u16", "s16"])
def test_packed_halves(kind: str) -> None:
    def bits(half: int) -> int:
        return value(kind, half)

    cases = {"add": lambda a, b: a + b, "min": min, "max": max}
    if kind == "s16":
        cases |= {"min.relu": lambda a, b: max(0, min(a, b)), "max.relu": lambda a, b: max(0, a, b)}
    pairs = [x << 16 | y for x, y in zip(U16, reversed(U16), strict=True)]
    for name, function in cases.items():
        check(f"{name}.{kind}x2", "b32", ["b32"] * 2, combinations(pairs, pairs), halves(function, bits))


# --- carries --------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "bits"), [("u32", 32), ("s32", 32), ("u64", 64), ("s64", 64)])
def test_carry_chain_adds_and_subtracts(kind: str, bits: int) -> None:
    register = f"b{bits}"
    edges = [0, 1, (1 << bits) - 1, 1 << (bits - 1), 0x1234]
    columns = combinations(*[edges] * 6)
    sources = dict.fromkeys(["a0", "a1", "a2", "b0", "b1", "b2"], register)
    for base, sign in (("add", 1), ("sub", -1)):
        code = f"""
          {base}.cc.{kind} d0, a0, b0;
          {base}c.cc.{kind} d1, a1, b1;
          {base}c.{kind} d2, a2, b2;
        """
        found = execute(code, dict.fromkeys(["d0", "d1", "d2"], register), sources, *columns)
        for lane, (a0, a1, a2, b0, b1, b2) in enumerate(zip(*columns, strict=True)):
            a = a0 | a1 << bits | a2 << 2 * bits
            b = b0 | b1 << bits | b2 << 2 * bits
            expected = (a + sign * b) & ((1 << 3 * bits) - 1)
            actual = sum(int(found[i][lane]) << i * bits for i in range(3))
            assert actual == expected, (hex(a), hex(b))


@pytest.mark.parametrize(("kind", "bits"), [("u32", 32), ("u64", 64)])
def test_carry_chain_multiplies(kind: str, bits: int) -> None:
    """Two words times one word plus three words."""
    register = f"b{bits}"
    edges = [0, 1, (1 << bits) - 1, 1 << (bits - 1), 0x12345678]
    columns = combinations(*[edges] * 6)
    code = f"""
      mad.lo.cc.{kind} d0, a0, b, c0;
      madc.hi.cc.{kind} d1, a0, b, c1;
      madc.hi.{kind} d2, a1, b, c2;
      mad.lo.cc.{kind} d1, a1, b, d1;
      addc.{kind} d2, d2, 0;
    """
    sources = dict.fromkeys(["a0", "a1", "b", "c0", "c1", "c2"], register)
    found = execute(code, dict.fromkeys(["d0", "d1", "d2"], register), sources, *columns)
    for lane, (a0, a1, b, c0, c1, c2) in enumerate(zip(*columns, strict=True)):
        total = (a0 | a1 << bits) * b + (c0 | c1 << bits | c2 << 2 * bits)
        actual = sum(int(found[i][lane]) << i * bits for i in range(3))
        assert actual == total & ((1 << 3 * bits) - 1)


@pytest.mark.parametrize(("kind", "bits"), [("u32", 32), ("s32", 32), ("u64", 64), ("s64", 64)])
def test_carry_into_a_low_product(kind: str, bits: int) -> None:
    mask = (1 << bits) - 1
    columns = combinations(*[[0, 1, mask, 1 << (bits - 1)]] * 4)
    code = f"""
      add.cc.{kind} d2, a, b;
      madc.lo.{kind} d2, c, c, e;
      add.cc.{kind} d1, a, b;
      madc.lo.cc.{kind} d0, c, c, e;
      addc.{kind} d1, 0, 0;
      mad.lo.cc.{kind} d3, c, c, e;
      addc.{kind} d4, 0, 0;
    """
    register = f"b{bits}"
    names = ["d0", "d1", "d2", "d3", "d4"]
    found = execute(code, dict.fromkeys(names, register), dict.fromkeys("abce", register), *columns)
    for lane, (a, b, c, e) in enumerate(zip(*columns, strict=True)):
        plain = (c * c & mask) + e
        total = plain + (a + b >> bits)
        expected = [total & mask, total >> bits, total & mask, plain & mask, plain >> bits]
        assert [int(column[lane]) for column in found] == expected


@pytest.mark.parametrize(("kind", "bits"), [("u32", 32), ("u64", 64)])
def test_carry_out_of_a_high_product(kind: str, bits: int) -> None:
    mask = (1 << bits) - 1
    columns = combinations(*[[0, 1, mask, 1 << (bits - 1), 3]] * 3)
    code = f"mad.hi.cc.{kind} d0, a, b, c; addc.{kind} d1, 0, 0;"
    register = f"b{bits}"
    found = execute(code, dict.fromkeys(["d0", "d1"], register), dict.fromkeys("abc", register), *columns)
    for lane, (a, b, c) in enumerate(zip(*columns, strict=True)):
        total = (a * b >> bits) + c
        assert [int(column[lane]) for column in found] == [total & mask, total >> bits]


# --- bits ------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [32, 64])
def test_bit_counts(bits: int) -> None:
    register, edges = f"b{bits}", [INTEGERS[bits]]
    check(f"popc.{register}", "b32", [register], edges, lambda a: a.bit_count())
    check(f"clz.{register}", "b32", [register], edges, lambda a: bits - a.bit_length())
    check(f"brev.{register}", register, [register], edges, lambda a: int(f"{a:0{bits}b}"[::-1], 2))


@pytest.mark.parametrize("kind", ["u32", "s32", "u64", "s64"])
def test_bfind(kind: str) -> None:
    bits = width(kind)

    def highest(a: int) -> int:
        return (~a & ((1 << bits) - 1) if value(kind, a) < 0 else a).bit_length() - 1

    edges = [INTEGERS[bits]]
    check(f"bfind.{kind}", "b32", [f"b{bits}"], edges, highest)
    check(
        f"bfind.shiftamt.{kind}", "b32", [f"b{bits}"], edges,
        lambda a: -1 if highest(a) < 0 else bits - 1 - highest(a),
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["u32", "s32", "u64", "s64"])
def test_bfe(kind: str) -> None:
    bits = width(kind)

    def field(a: int, position: int, length: int) -> int:
        position, length = position & 0xFF, length & 0xFF
        sign = 0
        if kind[0] == "s" and length:
            sign = a >> min(position + length - 1, bits - 1) & 1
        inside = [a >> (position + i) & 1 if i < length and position + i < bits else sign for i in range(bits)]
        return sum(bit << i for i, bit in enumerate(inside))

    columns = combinations(INTEGERS[bits], COUNTS, COUNTS)
    check(f"bfe.{kind}", f"b{bits}", [f"b{bits}", "b32", "b32"], columns, field)


@pytest.mark.parametrize("bits", [32, 64])
def test_bfi(bits: int) -> None:
    def inserted(a: int, b: int, position: int, length: int) -> int:
        position, length = position & 0xFF, length & 0xFF
        for i in range(min(length, max(bits - position, 0))):
            b = b & ~(1 << (position + i)) | (a >> i & 1) << (position + i)
        return b

    register = f"b{bits}"
    columns = combinations(INTEGERS[bits], INTEGERS[bits], COUNTS, COUNTS)
    check(f"bfi.{register}", register, [register, register, "b32", "b32"], columns, inserted)


@pytest.mark.parametrize("mode", ["clamp", "wrap"])
@pytest.mark.parametrize("kind", ["u32", "s32"])
def test_szext(kind: str, mode: str) -> None:
    def extended(a: int, b: int) -> int:
        if mode == "clamp" and b >= 32:
            return a
        length = b & 31
        low = a & ((1 << length) - 1)
        return signed(low, length) if kind == "s32" and length else low

    check(f"szext.{mode}.{kind}", "b32", ["b32", "b32"], combinations(U32, COUNTS), extended)


def test_fns() -> None:
    def nth(mask: int, base: int, offset: int) -> int:
        if base >= 32:
            return -1
        offset = signed(offset, 32)
        if offset == 0:
            return base if mask >> base & 1 else -1
        order = range(base, 32) if offset > 0 else range(base, -1, -1)
        found = [i for i in order if mask >> i & 1]
        return found[abs(offset) - 1] if len(found) >= abs(offset) else -1

    offsets = [0, 1, 2, 5, 32, 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFB]
    check("fns.b32", "b32", ["b32"] * 3, combinations(U32, [0, 1, 15, 30, 31], offsets), nth)


def bytes_of(word: int, kind: str, size: int = 8) -> list[int]:
    parts = [word >> i & ((1 << size) - 1) for i in range(0, 32, size)]
    return [signed(p, size) for p in parts] if kind == "s32" else parts


@pytest.mark.parametrize("a_kind", ["u32", "s32"])
@pytest.mark.parametrize("b_kind", ["u32", "s32"])
def test_dot_products(a_kind: str, b_kind: str) -> None:
    words = [*U32, 0x80FF7F01, 0x00FF8001, 0x7F7F8080]
    columns = combinations(words, words, words)

    def dot4(a: int, b: int, c: int) -> int:
        return sum(x * y for x, y in zip(bytes_of(a, a_kind), bytes_of(b, b_kind), strict=True)) + c

    check(f"dp4a.{a_kind}.{b_kind}", "b32", ["b32"] * 3, columns, dot4)
    for name, first in (("lo", 0), ("hi", 2)):

        def dot2(a: int, b: int, c: int, first: int = first) -> int:
            pairs = zip(bytes_of(a, a_kind, 16), bytes_of(b, b_kind)[first : first + 2], strict=True)
            return sum(x * y for x, y in pairs) + c

        check(f"dp2a.{name}.{a_kind}.{b_kind}", "b32", ["b32"] * 3, columns, dot2)


def test_immediates_and_guards() -> None:
    code = """
      .reg .pred odd;
      and.b32 d, s, 1;
      setp.ne.u32 odd, d, 0;
      @odd add.s32 d, s, -5;
      @!odd add.s32 d, s, 0x10;
    """
    found = execute(code, {"d": "b32"}, {"s": "b32"}, U32)[0]
    assert [int(v) for v in found] == [(s - 5 if s & 1 else s + 16) & 0xFFFFFFFF for s in U32]

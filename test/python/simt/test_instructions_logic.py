"""Bitwise logic, shifts and byte permutation against plain Python integers."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

import pytest

from support.ptx_lanes import INTEGERS, check, combinations, execute, signed

if TYPE_CHECKING:
    from collections.abc import Callable

COUNTS = [0, 1, 7, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 0x80000000, 0xFFFFFFFF]
U32 = INTEGERS[32]
LOGIC = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}


@pytest.mark.parametrize("bits", [16, 32, 64])
@pytest.mark.parametrize("name", LOGIC)
def test_logic(name: str, bits: int) -> None:
    register = f"b{bits}"
    check(f"{name}.{register}", register, [register] * 2, combinations(INTEGERS[bits], INTEGERS[bits]), LOGIC[name])


@pytest.mark.parametrize("bits", [16, 32, 64])
def test_complements(bits: int) -> None:
    register = f"b{bits}"
    check(f"not.{register}", register, [register], [INTEGERS[bits]], lambda a: ~a)
    check(f"cnot.{register}", register, [register], [INTEGERS[bits]], lambda a: a == 0)


@pytest.mark.parametrize("name", LOGIC)
def test_predicate_logic(name: str) -> None:
    columns = combinations([0, 1], [0, 1])
    check(f"{name}.pred", "pred", ["pred", "pred"], columns, LOGIC[name])


def test_predicate_moves() -> None:
    check("not.pred", "pred", ["pred"], [[0, 1]], lambda a: 1 - a)
    check("mov.pred", "pred", ["pred"], [[0, 1]], lambda a: a)


@pytest.mark.parametrize("kind", ["b16", "b32", "b64"])
def test_shift_left(kind: str) -> None:
    bits = int(kind[1:])
    check(f"shl.{kind}", kind, [kind, "b32"], combinations(INTEGERS[bits], COUNTS), lambda a, n: a << min(n, 64))


@pytest.mark.parametrize("kind", [f"{letter}{bits}" for letter in "bus" for bits in (16, 32, 64)])
def test_shift_right(kind: str) -> None:
    bits = int(kind[1:])

    def shifted(a: int, n: int) -> int:
        return (signed(a, bits) if kind[0] == "s" else a) >> min(n, 64)

    check(f"shr.{kind}", f"b{bits}", [f"b{bits}", "b32"], combinations(INTEGERS[bits], COUNTS), shifted)


@pytest.mark.parametrize("mode", ["clamp", "wrap"])
@pytest.mark.parametrize("side", ["l", "r"])
def test_funnel_shift(side: str, mode: str) -> None:
    def funnel(low: int, high: int, count: int) -> int:
        n = min(count, 32) if mode == "clamp" else count & 31
        both = high << 32 | low
        return both << n >> 32 if side == "l" else both >> n

    columns = combinations(U32, U32, COUNTS)
    check(f"shf.{side}.{mode}.b32", "b32", ["b32"] * 3, columns, funnel)


@pytest.mark.parametrize("table", [0x00, 0x01, 0x80, 0x96, 0xAA, 0xCC, 0xE8, 0xF0, 0xFE, 0xFF, 0x3A])
def test_lop3(table: int) -> None:
    columns = combinations(U32, U32, U32, limit=300)
    found = execute(f"lop3.b32 d, a, b, c, {table};", {"d": "b32"}, dict.fromkeys("abc", "b32"), *columns)[0]
    for lane, (a, b, c) in enumerate(zip(*columns, strict=True)):
        expected = sum((table >> ((a >> i & 1) * 4 + (b >> i & 1) * 2 + (c >> i & 1)) & 1) << i for i in range(32))
        assert int(found[lane]) == expected


def pick(a: int, b: int, selectors: int) -> int:
    result = 0
    for i in range(4):
        selector = selectors >> 4 * i & 15
        byte = (b << 32 | a) >> 8 * (selector & 7) & 0xFF
        if selector & 8:
            byte = 0xFF if byte & 0x80 else 0
        result |= byte << 8 * i
    return result


def test_prmt_selects_bytes_and_signs() -> None:
    selectors = [0x3210, 0x7654, 0x0123, 0x8888, 0xFEDC, 0x4040, 0x1B9F, 0xFFFF3210]
    check("prmt.b32", "b32", ["b32"] * 3, combinations(U32, U32, selectors), pick)


MODES: dict[str, Callable[[int], list[int]]] = {
    "f4e": lambda n: [n, n + 1, n + 2, n + 3],
    "b4e": lambda n: [n, (n - 1) % 8, (n - 2) % 8, (n - 3) % 8],
    "rc8": lambda n: [n] * 4,
    "ecl": lambda n: [max(i, n) for i in range(4)],
    "ecr": lambda n: [min(i, n) for i in range(4)],
    "rc16": lambda n: [2 * (n & 1), 2 * (n & 1) + 1] * 2,
}


@pytest.mark.parametrize("mode", MODES)
def test_prmt_modes(mode: str) -> None:
    """The manual lists the bytes of each mode for c = 0..3."""

    def permuted(a: int, b: int, c: int) -> int:
        return sum((((b << 32 | a) >> 8 * byte) & 0xFF) << 8 * i for i, byte in enumerate(MODES[mode](c & 3)))

    check(f"prmt.b32.{mode}", "b32", ["b32"] * 3, combinations(U32, U32, [0, 1, 2, 3, 7]), permuted)

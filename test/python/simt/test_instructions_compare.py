"""setp, set, selp and slct against plain Python comparisons."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

import pytest

from support import exact_float as exact
from support.exact_float import BF16, F16, F32, F64, Format
from support.ptx_lanes import FLOATS, INTEGERS, check, combinations, execute, signed

if TYPE_CHECKING:
    from collections.abc import Callable

INTEGER_COMPARISONS = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip
UNSIGNED_NAMES = {"lo": operator.lt, "ls": operator.le, "hi": operator.gt, "hs": operator.ge}
FORMATS: dict[str, Format] = {"f32": F32, "f64": F64, "f16": F16, "bf16": BF16}
REGISTERS = {"f32": "f32", "f64": "f64", "f16": "b16", "bf16": "b16"}
FLOAT_COMPARISONS = [
    "eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan",
]  # fmt: skip


def compare_floats(form: Format, name: str, a: int, b: int) -> bool:
    x, y = exact.decode(form, a), exact.decode(form, b)
    unordered = x is None or y is None
    if name in ("num", "nan"):
        return unordered == (name == "nan")
    if unordered:
        return len(name) == 3
    return INTEGER_COMPARISONS["ne" if name == "neu" else name[:2]](x, y)


@pytest.mark.parametrize("kind", [f"{letter}{bits}" for letter in "bus" for bits in (16, 32, 64)])
def test_setp_integers(kind: str) -> None:
    bits = int(kind[1:])
    names = dict(INTEGER_COMPARISONS)
    if kind[0] == "b":
        names = {"eq": operator.eq, "ne": operator.ne}
    if kind[0] == "u":
        names |= UNSIGNED_NAMES
    columns = combinations(INTEGERS[bits], INTEGERS[bits])
    for name, compare in names.items():

        def reference(a: int, b: int, compare: Callable[[int, int], bool] = compare) -> bool:
            return compare(signed(a, bits), signed(b, bits)) if kind[0] == "s" else compare(a, b)

        check(f"setp.{name}.{kind}", "pred", [f"b{bits}"] * 2, columns, reference)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("name", FLOAT_COMPARISONS)
def test_setp_floats(name: str, kind: str) -> None:
    form, register = FORMATS[kind], REGISTERS[kind]
    columns = combinations(FLOATS[kind], FLOATS[kind], limit=2500)
    check(f"setp.{name}.{kind}", "pred", [register] * 2, columns, lambda a, b: compare_floats(form, name, a, b))
    if kind in ("f32", "f16"):
        check(
            f"setp.{name}.ftz.{kind}", "pred", [register] * 2, columns,
            lambda a, b: compare_floats(form, name, exact.flush(form, a), exact.flush(form, b)),
        )  # fmt: skip


@pytest.mark.parametrize("negated", [False, True])
@pytest.mark.parametrize("combine", ["and", "or", "xor"])
def test_setp_joins_a_predicate_and_writes_the_complement(combine: str, negated: bool) -> None:
    columns = combinations([0, 1, 2], [0, 1, 2], [0, 1])
    code = f"setp.lt.{combine}.u32 p|q, a, b, {'!' if negated else ''}c;"
    sources = {"a": "b32", "b": "b32", "c": "pred"}
    p, q = execute(code, {"p": "pred", "q": "pred"}, sources, *columns)
    join = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}[combine]
    for lane, (a, b, c) in enumerate(zip(*columns, strict=True)):
        other = bool(c) != negated
        assert bool(p[lane]) == join(a < b, other)
        assert bool(q[lane]) == join(not a < b, other)


def test_setp_complement_without_a_predicate() -> None:
    p, q = execute("setp.ge.s32 p|q, a, 0;", {"p": "pred", "q": "pred"}, {"a": "b32"}, [0, 1, 0xFFFFFFFF])
    assert p.tolist() == [True, True, False]
    assert q.tolist() == [False, False, True]


def test_setp_may_write_one_of_its_sources() -> None:
    code = "setp.lt.and.u32 c, a, 5, c;"
    found = execute(code, {"c": "pred"}, {"a": "b32", "c": "pred"}, [1, 1, 9, 9], [1, 0, 1, 0])[0]
    assert found.tolist() == [True, False, False, False]


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_setp_packed_halves(kind: str) -> None:
    form = FORMATS[kind]
    columns = combinations(FLOATS[kind], FLOATS[kind], limit=2500)
    packed = [[v | w << 16 for v, w in zip(c, reversed(c), strict=True)] for c in columns]
    for name in FLOAT_COMPARISONS:
        p, q = execute(
            f"setp.{name}.{kind}x2 p|q, a, b;", {"p": "pred", "q": "pred"}, {"a": "b32", "b": "b32"}, *packed
        )
        for lane, (a, b) in enumerate(zip(*packed, strict=True)):
            assert bool(p[lane]) == compare_floats(form, name, a & 0xFFFF, b & 0xFFFF)
            assert bool(q[lane]) == compare_floats(form, name, a >> 16, b >> 16)


# --- set -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("result", "register", "one"),
    [("u32", "b32", 0xFFFFFFFF), ("s32", "b32", 0xFFFFFFFF), ("f32", "f32", 0x3F800000), ("u16", "b16", 0xFFFF),
     ("f16", "b16", 0x3C00), ("bf16", "b16", 0x3F80)],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["s32", "u64", "f32", "f16"])
def test_set_gives_one_of_two_constants(kind: str, result: str, register: str, one: int) -> None:
    if kind in FORMATS:
        edges, source = FLOATS[kind], REGISTERS[kind]

        def less(a: int, b: int) -> bool:
            return compare_floats(FORMATS[kind], "lt", a, b)
    else:
        bits = int(kind[1:])
        edges, source = INTEGERS[bits], f"b{bits}"

        def less(a: int, b: int) -> bool:
            return signed(a, bits) < signed(b, bits) if kind[0] == "s" else a < b

    columns = combinations(edges, edges)
    check(f"set.lt.{result}.{kind}", register, [source] * 2, columns, lambda a, b: one if less(a, b) else 0)


def test_set_joins_a_predicate() -> None:
    columns = combinations([0, 1, 2], [0, 1, 2], [0, 1])
    found = execute("set.eq.or.u32.s32 d, a, b, !c;", {"d": "b32"}, {"a": "b32", "b": "b32", "c": "pred"}, *columns)[0]
    for lane, (a, b, c) in enumerate(zip(*columns, strict=True)):
        assert int(found[lane]) == (0xFFFFFFFF if a == b or not c else 0)


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_set_packed_halves(kind: str) -> None:
    form, one = FORMATS[kind], 0x3C00 if kind == "f16" else 0x3F80
    columns = combinations(FLOATS[kind], FLOATS[kind], limit=2500)
    packed = [[v | w << 16 for v, w in zip(c, reversed(c), strict=True)] for c in columns]
    for name in FLOAT_COMPARISONS:

        def reference(a: int, b: int, name: str = name) -> int:
            low = compare_floats(form, name, a & 0xFFFF, b & 0xFFFF)
            high = compare_floats(form, name, a >> 16, b >> 16)
            return one * low | one * high << 16

        check(f"set.{name}.{kind}x2.{kind}x2", "b32", ["b32", "b32"], packed, reference)
        if kind == "f16":

            def flushed(a: int, b: int, reference: Callable[[int, int], int] = reference) -> int:
                return reference(*(exact.flush(F16, v & 0xFFFF) | exact.flush(F16, v >> 16) << 16 for v in (a, b)))

            check(f"set.{name}.ftz.f16x2.f16x2", "b32", ["b32", "b32"], packed, flushed)


# --- selection --------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind", ["b16", "u16", "s16", "f16", "bf16", "b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64"]
)
def test_selp(kind: str) -> None:
    bits = int(kind.lstrip("busf"))
    columns = combinations([0, 1, (1 << bits) - 1], [2, 1 << (bits - 1)], [0, 1])
    check(f"selp.{kind}", f"b{bits}", [f"b{bits}", f"b{bits}", "pred"], columns, lambda a, b, c: a if c else b)


@pytest.mark.parametrize("kind", ["b16", "u16", "s16", "b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64"])
def test_slct(kind: str) -> None:
    bits = int(kind.lstrip("busf"))
    register = f"b{bits}"
    columns = combinations([0, 1, (1 << bits) - 1], [2, 1 << (bits - 1)], INTEGERS[32])
    check(
        f"slct.{kind}.s32", register, [register, register, "b32"], columns,
        lambda a, b, c: a if signed(c, 32) >= 0 else b,
    )  # fmt: skip
    columns = combinations([0, 1, (1 << bits) - 1], [2, 1 << (bits - 1)], FLOATS["f32"])
    for ftz in ("", ".ftz"):

        def reference(a: int, b: int, c: int, ftz: str = ftz) -> int:
            number = exact.decode(F32, exact.flush(F32, c) if ftz else c)
            return a if number is not None and number >= 0 else b

        check(f"slct{ftz}.{kind}.f32", register, [register, register, "f32"], columns, reference)

"""shfl, vote, match, redux, elect, activemask against plain Python over the lanes of a warp."""

from __future__ import annotations

import functools
import operator
import struct
from typing import TYPE_CHECKING

import numpy as np
import pytest

from support.ptx_lanes import FLOATS, execute, signed

if TYPE_CHECKING:
    from collections.abc import Callable

FULL = 0xFFFFFFFF
LANES = range(32)
VALUES = [(i * 2654435761 + 12345) & FULL for i in LANES]


def source_lane(mode: str, lane: int, b: int, c: int) -> tuple[int, bool]:
    """The pseudo-code of the PTX manual."""
    segment, clamp, offset = c >> 8 & 31, c & 31, b & 31
    last = (lane & segment) | (clamp & ~segment)
    first = lane & segment
    if mode == "up":
        j, valid = lane - offset, lane - offset >= last
    elif mode == "down":
        j, valid = lane + offset, lane + offset <= last
    elif mode == "bfly":
        j, valid = lane ^ offset, lane ^ offset <= last
    else:
        j = first | (offset & ~segment)
        valid = j <= last
    return (j if valid else lane), valid


@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
@pytest.mark.parametrize("segment", [0, 16, 24, 31])
def test_shfl(mode: str, segment: int) -> None:
    clamp = segment << 8 | (0 if mode == "up" else 31)
    for offset in (0, 1, 2, 7, 8, 16, 31, 33):
        code = f"shfl.sync.{mode}.b32 d|p, s, {offset}, {clamp}, -1;"
        d, p = execute(code, {"d": "b32", "p": "pred"}, {"s": "b32"}, VALUES)
        for lane in LANES:
            j, valid = source_lane(mode, lane, offset, clamp)
            assert int(d[lane]) == VALUES[j]
            assert bool(p[lane]) == valid


def test_shfl_takes_offsets_from_registers_and_may_overwrite_its_source() -> None:
    offsets = [(lane * 7 + 3) % 32 for lane in LANES]
    found = execute("shfl.sync.idx.b32 s, s, o, 31, -1;", {"s": "b32"}, {"s": "b32", "o": "b32"}, VALUES, offsets)[0]
    assert [int(v) for v in found] == [VALUES[o] for o in offsets]


def test_shfl_into_a_sink_gives_the_predicate() -> None:
    found = execute("shfl.sync.down.b32 _|p, s, 4, 31, -1;", {"p": "pred"}, {"s": "b32"}, VALUES)[0]
    assert found.tolist() == [lane + 4 <= 31 for lane in LANES]


def test_shfl_in_part_of_a_warp_leaves_the_rest() -> None:
    code = """
      .reg .pred low; .reg .b32 l;
      mov.u32 l, %laneid;
      setp.lt.u32 low, l, 16;
      mov.u32 d, 77;
      @low shfl.sync.bfly.b32 d, s, 1, 31, 0xffff;
    """
    found = execute(code, {"d": "b32"}, {"s": "b32"}, VALUES)[0]
    assert [int(v) for v in found] == [VALUES[lane ^ 1] if lane < 16 else 77 for lane in LANES]


PATTERNS = [[False] * 32, [True] * 32, [lane % 3 == 0 for lane in LANES], [lane == 31 for lane in LANES]]


@pytest.mark.parametrize("members", [FULL, 0x0000FFFF, 0x80000001])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_vote(pattern: list[bool], members: int) -> None:
    inside = [lane for lane in LANES if members >> lane & 1]
    votes = [pattern[lane] for lane in inside]
    names = {"all": "pred", "any": "pred", "uni": "pred"}
    code = "".join(f"vote.sync.{name}.pred {name}, s, {members};" for name in names)
    code += f"vote.sync.ballot.b32 b, s, {members}; vote.sync.ballot.b32 n, !s, {members};"
    found = execute(code, {**names, "b": "b32", "n": "b32"}, {"s": "pred"}, pattern)
    expected = [all(votes), any(votes), len(set(votes)) == 1]
    ballot = sum(1 << lane for lane in inside if pattern[lane])
    for lane in inside:
        assert [bool(found[i][lane]) for i in range(3)] == expected
        assert int(found[3][lane]) == ballot
        assert int(found[4][lane]) == members & ~ballot


@pytest.mark.parametrize("bits", [32, 64])
def test_match(bits: int) -> None:
    values = [(1 << (bits - 1)) + lane % 5 for lane in LANES]
    code = f"match.any.sync.b{bits} d, s, -1; match.all.sync.b{bits} e|p, s, -1;"
    d, e, p = execute(code, {"d": "b32", "e": "b32", "p": "pred"}, {"s": f"b{bits}"}, values)
    assert [int(v) for v in d] == [sum(1 << j for j in LANES if values[j] == v) for v in values]
    assert not e.any()
    assert not p.any()
    _, e, p = execute(code, {"d": "b32", "e": "b32", "p": "pred"}, {"s": f"b{bits}"}, [7] * 32)
    assert (e == FULL).all()
    assert p.all()


REDUCTIONS: dict[str, Callable[[int, int], int]] = {
    "add.u32": operator.add, "add.s32": operator.add, "min.u32": min, "max.u32": max,
    "min.s32": lambda a, b: min(a, b, key=lambda v: signed(v, 32)),
    "max.s32": lambda a, b: max(a, b, key=lambda v: signed(v, 32)),
    "and.b32": operator.and_, "or.b32": operator.or_, "xor.b32": operator.xor,
}  # fmt: skip


@pytest.mark.parametrize("members", [FULL, 0x00FF00FF, 0x10])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_redux(name: str, members: int) -> None:
    found = execute(f"redux.sync.{name} d, s, {members};", {"d": "b32"}, {"s": "b32"}, VALUES)[0]
    inside = [lane for lane in LANES if members >> lane & 1]
    total = functools.reduce(REDUCTIONS[name], [VALUES[lane] for lane in inside]) & FULL
    assert {int(found[lane]) for lane in inside} == {total}


@pytest.mark.parametrize("with_nan", [False, True])
@pytest.mark.parametrize("suffix", ["", ".abs", ".NaN", ".abs.NaN"])
@pytest.mark.parametrize("name", ["min", "max"])
def test_redux_floats(name: str, suffix: str, with_nan: bool) -> None:
    bits = [b for b in FLOATS["f32"] if b & 0x7FFFFFFF <= 0x7F800000][:31]
    bits += [0x7FC00000 if with_nan else 0x40000000]
    found = execute(f"redux.sync.{name}{suffix}.f32 d, s, -1;", {"d": "f32"}, {"s": "f32"}, bits)[0]
    if with_nan and "NaN" in suffix:
        assert (found == 0x7FFFFFFF).all()
        return
    values = [struct.unpack("<f", struct.pack("<I", b))[0] for b in bits if b & 0x7FFFFFFF <= 0x7F800000]
    if "abs" in suffix:
        values = [abs(v) for v in values]
    expected = min(values) if name == "min" else max(values)
    assert (found.view(np.float32) == np.float32(expected)).all()


def test_elect_and_activemask() -> None:
    code = """
      .reg .pred low; .reg .b32 l;
      mov.u32 l, %laneid;
      setp.ge.u32 low, l, 4;
      elect.sync d|p, -1;
      mov.u32 m, 0;
      @low activemask.b32 m;
      elect.sync _|q, 0xF00;
    """
    d, p, m, q = execute(code, {"d": "b32", "p": "pred", "m": "b32", "q": "pred"}, {"s": "b32"}, VALUES)
    assert not d.any()
    assert p.tolist() == [lane == 0 for lane in LANES]
    assert [int(v) for v in m] == [0 if lane < 4 else 0xFFFFFFF0 for lane in LANES]
    assert bool(q[8])
    assert not any(q[9:12])

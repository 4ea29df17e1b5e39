"""mov, packing, special registers, parameters, address spaces, calls."""

from __future__ import annotations

import numpy as np
import pytest
from kperfir._native import simt

from support import ptx_lab
from support.ptx_lanes import INTEGERS, check, combinations, execute

U16, U32, U64 = INTEGERS[16], INTEGERS[32], INTEGERS[64]


@pytest.mark.parametrize(
    "kind", ["b16", "u16", "s16", "f16", "bf16", "b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64"]
)
def test_mov(kind: str) -> None:
    bits = int(kind.lstrip("busf"))
    check(f"mov.{kind}", f"b{bits}", [f"b{bits}"], [INTEGERS[bits]], lambda a: a)


@pytest.mark.parametrize(
    ("code", "kind", "expected"),
    [
        ("mov.u32 d, 0x10;", "b32", 0x10),
        ("mov.b32 d, -8388608;", "b32", 0xFF800000),
        ("mov.f32 d, 0f3F800000;", "f32", 0x3F800000),
        ("mov.f32 d, 0d3FF0000000000000;", "f32", 0x3F800000),
        ("mov.f32 d, 1.5;", "f32", 0x3FC00000),
        ("mov.f64 d, 0d4000000000000000;", "f64", 0x4000000000000000),
        ("mov.f64 d, 2.0;", "f64", 0x4000000000000000),
        ("mov.u16 d, -1;", "b16", 0xFFFF),
        ("mov.b64 d, -2;", "b64", 0xFFFFFFFFFFFFFFFE),
        ("mov.u64 d, 18446744073709551615;", "b64", 0xFFFFFFFFFFFFFFFF),
        ("mov.b32 d, ~5;", "b32", 0xFFFFFFFA),
        ("mov.pred d, -1;", "pred", True),
        ("mov.pred d, 0;", "pred", False),
    ],
)
def test_immediates(code: str, kind: str, expected: int) -> None:
    assert execute(code, {"d": kind}, {"unused": "b32"}, [0] * 3)[0].tolist() == [expected] * 3


def test_unpack_and_pack_16_in_32() -> None:
    low, high = execute("mov.b32 {x, y}, s;", {"x": "b16", "y": "b16"}, {"s": "b32"}, U32)
    assert [int(v) for v in low] == [v & 0xFFFF for v in U32]
    assert [int(v) for v in high] == [v >> 16 for v in U32]
    columns = combinations(U16, U16, limit=400)
    packed = execute("mov.b32 d, {a, b};", {"d": "b32"}, {"a": "b16", "b": "b16"}, *columns)[0]
    assert [int(v) for v in packed] == [a | b << 16 for a, b in zip(*columns, strict=True)]


def test_unpack_and_pack_in_64() -> None:
    low, high = execute("mov.b64 {x, y}, s;", {"x": "b32", "y": "b32"}, {"s": "b64"}, U64)
    assert [int(v) for v in low] == [v & 0xFFFFFFFF for v in U64]
    assert [int(v) for v in high] == [v >> 32 for v in U64]
    names = {"w": "b16", "x": "b16", "y": "b16", "z": "b16"}
    quarters = execute("mov.b64 {w, x, y, z}, s;", names, {"s": "b64"}, U64)
    for i, part in enumerate(quarters):
        assert [int(v) for v in part] == [v >> 16 * i & 0xFFFF for v in U64]
    columns = combinations(U32, U32, limit=400)
    packed = execute("mov.b64 d, {a, b};", {"d": "b64"}, {"a": "b32", "b": "b32"}, *columns)[0]
    assert [int(v) for v in packed] == [a | b << 32 for a, b in zip(*columns, strict=True)]
    again = execute("mov.b64 d, {w, x, y, z};", {"d": "b64"}, names, *quarters)[0]
    assert [int(v) for v in again] == U64


def test_unpack_to_a_sink() -> None:
    found = execute("mov.b64 {_, x}, s;", {"x": "b32"}, {"s": "b64"}, U64)[0]
    assert [int(v) for v in found] == [v >> 32 for v in U64]


def test_128_bits() -> None:
    code = """
      .reg .b128 q, r;
      mov.b128 q, {a, b};
      mov.b128 r, q;
      mov.b128 {c, d}, r;
    """
    columns = combinations(U64, U64, limit=400)
    c, d = execute(code, {"c": "b64", "d": "b64"}, {"a": "b64", "b": "b64"}, *columns)
    assert [int(v) for v in c] == columns[0]
    assert [int(v) for v in d] == columns[1]


def test_128_bits_in_quarters() -> None:
    code = """
      .reg .b128 q;
      mov.b128 q, {d, c, b, a};
      mov.b128 {w, x, y, z}, q;
    """
    columns = combinations(U32, U32, U32, U32, limit=400)
    found = execute(code, dict.fromkeys("wxyz", "b32"), dict.fromkeys("abcd", "b32"), *columns)
    assert [list(map(int, column)) for column in found] == columns[::-1]


def test_bytes_in_16_and_32() -> None:
    code = """
      .reg .b8 x, y, z, w;
      mov.b32 {x, y, z, w}, s;
      mov.b32 d, {w, z, y, x};
      mov.b16 h, {y, x};
      mov.b16 {x, y}, h;
      mov.b16 g, {y, x};
    """
    d, h, g = execute(code, {"d": "b32", "h": "b16", "g": "b16"}, {"s": "b32"}, U32)
    assert [int(v) for v in d] == [int.from_bytes(v.to_bytes(4, "little"), "big") for v in U32]
    assert [int(v) for v in h] == [(v >> 8 & 0xFF) | (v & 0xFF) << 8 for v in U32]
    assert [int(v) for v in g] == [v & 0xFFFF for v in U32]


# --- special registers ------------------------------------------------------------


def read_special(
    name: str, *, wide: bool = False, grid: tuple[int, int, int] = (1, 1, 1), threads: int = 64
) -> np.ndarray:
    """Value per thread of the grid."""
    total = grid[0] * grid[1] * grid[2] * threads
    out = np.zeros(total, np.uint64 if wide else np.uint32)
    kind, register = ("u64", "%rd5") if wide else ("u32", "%r5")
    body = f"""
      mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %ctaid.z;
      mad.lo.u32 %r2, %r3, {grid[1]}, %r2;
      mad.lo.u32 %r1, %r2, {grid[0]}, %r1;
      mad.lo.u32 %r1, %r1, {threads}, %r0;
      mad.wide.u32 %rd1, %r1, {8 if wide else 4}, %rd0;
      mov.{kind} {register}, {name};
      st.global.{kind} [%rd1], {register};
    """
    ptx_lab.run(body, out, threads=threads, grid=grid)
    return out.reshape(-1, threads)


def test_thread_registers() -> None:
    lanes = np.arange(64) % 32
    assert np.array_equal(read_special("%tid.x")[0], np.arange(64))
    assert not read_special("%tid.y").any()
    assert np.array_equal(read_special("%laneid")[0], lanes)
    assert np.array_equal(read_special("%warpid")[0], np.arange(64) // 32)
    ones = np.uint64(1) << lanes.astype(np.uint64)
    masks = {"eq": ones, "lt": ones - 1, "le": 2 * ones - 1, "gt": ~(2 * ones - 1), "ge": ~(ones - 1)}
    for name, mask in masks.items():
        assert np.array_equal(read_special(f"%lanemask_{name}")[0], mask & np.uint64(0xFFFFFFFF))


def test_grid_registers() -> None:
    grid = (3, 2, 2)
    for axis, letter in enumerate("xyz"):
        assert (read_special(f"%nctaid.{letter}", grid=grid) == grid[axis]).all()
        found = read_special(f"%ctaid.{letter}", grid=grid)
        index = np.arange(12)
        assert np.array_equal(found[:, 0], [index % 3, index // 3 % 2, index // 6][axis])
    assert (read_special("%ntid.x") == 64).all()
    assert (read_special("%ntid.y") == 1).all()


def test_special_register_as_operand() -> None:
    found = execute("add.u32 d, s, %ntid.x;", {"d": "b32"}, {"s": "b32"}, U32)[0]
    assert [int(v) for v in found] == [(v + 128) & 0xFFFFFFFF for v in U32]


def test_clocks_go_forward() -> None:
    code = """
      mov.u64 a, %clock64; mov.u32 c, %clock; mov.u32 h, %clock_hi; mov.u64 t, %globaltimer;
      bar.sync 0;
      mov.u64 b, %clock64; mov.u64 u, %globaltimer; mov.u32 l, %globaltimer_lo;
    """
    wide = dict.fromkeys("abtu", "b64")
    a, b, t, u, c, h, low = execute(code, wide | dict.fromkeys("chl", "b32"), {"unused": "b32"}, [0] * 128)
    assert (b > a).all()
    assert (c.astype(np.uint64) >= a).all()
    assert not h.any()
    assert (u >= t).all()
    assert (low.astype(np.uint64) >= u & np.uint64(0xFFFFFFFF)).all()


# --- parameters ----------------------------------------------------------------------

PARAMETERS = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry kernel(.param .u64 out, .param .u8 a, .param .s16 b, .param .f32 c, .param .align 8 .b8 d[16],
  .param .s32 e)
{{
  .reg .b16 %h<4>; .reg .b32 %r<4>; .reg .b64 %rd<4>;
  ld.param.u64 %rd0, [out];
  {body}
  ret;
}}
"""


def parameter(body: str, *, threads: int = 1) -> int:
    """Run `body`, which leaves its result in %rd1."""
    out = np.zeros(1, np.uint64)
    module = simt.Module(PARAMETERS.format(body=body + " st.global.u64 [%rd0], %rd1;"))
    device = ptx_lab.device()
    device.map(out.ctypes.data, out.nbytes, "out", True)
    values = [
        out.ctypes.data.to_bytes(8, "little"), b"\x85", b"\xfe\xff", b"\0\0\x80\x3f", bytes(range(0x10, 0x20)),
        b"\x01\0\0\x80",
    ]  # fmt: skip
    device.launch(module, grid=(1, 1, 1), block_threads=threads, shared_bytes=0, params=values)
    return int(out[0])


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("ld.param.u8 %rd1, [a];", 0x85),
        ("ld.param.u8 %r1, [a]; cvt.u64.u32 %rd1, %r1;", 0x85),
        ("ld.param.u8 %h1, [a]; cvt.u64.u16 %rd1, %h1;", 0x85),
        ("ld.param.s8 %rd1, [a];", 0xFFFFFFFFFFFFFF85),
        ("ld.param.s8 %r1, [a]; cvt.u64.u32 %rd1, %r1;", 0xFFFFFF85),
        ("ld.param.s8 %h1, [a]; cvt.u64.u16 %rd1, %h1;", 0xFF85),
        ("ld.param.s16 %h1, [b]; cvt.u64.u16 %rd1, %h1;", 0xFFFE),
        ("ld.param.s16 %r1, [b]; cvt.u64.u32 %rd1, %r1;", 0xFFFFFFFE),
        ("ld.param.s16 %rd1, [b];", 0xFFFFFFFFFFFFFFFE),
        ("ld.param.u16 %h1, [b]; cvt.u64.u16 %rd1, %h1;", 0xFFFE),
        ("ld.param.u16 %r1, [b]; cvt.u64.u32 %rd1, %r1;", 0xFFFE),
        ("ld.param.u16 %rd1, [b];", 0xFFFE),
        ("ld.param.s32 %r1, [e]; cvt.u64.u32 %rd1, %r1;", 0x80000001),
        ("ld.param.s32 %rd1, [e];", 0xFFFFFFFF80000001),
        ("ld.param.u32 %rd1, [e];", 0x80000001),
        ("ld.param.s64 %rd1, [d];", 0x1716151413121110),
        ("ld.param::entry.u64 %rd1, [d];", 0x1716151413121110),
        ("ld.param.b32 %r1, [c]; cvt.u64.u32 %rd1, %r1;", 0x3F800000),
        ("ld.param.b64 %rd1, [d+8];", 0x1F1E1D1C1B1A1918),
        ("ld.param.v2.b32 {%r1, %r2}, [d]; mov.b64 %rd1, {%r2, %r1};", 0x1312111017161514),
        ("mov.b64 %rd2, d; cvta.param.u64 %rd2, %rd2; ld.b32 %r1, [%rd2+4]; cvt.u64.u32 %rd1, %r1;", 0x17161514),
    ],
)
def test_parameters(body: str, expected: int) -> None:
    assert parameter(body) == expected


# --- address spaces ---------------------------------------------------------------------


def test_generic_addresses_of_shared_memory() -> None:
    code = """
      .reg .b64 g, back; .reg .b32 a;
      mov.u32 a, smem;
      mad.lo.u32 a, %r0, 4, a;
      cvt.u64.u32 g, a;
      cvta.shared.u64 g, g;
      st.b32 [g], %r0;
      bar.sync 0;
      ld.shared.b32 d, [a];
      cvta.to.shared.u64 back, g;
      cvt.u32.u64 e, back;
      isspacep.shared p, g;
      isspacep.global q, g;
    """
    out = [np.zeros(64, np.uint32) for _ in range(3)]
    body = (
        "{ .reg .b32 d, e, f; .reg .pred p, q; .reg .b64 at;"
        + code
        + """
      selp.u32 f, 1, 0, p; @q or.b32 f, f, 2;
      mul.wide.u32 at, %r0, 4;
      add.u64 %rd5, %rd0, at; st.global.b32 [%rd5], d;
      add.u64 %rd5, %rd1, at; st.global.b32 [%rd5], e;
      add.u64 %rd5, %rd2, at; st.global.b32 [%rd5], f; }"""
    )
    ptx_lab.run(body, *out, threads=64, shared=256)
    assert np.array_equal(out[0], np.arange(64))
    assert np.array_equal(out[1], 4 * np.arange(64))
    assert (out[2] == 1).all()


def test_generic_addresses_of_global_memory() -> None:
    code = "cvta.global.u64 g, %rd0; cvta.to.global.u64 h, g; isspacep.global p, h; isspacep.local q, h;"
    p, q = execute(".reg .b64 g, h; " + code, {"p": "pred", "q": "pred"}, {"unused": "b32"}, [0])
    assert p.all()
    assert not q.any()


WINDOWS = {
    "global": 0, "const": 0, "shared": 0x4000 << 48, "shared::cta": 0x4000 << 48, "shared::cluster": 0x4000 << 48,
    "local": 0x4001 << 48, "param": 0x4002 << 48,
}  # fmt: skip


@pytest.mark.parametrize("space", WINDOWS)
def test_windows_of_generic_addresses(space: str) -> None:
    offsets = [0, 4, 0xFFFF_FFFC, 0x7FFF_1234_5678]
    check(f"cvta.{space}.u64", "b64", ["b64"], [offsets], lambda a: WINDOWS[space] + a)
    generic = [window + offset for window in WINDOWS.values() for offset in offsets]
    check(f"cvta.to.{space}.u64", "b64", ["b64"], [generic], lambda a: a & (1 << 48) - 1)
    found = execute(f"isspacep.{space} d, s;", {"d": "pred"}, {"s": "b64"}, generic)[0]
    assert found.tolist() == [address >> 48 << 48 == WINDOWS[space] for address in generic]


def test_global_variables_are_initialised_and_persist() -> None:
    scope = ".global .align 4 .u32 table[4] = {7, 8, 9}; .global .u64 pointer = table;"
    body = """
      ld.global.u64 %rd1, [pointer];
      ld.global.u32 %r1, [%rd1+4];
      ld.global.u32 %r2, [table+8];
      mad.lo.u32 %r3, %r1, 100, %r2;
      st.global.u32 [%rd0], %r3;
      st.global.u32 [table+4], %r3;
    """
    out = np.zeros(1, np.uint32)
    module = simt.Module(ptx_lab.ptx(body, 1, module_scope=scope))
    ptx_lab.launch(module, out, threads=1)
    assert out[0] == 809
    ptx_lab.launch(module, out, threads=1)
    assert out[0] == 80909


# --- functions -------------------------------------------------------------------------------

FUNCTIONS = """
.func (.param .b64 result) mix(.param .b32 a, .param .align 8 .b8 pair[8])
{
  .reg .pred %p<2>; .reg .b32 %r<5>; .reg .b64 %rd<3>;
  ld.param.b32 %r1, [a];
  ld.param.v2.b32 {%r2, %r3}, [pair];
  setp.gt.u32 %p1, %r1, 10;
  @%p1 bra large;
  mul.wide.u32 %rd1, %r2, %r3;
  st.param.b64 [result], %rd1;
  ret;
large:
  add.u32 %r4, %r2, %r3;
  cvt.u64.u32 %rd1, %r4;
  st.param.b64 [result], %rd1;
  ret;
}
"""


def test_calls_diverge_and_return() -> None:
    body = """
      .reg .b64 %v<3>;
      {
        .param .b32 p0; .param .align 8 .b8 p1[8]; .param .b64 r0;
        st.param.b32 [p0], %r0;
        st.param.v2.b32 [p1], {%r0, 3};
        call.uni (r0), mix, (p0, p1);
        ld.param.b64 %v1, [r0];
      }
      {
        .param .b32 p0; .param .align 8 .b8 p1[8]; .param .b64 r0;
        st.param::func.b32 [p0], 0;
        st.param.v2.b32 [p1], {5, %r0};
        call.uni (r0), mix, (p0, p1);
        ld.param::func.b64 %v2, [r0];
      }
      add.u64 %v1, %v1, %v2;
      mad.wide.u32 %rd1, %r0, 8, %rd0;
      st.global.b64 [%rd1], %v1;
    """
    out = np.zeros(32, np.uint64)
    ptx_lab.run(body, out, module_scope=FUNCTIONS)
    assert out.tolist() == [(t + 3 if t > 10 else t * 3) + 5 * t for t in range(32)]

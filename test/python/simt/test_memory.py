"""ld and st: every space and width, and what the device says about wrong addresses."""

from __future__ import annotations

import resource

import numpy as np
import pytest
from kperfir._native import simt

from support import ptx_lab
from support.small_chip import small_chip

GLOBAL_COPY = """
  mul.wide.u32 %rd10, %r0, {size};
  add.s64 %rd11, %rd0, %rd10;
  add.s64 %rd12, %rd1, %rd10;
  ld.global{hint}.{type} {value}, [%rd11];
  st.global.{type} [%rd12], {value};
"""
WIDTHS = [
    ("b8", 1, "%h0"),
    ("b16", 2, "%h0"),
    ("b32", 4, "%r1"),
    ("b64", 8, "%rd5"),
    ("v2.b8", 2, "{%h0, %h1}"),
    ("v2.b16", 4, "{%h0, %h1}"),
    ("v2.b32", 8, "{%r1, %r2}"),
    ("v2.b64", 16, "{%rd5, %rd6}"),
    ("v4.b8", 4, "{%h0, %h1, %h2, %h3}"),
    ("v4.b16", 8, "{%h0, %h1, %h2, %h3}"),
    ("v4.b32", 16, "{%r1, %r2, %r3, %r4}"),
    ("v4.f32", 16, "{%f1, %f2, %f3, %f4}"),
    ("v2.f64", 16, "{%fd1, %fd2}"),
]


@pytest.mark.parametrize(("kind", "size", "value"), WIDTHS)
def test_global_copy_moves_every_width(kind: str, size: int, value: str) -> None:
    source = np.random.default_rng(0).integers(0, 256, 64 * size, dtype=np.uint8)
    target = np.zeros_like(source)
    ptx_lab.run(GLOBAL_COPY.format(hint="", size=size, type=kind, value=value), source, target, threads=64)
    assert np.array_equal(source, target)


@pytest.mark.parametrize("hint", [".ca", ".cg", ".cs", ".lu", ".cv", ".nc", ".L1::no_allocate", ".L1::evict_last"])
def test_global_load_accepts_cache_hints(hint: str) -> None:
    source = np.arange(32, dtype=np.uint32)
    target = np.zeros_like(source)
    ptx_lab.run(GLOBAL_COPY.format(hint=hint, size=4, type="b32", value="%r1"), source, target)
    assert np.array_equal(source, target)


@pytest.mark.parametrize("order", ["volatile", "relaxed.gpu", "acquire.gpu", "relaxed.sys", "relaxed.cta"])
def test_ordered_loads_and_stores_move_data(order: str) -> None:
    source = np.arange(32, dtype=np.uint32)
    target = np.zeros_like(source)
    store = {"acquire.gpu": "release.gpu"}.get(order, order)
    body = f"""
      mul.wide.u32 %rd10, %r0, 4;
      add.s64 %rd11, %rd0, %rd10;
      add.s64 %rd12, %rd1, %rd10;
      ld.{order}.global.u32 %r1, [%rd11];
      st.{store}.global.u32 [%rd12], %r1;
    """
    ptx_lab.run(body, source, target)
    assert np.array_equal(source, target)


@pytest.mark.parametrize(
    ("load", "register", "expected"),
    [
        ("ld.global.s8 %r1", "%r1", 0xFFFFFF80),
        ("ld.global.u8 %r1", "%r1", 0x80),
        ("ld.global.b8 %r1", "%r1", 0x80),
        ("ld.global.s16 %r1", "%r1", 0xFFFFFF80),
        ("ld.global.u16 %r1", "%r1", 0xFF80),
        ("ld.global.s8 %h1", "%h1", 0xFF80),
        ("ld.global.u8 %h1", "%h1", 0x80),
    ],
)
def test_narrow_loads_extend_by_their_type(load: str, register: str, expected: int) -> None:
    source = np.array([0x80, 0xFF], np.uint8)
    target = np.zeros(1, np.uint32)
    convert = f"mov.u32 %r2, {register};" if register.startswith("%r") else f"cvt.u32.u16 %r2, {register};"
    ptx_lab.run(f"{load}, [%rd0]; {convert} st.global.u32 [%rd1], %r2;", source, target)
    assert target[0] == expected


@pytest.mark.parametrize(("load", "expected"), [("s32", 2**64 - 2**31), ("u32", 2**31), ("s8", 0)])
def test_loads_extend_to_64_bits(load: str, expected: int) -> None:
    source = np.array([0x80000000], np.uint32)
    target = np.zeros(1, np.uint64)
    ptx_lab.run(f"ld.global.{load} %rd5, [%rd0]; st.global.u64 [%rd1], %rd5;", source, target)
    assert target[0] == expected


def test_store_narrows_a_wide_register() -> None:
    target = np.zeros(4, np.uint32)
    ptx_lab.run("mov.u32 %r1, 0x12345678; st.global.u8 [%rd0], %r1; st.global.u16 [%rd0+4], %r1;", target)
    assert list(target[:2]) == [0x78, 0x5678]


def test_predicated_lanes_neither_load_nor_store() -> None:
    source = np.arange(32, dtype=np.uint32) + 100
    target = np.zeros(32, np.uint32)
    body = """
      mul.wide.u32 %rd10, %r0, 4;
      add.s64 %rd11, %rd0, %rd10;
      add.s64 %rd12, %rd1, %rd10;
      setp.lt.u32 %p1, %r0, 5;
      mov.u32 %r1, 1;
      @%p1 ld.global.u32 %r1, [%rd11];
      setp.lt.u32 %p2, %r0, 7;
      @%p2 st.global.u32 [%rd12], %r1;
    """
    # Lanes from 5 on would read out of bounds.
    ptx_lab.run(body, source[:5].copy(), target)
    assert list(target[:8]) == [100, 101, 102, 103, 104, 1, 1, 0]


def test_sink_discards_an_element() -> None:
    source = np.arange(4, dtype=np.uint32)
    target = np.zeros(1, np.uint32)
    ptx_lab.run("ld.global.v4.b32 {_, _, %r1, _}, [%rd0]; st.global.u32 [%rd1], %r1;", source, target)
    assert target[0] == 2


def test_negative_offset_reaches_back() -> None:
    source = np.arange(4, dtype=np.uint32)
    target = np.zeros(1, np.uint32)
    ptx_lab.run("add.s64 %rd5, %rd0, 12; ld.global.u32 %r1, [%rd5+-8]; st.global.u32 [%rd1], %r1;", source, target)
    assert target[0] == 1


SHARED_ROUND_TRIP = """
  mul.lo.u32 %r10, %r0, {size};
  mov.u32 %r11, smem;
  add.u32 %r11, %r11, %r10;
  mul.wide.u32 %rd10, %r0, {size};
  add.s64 %rd11, %rd0, %rd10;
  add.s64 %rd12, %rd1, %rd10;
  ld.global.{type} {value}, [%rd11];
  st.shared.{type} [%r11], {value};
  bar.sync 0;
  xor.b32 %r12, %r10, {last};
  mov.u32 %r13, smem;
  add.u32 %r13, %r13, %r12;
  ld.shared.{type} {value}, [%r13];
  st.global.{type} [%rd12], {value};
"""


@pytest.mark.parametrize(("kind", "size", "value"), WIDTHS)
def test_shared_memory_moves_every_width_between_threads(kind: str, size: int, value: str) -> None:
    source = np.random.default_rng(1).integers(0, 256, (64, size), dtype=np.uint8)
    target = np.zeros_like(source)
    body = SHARED_ROUND_TRIP.format(size=size, type=kind, value=value, last=63 * size)
    ptx_lab.run(body, source, target, threads=64, shared=64 * size)
    assert np.array_equal(source[::-1], target)


def test_generic_addresses_reach_shared_and_global() -> None:
    source = np.arange(32, dtype=np.uint32)
    target = np.zeros_like(source)
    body = """
      mul.wide.u32 %rd10, %r0, 4;
      cvta.to.global.u64 %rd2, %rd0;
      add.s64 %rd11, %rd2, %rd10;
      ld.u32 %r1, [%rd11];
      mov.u64 %rd13, smem;
      cvta.shared.u64 %rd14, %rd13;
      add.s64 %rd14, %rd14, %rd10;
      st.u32 [%rd14], %r1;
      ld.u32 %r2, [%rd14];
      add.s64 %rd12, %rd1, %rd10;
      st.u32 [%rd12], %r2;
    """
    ptx_lab.run(body, source, target, shared=128)
    assert np.array_equal(source, target)


def test_local_memory_is_private_to_a_thread() -> None:
    target = np.zeros(64, np.uint32)
    body = """
      .local .align 8 .b8 stack[16];
      mov.u64 %rd5, stack;
      st.local.u32 [%rd5+4], %r0;
      ld.local.u32 %r1, [%rd5+4];
      mul.wide.u32 %rd10, %r0, 4;
      add.s64 %rd11, %rd0, %rd10;
      st.global.u32 [%rd11], %r1;
    """
    ptx_lab.run(body, target, threads=64)
    assert np.array_equal(target, np.arange(64))


def test_module_variable_is_initialised_and_readable() -> None:
    target = np.zeros(1, np.uint32)
    body = "mov.u64 %rd5, table; ld.global.u32 %r1, [%rd5+4]; st.global.u32 [%rd0], %r1;"
    ptx_lab.run(body, target, module_scope=".global .align 4 .b32 table[2] = {17, 42};")
    assert target[0] == 42


# What goes wrong.


def failure(body: str, *arrays: np.ndarray, **shape: object) -> simt.Error:
    with pytest.raises(simt.Error) as caught:
        ptx_lab.run(body, *arrays, **shape)
    return caught.value


def test_global_access_behind_the_end_names_thread_and_address() -> None:
    target = np.zeros(40, np.uint32)
    body = "mul.wide.u32 %rd10, %r0, 4; add.s64 %rd11, %rd0, %rd10; st.global.u32 [%rd11], %r0;"
    error = failure(body, target, threads=64)
    assert error.kind == "out-of-bounds"
    assert (error.cta, error.warp, error.lane) == (0, 1, 8)
    assert error.address == target.ctypes.data + 160
    assert error.is_global
    assert error.ptx_line > 0
    assert "st.global.u32" in str(error)


def test_wide_access_over_the_end_fails() -> None:
    source = np.zeros(6, np.uint32)
    base = source.ctypes.data
    assert base % 16 == 0
    error = failure("ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%rd0+16];", source)
    assert error.kind == "out-of-bounds"


def test_null_pointer_is_out_of_bounds() -> None:
    error = failure("mov.u64 %rd5, 0; ld.global.u32 %r1, [%rd5];", np.zeros(1, np.uint32))
    assert (error.kind, error.address) == ("out-of-bounds", 0)


def test_store_to_read_only_memory_fails() -> None:
    error = failure("st.global.u32 [%rd0], %r0;", np.zeros(1, np.uint32), read_only=[0])
    assert error.kind == "out-of-bounds"
    assert "read-only" in error.message


def test_bad_address_after_cached_neighbour_fails() -> None:
    # The sector is in L1 after the first load; its unmapped part must still be refused.
    source = np.zeros(3, np.uint32)
    body = "ld.global.u32 %r1, [%rd0]; add.u32 %r2, %r1, 1; bar.sync 0; ld.global.u32 %r3, [%rd0+12];"
    assert failure(body, source).kind == "out-of-bounds"


@pytest.mark.parametrize("space", ["global", "shared", "local"])
def test_misaligned_access_names_the_lane(space: str) -> None:
    body = """
      .local .align 8 .b8 stack[256];
      mul.wide.u32 %rd10, %r0, 2;
      {base}
      add.s64 %rd11, %rd12, %rd10;
      st.{space}.u32 [%rd11], %r0;
    """
    base = {"global": "mov.u64 %rd12, %rd0;", "shared": "mov.u64 %rd12, smem;", "local": "mov.u64 %rd12, stack;"}
    error = failure(body.format(space=space, base=base[space]), np.zeros(32, np.uint32), shared=128)
    assert (error.kind, error.lane) == ("misaligned", 1)
    assert "multiple of the access size, 4 bytes" in error.message


def test_shared_access_behind_the_end_fails() -> None:
    error = failure("mov.u32 %r1, smem; st.shared.u32 [%r1+128], %r0;", np.zeros(1, np.uint32), shared=128)
    assert (error.kind, error.address, error.lane) == ("out-of-bounds", 128, 0)
    assert not error.is_global


def test_shared_address_below_zero_fails() -> None:
    error = failure("mov.u32 %r1, smem; ld.shared.u32 %r2, [%r1+-4];", np.zeros(1, np.uint32), shared=128)
    assert error.kind == "out-of-bounds"


def test_local_access_behind_the_end_fails() -> None:
    body = ".local .align 8 .b8 stack[16]; mov.u64 %rd5, stack; ld.local.u32 %r1, [%rd5+16];"
    assert failure(body, np.zeros(1, np.uint32)).kind == "out-of-bounds"


def test_unwritten_shared_memory_is_named() -> None:
    body = "mov.u32 %r1, smem; st.shared.u16 [%r1+8], %h0; ld.shared.u32 %r2, [%r1+8];"
    error = failure(body, np.zeros(1, np.uint32), shared=128)
    assert (error.kind, error.address) == ("uninitialised", 8)
    assert "never written" in error.message


def test_shared_memory_of_a_former_cta_does_not_show() -> None:
    body = """
      mov.u32 %r1, smem;
      mov.u32 %r2, %ctaid.x;
      setp.eq.u32 %p1, %r2, 0;
      @%p1 st.shared.u32 [%r1], %r0;
      ld.shared.u32 %r3, [%r1];
    """
    # 200 CTAs on 108 SMs: some get the storage of CTA 0.
    error = failure(body, np.zeros(1, np.uint32), shared=128, grid=(200, 1, 1))
    assert error.kind == "uninitialised"
    assert error.cta != 0


def test_resolver_is_asked_for_unknown_memory() -> None:
    source = np.arange(32, dtype=np.uint32)
    target = np.zeros(32, np.uint32)
    hidden = np.array([source.ctypes.data], np.uint64)
    asked = []

    def resolve(address: int) -> tuple[int, int, str] | None:
        asked.append(address)
        return (source.ctypes.data, source.nbytes, "hidden") if address >= source.ctypes.data else None

    device = ptx_lab.device()
    device.set_resolver(resolve)
    body = """
      ld.global.u64 %rd5, [%rd0];
      mul.wide.u32 %rd10, %r0, 4;
      add.s64 %rd5, %rd5, %rd10;
      ld.global.u32 %r1, [%rd5];
      add.s64 %rd6, %rd1, %rd10;
      st.global.u32 [%rd6], %r1;
    """
    ptx_lab.run(body, hidden, target, on=device)
    assert np.array_equal(source, target)
    assert asked == [source.ctypes.data]
    device.set_resolver(None)


def test_exception_of_the_resolver_reaches_the_caller() -> None:
    def resolve(address: int) -> None:
        raise KeyError(address)

    device = ptx_lab.device()
    device.set_resolver(resolve)
    with pytest.raises(KeyError):
        ptx_lab.run("mov.u64 %rd5, 64; ld.global.u32 %r1, [%rd5];", np.zeros(1, np.uint32), on=device)
    device.set_resolver(None)


def test_registers_of_a_new_launch_are_zero() -> None:
    names = range(1, 60)
    body = "".join(f"add.u32 %r{i}, %r0, {i};\n" for i in names) + "".join(f"xor.b32 %r0, %r0, %r{i};\n" for i in names)
    device = ptx_lab.device()
    out = np.zeros(32, np.uint32)
    ptx_lab.run(body + "st.global.u32 [%rd0], %r0;", out, on=device)
    out[:] = 1
    store = "mul.wide.u32 %rd1, %r0, 4; add.u64 %rd1, %rd1, %rd0; xor.b32 %r8, %r7, %r9; st.global.u32 [%rd1], %r8;"
    ptx_lab.run(store, out, on=device)
    assert not out.any()


def test_load_sees_what_another_sm_has_stored_a_little_earlier() -> None:
    """Both in one step of time: the load goes back to memory, though it read it when it issued."""
    body = """
      mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %r1, 0; mov.u32 %r2, 7;
      @%p1 st.global.u32 [%rd0], %r2;
      @%p1 bra done;
      mov.u32 %r3, 0;
    later:
      add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, 4;
      @%p2 bra later;
      ld.global.u32 %r4, [%rd0];
      st.global.u32 [%rd1], %r4;
    done:
    """
    value, seen = np.zeros(32, np.uint32), np.zeros(32, np.uint32)
    ptx_lab.run(body, value, seen, grid=(2, 1, 1))
    assert seen[0] == 7


def test_memory_grows_with_resident_ctas_not_with_the_grid() -> None:
    """The grid is sixteen times as large; with its CTAs' memory it would need 500 MB."""
    body = "mov.u32 %r1, smem; st.shared.u32 [%r1], %r0; ld.shared.u32 %r2, [%r1];"
    chip = small_chip(sm_count=4)
    on = simt.Device(chip)
    peaks = []
    for grid in (2000, 32000):
        result = ptx_lab.run(body, on=on, grid=(grid, 1, 1), threads=32, shared=16384)
        assert result.ctas == grid
        peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    assert peaks[1] - peaks[0] < 8192, "KiB"

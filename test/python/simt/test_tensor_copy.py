"""cp.async.bulk.tensor, cp.reduce.async.bulk.tensor and tensormap.replace, each form against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from kperfir._native import simt

from support import ptx_lab
from support.tensor_maps import aligned_like, box_at, swizzled, tensor_map

BARRIER = 65536  # of the mbarrier in shared memory
SHARED = BARRIER + 64

INIT = ptx_lab.mbarrier_prologue(BARRIER)
WAIT = ptx_lab.MBARRIER_WAIT
EXPECT = "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 512;"
COORDINATES = "%r10, %r11, %r12, %r13, %r14"


def copy_out(size: int, array: str, start: str = "%r1") -> str:
    """Copies `size` bytes from shared memory to an array, 16 bytes per thread."""
    steps = -(-size // (16 * 32))
    lines = [
        f"shl.b32 %r20, %r0, 4; cvt.u64.u32 %rd20, %r20; add.s64 %rd20, %rd20, {array}; add.u32 %r20, %r20, {start};"
    ]
    for i in range(steps):
        offset = i * 512
        lines.append(f"""
          setp.lt.u32 %p5, %r0, {max(0, (size - offset) // 16)};
          @%p5 ld.shared.v4.u32 {{%r21, %r22, %r23, %r24}}, [%r20+{offset}];
          @%p5 st.global.v4.u32 [%rd20+{offset}], {{%r21, %r22, %r23, %r24}};
        """)
    return "\n".join(lines)


def copy_in(size: int, array: str) -> str:
    """Copies `size` bytes from an array to shared memory, 16 bytes per thread."""
    lines = [f"shl.b32 %r20, %r0, 4; cvt.u64.u32 %rd20, %r20; add.s64 %rd20, %rd20, {array}; add.u32 %r20, %r20, %r1;"]
    for offset in range(0, size, 512):
        lines.append(f"""
          setp.lt.u32 %p5, %r0, {max(0, (size - offset) // 16)};
          @%p5 ld.global.v4.u32 {{%r21, %r22, %r23, %r24}}, [%rd20+{offset}];
          @%p5 st.shared.v4.u32 [%r20+{offset}], {{%r21, %r22, %r23, %r24}};
        """)
    return "\n".join(lines) + "fence.proxy.async.shared::cta; bar.sync 0;"


def place(start: tuple[int, ...]) -> tuple[str, str]:
    """Moves of the coordinates, innermost first, and the operand that names them."""
    inner_first = start[::-1]
    moves = "".join(f"mov.b32 %r{10 + i}, {value};" for i, value in enumerate(inner_first))
    return moves, "{" + ", ".join(f"%r{10 + i}" for i in range(len(start))) + "}"


def load_body(start: tuple[int, ...], size: int) -> str:
    moves, coordinates = place(start)
    return (
        INIT
        + moves
        + f"""
      @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], {size};
      @%p1 cp.async.bulk.tensor.{len(start)}d.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%rd0, {coordinates}], [%r2];
    """
        + WAIT
        + copy_out(size, "%rd2")
    )


def load(tensor: np.ndarray, box: tuple[int, ...], start: tuple[int, ...], **how: int) -> np.ndarray:
    """The bytes that a load leaves in shared memory."""
    size = int(np.prod(box)) * tensor.itemsize
    out = np.zeros(size, np.uint8)
    ptx_lab.run(load_body(start, size), tensor_map(tensor, box, **how), tensor, out, target="sm_90a", shared=SHARED)
    return out


def values(*shape: int, dtype: type = np.uint16, seed: int = 0) -> np.ndarray:
    raw = np.random.default_rng(seed).integers(0, 256, (*shape[:-1], shape[-1] * np.dtype(dtype).itemsize), np.uint8)
    return aligned_like(raw.view(dtype))


@pytest.mark.parametrize(
    ("shape", "box", "start"),
    [
        ((64,), (16,), (8,)),
        ((20, 64), (8, 16), (5, 24)),
        ((5, 12, 32), (2, 3, 8), (1, 4, 16)),
        ((3, 4, 5, 16), (2, 2, 2, 8), (1, 0, 3, 8)),
        ((2, 3, 4, 5, 16), (2, 1, 2, 3, 8), (0, 2, 1, 2, 8)),
    ],
)
@pytest.mark.parametrize("outside", [0, -3, 2])
def test_load_of_each_rank_fills_with_zero(
    shape: tuple[int, ...], box: tuple[int, ...], start: tuple[int, ...], outside: int
) -> None:
    tensor = values(*shape)
    moved = tuple(s + outside for s in start)
    assert np.array_equal(load(tensor, box, moved).view(np.uint16).reshape(box), box_at(tensor, box, moved))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64])
@pytest.mark.parametrize("swizzle", [0, 1, 2, 3])
def test_load_of_each_element_size_and_swizzle(dtype: type, swizzle: int) -> None:
    row = (16 << swizzle) // np.dtype(dtype).itemsize
    tensor, box = values(40, 2 * row, dtype=dtype), (32, row)
    found = load(tensor, box, (3, row), swizzle=swizzle)
    assert np.array_equal(found, swizzled(box_at(tensor, box, (3, row)), swizzle))


@pytest.mark.parametrize(("dtype", "bits"), [(np.float16, np.uint16), (np.float32, np.uint32), (np.float64, np.uint64)])
def test_load_fills_with_nan_where_the_map_says_so(dtype: type, bits: type) -> None:
    tensor = aligned_like(np.arange(64, dtype=dtype).reshape(4, 16))
    found = load(tensor, (4, 16), (2, 8), nan=True).view(dtype).reshape(4, 16)
    expected = box_at(tensor, (4, 16), (2, 8), np.nan)
    assert np.array_equal(found, expected, equal_nan=True)
    assert len(set(found.view(bits)[np.isnan(found)])) == 1


def store_body(what: str, start: tuple[int, ...], size: int, wait: str) -> str:
    moves, coordinates = place(start)
    return (
        "mov.u32 %r1, smem; setp.eq.u32 %p1, %r0, 0;"
        + copy_in(size, "%rd2")
        + moves
        + f"@%p1 {what.format(rank=len(start))} [%rd0, {coordinates}], [%r1];"
        + f"cp.async.bulk.commit_group; cp.async.bulk.wait_group{wait} 0;"
    )


STORE = "cp.async.bulk.tensor.{rank}d.global.shared::cta.bulk_group"


@pytest.mark.parametrize("swizzle", [0, 1, 2, 3])
@pytest.mark.parametrize("wait", ["", ".read"])
@pytest.mark.parametrize("start", [(3, 8), (-2, -4), (30, 120)])
def test_store_writes_what_is_inside(swizzle: int, wait: str, start: tuple[int, int]) -> None:
    tensor, box = values(40, 128), (16, 8 << swizzle)
    data = values(*box, seed=1)
    expected = tensor.copy()
    for i in range(box[0]):
        for j in range(box[1]):
            if 0 <= start[0] + i < 40 and 0 <= start[1] + j < 128:
                expected[start[0] + i, start[1] + j] = data[i, j]
    source = swizzled(data, swizzle)
    body = store_body(STORE, start, data.nbytes, wait)
    ptx_lab.run(body, tensor_map(tensor, box, swizzle=swizzle), tensor, source, target="sm_90a", shared=SHARED)
    assert np.array_equal(tensor, expected)


REDUCTIONS = {
    "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "inc": lambda old, bound: np.where(old >= bound, 0, old + 1).astype(old.dtype),
    "dec": lambda old, bound: np.where((old == 0) | (old > bound), bound, old - 1).astype(old.dtype),
}  # fmt: skip


@pytest.mark.parametrize("operation", REDUCTIONS)
def test_reduction_of_integers(operation: str) -> None:
    tensor, data = values(20, 32, dtype=np.uint32), values(8, 16, dtype=np.uint32, seed=2)
    tensor[::2] = 7
    expected = tensor.copy()
    expected[4:12, 8:24] = REDUCTIONS[operation](tensor[4:12, 8:24], data)
    what = f"cp.reduce.async.bulk.tensor.{{rank}}d.global.shared::cta.{operation}.tile.bulk_group"
    body = store_body(what, (4, 8), data.nbytes, "")
    ptx_lab.run(body, tensor_map(tensor, (8, 16)), tensor, data, target="sm_90a", shared=SHARED)
    assert np.array_equal(tensor, expected)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int32, np.uint64])
def test_reduction_adds_each_type(dtype: type) -> None:
    rng = np.random.default_rng(3)
    tensor, data = (aligned_like(rng.integers(0, 100, (16, 16)).astype(dtype)) for _ in range(2))
    expected = tensor + data
    body = store_body("cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.add.bulk_group", (0, 0), data.nbytes, "")
    ptx_lab.run(body, tensor_map(tensor, (16, 16)), tensor, data, target="sm_90a", shared=SHARED)
    assert np.array_equal(tensor, expected)


def test_gather4_takes_four_rows() -> None:
    tensor = values(20, 64)
    rows, column, width = (17, 3, 25, 0), 24, 16
    out = np.zeros(4 * width, np.uint16)
    moves = "".join(f"mov.b32 %r{10 + i}, {value};" for i, value in enumerate((column, *rows)))
    body = (
        INIT
        + moves
        + f"""
      @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], {out.nbytes};
      @%p1 cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes
        [%r1], [%rd0, {{{COORDINATES}}}], [%r2];
    """
        + WAIT
        + copy_out(out.nbytes, "%rd2")
    )
    ptx_lab.run(body, tensor_map(tensor, (1, width)), tensor, out, target="sm_90a", shared=SHARED)
    expected = [box_at(tensor, (1, width), (row, column))[0] for row in rows]
    assert np.array_equal(out.reshape(4, width), expected)


def test_scatter4_stores_four_rows() -> None:
    tensor, data = values(20, 64), values(4, 16, seed=4)
    rows, column = (17, 3, 25, 0), 24
    expected = tensor.copy()
    for row, line in zip(rows, data, strict=True):
        if row < 20:
            expected[row, column : column + 16] = line
    moves = "".join(f"mov.b32 %r{10 + i}, {value};" for i, value in enumerate((column, *rows)))
    body = (
        "mov.u32 %r1, smem; setp.eq.u32 %p1, %r0, 0;"
        + copy_in(data.nbytes, "%rd2")
        + moves
        + f"""
      @%p1 cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [%rd0, {{{COORDINATES}}}], [%r1];
      cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
    """
    )
    ptx_lab.run(body, tensor_map(tensor, (1, 16)), tensor, data, target="sm_90a", shared=SHARED)
    assert np.array_equal(tensor, expected)


def test_prefetch_brings_lines_to_l2() -> None:
    tensor = values(64, 64)
    body = "setp.eq.u32 %p1, %r0, 0; mov.b32 %r10, 0; @%p1 cp.async.bulk.prefetch.tensor.2d.L2.global [%rd0, {%r10, %r10}];"
    result = ptx_lab.run(body, tensor_map(tensor, (64, 64)), tensor, target="sm_90a", shared=64)
    assert result.stats["dram_read_bytes"] >= tensor.nbytes


def replace(fields: list[str]) -> str:
    return "".join(f"@%p1 tensormap.replace.tile.{field};" for field in fields)


def test_map_made_on_the_device_is_one_made_by_the_driver() -> None:
    tensor = values(20, 64)
    made = aligned_like(np.full(128, 0xFF, np.uint8))
    fields = [
        "global_address.shared::cta.b1024.b64 [%r1], %rd0",
        "rank.shared::cta.b1024.b32 [%r1], 1",
        "box_dim.shared::cta.b1024.b32 [%r1], 0, 16",
        "box_dim.shared::cta.b1024.b32 [%r1], 1, 8",
        "global_dim.shared::cta.b1024.b32 [%r1], 0, 64",
        "global_dim.shared::cta.b1024.b32 [%r1], 1, 20",
        "global_stride.shared::cta.b1024.b64 [%r1], 0, 128",
        "element_stride.shared::cta.b1024.b32 [%r1], 0, 1",
        "element_stride.shared::cta.b1024.b32 [%r1], 1, 1",
        "elemtype.shared::cta.b1024.b32 [%r1], 1",
        "interleave_layout.shared::cta.b1024.b32 [%r1], 0",
        "swizzle_mode.shared::cta.b1024.b32 [%r1], 1",
        "fill_mode.shared::cta.b1024.b32 [%r1], 0",
    ]
    body = (
        """mov.u32 %r1, smem; setp.eq.u32 %p1, %r0, 0; mov.b32 %r3, 0;
      shl.b32 %r4, %r0, 2; add.u32 %r4, %r4, %r1; st.shared.b32 [%r4], %r3; bar.warp.sync -1;"""
        + replace(fields)
        + """bar.warp.sync -1;
      tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd1], [%r1], 128;
      fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128;
    """
    )
    ptx_lab.run(body, tensor, made, target="sm_90a", shared=128)
    expected = tensor_map(tensor, (8, 16), swizzle=1)
    # Dimensions that the tensor does not have are never looked at.
    unused = np.r_[32:44, 52:64, 72:84, 96:128]
    assert np.array_equal(np.delete(made, unused), np.delete(expected, unused))


def failure(body: str, *arrays: np.ndarray, **shape: object) -> simt.Error:
    with pytest.raises(simt.Error) as caught:
        ptx_lab.run(body, *arrays, target="sm_90a", **{"shared": SHARED} | shape)
    return caught.value


def test_read_before_the_copy_is_there_is_an_error() -> None:
    tensor, out = values(16, 16), np.zeros(512, np.uint8)
    body = load_body((0, 0), 512).replace(WAIT, "bar.sync 0; nanosleep.u32 150;")
    error = failure(body, tensor_map(tensor, (16, 16)), tensor, out)
    assert error.kind == "uninitialised"


def test_store_of_bytes_that_nobody_wrote_is_an_error() -> None:
    tensor = values(16, 16)
    body = "mov.u32 %r1, smem; mov.b32 %r10, 0; " + STORE.format(rank=2) + " [%rd0, {%r10, %r10}], [%r1];"
    error = failure(body, tensor_map(tensor, (16, 16)), tensor)
    assert error.kind == "uninitialised"


def test_memory_behind_the_map_must_exist() -> None:
    tensor, out = values(16, 16), np.zeros(512, np.uint8)
    other = np.zeros(16, np.uint8)
    error = failure(load_body((0, 0), 512), tensor_map(tensor, (16, 16)), other, out)
    assert error.kind == "out-of-bounds"
    assert error.address == tensor.ctypes.data


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda body: body.replace("[%r1], [%rd0", "[%r1+16], [%rd0"), "misaligned"),
        (lambda body: body.replace("[%r1], [%rd0", "[%r1+65536], [%rd0"), "out-of-bounds"),
        (
            lambda body: body.replace("@%p1 mbarrier.init.shared::cta.b64 [%r2], 1;", "").replace(EXPECT, ""),
            "uninitialised",
        ),
    ],
)
def test_wrong_copy_names_its_instruction(change, kind: str) -> None:
    tensor, out = values(16, 16), np.zeros(512, np.uint8)
    error = failure(change(load_body((0, 0), 512)), tensor_map(tensor, (16, 16)), tensor, out)
    assert error.kind == kind
    assert error.opcode.startswith("cp.async.bulk.tensor.2d")


@pytest.mark.parametrize(
    ("offset", "value", "says"), [(0, 0, "no tensor map"), (6, 9, "swizzle"), (7, 1, "interleaved"), (5, 14, "type")]
)
def test_map_that_cannot_be_used_says_why(offset: int, value: int, says: str) -> None:
    tensor, out = values(16, 16), np.zeros(512, np.uint8)
    description = tensor_map(tensor, (16, 16))
    description[offset] = value
    error = failure(load_body((0, 0), 512), description, tensor, out)
    assert error.kind == "unsupported"
    assert says in error.message


def test_missing_bytes_are_a_deadlock() -> None:
    tensor, out = values(16, 16), np.zeros(512, np.uint8)
    body = load_body((0, 0), 512).replace("[%r2], 512", "[%r2], 1024")
    assert failure(body, tensor_map(tensor, (16, 16)), tensor, out).kind == "deadlock"


@pytest.mark.parametrize(
    "form",
    [
        "cp.async.bulk.tensor.4d.shared::cta.global.im2col.mbarrier::complete_tx::bytes [%r1], [%rd0, {%r0, %r0, %r0, %r0}], [%r2], {%h1, %h2};",
        "tensormap.replace.tile.rank.global.b1024.b32 [%rd0], 1;",
    ],
)
def test_forms_that_are_not_supported_are_named(form: str) -> None:
    with pytest.raises(simt.Error) as caught:
        simt.Module(ptx_lab.ptx(form, 1, target="sm_90a"))
    assert caught.value.kind == "unsupported"
    assert form.split(" ", 1)[0] in caught.value.message


def test_copy_takes_its_time_and_the_log_says_so() -> None:
    tensor = values(64, 64)
    out = np.zeros(8192, np.uint8)
    result = ptx_lab.run(
        load_body((0, 0), 8192), tensor_map(tensor, (64, 64)), tensor, out, target="sm_90a", shared=SHARED, log=True
    )
    module = simt.Module(ptx_lab.ptx(load_body((0, 0), 8192), 3, target="sm_90a"))
    copy = [pc for pc, (text, _, _) in enumerate(module.instructions) if "cp.async.bulk.tensor" in text]
    wait = [pc for pc, (text, _, _) in enumerate(module.instructions) if "try_wait" in text]
    log = result.log
    [issued] = np.flatnonzero(np.isin(log["pc"], copy))
    duration = int(log["complete"][issued] - log["issue"][issued])
    # L2, DRAM, and 8 KiB through a port of 64 bytes per cycle.
    assert 237 + 194 + 128 < duration < 2000
    woken = np.flatnonzero(np.isin(log["pc"], wait))[0]
    assert 0 <= log["complete"][woken] - log["complete"][issued] < 100

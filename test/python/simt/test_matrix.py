"""ldmatrix, stmatrix, movmatrix and mma.sync through PTX. The shapes' arithmetic is in MatrixKernelsTest.cpp."""

from __future__ import annotations

import numpy as np
import pytest
from kperfir._native import simt

from support import ptx_lab
from support.float8 import encode8

LANES = np.arange(32)
GROUP, THREAD = LANES // 4, LANES % 4


def registers(prefix: str, count: int) -> str:
    return "{" + ", ".join(f"%{prefix}{i}" for i in range(10, 10 + count)) + "}"


def to_shared(size: int) -> str:
    """Copies `size` bytes per lane from a0 to shared memory."""
    return f"""
      mov.u32 %r1, smem;
      mul.lo.u32 %r2, %r0, {size};
      add.u32 %r3, %r1, %r2;
      mul.wide.u32 %rd10, %r0, {size};
      add.s64 %rd11, %rd0, %rd10;
      ld.global.v4.u32 {{%r4, %r5, %r6, %r7}}, [%rd11];
      st.shared.v4.u32 [%r3], {{%r4, %r5, %r6, %r7}};
      bar.sync 0;
    """


def store_words(array: str, first: str, count: int, prefix: str = "r") -> str:
    """Each lane stores `count` registers to consecutive words of its own part of an array."""
    number = int(first)
    lines = [f"mul.wide.u32 %rd10, %r0, {4 * count}; add.s64 %rd12, {array}, %rd10;"]
    kind = {"r": "u32", "f": "f32"}[prefix]
    lines += [f"st.global.{kind} [%rd12+{4 * i}], %{prefix}{number + i};" for i in range(count)]
    return "\n".join(lines)


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("transposed", [False, True])
def test_ldmatrix_distributes_rows(count: int, transposed: bool) -> None:
    matrices = np.random.default_rng(0).integers(0, 65536, (4, 8, 8), dtype=np.uint16)
    out = np.zeros((32, count), np.uint32)
    suffix = ".trans" if transposed else ""
    body = (
        to_shared(16)
        + f"ldmatrix.sync.aligned.m8n8.x{count}{suffix}.shared.b16 {registers('r', count)}, [%r3];"
        + store_words("%rd1", "10", count)
    )
    ptx_lab.run(body, matrices, out, shared=512)
    for index in range(count):
        matrix = matrices[index].T if transposed else matrices[index]
        expected = matrix[GROUP, 2 * THREAD].astype(np.uint32) | matrix[GROUP, 2 * THREAD + 1].astype(np.uint32) << 16
        assert np.array_equal(out[:, index], expected)


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("transposed", [False, True])
def test_stmatrix_undoes_ldmatrix(count: int, transposed: bool) -> None:
    matrices = np.random.default_rng(1).integers(0, 65536, (4, 8, 8), dtype=np.uint16)
    out = np.zeros_like(matrices)
    suffix = ".trans" if transposed else ""
    body = (
        to_shared(16)
        + f"""
      ldmatrix.sync.aligned.m8n8.x{count}{suffix}.shared.b16 {registers("r", count)}, [%r3];
      add.u32 %r8, %r3, 512;
      stmatrix.sync.aligned.m8n8.x{count}{suffix}.shared.b16 [%r8], {registers("r", count)};
      bar.sync 0;
      setp.ge.u32 %p1, %r0, {8 * count};
      @%p1 ret;
      ld.shared.v4.u32 {{%r4, %r5, %r6, %r7}}, [%r8];
      add.s64 %rd12, %rd1, %rd10;
      st.global.v4.u32 [%rd12], {{%r4, %r5, %r6, %r7}};
    """
    )
    ptx_lab.run(body, matrices, out, shared=1024)
    assert np.array_equal(out[:count], matrices[:count])


def test_movmatrix_transposes() -> None:
    matrix = np.random.default_rng(2).integers(0, 65536, (8, 8), dtype=np.uint16)
    packed = matrix.view(np.uint32).ravel().copy()
    out = np.zeros(32, np.uint32)
    body = """
      mul.wide.u32 %rd10, %r0, 4;
      add.s64 %rd11, %rd0, %rd10;
      add.s64 %rd12, %rd1, %rd10;
      ld.global.u32 %r1, [%rd11];
      movmatrix.sync.aligned.m8n8.trans.b16 %r2, %r1;
      st.global.u32 [%rd12], %r2;
    """
    ptx_lab.run(body, packed, out)
    assert np.array_equal(out.view(np.uint16).reshape(8, 8), matrix.T)


def bf16(values: np.ndarray) -> np.ndarray:
    return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


@pytest.mark.parametrize("kind", ["f16", "bf16"])
@pytest.mark.parametrize("k", [8, 16])
def test_mma_of_16_bit_floats(kind: str, k: int) -> None:
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-16, 17, shape) / 8 for shape in ((16, k), (k, 8)))
    c = rng.standard_normal((16, 8)).astype(np.float32)
    encode = bf16 if kind == "bf16" else lambda x: x.astype(np.float16).view(np.uint16)
    pairs = k // 8
    fragment_a = np.stack(
        [
            encode(a)[GROUP + 8 * (i & 1)][:, None, :][LANES, 0][
                LANES[:, None], 8 * (i >> 1) + 2 * THREAD[:, None] + [0, 1]
            ]
            for i in range(2 * pairs)
        ],
        axis=1,
    )
    fragment_b = np.stack(
        [encode(b)[8 * i + 2 * THREAD[:, None] + [0, 1], GROUP[:, None]] for i in range(pairs)], axis=1
    )
    fragment_c = np.stack([c[GROUP + 8 * (i >> 1), 2 * THREAD + (i & 1)] for i in range(4)], axis=1)
    out = np.zeros((32, 4), np.float32)
    load_a = "v4.u32 {%r20, %r21, %r22, %r23}" if k == 16 else "v2.u32 {%r20, %r21}"
    load_b = "v2.u32 {%r30, %r31}" if k == 16 else "u32 %r30"
    body = f"""
      mul.wide.u32 %rd10, %r0, {8 * pairs};
      mul.wide.u32 %rd11, %r0, {4 * pairs};
      mul.wide.u32 %rd12, %r0, 16;
      add.s64 %rd13, %rd0, %rd10;
      add.s64 %rd14, %rd1, %rd11;
      add.s64 %rd15, %rd2, %rd12;
      ld.global.{load_a}, [%rd13];
      ld.global.{load_b}, [%rd14];
      ld.global.v4.f32 {{%f1, %f2, %f3, %f4}}, [%rd15];
      mma.sync.aligned.m16n8k{k}.row.col.f32.{kind}.{kind}.f32 {{%f5, %f6, %f7, %f8}},
        {{{load_a.split("{")[1]}, {"{%r30, %r31}" if k == 16 else "{%r30}"}, {{%f1, %f2, %f3, %f4}};
      add.s64 %rd16, %rd3, %rd12;
      st.global.v4.f32 [%rd16], {{%f5, %f6, %f7, %f8}};
    """
    arrays = [np.ascontiguousarray(x) for x in (fragment_a, fragment_b, fragment_c)]
    ptx_lab.run(body, *arrays, out)
    expected = a @ b + c
    got = np.zeros((16, 8))
    for i in range(4):
        got[GROUP + 8 * (i >> 1), 2 * THREAD + (i & 1)] = out[:, i]
    np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kinds", ["e4m3.e4m3", "e4m3.e5m2", "e5m2.e4m3", "e5m2.e5m2"])
@pytest.mark.parametrize("k", [16, 32])
@pytest.mark.parametrize("result", ["f32", "f16"])
def test_mma_of_8_bit_floats(kinds: str, k: int, result: str) -> None:
    rng = np.random.default_rng(4)
    a, b = (rng.integers(-4, 5, shape) / 2 for shape in ((16, k), (8, k)))
    c = rng.integers(-8, 9, (16, 8)).astype(np.float32 if result == "f32" else np.float16)
    kind_a, kind_b = kinds.split(".")
    bytes_a, bytes_b = encode8(a, kind_a), encode8(b, kind_b)

    def words(matrix: np.ndarray, row: np.ndarray, first: int) -> np.ndarray:
        return np.ascontiguousarray(matrix[row[:, None], first + 4 * THREAD[:, None] + np.arange(4)]).view(np.uint32)[
            :, 0
        ]

    fragment_a = [words(bytes_a, GROUP + 8 * (r % 2), r // 2 * 16) for r in range(k // 8)]
    fragment_b = [words(bytes_b, GROUP, r * 16) for r in range(k // 16)]

    def sums(matrix: np.ndarray) -> list[np.ndarray]:
        pairs = [matrix[GROUP[:, None] + 8 * half, 2 * THREAD[:, None] + [0, 1]] for half in range(2)]
        return list(np.ascontiguousarray(np.concatenate(pairs, axis=1)).view(np.uint32).T)

    registers = np.ascontiguousarray(np.stack([*fragment_a, *fragment_b, *sums(c)], axis=1))
    count = registers.shape[1]
    out = np.zeros((32, len(sums(c))), np.uint32)
    names = [f"%r{20 + i}" for i in range(count)]
    at = len(fragment_a), len(fragment_a) + len(fragment_b)
    results = ", ".join(f"%r{40 + i}" for i in range(out.shape[1]))
    loads = "".join(f"ld.global.u32 {name}, [%rd11+{4 * i}];" for i, name in enumerate(names))
    body = f"""
      mul.wide.u32 %rd10, %r0, {4 * count}; add.s64 %rd11, %rd0, %rd10; {loads}
      mma.sync.aligned.m16n8k{k}.row.col.{result}.{kinds}.{result} {{{results}}}, {{{", ".join(names[: at[0]])}}},
        {{{", ".join(names[at[0] : at[1]])}}}, {{{", ".join(names[at[1] :])}}};
    """ + store_words("%rd1", "40", out.shape[1])
    ptx_lab.run(body, registers, out)
    assert np.array_equal(out, np.stack(sums((a @ b.T + c).astype(c.dtype)), axis=1))


def test_mma_accumulates_in_place() -> None:
    # D and C are the same registers, as in every loop.
    out = np.zeros((32, 4), np.float32)
    body = """
      mov.f32 %f1, 0f3F800000; mov.f32 %f2, %f1; mov.f32 %f3, %f1; mov.f32 %f4, %f1;
      mov.b32 %r1, 0x3C003C00;
      mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r1, %r1, %r1}, {%r1, %r1}, {%f1, %f2, %f3, %f4};
      mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r1, %r1, %r1}, {%r1, %r1}, {%f1, %f2, %f3, %f4};
    """ + store_words("%rd0", "1", 4, "f")
    ptx_lab.run(body, out)
    assert (out == 33).all()


def test_unsupported_shape_names_it() -> None:
    body = """
      mov.b32 %r1, 0;
      mma.sync.aligned.m16n8k64.row.col.s32.b1.b1.s32.xor.popc {%r2, %r3, %r4, %r5}, {%r1, %r1}, {%r1}, {%r2, %r3, %r4, %r5};
    """
    with pytest.raises(simt.Error) as caught:
        ptx_lab.run(body, np.zeros(1, np.uint32))
    assert caught.value.kind == "unsupported"
    assert "m16n8k64" in str(caught.value)


def test_ldmatrix_checks_alignment_bounds_and_writes() -> None:
    def failure(address: str, shared: int = 512) -> simt.Error:
        load = f"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {registers('r', 4)}, [{address}];"
        with pytest.raises(simt.Error) as caught:
            ptx_lab.run(to_shared(16) + load, np.zeros(512, np.uint8), shared=shared)
        return caught.value

    assert failure("%r3+8", 1024).kind == "misaligned"
    assert failure("%r3+16").kind == "out-of-bounds"
    assert failure("%r3+16", 1024).kind == "uninitialised"


def test_matrix_instruction_in_a_diverged_warp_is_refused() -> None:
    body = "setp.lt.u32 %p1, %r0, 16; @%p1 bra SKIP; mov.b32 %r1, 0; mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r1}, {%r1}, {%f1, %f2, %f3, %f4}; SKIP: mov.u32 %r2, 0;"
    with pytest.raises(simt.Error) as caught:
        ptx_lab.run(body, np.zeros(1, np.uint32))
    assert "16 lanes" in caught.value.message

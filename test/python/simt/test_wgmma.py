"""wgmma.mma_async: every type, N, source of A, layout of shared memory, scale and group, against NumPy.

Operands are small multiples of powers of two, so that no sum is rounded and results are compared bit for bit.
"""

from __future__ import annotations

import numpy as np
import pytest
from kperfir._native import simt

from support import ptx_lab
from support.float8 import FLOAT8, encode8
from support.tensor_maps import swizzle_address

Array = np.ndarray
THREADS = 128
ROWS = 64
B_AT = 65536  # of B in shared memory; A is at 0
SHARED = 2 * 65536


def encode(values: Array, kind: str) -> Array:
    if kind == "f16":
        return values.astype(np.float16).view(np.uint16)
    if kind == "bf16":
        return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    if kind == "tf32":
        return values.astype(np.float32).view(np.uint32) | 0x1FFF  # The unit does not look at these.
    if kind in FLOAT8:
        return encode8(values, kind)
    return values.astype({"s8": np.int8, "u8": np.uint8}[kind]).view(np.uint8)


K = {"f16": 16, "bf16": 16, "tf32": 8, "e4m3": 32, "e5m2": 32, "s8": 32, "u8": 32}
SPAN = {0: 16, 1: 128, 2: 64, 3: 32}  # of the descriptor's swizzle modes
ADDRESS_BITS = {0: 0, 1: 3, 2: 2, 3: 1}


def random_values(rng: np.random.Generator, kind: str, *shape: int) -> Array:
    low = 0 if kind == "u8" else -4
    values = rng.integers(low, 5, shape)
    return values if kind in ("s8", "u8") else values / 2


def lay_out(matrix: Array, mode: int, transposed: bool) -> tuple[Array, int]:
    """Bytes of `matrix` (rows of M or N, columns of K) in shared memory, and its descriptor without the address."""
    count, k = matrix.shape
    size, span = matrix.itemsize, SPAN[mode]
    data = np.zeros(65536, np.uint8)
    if transposed:
        per_block = span // 2
        blocks = -(-count // per_block)
        block_stride, group_stride = (256, 256 * blocks) if mode == 0 else (span * 16, span * 8)
        leading, stride = (group_stride, block_stride) if mode == 0 else (block_stride, group_stride)
        if mode == 0:
            block_stride, group_stride = stride, leading
    else:
        leading, stride = (128 * -(-count // 8), 128) if mode == 0 else (0, span * 8)
    for i in range(count):
        for j in range(k):
            if transposed:
                at = i // per_block * block_stride + j // 8 * group_stride + j % 8 * span + i % per_block * size
            elif mode == 0:
                at = i // 8 * stride + i % 8 * 16 + j * size // 16 * leading + j * size % 16
            else:
                at = i // 8 * stride + i % 8 * span + j * size
            at = swizzle_address(at, ADDRESS_BITS[mode])
            data[at : at + size] = np.frombuffer(matrix[i, j].tobytes(), np.uint8)
    return data, leading >> 4 << 16 | stride >> 4 << 32 | mode << 62


def fragments_of_a(matrix: Array) -> Array:
    """The four registers of each of 128 threads."""
    rows = np.ascontiguousarray(matrix).view(np.uint8)
    out = np.zeros((THREADS, 4), np.uint32)
    for thread in range(THREADS):
        warp, lane = divmod(thread, 32)
        for r in range(4):
            row = 16 * warp + lane // 4 + 8 * (r % 2)
            first = 16 * (r // 2) + 4 * (lane % 4)
            out[thread, r] = rows[row, first : first + 4].view(np.uint32)[0]
    return out


def fragments_of_d(matrix: Array) -> Array:
    """Accumulators as each of 128 threads holds them: f32 and s32 one, f16 two per register."""
    columns = matrix.shape[1]
    thread = np.arange(THREADS)
    row, pair = thread // 32 * 16 + thread % 32 // 4, thread % 4 * 2
    parts = [
        matrix[row + 8 * half, 8 * block + pair + odd]
        for block in range(columns // 8) for half in range(2) for odd in range(2)
    ]  # fmt: skip
    return np.ascontiguousarray(np.stack(parts, axis=1)).view(np.uint32)


def copy_to_shared(array: str, offset: int) -> str:
    return f"""
      mul.lo.u32 %r70, %r0, 16; mov.u32 %r71, smem; add.u32 %r71, %r71, %r70;
      cvt.u64.u32 %rd20, %r70; add.s64 %rd20, %rd20, {array};
      mov.b32 %r72, 0;
    copy{offset}:
      ld.global.v4.u32 {{%r73, %r74, %r75, %r76}}, [%rd20];
      st.shared.v4.u32 [%r71+{offset}], {{%r73, %r74, %r75, %r76}};
      add.u32 %r71, %r71, 2048; add.s64 %rd20, %rd20, 2048; add.u32 %r72, %r72, 1;
      setp.lt.u32 %p3, %r72, 32;
      @%p3 bra copy{offset};
    """


def program(
    kind: str, result: str, n: int, a: str, tail: str, *, repeat: int = 1, words: int, saturate: str = ""
) -> str:
    """Loads the operands, multiplies `repeat` times, and stores the accumulators."""
    types = kind if "." in kind else f"{kind}.{kind}"
    k = K[types.split(".")[0]]
    accumulators = ", ".join(f"%acc{i}" for i in range(words))
    lines = [f".reg .b32 %acc<{words}>;", copy_to_shared("%rd0", 0), copy_to_shared("%rd1", B_AT)]
    lines += [f"mul.lo.u32 %r70, %r0, {4 * words}; cvt.u64.u32 %rd20, %r70; add.s64 %rd21, %rd20, %rd2;"]
    lines += [f"ld.global.u32 %acc{i}, [%rd21+{4 * i}];" for i in range(words)]
    lines += ["shl.b32 %r70, %r0, 4; cvt.u64.u32 %rd20, %r70; add.s64 %rd22, %rd20, %rd3;"]
    lines += ["ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%rd22];"]
    lines += ["ld.global.v2.u64 {%rd10, %rd11}, [%rd4]; bar.sync 0; fence.proxy.async.shared::cta;"]
    lines += ["wgmma.fence.sync.aligned;"]
    lines += [
        f"wgmma.mma_async.sync.aligned.m64n{n}k{k}.{result}.{types}{saturate} {{{accumulators}}}, {a}, %rd11, {tail};"
    ] * repeat
    lines += ["wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"]
    lines += [f"st.global.u32 [%rd21+{4 * i}], %acc{i};" for i in range(words)]
    return "\n".join(lines)


def multiply(
    kind: str, result: str, n: int, *, from_registers: bool = False, mode_a: int = 1, mode_b: int = 1,
    trans_a: bool = False, trans_b: bool = False, scale_d: str = "1", signs: tuple[int, int] = (1, 1), repeat: int = 1,
    seed: int = 0,
) -> tuple[Array, Array]:  # fmt: skip
    """Accumulators after one wgmma, and what they must be, as bits."""
    rng = np.random.default_rng(seed)
    kind_a, kind_b = kind.split(".") if "." in kind else (kind, kind)
    a, b = random_values(rng, kind_a, ROWS, K[kind_a]), random_values(rng, kind_b, n, K[kind_b])
    dtype = {"f32": np.float32, "f16": np.float16, "s32": np.int32}[result]
    c = rng.integers(-8, 9, (ROWS, n)).astype(dtype)
    bytes_a, descriptor_a = lay_out(encode(a, kind_a), mode_a, trans_a)
    bytes_b, descriptor_b = lay_out(encode(b, kind_b), mode_b, trans_b)
    descriptors = np.array([descriptor_a, descriptor_b | B_AT >> 4], np.uint64)
    accumulators = fragments_of_d(c)
    tail = scale_d
    if result != "s32":
        tail += f", {signs[0]}, {signs[1]}"
    if kind_a in ("f16", "bf16"):
        tail += (f", {int(trans_a)}" if not from_registers else "") + f", {int(trans_b)}"
    body = program(
        kind, result, n, "{%r10, %r11, %r12, %r13}" if from_registers else "%rd10", tail, repeat=repeat,
        words=accumulators.shape[1],
    )  # fmt: skip
    if scale_d.startswith(("%", "!")):
        body = "setp.ne.u32 %p1, 0, 0; setp.eq.u32 %p2, 0, 0;" + body
    ptx_lab.run(
        body, bytes_a, bytes_b, accumulators, fragments_of_a(encode(a, kind_a)), descriptors, target="sm_90a",
        threads=THREADS, shared=SHARED,
    )  # fmt: skip
    product = (a @ b.T).astype(np.float64) * signs[0] * signs[1] * repeat
    keeps = scale_d not in ("0", "%p1")
    return accumulators, fragments_of_d((product + (c if keeps else 0)).astype(dtype))


def check(*args: object, **kwargs: object) -> None:
    found, expected = multiply(*args, **kwargs)
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("n", [*range(8, 257, 8)])
def test_every_n(n: int) -> None:
    check("f16", "f32", n, mode_b=0 if n % 16 else 1)


FORMS = [
    ("f16", "f32"), ("f16", "f16"), ("bf16", "f32"), ("tf32", "f32"), ("e4m3", "f32"), ("e5m2", "f32"),
    ("e4m3.e5m2", "f32"), ("e5m2.e4m3", "f16"), ("e4m3", "f16"), ("s8", "s32"), ("u8", "s32"), ("s8.u8", "s32"),
    ("u8.s8", "s32"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "result"), FORMS)
@pytest.mark.parametrize("from_registers", [False, True])
def test_every_type(kind: str, result: str, from_registers: bool) -> None:
    check(kind, result, 32, from_registers=from_registers)


@pytest.mark.parametrize("mode", [0, 1, 2, 3])
@pytest.mark.parametrize("kind", ["f16", "tf32", "s8"])
def test_every_layout_along_k(mode: int, kind: str) -> None:
    check(kind, "s32" if kind == "s8" else "f32", 40, mode_a=mode, mode_b=mode)


@pytest.mark.parametrize("mode", [0, 1, 2, 3])
@pytest.mark.parametrize("trans", [(True, False), (False, True), (True, True)])
def test_every_layout_across_k(mode: int, trans: tuple[bool, bool]) -> None:
    check("bf16", "f32", 128, mode_a=mode, mode_b=mode, trans_a=trans[0], trans_b=trans[1])


def test_transposed_b_with_a_in_registers() -> None:
    check("f16", "f32", 64, from_registers=True, trans_b=True)


@pytest.mark.parametrize("scale_d", ["0", "1", "%p1", "%p2"])
def test_scale_d_keeps_or_drops_the_accumulators(scale_d: str) -> None:
    check("f16", "f32", 16, scale_d=scale_d)


@pytest.mark.parametrize("signs", [(1, -1), (-1, 1), (-1, -1)])
def test_operands_are_negated(signs: tuple[int, int]) -> None:
    check("f16", "f32", 16, signs=signs)


def test_products_accumulate_in_order() -> None:
    check("bf16", "f32", 64, repeat=4)


def test_integer_sums_are_saturated() -> None:
    a, b = np.full((ROWS, 32), 127), np.full((8, 32), 127)
    c = np.full((ROWS, 8), 2**31 - 1000)
    bytes_a, descriptor_a = lay_out(encode(a, "s8"), 1, transposed=False)
    bytes_b, descriptor_b = lay_out(encode(b, "s8"), 1, transposed=False)
    for saturate, expected in ((".satfinite", 2**31 - 1), ("", 2**31 - 1000 + 127 * 127 * 32 - 2**32)):
        accumulators = fragments_of_d(c.astype(np.int32))
        body = program("s8", "s32", 8, "%rd10", "1", words=4, saturate=saturate)
        descriptors = np.array([descriptor_a, descriptor_b | B_AT >> 4], np.uint64)
        ptx_lab.run(
            body, bytes_a, bytes_b, accumulators, fragments_of_a(encode(a, "s8")), descriptors, target="sm_90a",
            threads=THREADS, shared=SHARED,
        )  # fmt: skip
        assert set(accumulators.view(np.int32).ravel()) == {expected}


WGMMA_8 = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %rd10, %rd10, 1, 1, 1, 0, 0;"


def failure(body: str, *arrays: Array, **shape: object) -> simt.Error:
    with pytest.raises(simt.Error) as caught:
        ptx_lab.run("wgmma.fence.sync.aligned;" + body, *arrays, target="sm_90a", threads=THREADS, **shape)
    return caught.value


def test_operand_that_nobody_wrote_is_an_error() -> None:
    assert failure(f"mov.b64 %rd10, 0; {WGMMA_8}", shared=4096).kind == "uninitialised"


def test_descriptor_beyond_shared_memory_is_an_error() -> None:
    assert failure(f"mov.b64 %rd10, 1024; {WGMMA_8}", shared=4096).kind == "out-of-bounds"


def test_diverged_warp_is_an_error() -> None:
    assert failure(f"mov.b64 %rd10, 0; setp.lt.u32 %p1, %r0, 8; @%p1 {WGMMA_8}", shared=4096).kind == "deadlock"


@pytest.mark.parametrize(
    "form",
    [
        "m64n8k32.f32.f16.f16", "m64n12k16.f32.f16.f16", "m64n264k16.f32.f16.f16", "m64n8k16.f16.bf16.bf16",
        "m64n8k256.s32.b1.b1",
    ],
)  # fmt: skip
def test_forms_that_do_not_exist_are_named(form: str) -> None:
    with pytest.raises(simt.Error) as caught:
        simt.Module(ptx_lab.ptx(WGMMA_8.replace("m64n8k16.f32.f16.f16", form), 0, target="sm_90a"))
    assert caught.value.kind == "unsupported"
    assert form in caught.value.message


def test_chip_without_the_unit_refuses_the_kernel() -> None:
    with pytest.raises(simt.Error) as caught:
        ptx_lab.run(WGMMA_8, target="sm_90a", on=ptx_lab.device("a100"), threads=THREADS)
    assert caught.value.kind == "unsupported"
    assert "a100" in caught.value.message


@pytest.mark.parametrize("n", [64, 256])
def test_time_is_proportional_to_n_and_waited_for(n: int) -> None:
    body = program("f16", "f32", n, "%rd10", "1, 1, 1, 0, 0", repeat=8, words=n // 2)
    data, descriptor = lay_out(encode(np.ones((n, 16)), "f16"), 1, transposed=False)
    a_data, a_descriptor = lay_out(encode(np.ones((ROWS, 16)), "f16"), 1, transposed=False)
    accumulators = np.zeros((THREADS, n // 2), np.uint32)
    arrays = (
        a_data,
        data,
        accumulators,
        np.zeros(THREADS * 4, np.uint32),
        np.array([a_descriptor, descriptor | B_AT >> 4], np.uint64),
    )
    result = ptx_lab.run(body, *arrays, target="sm_90a", threads=THREADS, shared=SHARED, log=True)
    instructions = simt.Module(ptx_lab.ptx(body, 5, target="sm_90a")).instructions
    products = [pc for pc, (text, _, _) in enumerate(instructions) if "mma_async" in text]
    wait = next(pc for pc, (text, _, _) in enumerate(instructions) if "wgmma.wait_group" in text)
    log = result.log
    warp = log["warp"] == 0
    ends = log["complete"][warp & np.isin(log["pc"], products)].astype(np.int64)
    assert set(np.diff(ends)) == {n // 2}  # 64 * n * 16 multiply-adds, 2048 per cycle
    assert log["complete"][warp & (log["pc"] == wait)][0] == ends[-1]
    assert np.all(accumulators.view(np.float32) == 8 * 16)

"""atom and red in both spaces, and locks between CTAs."""

from __future__ import annotations

import numpy as np
import pytest
from kperfir._native import simt

from support import ptx_lab


def sequential(operation: str, start: np.ndarray, operand: np.generic) -> np.ndarray:
    """What memory holds after one operation."""
    kind = start.dtype.type
    with np.errstate(over="ignore"):
        match operation:
            case "add":
                return kind(start + operand)
            case "min":
                return min(start, operand)
            case "max":
                return max(start, operand)
            case "and":
                return start & operand
            case "or":
                return start | operand
            case "xor":
                return start ^ operand
            case "exch":
                return operand
            case "inc":
                return kind(0) if start >= operand else kind(start + kind(1))
            case "dec":
                return operand if start == 0 or start > operand else kind(start - kind(1))
    raise ValueError(operation)


TYPES = {
    "u32": (np.uint32, "%r1", "u32"),
    "s32": (np.int32, "%r1", "u32"),
    "b32": (np.uint32, "%r1", "u32"),
    "u64": (np.uint64, "%rd5", "u64"),
    "s64": (np.int64, "%rd5", "u64"),
    "b64": (np.uint64, "%rd5", "u64"),
    "f32": (np.float32, "%f1", "f32"),
    "f64": (np.float64, "%fd1", "f64"),
}
FORMS = [
    *[("add", kind) for kind in ("u32", "s32", "u64", "f32", "f64")],
    *[(operation, kind) for operation in ("min", "max") for kind in ("u32", "s32", "u64", "s64")],
    *[(operation, kind) for operation in ("and", "or", "xor", "exch") for kind in ("b32", "b64")],
    ("inc", "u32"),
    ("dec", "u32"),
]
EDGES = {
    np.uint32: [0, 1, 2**32 - 1, 5],
    np.int32: [0, -1, -(2**31), 2**31 - 1],
    np.uint64: [0, 1, 2**64 - 1, 5],
    np.int64: [0, -1, -(2**63), 2**63 - 1],
    np.float32: [0.0, -1.5, 3e38, 1e-45],
    np.float64: [0.0, -1.5, 1e308, 5e-324],
}


@pytest.mark.parametrize("space", ["global", "shared"])
@pytest.mark.parametrize(("operation", "kind"), FORMS)
def test_atom_returns_the_old_value_and_combines(space: str, operation: str, kind: str) -> None:
    dtype, register, plain = TYPES[kind]
    edges = np.array(EDGES[dtype], dtype)
    start, operand = (grid.ravel().copy() for grid in np.meshgrid(edges, edges))
    memory, old = start.copy(), np.zeros_like(start)
    size = edges.itemsize
    result = register[:-1] + str(int(register[-1]) + 1)
    body = f"""
      setp.ge.u32 %p1, %r0, {len(start)};
      @%p1 ret;
      mul.wide.u32 %rd10, %r0, {size};
      add.s64 %rd11, %rd0, %rd10;
      add.s64 %rd12, %rd1, %rd10;
      add.s64 %rd13, %rd2, %rd10;
      ld.global.{plain} {register}, [%rd12];
    """
    if space == "global":
        body += f"atom.global.{operation}.{kind} {result}, [%rd11], {register};"
    else:
        body += f"""
          mul.lo.u32 %r10, %r0, {size};
          mov.u32 %r11, smem;
          add.u32 %r11, %r11, %r10;
          ld.global.{plain} {result}, [%rd11];
          st.shared.{plain} [%r11], {result};
          atom.shared.{operation}.{kind} {result}, [%r11], {register};
          ld.shared.{plain} {register}, [%r11];
          st.global.{plain} [%rd11], {register};
        """
    body += f"st.global.{plain} [%rd13], {result};"
    ptx_lab.run(body, memory, operand, old, shared=512)
    expected = np.array([sequential(operation, a, b) for a, b in zip(start, operand, strict=True)], dtype)
    assert np.array_equal(old, start)
    assert np.array_equal(memory, expected)


@pytest.mark.parametrize("form", ["red.global.add.u32", "red.relaxed.gpu.global.add.u32", "red.add.u32"])
def test_red_adds_over_all_threads_of_the_grid(form: str) -> None:
    total = np.zeros(1, np.uint32)
    ptx_lab.run(f"{form} [%rd0], %r0;", total, threads=256, grid=(50, 1, 1))
    assert total[0] == 50 * sum(range(256))


@pytest.mark.parametrize(
    ("dtype", "form", "packed"), [("f16x2", "noftz.f16x2", np.float16), ("bf16x2", "noftz.bf16x2", None)]
)
def test_packed_halves_add_separately(dtype: str, form: str, packed: type | None) -> None:
    memory = np.zeros(1, np.uint32)
    one, two = (0x3C00, 0x4000) if packed else (0x3F80, 0x4000)
    operand = two << 16 | one
    ptx_lab.run(f"mov.u32 %r1, {operand}; atom.global.add.{form} %r2, [%rd0], %r1;", memory)
    high, low = divmod(int(memory[0]), 1 << 16)
    if packed:
        values = np.array([low, high], np.uint16).view(np.float16).astype(float)
    else:
        values = (np.array([low, high], np.uint32) << 16).view(np.float32).astype(float)
    assert list(values) == [32.0, 64.0]


def test_compare_and_swap_takes_one_winner() -> None:
    memory = np.array([77], np.uint32)
    won = np.zeros(128, np.uint32)
    body = """
      add.u32 %r1, %r0, 1000;
      atom.global.cas.b32 %r2, [%rd0], 77, %r1;
      setp.eq.u32 %p1, %r2, 77;
      selp.u32 %r3, 1, 0, %p1;
      mul.wide.u32 %rd10, %r0, 4;
      add.s64 %rd11, %rd1, %rd10;
      st.global.u32 [%rd11], %r3;
    """
    ptx_lab.run(body, memory, won, threads=128)
    assert won.sum() == 1
    assert memory[0] == 1000 + int(np.argmax(won))


@pytest.mark.parametrize(("kind", "dtype", "register"), [("b16", np.uint16, "%h"), ("b64", np.uint64, "%rd2")])
def test_compare_and_swap_of_other_sizes(kind: str, dtype: type, register: str) -> None:
    memory = np.array([5], dtype)
    names = [register + str(i) for i in range(1, 4)]
    moves = f"mov.{kind} {names[0]}, 5; mov.{kind} {names[1]}, 9;"
    ptx_lab.run(f"{moves} atom.global.cas.{kind} {names[2]}, [%rd0], {names[0]}, {names[1]};", memory)
    assert memory[0] == 9


def test_spin_lock_between_ctas_makes_progress() -> None:
    # The lock of layernorm_bwd: a plain read-modify-write under cas and exch.
    data = np.zeros(2, np.uint32)  # lock, counter
    body = """
      setp.ne.u32 %p1, %r0, 0;
      @%p1 bra DONE;
    SPIN:
      atom.acquire.gpu.global.cas.b32 %r1, [%rd0], 0, 1;
      setp.ne.u32 %p2, %r1, 0;
      @%p2 bra SPIN;
      ld.global.u32 %r2, [%rd0+4];
      add.u32 %r2, %r2, 1;
      st.global.u32 [%rd0+4], %r2;
      atom.release.gpu.global.exch.b32 %r3, [%rd0], 0;
    DONE:
    """
    ptx_lab.run(body, data, threads=64, grid=(300, 1, 1))
    assert list(data) == [0, 300]


def test_spinning_on_a_load_sees_the_store_of_another_cta() -> None:
    data = np.zeros(2, np.uint32)
    body = """
      mov.u32 %r1, %ctaid.x;
      setp.eq.u32 %p1, %r1, 0;
      @%p1 bra PRODUCE;
    SPIN:
      ld.acquire.gpu.global.u32 %r2, [%rd0];
      setp.eq.u32 %p2, %r2, 0;
      @%p2 bra SPIN;
      ld.global.u32 %r3, [%rd0+4];
      st.global.u32 [%rd1], %r3;
      bra DONE;
    PRODUCE:
      nanosleep.u32 3000;
      st.global.u32 [%rd0+4], 42;
      st.release.gpu.global.u32 [%rd0], 1;
    DONE:
    """
    target = np.zeros(1, np.uint32)
    ptx_lab.run(body, data, target, grid=(2, 1, 1))
    assert target[0] == 42


def test_float_atomics_do_not_depend_on_host_threads() -> None:
    def total(threads: int) -> int:
        memory = np.zeros(1, np.float32)
        body = "cvt.rn.f32.u32 %f1, %r0; mul.f32 %f1, %f1, 0f3DCCCCCD; red.global.add.f32 [%rd0], %f1;"
        ptx_lab.run(body, memory, on=ptx_lab.device(threads=threads), threads=256, grid=(200, 1, 1))
        return int(memory.view(np.uint32)[0])

    assert total(1) == total(2) == total(3)


def test_atomic_on_unwritten_shared_memory_is_refused() -> None:
    with pytest.raises(simt.Error) as caught:
        ptx_lab.run("mov.u32 %r1, smem; atom.shared.add.u32 %r2, [%r1], 1;", np.zeros(1, np.uint32), shared=4)
    assert caught.value.kind == "uninitialised"


def test_misaligned_atomic_is_refused() -> None:
    with pytest.raises(simt.Error) as caught:
        ptx_lab.run("red.global.add.u32 [%rd0+2], 1;", np.zeros(2, np.uint32))
    assert caught.value.kind == "misaligned"

"""Values of registers that follow from the numbers of threads, worked out by hand."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest

from kperfir.code.ptx import parse_ptx
from kperfir.code.thread_values import address_of, guard_of, thread_values

THREADS = np.arange(64)


def values_of(
    body: str, register: str, declared: str = ".reg .b32 %r<32>; .reg .b64 %rd<8>; .reg .b32 %f<8>; .reg .pred %p<8>;"
):
    text = textwrap.dedent(body)
    program = parse_ptx(f".visible .entry k(\n)\n{{\n{declared}\nmov.u32 %r1, %tid.x;\n{text}\n}}\n", "k")
    last = program.instructions[-1]
    name = next(each for each in (*last.reads, *last.writes) if each.partition("@")[0] == register)
    return thread_values(program, [name], 64)[name]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("shl.b32 %r2, %r1, 4;", THREADS << 4),
        ("and.b32 %r3, %r1, 0x1c; xor.b32 %r2, %r3, 5;", (THREADS & 0x1C) ^ 5),
        ("bfe.u32 %r2, %r1, 3, 2;", THREADS >> 3 & 3),
        ("bfe.s32 %r3, %r1, 2, 1; and.b32 %r2, %r3, 96;", np.where(THREADS & 4, 96, 0)),
        ("and.b32 %r3, %r1, 1; neg.s32 %r4, %r3; and.b32 %r2, %r4, 576;", np.where(THREADS & 1, 576, 0)),
        ("mad.lo.s32 %r2, %r1, 12, 7;", THREADS * 12 + 7),
        ("mov.u32 %r2, %laneid;", THREADS % 32),
        ("shr.u32 %r3, %r1, 5; shfl.sync.idx.b32 %r2, %r3, 0, 31, -1; add.s32 %r4, %r2, 0;", THREADS >> 5),
        ("setp.lt.u32 %p1, %r1, 9; selp.b32 %r2, 1, %r1, %p1;", np.where(THREADS < 9, 1, THREADS)),
        ("prmt.b32 %r2, %r1, 0, 0x7701U;", (THREADS & 255) << 8),
        ("sub.s32 %r3, %r1, 9; shr.s32 %r2, %r3, 2;", (THREADS - 9 >> 2) & 0xFFFFFFFF),
    ],
)
def test_what_follows_from_the_threads_number_is_known(body: str, expected: np.ndarray) -> None:
    found = values_of(body, "%r4" if "shfl" in body else "%r2")
    assert found is not None
    assert found.exact
    assert found.values.tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("body", "apart"),
    [
        ("mov.b32 %r3, smem; shl.b32 %r4, %r1, 2; add.s32 %r2, %r3, %r4;", 4),
        ("mov.u32 %r3, %ctaid.x; add.s32 %r4, %r3, %r1; mul.lo.s32 %r2, %r4, 3;", 3),
        ("ld.param.b32 %r3, [k_param_0]; mad.lo.s32 %r2, %r1, 8, %r3;", 8),
        ("ld.param.b32 %r3, [k_param_0]; add.s32 %r4, %r3, %r1; shl.b32 %r2, %r4, 3;", 8),
    ],
)
def test_a_base_that_is_the_same_for_all_leaves_threads_as_far_apart(body: str, apart: int) -> None:
    found = values_of(body, "%r2")
    assert found is not None
    assert not found.exact
    assert np.diff(found.values).tolist() == [apart] * 63


def test_what_a_loop_adds_to_all_threads_alike_keeps_them_apart() -> None:
    found = values_of(
        """
        shl.b32 %r3, %r1, 4;
        mov.b32 %r5, %r3;
        $again:
        add.s32 %r2, %r5, 1024;
        mov.b32 %r5, %r2;
        setp.lt.u32 %p1, %r2, 9000;
        @%p1 bra $again;
        add.s32 %r2, %r5, 0;
        """,
        "%r2",
    )
    assert found is not None
    assert not found.exact
    assert np.diff(found.values).tolist() == [16] * 63


@pytest.mark.parametrize(
    "body",
    [
        "ld.global.b32 %r2, [%rd1];",
        "cvt.u64.u32 %rd2, %r1; ld.global.b32 %r2, [%rd2];",
        "shl.b32 %r3, %r1, 2; ld.shared.b32 %r2, [%r3];",
        "mov.u32 %r2, %clock;",
        "mov.b32 %r3, smem; add.s32 %r4, %r3, %r1; xor.b32 %r2, %r4, 64;",  # Depends on where the base is.
        "shl.b32 %r2, %r1, 2; @%p1 shl.b32 %r2, %r1, 3;",  # Either, thread by thread.
        "add.s32 %r2, %r2, %r1;",
        "atom.global.add.u32 %r2, [%rd1], 1; add.s32 %r3, %r2, 0;",
        "cvt.u64.u32 %rd1, %r1; mov.b64 {%r2, %r3}, %rd1; add.s32 %r4, %r2, 0;",  # Each has a half.
        "mov.b32 %f1, %r1; add.f32 %f2, %f1, %f1; mov.b32 %r2, %f2;",
        "shfl.sync.idx.b32 %r2, %r1, 0, 0x181f, -1; add.s32 %r3, %r2, 0;",  # Of segments of eight lanes.
    ],
)
def test_what_does_not_follow_is_not_known(body: str) -> None:
    assert values_of(body, "%r2") is None


def test_registers_of_inline_assembly_are_not_taken_for_those_around() -> None:
    found = values_of("{ .reg .b32 %r2; mov.u32 %r2, %clock; } shl.b32 %r2, %r1, 1;", "%r2")
    assert found is not None
    assert found.values.tolist() == (THREADS * 2).tolist()


def test_addresses_and_guards_are_named_as_the_program_does() -> None:
    text = ".visible .entry k(\n)\n{\n.reg .b32 %r<9>; .reg .pred %p<2>;\n@!%p1 st.shared.b32 [ %r3 + 8 ], %r4;\n"
    instruction = parse_ptx(text + "ld.shared.b32 %r5, [smem+4];\n}\n", "k").instructions
    assert address_of(instruction[0]).startswith("%r3@")
    assert address_of(instruction[1]) == ""
    guard = guard_of(instruction[0])
    assert guard is not None
    assert (guard[0].partition("@")[0], guard[1]) == ("%p1", True)
    assert guard_of(instruction[1]) is None

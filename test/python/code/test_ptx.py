"""PTX as data, and which of its instructions are there for records alone."""

from __future__ import annotations

import textwrap

import pytest

from kperfir.code.ptx import PtxProgram, own_instructions, parse_ptx


def program(body: str) -> PtxProgram:
    """`body` in a kernel."""
    body = textwrap.indent(textwrap.dedent(body), "\t")
    return parse_ptx(f".version 8.0\n.visible .entry k(\n\t.param .u64 k_param_0\n)\n{{\n{body}\n}}\n", "k")


def own(body: str) -> list[str]:
    """Opcodes of what is there for records alone."""
    found = program(body)
    flags = own_instructions(found)
    return [each.opcode for each, mine in zip(found.instructions, flags, strict=True) if mine]


def test_a_kernel_that_is_not_there_is_an_error():
    with pytest.raises(ValueError, match=r"no \.entry other"):
        parse_ptx(".visible .entry k()\n{\n\tret;\n}\n", "other")


def test_instructions_say_what_they_read_and_write():
    found = program("""
        ld.global.v2.b32 {%r1, %r2}, [%rd1+8];  // a comment; with a semicolon
        @!%p1 add.s32 %r3, %r1,
            %r2;
        st.shared.b32 [%r3], %r2;
        setp.lt.s32 %p2|%p3, %r1, 7;
    """).instructions
    assert [(each.writes, each.reads) for each in found] == [
        (("%r1", "%r2"), ("%rd1",)),
        (("%r3",), ("%p1", "%r1", "%r2")),
        ((), ("%r3", "%r2")),
        (("%p2", "%p3"), ("%r1",)),
    ]
    assert found[1].line == found[0].line + 1


def test_stamps_are_found_by_their_comment():
    found = program("""
        { .reg .b32 now;
        mov.u32 now, %clock; // kperf stamp 12.3
        @%p1 st.shared.b32 [%r1+12], now; // kperf
        }
        mov.u32 %r2, %clock;
    """).instructions
    assert [(each.stamp, each.own) for each in found] == [((12, 3), True), (None, True), (None, False)]
    assert found[0].writes == (found[1].reads[-1],) != ("now",)


def test_names_of_inline_assembly_belong_to_their_scope():
    found = program("""
        { .reg .pred done;
        wait: mbarrier.try_wait.parity.shared.b64 done, [%r1], %r2;
        @!done bra.uni wait;
        }
        { .reg .pred done;
        wait: mbarrier.try_wait.parity.shared.b64 done, [%r3], %r4;
        @!done bra.uni wait;
        }
        ret;
    """)
    first, second = found.instructions[1].guard, found.instructions[3].guard
    assert first != second
    assert found.flow.successors == ((0, 1), (1, 2), ())


def test_registers_that_are_declared_by_number_are_known():
    assert (
        own("""
        { .reg .b32 a<2>, b;
        cvt.rz.f16x2.f32 a0, %r1, %r2;
        and.b32 a1, a0, 255;
        mov.b32 b, a1;
        st.global.b32 [%rd1], b;
        }
        ret;
    """)
        == []
    )


def test_a_table_of_branches_goes_to_all_its_targets():
    flow = program("""
        brx.idx %r1, table;
        table:
            .branchtargets
                one,
                two;
        one: add.s32 %r2, %r2, 1;
        ret;
        two: ret;
    """).flow
    assert flow.successors == ((1, 2), (), ())


def test_the_kernels_own_work_is_not_ours():
    assert (
        own("""
        mov.u32 %r1, %tid.x;
        add.s32 %r2, %r1, 1;
        st.global.b32 [%rd1], %r2;
        ret;
    """)
        == []
    )


def test_what_only_records_need_is_ours_and_what_the_kernel_needs_too_is_not():
    assert own("""
        mov.u32 %r1, %tid.x;
        and.b32 %r2, %r1, 31;
        setp.eq.b32 %p1, %r2, 0;
        @%p1 st.shared.b32 [%r9+4], %r8; // kperf
        st.global.b32 [%rd1], %r1;
        ret;
    """) == ["and.b32", "setp.eq.b32", "st.shared.b32"]


def test_the_cursor_of_a_loop_is_ours_the_counter_is_not():
    assert own("""
        mov.b32 %r1, 0;
        mov.b32 %r5, 128;
        loop:
        ld.global.b32 %r2, [%rd1];
        { .reg .b32 now;
        mov.u32 now, %clock; // kperf stamp 0.0
        @%p1 st.shared.b32 [%r5], now; // kperf
        }
        add.s32 %r6, %r5, 8;
        selp.b32 %r5, %r6, %r5, %p1;
        st.global.b32 [%rd2], %r2;
        add.s32 %r1, %r1, 1;
        setp.lt.s32 %p2, %r1, 10;
        @%p2 bra loop;
        ret;
    """) == ["mov.b32", "mov.u32", "st.shared.b32", "add.s32", "selp.b32"]


def test_a_loop_that_copies_records_is_ours_with_its_branches():
    assert own("""
        st.global.b32 [%rd1], %r1;
        setp.eq.b32 %p1, %r1, 0;
        @%p1 bra done;
        mov.b32 %r2, 0;
        copy:
        ld.shared.b32 %r3, [%r2]; // kperf
        st.global.b32 [%rd2], %r3; // kperf
        add.s32 %r2, %r2, 4;
        setp.lt.s32 %p2, %r2, %r4;
        @%p2 bra copy;
        bra.uni done;
        done:
        ret;
    """) == [
        "setp.eq.b32", "bra", "mov.b32", "ld.shared.b32", "st.global.b32", "add.s32", "setp.lt.s32", "bra", "bra.uni",
    ]  # fmt: skip


def test_branches_of_the_kernel_around_records_stay():
    assert own("""
        setp.eq.b32 %p1, %r1, 0;
        @%p1 bra other;
        @%p3 st.shared.b32 [%r9], %r8; // kperf
        st.global.b32 [%rd1], %r1;
        bra.uni done;
        other:
        @%p3 st.shared.b32 [%r9+4], %r8; // kperf
        done:
        ret;
    """) == ["st.shared.b32", "st.shared.b32"]

"""Sums of products in LLVM IR get the order that they have in the plain kernel; all else stays as it is."""

from __future__ import annotations

import pytest

from kperfir.compile.contraction import has_sums_of_products, with_sums_of

PLAIN = """
define ptx_kernel void @k(float %0) {
  %1 = load float, ptr addrspace(1) %p, align 4, !dbg !7
  %2 = fmul float %1, %0, !dbg !8
  %3 = fmul <2 x float> %v, splat (float 2.0), !dbg !8
  %4 = fmul float %0, %0, !dbg !9
  %5 = fadd float %2, %4, !dbg !10
  %6 = fmul <2 x float> %v, %v
  %7 = fadd <2 x float> %3, %6
  %8 = fadd float %5, 0x3FB8AA3B60000000
  ret void
}
"""
# Other names, records between, and two sums turned.
INSTRUMENTED = """
define ptx_kernel void @k(float %0) {
  %1 = load float, ptr addrspace(1) %p, align 4, !dbg !7
  %clock = call i32 asm sideeffect "mov.u32 $0, %clock;", "=r"()
  %3 = fmul float %1, %0, !dbg !8
  %4 = fmul <2 x float> %v, splat (float 2.0), !dbg !8
  %5 = fmul float %0, %0, !dbg !9
  %6 = fadd float %5, %3, !dbg !10
  %7 = fmul <2 x float> %v, %v
  %8 = fadd <2 x float> %7, %4
  %9 = fadd float %6, 0x3FB8AA3B60000000
  ret void
}
"""


def test_turned_sums_are_turned_back() -> None:
    expected = INSTRUMENTED.replace("fadd float %5, %3,", "fadd float %3, %5,").replace("%7, %4", "%4, %7")
    assert with_sums_of(INSTRUMENTED, PLAIN) == expected


def test_sums_in_the_right_order_stay() -> None:
    assert with_sums_of(PLAIN, PLAIN) == PLAIN


@pytest.mark.parametrize(
    "other",
    [
        PLAIN.replace("%5 = fadd float %2, %4", "%5 = fsub float %2, %4"),
        PLAIN.replace("fadd float %2, %4", "fadd float %2, %2"),
        PLAIN.replace("  %8 = fadd float %5, 0x3FB8AA3B60000000\n", ""),
        PLAIN.replace("%6 = fmul <2 x float> %v, %v", "%6 = fadd <2 x float> %v, %v"),
    ],
)
def test_code_that_computes_otherwise_is_refused(other: str) -> None:
    assert with_sums_of(PLAIN, other) is None


def test_sums_of_products_are_found() -> None:
    assert has_sums_of_products(PLAIN)
    assert not has_sums_of_products(PLAIN.replace("fadd", "fsub"))
    assert not has_sums_of_products("  %1 = fmul float %a, %b\n  %2 = fadd float %1, %c\n")


def test_flags_of_an_operation_are_no_part_of_its_operands() -> None:
    text = "  %1 = fmul contract float %a, %b\n  %2 = fmul nnan contract float %c, %d\n"
    text += "  %3 = fadd contract float %{}, %{}\n"
    assert with_sums_of(text.format(2, 1), text.format(1, 2)) == text.format(1, 2)


def test_names_of_another_function_are_other_values() -> None:
    called = "define void @f() {\n  %1 = fmul float %a, %b\n}\n"
    other = "define void @g() {\n  %1 = fdiv float %a, %b\n  %2 = fmul float %a, %a\n  %3 = fadd float %1, %2\n}\n"
    assert not has_sums_of_products(called + other)

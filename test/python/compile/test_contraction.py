"""Sums of products in LLVM IR get the order that they have in the plain kernel; all else stays as it is."""

from __future__ import annotations

import pytest

from kperfir.compile.contraction import has_open_sums, has_other_closed_sums, has_same_arithmetic, with_sums_of

HEAD = "define ptx_kernel void @k(float %0) {\n"
# Places 10 and 20 are lines of the kernel; 30 is line 3 of a helper that is inlined at line 2.
LOCATIONS = """
!5 = distinct !DISubprogram(name: "k", linkageName: "k", scope: !1, line: 1)
!6 = distinct !DILexicalBlockFile(scope: !5, file: !2, discriminator: 0)
!10 = !DILocation(line: 1, column: 4, scope: !5)
!20 = !DILocation(line: 2, column: 4, scope: !5)
!30 = !DILocation(line: 3, column: 9, scope: !6, inlinedAt: !20)
"""


def function(*lines: str) -> str:
    return HEAD + "".join(f"  {line}\n" for line in lines) + "  ret void\n}\n" + LOCATIONS


PLAIN = function(
    "%1 = load float, ptr addrspace(1) %p, align 4, !dbg !10",
    "%2 = fmul float %1, %0, !dbg !10",
    "%3 = fmul <2 x float> %v, splat (float 2.0), !dbg !20",
    "%4 = fmul float %0, %0, !dbg !30",
    "%5 = fadd float %2, %4, !dbg !20",
    "%6 = fmul <2 x float> %v, %v, !dbg !10",
    "%7 = fadd <2 x float> %3, %6, !dbg !30",
    "%8 = fadd float %5, 0x3FB8AA3B60000000, !dbg !10",
)
# Other names, records between, both sums turned, an operation that LLVM has put into two.
INSTRUMENTED = function(
    "%1 = load float, ptr addrspace(1) %p, align 4, !dbg !10",
    '%clock = call i32 asm sideeffect "mov.u32 $0, %clock;", "=r"()',
    "%3 = fmul float %1, %0, !dbg !10",
    "%4 = fmul <2 x float> %v, splat (float 2.0), !dbg !20",
    "%5 = fmul float %0, %0, !dbg !30",
    "%6 = fadd float %5, %3, !dbg !20",
    "%7 = fmul <2 x float> %v, %v, !dbg !10",
    "%8 = fadd <2 x float> %7, %4, !dbg !30",
    "%9 = fadd float %6, 0x3FB8AA3B60000000, !dbg !10",
    "%10 = fadd float %6, 0x3FB8AA3B60000000, !dbg !10",
)


def test_turned_sums_are_turned_back() -> None:
    expected = INSTRUMENTED.replace("fadd float %5, %3,", "fadd float %3, %5,").replace("%7, %4", "%4, %7")
    assert with_sums_of(INSTRUMENTED, PLAIN) == expected


def test_sums_in_the_right_order_stay() -> None:
    assert has_open_sums(PLAIN)
    assert with_sums_of(PLAIN, PLAIN) == PLAIN


def pairs(*orders: str) -> str:
    """Sums of a product of line 1, called a, and one of line 2, called b."""
    lines = ["%a = fmul float %x, %y, !dbg !10", "%b = fmul float %z, %y, !dbg !20"]
    return function(*lines, *(f"%s{n} = fadd float %{a}, %{b}, !dbg !30" for n, (a, b) in enumerate(orders)))


def test_sums_of_one_place_follow_the_order_of_all_or_one_another() -> None:
    assert with_sums_of(pairs("ba", "ab", "ba"), pairs("ab", "ab")) == pairs("ab", "ab", "ab")
    assert with_sums_of(pairs("ba", "ab"), pairs("ab", "ba")) == pairs("ab", "ba")
    assert with_sums_of(pairs("ba", "ab", "ab"), pairs("ab", "ba")) is None


def test_elements_of_one_tensor_are_in_order_already() -> None:
    straight, turned = (text.replace("!dbg !20", "!dbg !10") for text in (pairs("ab"), pairs("ba")))
    assert not has_open_sums(straight)
    assert with_sums_of(turned, straight) == turned


def test_sums_of_elements_of_one_tensor_may_differ_and_are_noticed() -> None:
    lines = ("%c = fmul float %x, %x, !dbg !20", "%d = fmul float %z, %z, !dbg !20")
    closed = "%e = fadd float %c, %d, !dbg !30"
    opened = ("%a = fmul float %x, %y, !dbg !10", "%s = fadd float %a, %c, !dbg !30")
    with_it, without_it = function(*lines, *opened, closed), function(*lines, *opened)
    assert with_sums_of(with_it, without_it) == with_it
    assert has_other_closed_sums(with_it, without_it)
    assert not has_other_closed_sums(with_it, with_it)


@pytest.mark.parametrize(
    ("plain", "fused"),
    [
        ("mul.f32 %r1, %r2, %r3;\nadd.f32 %r4, %r1, %r5;", "fma.rn.f32 %r4, %r2, %r3, %r5;"),
        ("mul.rn.f32x2 %rd1, %rd2, %rd3;\nadd.rn.f32x2 %rd4, %rd1, %rd5;", "fma.rn.f32x2 %rd4, %rd2, %rd3, %rd5;"),
        ("v_mul_f32_e32 v1, v2, v3\nv_add_f32_e32 v4, v1, v5", "v_fmac_f32_e32 v4, v2, v3"),
        ("v_pk_mul_f32 v[0:1], v[2:3], v[4:5]\nv_pk_add_f32 v[6:7], v[0:1]", "v_pk_fma_f32 v[6:7], v[2:3], v[4:5]"),
        ("mul.rn.bf16x2 %r1, %r2, %r3;\nadd.rn.bf16x2 %r4, %r1, %r5;", "fma.rn.bf16x2 %r4, %r2, %r3, %r5;"),
    ],
)
def test_arithmetic_is_counted_whatever_is_beside_it(plain: str, fused: str) -> None:
    records = "mov.u32 now, %clock;\n@%p1 st.shared.b32 [%r1+4], now;\nadd.s32 %r9, %r9, 12;\nv_add_u32_e32 v1, 4, v1\n"
    assert has_same_arithmetic(records + plain, plain)
    assert not has_same_arithmetic(records + fused, plain)


@pytest.mark.parametrize(
    "other",
    [
        PLAIN.replace("%5 = fadd float %2, %4", "%5 = fsub float %2, %4"),
        PLAIN.replace("%2 = fmul float %1, %0, !dbg !10", "%2 = fmul float %1, %0, !dbg !30"),
        PLAIN.replace("%5 = fadd float %2, %4, !dbg !20", "%5 = fadd float %2, %4, !dbg !10"),
    ],
)
def test_code_with_other_sums_is_refused(other: str) -> None:
    assert with_sums_of(PLAIN, other) is None


def test_without_places_nothing_is_said() -> None:
    bare = PLAIN.replace(", !dbg !10", "").replace(", !dbg !20", "").replace(", !dbg !30", "")
    assert has_open_sums(bare)
    assert with_sums_of(bare, bare) is None


def test_differences_and_sums_of_one_product_are_not_meant() -> None:
    assert not has_open_sums(PLAIN.replace("fadd", "fsub"))
    assert not has_open_sums(function("%1 = fmul float %a, %b, !dbg !10", "%2 = fadd float %1, %c, !dbg !20"))


def test_flags_of_an_operation_are_no_part_of_its_operands() -> None:
    text = pairs("ab").replace("fmul", "fmul nnan contract").replace("fadd", "fadd contract")
    turned = pairs("ba").replace("fmul", "fmul nnan contract").replace("fadd", "fadd contract")
    assert with_sums_of(turned, text) == text


def test_names_of_another_function_are_other_values() -> None:
    called = "define void @f() {\n  %1 = fmul float %a, %b\n}\n"
    other = "define void @g() {\n  %1 = fdiv float %a, %b\n  %2 = fmul float %a, %a\n  %3 = fadd float %1, %2\n}\n"
    assert not has_open_sums(called + other)

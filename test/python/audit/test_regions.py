"""The comparison of a kernel's two forms, on listings that are edited by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kperfir.audit.regions import Code, CodeAudit, audit_code
from kperfir.audit.resources import Footprint
from kperfir.capture.layout import Event, Frame, Region
from kperfir.code.ptx import parse_ptx
from kperfir.code.residency import occupancy
from kperfir.code.sass import parse_sass

if TYPE_CHECKING:
    from collections.abc import Sequence

PTX = """.visible .entry k(
	.param .u64 k_param_0
)
{
	ld.param.b64 %rd1, [k_param_0];
	mov.u32 now0, %clock; // kperf stamp 0.0
	st.shared.b32 [%r1+0], now0; // kperf
	ld.global.b32 %r2, [%rd1];
	mov.u32 now1, %clock; // kperf stamp 0.1
	st.shared.b32 [%r1+4], now1; // kperf
	add.s32 %r3, %r2, 1;
	mov.u32 now2, %clock; // kperf stamp 0.2
	st.shared.b32 [%r1+8], now2; // kperf
	st.global.b32 [%rd1], %r3;
	mov.u32 now3, %clock; // kperf stamp 0.3
	st.shared.b32 [%r1+12], now3; // kperf
	ret;
}
"""
LOAD, ADD, STORE = "LDG.E R2, [R4.64]", "IADD3 R3, R2, 0x1, RZ", "STG.E [R4.64], R3"
# Line of the PTX, instruction.
SASS = [
    (6, "CS2R.32 R6, SR_CLOCKLO"), (7, "STS [R1], R6"), (8, LOAD), (9, "CS2R.32 R6, SR_CLOCKLO"),
    (10, "STS [R1+0x4], R6"), (11, ADD), (12, "CS2R.32 R6, SR_CLOCKLO"), (13, "STS [R1+0x8], R6"), (14, STORE),
    (15, "CS2R.32 R6, SR_CLOCKLO"), (16, "STS [R1+0xc], R6"), (17, "EXIT"),
]  # fmt: skip


class Layout:
    """What the audit asks of a layout: a load and a store inside a kernel."""

    regions = (
        Region(0, -1, "kernel", "k", "tt.func", "k.py", 1, 0),
        Region(1, 0, "load", "load k.py:2", "tt.load", "k.py", 2, 0),
        Region(2, 0, "store", "store k.py:3", "tt.store", "k.py", 3, 0),
    )
    frames = (
        Frame(
            0,
            (
                (Event("start", 0), Event("start", 1)),
                (Event("end", 1),),
                (Event("start", 2),),
                (Event("end", 2), Event("end", 0)),
            ),
        ),
    )


def audit(lines: Sequence[tuple[int, str]]) -> CodeAudit:
    text = '\t.section\t.text.k,"ax",@progbits\n' + "\n".join(
        f'\t//## File ".nv_debug_ptx_txt", line {line}\n        /*{16 * place:04x}*/ {text} ;'
        for place, (line, text) in enumerate(lines)
    )
    return audit_code(Code(parse_ptx(PTX, "k"), parse_sass(text, "k")), Layout())  # type: ignore[arg-type]


def moved(text: str, *, behind: str) -> list[tuple[int, str]]:
    """The listing with an instruction elsewhere; `behind` may be the number of a clock read."""
    lines = [line for line in SASS if line[1] != text]
    line = next(line for line in SASS if line[1] == text)
    place = next(place for place, other in enumerate(lines) if behind in (other[1], f"clock {other[0]}"))
    return [*lines[: place + 1], line, *lines[place + 1 :]]


def test_code_in_the_order_of_its_ptx_passes():
    found = audit(SASS)
    assert [region.verdict for region in found.regions] == ["ok"] * 3
    assert [region.anchors for region in found.regions] == [2, 1, 1]
    assert (found.instructions, found.own_instructions, found.records) == (12, 8, 4)
    assert not found.failed


def test_a_load_that_left_its_region_fails_it():
    kernel, load, store = audit(moved(LOAD, behind="clock 9")).regions
    assert (load.verdict, [move.instruction for move in load.left]) == ("moved", [LOAD])
    assert load.left[0].ptx.startswith("ld.global.b32")
    assert (kernel.verdict, store.verdict) == ("ok", "ok")


def test_a_load_that_came_into_another_region_fails_both():
    _, load, store = audit(moved(LOAD, behind="clock 12")).regions
    assert (load.verdict, store.verdict) == ("moved", "moved")
    assert [move.instruction for move in store.entered] == [LOAD]


def test_arithmetic_may_move_and_is_counted():
    _, _, store = audit(moved(ADD, behind="clock 12")).regions
    assert (store.verdict, store.arithmetic_entered) == ("ok", 1)


def test_a_clock_read_that_is_gone_is_a_lost_record():
    found = audit([line for line in SASS if line[0] != 9])
    assert [region.verdict for region in found.regions] == ["ok", "lost", "ok"]
    assert found.regions[1].lost == ((0, 1),)


def test_code_that_ptxas_wrote_twice_is_counted():
    found = audit([*SASS[:-1], *SASS])
    assert found.regions[1].copies == 2
    assert found.records == 8


def test_a_region_without_what_it_is_named_after_is_empty():
    class Renamed(Layout):
        regions = (
            *Layout.regions[:1],
            Region(1, 0, "atomic", "atomic k.py:2", "tt.atomic", "k.py", 2, 0),
            Layout.regions[2],
        )

    text = '\t.section\t.text.k,"ax",@progbits\n        /*0000*/ EXIT ;'
    code = Code(parse_ptx(PTX, "k"), parse_sass(text, "k"))
    assert audit_code(code, Renamed()).regions[1].verdict == "removed"  # type: ignore[arg-type]
    lines = "".join(
        f'\t//## File ".nv_debug_ptx_txt", line {line}\n        /*{16 * place:04x}*/ {text} ;\n'
        for place, (line, text) in enumerate(SASS)
    )
    code = Code(parse_ptx(PTX, "k"), parse_sass('\t.section\t.text.k,"ax",@progbits\n' + lines, "k"))
    assert audit_code(code, Renamed()).regions[1].verdict == "empty"  # type: ignore[arg-type]


def test_occupancy_is_what_the_scarcest_resource_allows():
    assert occupancy(80, threads=128, registers=128, shared_bytes=16384) == (4, "registers")
    assert occupancy(80, threads=128, registers=32, shared_bytes=0) == (16, "warps")
    assert occupancy(80, threads=32, registers=32, shared_bytes=0) == (32, "CTA slots")
    assert occupancy(90, threads=128, registers=64, shared_bytes=100 << 10) == (2, "shared memory")
    assert occupancy(42, threads=128, registers=64, shared_bytes=0) == (0, "")


def test_stack_and_lost_occupancy_are_worse_and_registers_alone_are_not():
    before = Footprint(96, 0, 0, 0, 5, "registers", 100)
    assert not Footprint(100, 0, 0, 64, 5, "registers", 200).is_worse_than(before)
    assert Footprint(104, 0, 0, 0, 4, "registers", 200).is_worse_than(before)
    assert Footprint(96, 16, 0, 0, 5, "registers", 200).is_worse_than(before)
    assert Footprint(96, 0, 2, 0, 5, "registers", 200).is_worse_than(before)

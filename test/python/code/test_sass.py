"""Machine code as data, from listings as nvdisasm prints them."""

from __future__ import annotations

import pytest

from kperfir.code.sass import parse_sass


def listing(*lines: str, kernel: str = "k") -> str:
    """A disassembly of one kernel; a line is a label, ``N`` for a line of the PTX, or an instruction."""
    text = [
        f"//----- .text.{kernel} -----",
        f'\t.section\t.text.{kernel},"ax",@progbits',
        f"{kernel}:",
        f".text.{kernel}:",
    ]
    for number, line in enumerate(lines):
        if line.isdecimal():
            text.append(f'\t//## File ".nv_debug_ptx_txt", line {line}')
        elif line.endswith(":"):
            text.append(line)
        else:
            text.append(f"        /*{16 * number:04x}*/                   {line} ;")
    return "\n".join(text)


def test_instructions_have_the_line_of_the_ptx_that_was_named_last():
    found = parse_sass(listing("7", "MOV R1, R2", "@!P0 LDG.E R3, [R4.64]", "9", "NOP", "EXIT"), "k").instructions
    assert [(each.word, each.ptx_line) for each in found] == [("MOV", 7), ("LDG", 7), ("EXIT", 9)]


def test_only_the_section_of_the_kernel_is_read():
    text = listing("EXIT", kernel="other") + "\n" + listing("MOV R1, R2", "EXIT")
    assert [each.word for each in parse_sass(text, "k").instructions] == ["MOV", "EXIT"]
    with pytest.raises(ValueError, match="no code of absent"):
        parse_sass(text, "absent")


def test_branches_end_blocks_and_guards_fall_through():
    flow = parse_sass(
        listing(".L_x_0:", "@P0 BRA `(.L_x_1)", "BRA.U UP0, `(.L_x_0)", ".L_x_1:", "@!P1 EXIT", "BRA `(.L_x_0)"), "k"
    ).flow
    assert flow.successors == ((2, 1), (0, 2), (3,), (0,))


def test_a_meeting_place_is_that_of_the_last_bssy_of_its_barrier():
    flow = parse_sass(
        listing(
            "BSSY B0, `(.L_x_0)", "@P0 BRA `(.L_x_1)", "MOV R1, R2", ".L_x_1:", "BSYNC B0", ".L_x_0:",
            "BSSY B0, `(.L_x_2)", "BSYNC B0", "MOV R9, R9", ".L_x_2:", "EXIT",
        ),
        "k",
    ).flow  # fmt: skip
    assert flow.successors == ((2, 1), (2,), (3,), (5,), (5,), ())

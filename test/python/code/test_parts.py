"""What kperfir's instructions are for, by where they lie among the records."""

from __future__ import annotations

from kperfir.code.flow import Jump, build_flow
from kperfir.code.parts import Part, find_parts

SET_UP, RECORDS, COPY_OUT = Part.SET_UP, Part.RECORDS, Part.COPY_OUT


def test_what_comes_before_any_record_is_set_up_and_what_comes_after_the_last_copy_out() -> None:
    # 1 branches to 4; 2 is a stamp in a loop of 2 and 3, which leaves to 4; 5 is the last stamp, 6 loops by itself.
    jumps = {
        1: Jump((4,), falls_through=True), 3: Jump((2,), falls_through=True), 6: Jump((6,), falls_through=True),
    }  # fmt: skip
    flow = build_flow(8, leaders=(6,), jumps=jumps)
    assert find_parts(flow, {2, 5}) == [SET_UP, SET_UP, *[RECORDS] * 4, COPY_OUT, COPY_OUT]


def test_a_loop_around_records_has_no_beginning_and_no_end() -> None:
    flow = build_flow(5, leaders=(1,), jumps={3: Jump((1,), falls_through=True)})
    assert find_parts(flow, {2}) == [SET_UP, RECORDS, RECORDS, RECORDS, COPY_OUT]


def test_an_early_return_copies_out_as_well() -> None:
    # 1 leaves for 4 before the stamp of 2; both ways end. What 4 and 5 do comes after no stamp, and before none.
    flow = build_flow(6, leaders=(), jumps={1: Jump((4,), falls_through=True), 3: Jump((), falls_through=False)})
    assert find_parts(flow, {2}) == [SET_UP, SET_UP, RECORDS, COPY_OUT, COPY_OUT, COPY_OUT]

"""Which regions are open where, by control flow."""

from __future__ import annotations

from kperfir.code.flow import Jump, build_flow, open_regions


def test_a_gap_is_open_up_to_the_next_stamp_on_every_path() -> None:
    # 0 starts region 0 and gap 1; 1 branches to 4; 2 (fallen through) ends 0 with gap 2 and 3 leaves; 4 ends 0.
    flow = build_flow(6, leaders=(), jumps={1: Jump((4,), falls_through=True), 3: Jump((), falls_through=False)})
    events = {0: [("start", 0), ("gap", 1)], 2: [("end", 0), ("gap", 2)], 4: [("end", 0)]}
    inside = 0b011
    assert open_regions(flow, events, [0b011, 0b010, 0b100]) == [0, inside, inside, 0b100, inside, 0]

"""Which CTAs have room, and that the address says so."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kperfir._native import record

from kperfir.runtime.device import HostBuffer
from kperfir.runtime.room import RecordAddress, Room

ALL = record.EVERY_CTA_CODE


@pytest.mark.parametrize(
    ("selection", "limit", "room"),
    [
        ((0, 0, 1), 1000, Room(0, 10, 10, 0, ALL)),
        ((0, 0, 1), 999, Room(0, 8, 10, 2, 4)),
        ((0, 0, 1), 199, Room(0, 1, 10, 9, 1)),
        ((0, 0, 1), 99, Room(0, 0, 10, 10, 0)),
        ((4, 0, 1), 600, Room(4, 6, 6, 0, ALL)),
        ((4, 0, 3), 600, Room(4, 6, 2, 0, ALL)),
        ((4, 0, 3), 599, Room(4, 4, 2, 0, 3)),
        ((4, 0, 3), 399, Room(4, 2, 2, 1, 2)),
        ((4, 0, 3), 99, Room(4, 0, 2, 2, 0)),
        ((0, 9, 4), 500, Room(0, 4, 3, 2, 3)),
        ((4, 6, 1), 200, Room(4, 2, 2, 0, ALL)),
        ((4, 60, 1), 600, Room(4, 6, 6, 0, ALL)),
        ((40, 60, 1), 600, Room(40, 0, 0, 0, 0)),
    ],
)
def test_room_is_for_all_or_a_power_of_two(selection: tuple[int, int, int], limit: int, room: Room) -> None:
    assert Room.of(selection, 10, 100, limit) == room


@given(st.integers(0, 40), st.integers(0, 40), st.integers(1, 9), st.integers(0, 40))
def test_room_counts_the_ctas_that_record(first: int, last: int, step: int, fitting: int) -> None:
    room = Room.of((first, last, step), 30, 100, 100 * fitting)
    asked = [cta for cta in range(30) if cta >= first and (not last or cta < last) and (cta - first) % step == 0]
    assert room.wanted == len(asked)
    assert room.left_out == sum(cta >= first + room.ctas for cta in asked)


@given(st.integers(1, 1 << 40), st.integers(0, 1 << 33), st.integers(1, 1 << 20), st.integers(0, 1 << 40))
def test_room_never_takes_more_than_its_limit(grid: int, first: int, stride: int, limit: int) -> None:
    room = Room.of((first, 0, 1), grid, stride, limit)
    assert room.ctas * stride <= limit
    assert room.ctas <= room.wanted == max(grid - first, 0)
    allowed = (1 << room.code) >> 1  # As the kernel reads it.
    assert room.ctas == min(room.wanted, allowed) or room.wanted > allowed > 1 << 29


def test_address_is_where_the_first_cta_of_the_grid_would_be() -> None:
    memory = HostBuffer(300, record.BUFFER_ALIGNMENT)
    address = RecordAddress.of(memory, Room(7, 2, 3, 1, 2), 96)
    assert address % record.BUFFER_ALIGNMENT == 2
    assert address - 2 + 7 * 96 == memory.data_ptr()
    assert address.memory is memory

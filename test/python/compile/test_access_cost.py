"""Wavefronts and sectors of single requests, worked out by hand."""

from __future__ import annotations

import pytest

from kperfir.compile.access_cost import ideal_wavefronts, matrix_wavefronts, sectors, wavefronts


@pytest.mark.parametrize(
    ("step", "width", "expected"),
    [
        (4, 4, 1), (8, 4, 2), (128, 4, 32), (132, 4, 1), (0, 4, 1), (2, 2, 1), (64, 2, 16), (1, 1, 1),
        (8, 8, 2), (128, 8, 32), (16, 16, 4), (128, 16, 32), (144, 16, 4),
    ],
)  # fmt: skip
def test_wavefronts_of_lanes_that_are_steps_apart(step: int, width: int, expected: int) -> None:
    assert wavefronts([lane * step for lane in range(32)], width) == expected


def test_ideal_wavefronts_are_those_of_lanes_in_a_row() -> None:
    for width in (1, 2, 4, 8, 16):
        assert ideal_wavefronts(width) == wavefronts([lane * width for lane in range(32)], width)


def test_lanes_that_take_no_part_touch_no_bank() -> None:
    offsets = [lane * 128 for lane in range(32)]
    assert wavefronts(offsets, 4, [lane < 5 for lane in range(32)]) == 5
    assert wavefronts(offsets, 16, [lane % 8 == 0 for lane in range(32)]) == 4
    assert wavefronts(offsets, 4, [False] * 32) == 1
    assert [ideal_wavefronts(16, lanes) for lanes in (1, 8, 9, 32)] == [1, 1, 2, 4]


@pytest.mark.parametrize(("step", "expected"), [(16, 1), (128, 8), (64, 4), (144, 1), (0, 1)])
def test_a_matrix_conflicts_where_its_rows_share_banks(step: int, expected: int) -> None:
    assert matrix_wavefronts([row * step for row in range(8)]) == expected


@pytest.mark.parametrize(
    ("ranges", "multiple", "expected"),
    [
        ([(0, 128)], 32, (4, True)), ([(0, 128)], 256, (4, True)), ([(0, 128)], 16, (5, False)),
        ([(0, 4)], 4, (1, True)), ([(0, 4), (32, 36)], 4, (2, True)), ([(0, 4), (16, 20)], 4, (2, False)),
        ([(0, 4), (16, 20)], 32, (1, True)), ([(28, 36)], 32, (2, True)),
    ],
)  # fmt: skip
def test_sectors_are_known_where_they_do_not_depend_on_the_beginning(
    ranges: list[tuple[int, int]], multiple: int, expected: tuple[int, bool]
) -> None:
    assert sectors(ranges, multiple) == expected

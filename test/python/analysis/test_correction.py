"""Durations without what records took, on clocks that are written by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import pytest

import kperfir
from kperfir.analysis.correction import (
    END_ROLES_CYCLES,
    FRAME_CYCLES,
    GLOBAL_FRAME_CYCLES,
    HIDDEN_FRAME_CYCLES,
    PENDING_RECORD_CYCLES,
    RECORD_CYCLES,
    SHORTEST_RESULT_WAIT_CYCLES,
    START_ROLES_CYCLES,
    TAG_FIRST_FRAME_CYCLES,
    TAGGED_RECORD_CYCLES,
    Storage,
    corrected_durations,
)
from kperfir.report.model import Request, build
from support.synthetic import CaptureShape, write_matmul_capture

if TYPE_CHECKING:
    from pathlib import Path

# Clocks of one warp: a short gap, a medium one, another frame soon, another frame late.
CLOCKS = [(0, 0, 1000), (0, 1, 1010), (0, 2, 1040), (1, 0, 1080), (1, 1, 1100), (2, 0, 1300)]


def stamps(*warps: list[tuple[int, int, int]], launch: int = 0) -> pd.DataFrame:
    rows = [(launch, 0, warp, frame, slot, clock) for warp, clocks in enumerate(warps) for frame, slot, clock in clocks]
    return pd.DataFrame(rows, columns=["launch", "cta", "warp", "frame", "slot", "clock"])


def spans(*rows: tuple[int, int, int], kind: str = "load", launch: int = 0) -> pd.DataFrame:
    """(warp, start, end) of each."""
    return pd.DataFrame(
        [(launch, 0, warp, 0, kind, start, end, end - start) for warp, start, end in rows],
        columns=["launch", "cta", "warp", "region", "kind", "start_cycles", "end_cycles", "duration_cycles"],
    )


def corrected(table: pd.DataFrame, clocks: pd.DataFrame) -> list[int]:
    return corrected_durations(table, clocks)["duration_cycles"].tolist()


def test_a_gap_loses_the_cost_of_a_record_and_more_at_a_frames_end():
    table = spans((0, 1000, 1010), (0, 1010, 1040), (0, 1040, 1080), (0, 1100, 1300))
    assert corrected(table, stamps(CLOCKS)) == [
        10 - RECORD_CYCLES, 30 - RECORD_CYCLES, 40 - FRAME_CYCLES, 200 - FRAME_CYCLES,
    ]  # fmt: skip


def test_a_span_loses_the_cost_of_all_records_inside():
    gaps = RECORD_CYCLES + RECORD_CYCLES + FRAME_CYCLES + RECORD_CYCLES + FRAME_CYCLES
    assert corrected(spans((0, 1000, 1300), kind="kernel"), stamps(CLOCKS)) == [300 - gaps]


def test_a_wait_is_the_difference_of_its_clocks():
    clocks = stamps([(0, 0, 0), (0, 1, 500), (0, 2, 520)])
    assert corrected(spans((0, 0, 500), kind="async_wait"), clocks) == [500]
    assert corrected(spans((0, 0, 500), kind="load"), clocks) == [500 - RECORD_CYCLES]
    assert corrected(spans((0, 500, 520), kind="async_wait"), clocks) == [20 - RECORD_CYCLES]


def test_no_duration_is_less_than_nothing():
    clocks = stamps([(0, 0, 0), (0, 1, 2), (1, 0, 5)])
    found = corrected_durations(spans((0, 0, 2), (0, 2, 5), (0, 0, 5)), clocks)
    assert found["duration_cycles"].tolist() == [0, 0, 0]


def test_warps_and_launches_are_corrected_apart():
    both = pd.concat([stamps(CLOCKS, [(0, 0, 1000), (0, 1, 1300)]), stamps(CLOCKS, launch=1)], ignore_index=True)
    table = pd.concat([spans((0, 1000, 1010), (1, 1000, 1300)), spans((0, 1000, 1010), launch=1)], ignore_index=True)
    assert corrected(table, both) == [10 - RECORD_CYCLES, 300 - RECORD_CYCLES, 10 - RECORD_CYCLES]


def test_uncertainty_adds_up_and_is_more_where_a_wait_may_hide_something():
    found = corrected_durations(spans((0, 1000, 1010), (0, 1000, 1040), (0, 1100, 1300)), stamps(CLOCKS))
    assert found["uncertainty_cycles"].tolist() == [4, 4 + 5, 20]


def test_a_frames_end_is_hidden_where_a_loaded_value_is_waited_for():
    table = spans((0, 1080, 1100), (0, 1100, 1300))
    assert corrected(table, stamps(CLOCKS))[1] == 200 - HIDDEN_FRAME_CYCLES
    assert corrected(spans((0, 1080, 1100), (0, 1100, 1300), kind="store"), stamps(CLOCKS))[1] == 200 - FRAME_CYCLES


def test_a_wait_for_a_loaded_value_gets_back_what_records_took_since_the_first_load():
    clocks = [(0, 0, 0), (0, 1, 20), (0, 2, 40), (0, 3, 60), (0, 4, 360), (0, 5, 660)]
    loads, others = [(0, 0, 20), (0, 40, 60)], [(0, 60, 360), (0, 360, 660), (0, 0, 660)]
    table = pd.concat([spans(*loads), spans(*others, kind="compute")], ignore_index=True)
    wait, later, all_of_it = corrected(table, stamps(clocks))[2:]
    assert wait == 300 + 2 * RECORD_CYCLES, "behind the first load are one gap and the second load"
    assert later == 300 - RECORD_CYCLES, "nothing is awaited any more"
    assert all_of_it == 660 - 2 * RECORD_CYCLES, "hidden were all but the first load and the last gap"


def test_a_load_that_has_waited_itself_leaves_nothing_to_wait_for() -> None:
    clocks = [(0, 0, 0), (0, 1, 420), (0, 2, 440), (0, 3, 600)]
    table = pd.concat([spans((0, 0, 420)), spans((0, 420, 440), (0, 440, 600), kind="reduce")], ignore_index=True)
    assert corrected(table, stamps(clocks))[1:] == [20 - RECORD_CYCLES, 160 - RECORD_CYCLES]


def test_a_wait_begins_anew_in_each_warp_and_ends_at_no_other_load_and_in_no_short_gap():
    clocks = [(0, 0, 0), (0, 1, 20), (0, 2, 220), (0, 3, 240), (0, 4, 540)]
    table = pd.concat(
        [spans((0, 0, 20), (0, 20, 220)), spans((0, 220, 240), (0, 240, 540), kind="compute")], ignore_index=True
    )
    assert corrected(table, stamps(clocks))[1:] == [200 - RECORD_CYCLES, 20 - RECORD_CYCLES, 300 + 2 * RECORD_CYCLES]
    other = [(0, 0, 0), (0, 1, 300)]
    assert corrected(spans((1, 0, 300), kind="compute"), stamps([(0, 0, 0), (0, 1, 20)], other)) == [
        300 - RECORD_CYCLES
    ]


def test_a_long_wait_for_copies_gets_back_what_records_took_since_the_last_copy():
    clocks = [(0, 0, 0), (0, 1, 20), (0, 2, 40), (0, 3, 60), (0, 4, 260), (0, 5, 460), (0, 6, 520)]
    table = pd.concat(
        [
            spans((0, 0, 20), (0, 20, 40), kind="async_copy"),
            spans((0, 60, 260), (0, 260, 460), (0, 460, 520), kind="async_wait"),
        ],
        ignore_index=True,
    )
    assert corrected(table, stamps(clocks))[2:] == [200 + RECORD_CYCLES, 200, 60]


def test_what_differs_among_executions_is_uncertain_and_adds_up_as_independent_errors_do():
    # Two gaps of ten warps: 20 each but for two of ten, which take 50; of three warps nothing can be said.
    lengths = [20] * 8 + [50] * 2
    warps = [[(0, 0, 0), (0, 1, length), (0, 2, 2 * length)] for length in lengths]
    table = spans((0, 0, 20), (0, 0, 40))
    assert corrected_durations(table, stamps(*warps))["uncertainty_cycles"].tolist() == [5 + 30, 10 + 42]
    assert corrected_durations(table, stamps(*warps[:3]))["uncertainty_cycles"].tolist() == [5, 10]


def test_a_frame_takes_longer_in_global_memory():
    (there,) = corrected_durations(spans((0, 1040, 1080)), stamps(CLOCKS), {0: Storage(is_global=True)})[
        "duration_cycles"
    ]
    assert there == 40 - GLOBAL_FRAME_CYCLES < corrected(spans((0, 1040, 1080)), stamps(CLOCKS))[0]


def test_a_span_without_its_stamps_is_left_as_it_is():
    found = corrected_durations(spans((0, 1000, 1011), (3, 1000, 1010)), stamps(CLOCKS))
    assert found["duration_cycles"].tolist() == [11, 10]
    assert found["uncertainty_cycles"].isna().all()
    empty = corrected_durations(spans((0, 1000, 1010)), stamps())
    assert empty["duration_cycles"].tolist() == [10]


def test_of_stamps_that_are_stored_together_the_last_ones_gap_has_the_store():
    clocks = stamps([(0, slot, 40 * slot) for slot in range(5)])
    both = pd.concat([clocks, clocks.assign(launch=1)], ignore_index=True)
    gaps = [(0, 40 * slot, 40 * slot + 40) for slot in range(4)]
    table = pd.concat([spans(*gaps), spans(*gaps, launch=1)], ignore_index=True)
    found = corrected_durations(table, both, {0: Storage(batch=2)})
    pair = [40 - PENDING_RECORD_CYCLES, 40 - RECORD_CYCLES]
    assert found["duration_cycles"].tolist() == [*pair, *pair, *[40 - RECORD_CYCLES] * 4]


def test_a_tag_that_comes_first_is_in_the_gap_behind_the_first_stamp():
    table = spans((0, 1000, 1010), (0, 1010, 1040), (0, 1040, 1080))
    found = corrected_durations(table, stamps(CLOCKS), {0: Storage(tag_first=True)})
    assert found["duration_cycles"].tolist() == [
        10 - TAGGED_RECORD_CYCLES, 30 - RECORD_CYCLES, 40 - TAG_FIRST_FRAME_CYCLES[0],
    ]  # fmt: skip


def test_a_tag_that_comes_first_is_stored_with_the_first_stamp_of_several():
    clocks = stamps([(0, slot, 40 * slot) for slot in range(5)])
    gaps = spans(*[(0, 40 * slot, 40 * slot + 40) for slot in range(4)])
    found = corrected_durations(gaps, clocks, {0: Storage(batch=2, tag_first=True)})["duration_cycles"]
    pair = [40 - PENDING_RECORD_CYCLES, 40 - RECORD_CYCLES]
    assert found.tolist() == [40 - TAGGED_RECORD_CYCLES, *pair, 40 - PENDING_RECORD_CYCLES]


@pytest.mark.parametrize("by", ["region", "line", "kind"])
def test_the_layout_says_which_stamps_are_stored_together(tmp_path: Path, by: str):
    took = []
    for batch in (1, 2):
        path = tmp_path / f"{batch}.kpf"
        write_matmul_capture(path, CaptureShape(batch=batch))
        timeline = kperfir.load(path)
        took.append((timeline.spans["duration_cycles"] - timeline.corrected["duration_cycles"]).sum())
        (kernel,) = build(timeline, Request(by=by))["kernels"]
        for name in ("corrected_cycles", "uncertainty_cycles"):
            assert any(row[name] is not None for row in kernel["rows"])
    assert 0 < took[1] < took[0]


@pytest.mark.parametrize(
    ("kind", "shuffle", "gap", "took"),
    [
        ("reduce", 9, SHORTEST_RESULT_WAIT_CYCLES, 0),
        ("reduce", 9, SHORTEST_RESULT_WAIT_CYCLES - 1, RECORD_CYCLES),
        ("reduce", 30, SHORTEST_RESULT_WAIT_CYCLES, RECORD_CYCLES),
        ("store", 9, SHORTEST_RESULT_WAIT_CYCLES, RECORD_CYCLES),
    ],
)
def test_what_waits_for_a_result_that_comes_soon_hides_its_record(kind: str, shuffle: int, gap: int, took: int):
    table = pd.concat([spans((0, 0, shuffle), kind=kind), spans((0, shuffle, shuffle + gap), kind="compute")])
    clocks = stamps([(0, 0, 0), (0, 1, shuffle), (0, 2, shuffle + gap)])
    assert corrected(table.reset_index(drop=True), clocks)[1] == gap - took


def test_the_warps_that_start_other_roles_pay_for_that():
    table = spans((0, 0, 300), (0, 300, 340), (0, 340, 500), (1, 0, 300))
    clocks = stamps([(0, 0, 0), (1, 0, 300), (2, 0, 340), (3, 0, 500)], [(4, 0, 0), (5, 0, 300)])
    found = corrected_durations(table, clocks, {0: Storage(starting_warps=1)})["duration_cycles"].tolist()
    assert found == [300 - START_ROLES_CYCLES, 40 - FRAME_CYCLES, 160 - END_ROLES_CYCLES, 300 - FRAME_CYCLES]

"""What a stamp follows from, and how late that makes it, on clocks that are written by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd

from kperfir.analysis.correction import RECORD_CYCLES, corrected_durations
from kperfir.analysis.replay import FLOW_WAITS, delays


def stamps(*warps: list[int]) -> pd.DataFrame:
    rows = [(0, 0, warp, 0, slot, clock) for warp, clocks in enumerate(warps) for slot, clock in enumerate(clocks)]
    return pd.DataFrame(rows, columns=["launch", "cta", "warp", "frame", "slot", "clock"])


def spans(*rows: tuple[int, int, str, int, int]) -> pd.DataFrame:
    """(warp, region, kind, start, end) of each."""
    return pd.DataFrame(
        [(0, 0, *row, row[-1] - row[-2]) for row in rows],
        columns=["launch", "cta", "warp", "region", "kind", "start_cycles", "end_cycles", "duration_cycles"],
    )


def test_a_stamp_is_as_late_as_its_path_from_the_root_adds_up_to():
    random = np.random.default_rng(5)
    cause = np.array([-1, *(random.integers(max(0, row - 3), row) for row in range(1, 500))])
    cost = random.integers(-20, 20, 500)
    expected = np.zeros(500, np.int64)
    for row in range(500):
        expected[row] = cost[row] + (expected[cause[row]] if cause[row] >= 0 else 0)
    assert delays(cause, cost).tolist() == expected.tolist()
    assert delays(np.empty(0, np.int64), np.empty(0, np.int64)).tolist() == []


# The first warp waits in a reduction for the second, which has more records before it.
EARLY, LATE = [0, 100, 400], [0, 30, 60, 90, 120, 380, 400]
TABLE = [(0, 0, "reduce", 100, 400), (0, 1, "kernel", 0, 400), (1, 0, "reduce", 380, 400), (1, 1, "kernel", 0, 400)]


def test_who_waits_for_another_warp_goes_on_when_that_would_have_come():
    found = corrected_durations(spans(*TABLE), stamps(EARLY, LATE))["duration_cycles"].tolist()
    without_records = 400 - 6 * RECORD_CYCLES
    assert found == [without_records - (100 - RECORD_CYCLES), without_records, 20 - RECORD_CYCLES, without_records]


def test_warps_that_do_not_wait_for_each_other_are_left_apart():
    # In another execution of the region the first warp left before the second came.
    apart = [(0, 0, "reduce", 400, 500), (1, 0, "reduce", 600, 700)]
    found = corrected_durations(spans(*sorted([*TABLE, *apart])), stamps([*EARLY, 500], [*LATE, 600, 700]))
    assert found["duration_cycles"].tolist()[0] == 300 - RECORD_CYCLES


def test_a_wait_gets_back_what_records_took_since_another_warp_issued_what_it_waits_for():
    table = spans((0, 0, "tma", 0, 30), (1, 1, "mbarrier_wait", 90, 500))
    clocks = stamps([0, 30], [0, 30, 60, 90, 500])
    flows = pd.DataFrame({"from_span": [0], "to_span": [1]})
    alone, told = (corrected_durations(table, clocks, flows=each)["duration_cycles"].tolist() for each in (None, flows))
    assert alone[1] == 410
    # It came three records late; the copy was issued one record late.
    assert told[1] == 410 + 2 * RECORD_CYCLES
    short = 90 + FLOW_WAITS["mbarrier_wait"] - 1
    table = spans((0, 0, "tma", 0, 30), (1, 1, "mbarrier_wait", 90, short))
    clocks = stamps([0, 30], [0, 30, 60, 90, short])
    assert corrected_durations(table, clocks, flows=flows)["duration_cycles"].tolist()[1] == short - 90

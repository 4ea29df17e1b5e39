"""Wait and work against sums worked out by hand, and against what a capture's program did."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import pytest

from kperfir.analysis.regions import region_statistics
from kperfir.analysis.wait_time import WAIT_KINDS, outermost_waits, wait_cycles, wait_statistics
from kperfir.config import KINDS
from kperfir.timeline import load
from support.synthetic import CaptureShape, write_matmul_capture
from support.toy_timeline import toy_timeline

if TYPE_CHECKING:
    from pathlib import Path

# Of one kernel: role, warp, kind, parent, start, end.
ROWS = [
    ("default", 0, "kernel", -1, 0, 100),
    ("default", 0, "loop", 0, 10, 90),
    ("default", 0, "async_wait", 1, 10, 30),
    ("default", 0, "user", 1, 30, 60),
    ("default", 0, "barrier", 3, 40, 55),
    ("default", 0, "mbarrier_wait", 4, 41, 50),  # In a wait: those cycles are the outer one's.
    ("default", 0, "dot", 1, 60, 90),
    ("partition0", 4, "kernel", -1, 0, 40),
    ("partition0", 4, "mbarrier_wait", 7, 0, 40),
    ("partition0", 5, "load", -1, 5, 9),
    ("partition0", 5, "wgmma_wait", -1, 9, 10),
]


@pytest.fixture
def spans() -> pd.DataFrame:
    frame = pd.DataFrame(ROWS, columns=["role", "warp", "kind", "parent", "start_cycles", "end_cycles"])
    return frame.assign(kernel="k", duration_cycles=frame["end_cycles"] - frame["start_cycles"])


def test_waiting_is_what_waits_inside_take(spans: pd.DataFrame) -> None:
    assert outermost_waits(spans).tolist() == [row in (2, 4, 8, 10) for row in range(11)]
    assert wait_cycles(spans).tolist() == [35, 35, 20, 15, 15, 9, 0, 40, 40, 0, 1]


def test_work_and_wait_add_up_at_each_level(spans: pd.DataFrame) -> None:
    (whole,) = wait_statistics(spans).to_dict("records")
    assert whole == {
        **dict(kernel="k", cycles=145, work_cycles=69, wait_cycles=76, async_wait_cycles=20, barrier_cycles=15),
        **dict(mbarrier_wait_cycles=40, wgmma_wait_cycles=1),
    }
    roles = wait_statistics(spans, "role").set_index("role")
    assert roles["cycles"].to_dict() == {"default": 100, "partition0": 45}
    assert roles["work_cycles"].to_dict() == {"default": 65, "partition0": 4}
    warps = wait_statistics(spans, "warp").set_index(["role", "warp"])
    assert warps["wait_cycles"].to_dict() == {("default", 0): 35, ("partition0", 4): 40, ("partition0", 5): 1}
    for table in (roles, warps):
        assert (table["work_cycles"] + table["wait_cycles"]).equals(table["cycles"])
        assert table[[f"{kind}_cycles" for kind in WAIT_KINDS]].sum(axis=1).equals(table["wait_cycles"])


def test_every_kind_that_waits_by_name_is_a_wait() -> None:
    assert set(WAIT_KINDS) == {kind for kind in KINDS if kind.endswith("wait") or kind == "barrier"}


def test_no_spans_give_no_rows() -> None:
    assert wait_statistics(toy_timeline().spans.iloc[:0]).empty
    assert len(wait_cycles(toy_timeline().spans.iloc[:0])) == 0


@pytest.mark.parametrize("by", ["region", "line", "kind"])
def test_waits_of_regions_agree_with_the_whole(by: str) -> None:
    spans = toy_timeline().spans
    table = region_statistics(spans, {"matmul": 1.0}, by)
    (whole,) = wait_statistics(spans).to_dict("records")
    key = {"region": "name", "kind": "kind", "line": "line"}[by]
    kernel = table.set_index(key).loc[{"name": "matmul", "kind": "kernel", "line": 10}[key]]
    assert kernel["wait_cycles"] == whole["wait_cycles"] > 0


def test_summary_and_waits_of_a_capture(tmp_path: Path) -> None:
    write_matmul_capture(tmp_path / "x.kpf", CaptureShape(launches=2, specialised=True))
    timeline = load(tmp_path / "x.kpf")
    summary = timeline.summary()
    waits = summary[summary["kind"] == "async_wait"]
    assert (waits["wait_cycles"] == waits["total_cycles"]).all()
    assert (waits["wait_share"] == waits["share"]).all()
    kernel = summary[summary["kind"] == "kernel"]
    assert kernel["wait_cycles"].sum() == waits["total_cycles"].sum() == timeline.waits()["wait_cycles"].item() > 0
    # The partition copies, and waits for nothing.
    assert timeline.waits("role").set_index("role").loc["partition0", "wait_cycles"] == 0
    assert timeline.waits("warp")["warp"].tolist() == [0, 1, 2, 3, 4]

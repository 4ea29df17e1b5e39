"""Functions that are not inlined: a region around the call, the callee's work inside it, and a note that says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernels.cases import WORKLOADS
from support.ground_truth import INSTRUCTIONS
from support.launch import run_profiled

if TYPE_CHECKING:
    from pathlib import Path


def test_calls_are_regions_and_the_report_says_what_is_not_in_them(tmp_path: Path):
    run = run_profiled(WORKLOADS["noinline_tree"], tmp_path / "out.kpf", log=True)
    spans = run.timeline.spans
    calls = spans[spans["kind"] == "call"]
    assert len(calls) == 3 * 4  # Three rows, four warps.
    assert any("no records from inside of" in note and "sum_of_two_rows" in note for note in run.timeline.notes)

    log = run.launch.result.log
    loads = [bool(INSTRUCTIONS["load"].search(text)) for text, *_ in run.launch.kernel.module.instructions]
    for warp, of_warp in calls.groupby("warp"):
        mine = [
            issue
            for issue, pc, where in zip(log["issue"].tolist(), log["pc"].tolist(), log["warp"].tolist(), strict=True)
            if where == warp and loads[pc]
        ]
        assert len(mine) >= 2 * len(of_warp)
        around = of_warp[["start_cycles", "end_cycles"]].to_numpy()
        assert all(((around[:, 0] < issue) & (issue < around[:, 1])).any() for issue in mine)

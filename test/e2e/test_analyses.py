"""Analyses of kernels that really ran: what must hold for any capture, and what is known of two kernels.

A software-pipelined matmul and a warp-specialised attention, each with too few buffers and with enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch
import triton.language as tl

import kperfir
from kernels.matmuls import matmul
from kernels.workload import Workload
from kernels.workloads import hopper
from kperfir.analysis.registry import ANALYSES
from support.launch import run_profiled

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

    from kperfir.timeline import Timeline

M, N, K = 64, 64, 32
STEPS = 16


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("analyses")


@pytest.fixture(scope="module")
def matmuls(folder: Path) -> dict[int, Timeline]:
    """A tile with a loop of 16 steps, by `num_stages`."""
    a, b = torch.zeros(M, STEPS * K, dtype=torch.float16), torch.zeros(STEPS * K, N, dtype=torch.float16)
    c = torch.empty(M, N, dtype=torch.float16)
    sizes = (M, N, STEPS * K, STEPS * K, 1, N, 1, N, 1)
    timelines = {}
    for stages in (2, 4):
        path = folder / f"matmul-{stages}.kpf"
        with kperfir.profile(path, device="simt"):
            constexprs: dict[str, Any] = {"BM": M, "BN": N, "BK": K, "G": 8, "P": "tf32", "AT": tl.float32}
            matmul[(1,)](a, b, c, *sizes, **constexprs, num_warps=4, num_stages=stages)
        timelines[stages] = kperfir.load(path)
    return timelines


@pytest.fixture(scope="module")
def attentions(folder: Path) -> dict[int, Timeline]:
    """Warp-specialised attention with 8 blocks of keys, by buffers."""
    workload = hopper.attention_ws(1, 512)
    timelines = {}
    for buffers in (1, 2):
        own = Workload(workload.case, (1, 1), workload.build, constexprs={"S": buffers})
        path = folder / f"attention-{buffers}.kpf"
        timelines[buffers] = run_profiled(own, path, simt_chip="h100", buffer_bytes=32 << 10).timeline
    return timelines


def table(timeline: Timeline, name: str) -> pd.DataFrame:
    return ANALYSES[name].run(timeline)


def test_every_analysis_has_rows_of_the_kernel(attentions: dict[int, Timeline]) -> None:
    for name in ANALYSES:
        rows = table(attentions[1], name)
        # Its roles wait for mbarriers; no flag is polled, which is what communication is about.
        assert set(rows["kernel"]) == (set() if name == "communication" else {"g_attention"}), name


def test_models_are_within_a_seventh_of_what_is_seen(
    matmuls: dict[int, Timeline], attentions: dict[int, Timeline]
) -> None:
    # One tile under way leaves loads exposed, three or two hide them.
    for timeline, slots, hidden in (
        (matmuls[2], 1, False), (matmuls[4], 3, True), (attentions[1], 1, False), (attentions[2], 2, True)
    ):  # fmt: skip
        (row,) = table(timeline, "swp").to_dict("records")
        assert row["slots"] == slots
        assert (row["delta_cycles"] >= 0) == hidden
        assert abs(row["error"]) < 1 / 7
    for timeline in attentions.values():
        (row,) = table(timeline, "ws").to_dict("records")
        assert (row["consumer"], row["producer"]) == ("default", "partition0")
        assert abs(row["error"]) < 0.06


def test_bubble_of_one_buffer_is_named(attentions: dict[int, Timeline]) -> None:
    bubbles = {buffers: table(timeline, "bubbles").set_index("role") for buffers, timeline in attentions.items()}
    starved, fed = bubbles[1].loc["default"], bubbles[2].loc["default"]
    assert starved["kind"] == "mbarrier_wait"
    assert starved["cause"].startswith("tma ")
    assert starved["iteration_share"] > 0.3 > 0.1 > fed["iteration_share"]


@pytest.mark.parametrize("buffers", [1, 2])
def test_critical_path_covers_the_cta_without_holes(attentions: dict[int, Timeline], buffers: int) -> None:
    timeline = attentions[buffers]
    steps = table(timeline, "path-steps")
    assert steps["start_cycles"].tolist()[1:] == steps["end_cycles"].tolist()[:-1]
    assert steps["end_cycles"].iloc[-1] == timeline.spans["end_cycles"].max()
    assert steps["start_cycles"].iloc[0] in set(timeline.spans.groupby("warp")["start_cycles"].min())
    path = table(timeline, "critical-path")
    flight = path.loc[path["kind"] == "tma in flight", "share"].sum()
    assert flight > (0.3 if buffers == 1 else 0.0)


def test_copies_hide_behind_work_where_there_are_buffers(matmuls: dict[int, Timeline]) -> None:
    waiting = {
        stages: table(timeline, "overlap").set_index("activity").loc["async_copy in flight", "waiting"]
        for stages, timeline in matmuls.items()
    }
    assert waiting[2] > 0.7
    assert waiting[4] < 0.4


def test_shares_add_up(matmuls: dict[int, Timeline], attentions: dict[int, Timeline]) -> None:
    for timeline in (matmuls[2], attentions[1]):
        roles = table(timeline, "roles")
        parts = roles[["work_share", "wait_share", "idle_share"]].sum(axis=1)
        assert parts.tolist() == pytest.approx([1.0] * len(roles))
        assert table(timeline, "heat")["heat"].sum() == pytest.approx(1)
        phases = table(timeline, "phases").groupby("role")["share"].sum()
        assert phases.tolist() == pytest.approx([1.0] * len(phases))

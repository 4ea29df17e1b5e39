"""Asynchronous work is tied to the wait that completes it: against what the event log says of cp.async.

The log knows nothing of kperfir: which commit a wait completes is computed here from the instructions themselves.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest

from kernels.cases import CASES, WORKLOADS
from kperfir.export import write_file
from support.compiling import attempt, instrumentation
from support.launch import layout_of, run_profiled
from support.trace_processor import open_trace

if TYPE_CHECKING:
    from pathlib import Path

    from support.launch import ProfiledRun

COPY = re.compile(r"\bcp\.async\.c[ag]\.")
COMMIT = re.compile(r"\bcp\.async\.commit_group")
WAIT = re.compile(r"\bcp\.async\.wait_group\s+(\d+)")


def completions(run: ProfiledRun) -> pd.DataFrame:
    """For each copy instruction that was waited for: cta, warp, and when it and the completing wait were issued."""
    log = run.launch.result.log
    texts = [text for text, *_ in run.launch.kernel.module.instructions]
    events = pd.DataFrame({name: log[name] for name in ("cta", "warp", "pc", "issue")}).sort_values(
        ["cta", "warp", "issue"], kind="stable"
    )
    found = []
    for (cta, warp), of_warp in events.groupby(["cta", "warp"]):
        groups: list[list[int]] = [[]]
        for pc, issue in zip(of_warp["pc"].tolist(), of_warp["issue"].tolist(), strict=True):
            text = texts[pc]
            if COPY.search(text):
                groups[-1].append(issue)
            elif COMMIT.search(text):
                groups.append([])
            elif wait := WAIT.search(text):
                complete = max(0, len(groups) - 1 - int(wait[1]))
                found += [(cta, warp, copy, issue) for group in groups[:complete] for copy in group]
                groups = groups[complete:]
    return pd.DataFrame(found, columns=["cta", "warp", "copy", "wait"])


def inside(times: np.ndarray, spans: pd.DataFrame) -> np.ndarray:
    """Row of the span around each time."""
    starts = spans["start_cycles"].to_numpy()
    place = np.searchsorted(starts, times, side="right") - 1
    assert (place >= 0).all()
    assert (times <= spans["end_cycles"].to_numpy()[place]).all()
    return spans.index.to_numpy()[place]


@pytest.mark.parametrize("strategy", ["saturate", "ring"])
@pytest.mark.parametrize("name", ["matmul_fp16", "fa_fwd_fp16", "g_async_copy"])
def test_copies_lead_to_the_waits_that_complete_them(name: str, strategy: str, tmp_path: Path):
    run = run_profiled(WORKLOADS[name], tmp_path / "out.kpf", log=True, strategy=strategy, buffer_bytes=64 << 10)
    flows, spans = run.timeline.flows, run.timeline.spans
    expected = completions(run)
    assert len(expected) > 0
    pairs = set()
    for (cta, warp), truth in expected.groupby(["cta", "warp"]):
        mine = spans[(spans["cta"] == cta) & (spans["warp"] == warp)]
        copies = inside(truth["copy"].to_numpy(), mine[mine["kind"] == "async_copy"])
        waits = inside(truth["wait"].to_numpy(), mine[mine["kind"] == "async_wait"])
        pairs |= set(zip(copies.tolist(), waits.tolist(), strict=True))
    found = set(zip(flows["from_span"].tolist(), flows["to_span"].tolist(), strict=True))
    assert found == pairs
    assert (flows["duration_cycles"] >= 0).all()
    assert (spans["end_cycles"].to_numpy()[flows["to_span"]] == flows["end_cycles"]).all()


def test_pipelined_copies_are_waited_for_in_a_later_iteration(tmp_path: Path):
    run = run_profiled(WORKLOADS["matmul_fp16"], tmp_path / "out.kpf", buffer_bytes=64 << 10)
    layout = layout_of(run)
    (flow,) = layout["flows"]
    kinds = {side: {layout["regions"][region]["kind"] for region, _ in flow[side]} for side in ("issue", "wait")}
    assert kinds == {"issue": {"async_copy"}, "wait": {"async_wait"}}
    flows, spans = run.timeline.flows, run.timeline.spans
    iteration = spans["iteration"].to_numpy()
    distance = iteration[flows["to_span"]] - iteration[flows["from_span"]]
    in_loop = (iteration[flows["from_span"]] >= 0) & (iteration[flows["to_span"]] >= 0)
    assert (distance[in_loop] >= 1).all()
    assert in_loop.any()


@pytest.mark.parametrize(("suffix", "arguments"), [("pftrace", "debug"), ("json", "args")])
def test_arrows_of_a_trace_are_the_flows(suffix: str, arguments: str, tmp_path: Path):
    timeline = run_profiled(WORKLOADS["matmul_fp16_small"], tmp_path / "out.kpf", buffer_bytes=64 << 10).timeline
    path = tmp_path / f"out.{suffix}"
    write_file([timeline], path)
    with open_trace(path) as trace:
        assert trace.problems() == []
        arrows = trace.sql(
            f"""
            select extract_arg(a.arg_set_id, '{arguments}.start_cycles') start_cycles,
              extract_arg(b.arg_set_id, '{arguments}.start_cycles') wait_cycles, a.category kind, b.category wait_kind
            from flow join slice a on a.id = flow.slice_out join slice b on b.id = flow.slice_in
            """
        )
    flows = timeline.flows
    assert len(flows) > 0
    expected = pd.DataFrame(
        {
            "start_cycles": flows["start_cycles"],
            "wait_cycles": timeline.spans["start_cycles"].to_numpy()[flows["to_span"]],
            "kind": "async_copy",
            "wait_kind": "async_wait",
        }
    )
    columns = list(expected.columns)
    pd.testing.assert_frame_equal(
        arrows.sort_values(columns, ignore_index=True)[columns],
        expected.sort_values(columns, ignore_index=True),
        check_dtype=False,
    )


LOADS, STORES = ("tma", "mbarrier_wait"), ("tma", "async_wait")
WGMMA, TCGEN05 = ("wgmma", "wgmma_wait"), ("tcgen05", "mbarrier_wait")
# (target, kernel, kinds that lead to kinds of waits)
COMPILED = [
    ("sm_90", "matmul_persistent_tma", {LOADS, WGMMA, STORES}),
    ("sm_90", "g_warp_specialize_wgmma", {LOADS, STORES}),
    ("sm_100", "g_warp_specialize_tcgen05", {LOADS, TCGEN05, STORES}),
    ("sm_100", "matmul_persistent_tma_ws", {LOADS, TCGEN05, STORES}),
]


@pytest.mark.parametrize(("target", "name", "expected"), COMPILED)
def test_tma_and_tensor_cores_are_tied_to_their_waits(target: str, name: str, expected: set[tuple[str, str]]):
    from kperfir.capture.layout_json import parse_layout

    with instrumentation():
        tried = attempt(CASES[name], target)
    layout = parse_layout(tried.layout)
    kinds = {
        (layout.regions[issue].kind, layout.regions[wait].kind)
        for flow in layout.flows
        for issue, _ in flow.issue
        for wait, _ in flow.wait
    }
    assert kinds == expected

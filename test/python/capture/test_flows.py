"""Pairs of issue and wait, on tables made by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pandas as pd

from kperfir.capture.flows import build_flows
from kperfir.capture.layout import Flow

REGIONS = ("kernel", "iteration", "issue", "wait")
NOTHING_LOST = pd.DataFrame(columns=["launch", "cta", "warp"])


def table(*rows: tuple[int, str, int, int]) -> pd.DataFrame:
    """Spans of one CTA from (warp, region, start, end), in order of warp and start."""
    frame = pd.DataFrame(rows, columns=["warp", "name", "start_cycles", "end_cycles"])
    frame = frame.sort_values(["warp", "start_cycles"], kind="stable", ignore_index=True)
    frame["region"] = [REGIONS.index(name) for name in frame["name"]]
    iterations = frame.index.to_series().where(frame["name"] == "iteration").groupby(frame["warp"]).ffill()
    parent = iterations.where(frame["name"] != "iteration").fillna(-1).astype("int64")
    return frame.assign(launch=0, cta=0, complete=True, kind=frame["name"], parent=parent)


def layout(flow: Flow, roles: tuple[int, ...] = (0, 1)) -> Any:
    regions = [SimpleNamespace(kind=name, parent=-1) for name in REGIONS]
    return SimpleNamespace(flows=(flow,), regions=regions, role_of_warp=lambda: list(roles))


def pairs(spans: pd.DataFrame, flow: Flow, lost: pd.DataFrame = NOTHING_LOST) -> list[tuple[int, int]]:
    flows = build_flows(spans, [layout(flow)], lost)
    return list(zip(flows["start_cycles"].tolist(), flows["end_cycles"].tolist(), strict=True))


def flow(via: str, *, slots: int = 1, scope: int = -1, issue: int = 1, wait: int = 1) -> Flow:
    return Flow(0, via, slots, scope, ((2, issue),), ((3, wait),))


def test_wait_completes_all_groups_but_the_last():
    spans = table((0, "issue", 0, 1), (0, "issue", 2, 3), (0, "wait", 4, 9), (0, "issue", 10, 11), (0, "wait", 12, 19))
    assert pairs(spans, flow("commit_group", wait=1)) == [(0, 9), (2, 19)]
    assert pairs(spans, flow("commit_group", wait=0)) == [(0, 9), (2, 9), (10, 19)]


def test_issue_without_a_commit_belongs_to_the_next_group():
    spans = table((0, "issue", 0, 1), (0, "kernel", 2, 3), (0, "wait", 4, 9))
    both = Flow(0, "commit_group", 1, -1, ((2, 0), (0, 1)), ((3, 0),))
    assert pairs(spans, both) == [(0, 9), (2, 9)]


def test_barrier_pairs_cross_warps_in_order():
    spans = table((1, "issue", 0, 1), (1, "issue", 5, 6), (0, "wait", 0, 4), (0, "wait", 4, 9))
    assert pairs(spans, flow("mbarrier")) == [(0, 4), (5, 9)]


def test_first_waits_that_had_nothing_to_wait_for_have_no_partner():
    # Two slots that are free at first: the third wait is for the first issue.
    spans = table((1, "issue", 10, 11), (1, "issue", 20, 21), (0, "wait", 0, 1), (0, "wait", 2, 3), (0, "wait", 4, 15))
    assert pairs(spans, flow("mbarrier", slots=2)) == [(10, 15)]


def test_barriers_of_an_iteration_are_counted_by_themselves():
    # The last issue of the first iteration was switched off, so nobody waits for it.
    first = [(0, "iteration", 0, 20), (0, "issue", 0, 1), (0, "issue", 2, 3), (0, "wait", 5, 9)]
    second = [(0, "iteration", 20, 40), (0, "issue", 20, 21), (0, "wait", 25, 29)]
    assert pairs(table(*first, *second), flow("mbarrier", scope=1)) == [(0, 9), (20, 29)]


def test_barriers_are_not_counted_where_the_beginning_is_lost():
    spans = table((1, "issue", 0, 1), (0, "wait", 0, 4))
    lost = pd.DataFrame({"launch": [0], "cta": [0], "warp": [1]})
    assert pairs(spans, flow("mbarrier"), lost) == []


def test_pairs_never_run_backwards():
    spans = table((1, "issue", 10, 11), (0, "wait", 0, 4))
    assert pairs(spans, flow("mbarrier", slots=1)) == []


def test_what_was_lost_in_one_launch_is_not_lost_in_another():
    one = table((1, "issue", 0, 1), (0, "wait", 0, 4))
    spans = pd.concat([one, one.assign(launch=1), one.assign(launch=2)], ignore_index=True)
    lost = pd.DataFrame({"launch": [1], "cta": [0], "warp": [1]})
    flows = build_flows(spans, [layout(flow("mbarrier"))] * 3, lost)
    assert flows["launch"].tolist() == [0, 2]

"""Strategy aggregate: what a kernel has summed up is what happened, cycle by cycle, by the device's own log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kernels.cases import HOPPER_WORKLOADS, WORKLOADS
from kperfir.capture.layout_json import GAP_KINDS
from support.launch import differing_arguments, layout_of, run_plain, run_profiled
from support.sums import device_sums, logged_sums

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

WORK = {"a100": WORKLOADS, "h100": WORKLOADS | HOPPER_WORKLOADS}
# Nested loops, early returns, branches in loops, whiles, calls; copies that are waited for; roles of warps.
KERNELS = (
    ("a100", "nested_loops"), ("a100", "early_return"), ("a100", "branchy_loop"), ("a100", "while_for_while"),
    ("a100", "noinline_tree"), ("a100", "matmul_fp16"), ("h100", "softmax_fp32"), ("h100", "g_warp_specialize_wgmma"),
)  # fmt: skip


def executions(table: pd.DataFrame) -> dict[tuple[object, ...], int]:
    """How often each region was executed; what lies between records is not summed up."""
    table = table[~table["kind"].isin(GAP_KINDS)]
    keys = table[["cta", "warp", "name", "kind"]].astype(object).itertuples(index=False, name=None)
    return dict(zip(keys, table["count"], strict=True))


@pytest.mark.parametrize(
    ("chip", "name", "buffer"),
    [*((*kernel, "shared") for kernel in KERNELS), *((*KERNELS[at], "global") for at in (0, 5, 7))],
)
def test_sums_equal_those_of_the_logged_clock(chip: str, name: str, buffer: str, tmp_path: Path):
    workload = WORK[chip][name]
    plain = run_plain(workload, chip=chip)
    run = run_profiled(workload, tmp_path / "x.kpf", log=True, simt_chip=chip, strategy="aggregate", buffer=buffer)
    workload.verify(run.arguments)
    assert differing_arguments(plain.arguments, run.arguments) == []
    assert layout_of(run)["buffer"] == buffer
    found = device_sums(run)
    assert found == logged_sums(run)
    assert len(found) > 3


@pytest.mark.parametrize(("chip", "name"), [("a100", "matmul_fp16"), ("h100", "g_warp_specialize_wgmma")])
def test_sums_are_those_of_the_records_where_neither_costs_anything(chip: str, name: str, tmp_path: Path):
    workload = WORK[chip][name]
    plain = run_plain(workload, chip=chip)
    options = {"log": True, "ghost": plain, "simt_chip": chip}
    run = run_profiled(workload, tmp_path / "sums.kpf", strategy="aggregate", **options)
    # In its own run, to the cycle: what records at the same clock reads say.
    assert device_sums(run) == logged_sums(run)
    # In that of the other strategy, where LLVM makes other code of the rest: as often, and nearly as long.
    whole = run_profiled(workload, tmp_path / "records.kpf", buffer="global", buffer_bytes=1 << 20, **options)
    found, expected = run.timeline.aggregates, whole.timeline.aggregates
    assert executions(found) == executions(expected)
    kernels = [table[table["kind"] == "kernel"]["total_cycles"].sum() for table in (found, expected)]
    assert kernels[0] == pytest.approx(kernels[1], rel=0.08)


@pytest.mark.parametrize("option", [{"ctas": "1::2"}, {"warps": "1,3"}, {"iterations": "1::2"}, {"granularity": "cta"}])
def test_sums_are_of_what_was_selected(option: dict[str, str], tmp_path: Path):
    workload = WORKLOADS["matmul_fp16"]
    records = run_profiled(workload, tmp_path / "records.kpf", buffer_bytes=128 << 10, **option)
    assert records.timeline.launches["dropped"].sum() == 0
    run = run_profiled(workload, tmp_path / "sums.kpf", log=True, strategy="aggregate", **option)
    workload.verify(run.arguments)
    assert executions(run.timeline.aggregates) == executions(records.timeline.aggregates)
    if "iterations" not in option:  # Those that are left out read the clock too.
        assert set(device_sums(run).items()) <= set(logged_sums(run).items())


def test_ctas_without_room_sum_nothing_up(tmp_path: Path):
    workload = WORKLOADS["softmax_fp32"]
    whole = run_profiled(workload, tmp_path / "whole.kpf", strategy="aggregate")
    stride = whole.compiled.metadata.profile_scratch_size
    run = run_profiled(workload, tmp_path / "part.kpf", strategy="aggregate", launch_bytes=2 * stride)
    workload.verify(run.arguments)
    assert set(run.timeline.aggregates["cta"]) == {0, 1}


def test_room_does_not_grow_with_trip_counts(tmp_path: Path):
    run = run_profiled(WORKLOADS["matmul_fp16"], tmp_path / "x.kpf", strategy="aggregate")
    layout = layout_of(run)
    assert layout["words_per_warp"] == 40 * len(layout["regions"])
    assert run.timeline.launches["dropped"].sum() == 0
    assert "flows" not in layout

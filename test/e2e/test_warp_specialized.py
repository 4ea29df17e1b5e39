"""Partitions of warp-specialised kernels record too: run on the SIMT device, against its event log.

The kernels of the corpus that are warp-specialised need sm_90; this one does with what sm_80 has. Its partitions run
in a loop, so that each warp's state passes through the header of its segment several times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from kernels.registry import Case
from kernels.workload import Arguments, Workload
from support.ground_truth import compare_stamps
from support.launch import run_plain, run_profiled

if TYPE_CHECKING:
    from pathlib import Path

ROWS, COLUMNS = 5, 128


@gluon.jit
def add_rows(x, y, round, rows, B: gl.constexpr):
    i = gl.arange(0, B, layout=gl.BlockedLayout([1], [32], [4], [0]))
    for row in range(rows - round):
        gl.store(y + (round * rows + row) * B + i, gl.load(x + row * B + i) + 1.0)


@gluon.jit
def double_rows(x, z, round, rows, B: gl.constexpr):
    i = gl.arange(0, B, layout=gl.BlockedLayout([4], [32], [1], [0]))
    for row in range(rows):
        gl.store(z + (round * rows + row) * B + i, gl.load(x + row * B + i) * 2.0)


@gluon.jit
def sum_rows(x, s, round, rows, B: gl.constexpr):
    i = gl.arange(0, B, layout=gl.BlockedLayout([2], [32], [2], [0]))
    total = gl.zeros([B], gl.float32, layout=gl.BlockedLayout([2], [32], [2], [0]))
    for row in range(rows):
        total += gl.load(x + row * B + i)
    gl.store(s + round * B + i, total)


@gluon.jit
def three_roles(x, y, z, s, rounds, rows, B: gl.constexpr):
    for round in range(rounds):
        gl.warp_specialize(
            [
                (add_rows, (x, y, round, rows, B)),
                (double_rows, (x, z, round, rows, B)),
                (sum_rows, (x, s, round, rows, B)),
            ],
            [1, 2],
        )


def build(generator: torch.Generator) -> Arguments:
    return {
        "x": torch.randn(ROWS, COLUMNS, generator=generator),
        "y": torch.zeros(3, ROWS, COLUMNS),
        "z": torch.zeros(3, ROWS, COLUMNS),
        "s": torch.zeros(3, COLUMNS),
        "rounds": 3,
        "rows": ROWS,
    }


def reference(before: Arguments) -> dict[str, torch.Tensor]:
    x = before["x"]
    y = torch.zeros(3, ROWS, COLUMNS)
    for round in range(3):
        y[round, : ROWS - round] = (x + 1)[: ROWS - round]
    return {"y": y, "z": (2 * x).expand(3, -1, -1), "s": x.sum(0).expand(3, -1)}


CASE = Case("three_roles", three_roles, ("*fp32", "*fp32", "*fp32", "*fp32", "i32", "i32"), {"B": COLUMNS}, archs=(80,))
WORKLOAD = Workload(CASE, (2,), build, reference)


@pytest.mark.parametrize("buffer", ["shared", "global"])
@pytest.mark.parametrize("strategy", ["saturate", "ring"])
def test_stamps_of_all_partitions_equal_the_logged_clock(strategy: str, buffer: str, tmp_path: Path):
    run = run_profiled(WORKLOAD, tmp_path / "out.kpf", log=True, strategy=strategy, buffer=buffer)
    WORKLOAD.verify(run.arguments)
    compared = compare_stamps(run, strategy=strategy)
    # Four warps of the kernel itself, one and two of the partitions, in two CTAs.
    assert compared.warps == 2 * 7
    assert compared.decoded == compared.executed
    roles = run.timeline.tracks.groupby("role", observed=True)["records"].sum()
    assert {"default", "partition0", "partition1"} <= set(roles.index)
    assert (roles[["default", "partition0", "partition1"]] > 0).all()
    # Each round of a partition is one execution of the kernel's region by its warps.
    spans = run.timeline.spans
    partition = spans[(spans["role"] == "partition0") & (spans["kind"] == "kernel")]
    assert len(partition) == 2 * 3


@pytest.mark.parametrize("buffer", ["shared", "global"])
@pytest.mark.parametrize("strategy", ["saturate", "ring"])
def test_drops_of_all_partitions_are_exact(strategy: str, buffer: str, tmp_path: Path):
    options = {"strategy": strategy, "buffer": buffer, "buffer_bytes": 8 * 4 * 16}
    run = run_profiled(WORKLOAD, tmp_path / "out.kpf", log=True, **options)
    compared = compare_stamps(run, strategy=strategy)
    assert compared.decoded > 0
    assert compared.dropped > 0


@pytest.mark.parametrize("recorded", [0, 1])
@pytest.mark.parametrize("buffer", ["shared", "global"])
@pytest.mark.parametrize("strategy", ["saturate", "ring"])
def test_partitions_of_a_cta_that_is_left_out_record_nothing(strategy: str, buffer: str, recorded: int, tmp_path: Path):
    options = {"strategy": strategy, "buffer": buffer}
    whole = run_profiled(WORKLOAD, tmp_path / "whole.kpf", **options)
    stride = whole.compiled.metadata.profile_scratch_size
    # The first is all that has room, or the second is asked for.
    selection = {"launch_bytes": stride} if recorded == 0 else {"ctas": "1:2"}
    part = run_profiled(WORKLOAD, tmp_path / "part.kpf", **options, **selection)
    WORKLOAD.verify(part.arguments)
    tracks = part.timeline.tracks
    assert set(tracks["cta"]) == {recorded}
    expected = whole.timeline.tracks.query(f"cta == {recorded}")
    assert list(tracks["records"]) == list(expected["records"])


def test_results_are_those_of_the_plain_kernel(tmp_path: Path):
    plain = run_plain(WORKLOAD)
    profiled = run_profiled(WORKLOAD, tmp_path / "out.kpf")
    for name in ("y", "z", "s"):
        assert torch.equal(plain.arguments[name], profiled.arguments[name])


def test_loops_of_roles_record_the_iterations_that_were_asked_for(tmp_path: Path):
    run = run_profiled(WORKLOAD, tmp_path / "out.kpf", log=True, iterations="1::2")
    WORKLOAD.verify(run.arguments)
    spans = run.timeline.spans
    loops = spans.loc[spans["kind"] == "iteration"].groupby(["role", "line"], observed=True)["iteration"]
    assert {"default", "partition0", "partition1"} == set(loops.first().index.get_level_values("role"))
    # Roles begin in each round: the loop around them is recorded in full.
    numbers = [set(found) for found in loops.unique()]
    assert numbers.count({0, 1, 2}) == 1
    assert numbers.count({1, 3}) == 3
    assert any("roles begin inside it" in note for note in run.timeline.notes)
    assert (run.timeline.tracks["dropped"] == 0).all()


@gluon.jit
def twice_specialised(x, y, z, s, rounds, rows, B: gl.constexpr):
    for round in range(rounds):
        gl.warp_specialize(
            [
                (add_rows, (x, y, round, rows, B)),
                (double_rows, (x, z, round, rows, B)),
            ],
            [1],
        )
        gl.warp_specialize(
            [
                (add_rows, (x, y, round, rows, B)),
                (sum_rows, (x, s, round, rows, B)),
            ],
            [2],
        )


def test_several_specialised_regions_share_warps_and_name_what_each_runs(tmp_path: Path):
    case = Case("twice_specialised", twice_specialised, CASE.signature, CASE.constexprs, archs=(80,))
    workload = Workload(case, (2,), build, reference)
    run = run_profiled(workload, tmp_path / "out.kpf", log=True, buffer_bytes=64 << 10)
    workload.verify(run.arguments)
    compared = compare_stamps(run)
    assert compared.decoded == compared.executed > 0
    roles = run.timeline.tracks.groupby("role", observed=True)["warp"].agg(set).to_dict()
    assert roles["default"] == {0, 1, 2, 3}
    assert any(role.startswith("partition") for role in roles)
    spans = run.timeline.spans
    lines = spans[(spans["warp"] >= 4) & (spans["kind"] == "load")]["line"].unique()
    assert len(lines) == 2  # Of `double_rows` and of `sum_rows`.

"""Of a loop, the iterations that were asked for are recorded, by all warps, and no others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

import kperfir
import kperfir.language as kl
from kernels.cases import WORKLOADS
from kperfir.config import resolve
from support.ground_truth import executed_stamps
from support.launch import layout_of, run_profiled

if TYPE_CHECKING:
    from pathlib import Path

RANGES = {"::2": slice(0, None, 2), "1:3": slice(1, 3), "1::2": slice(1, None, 2), "2:": slice(2, None)}


@pytest.mark.parametrize("buffer", ["shared", "global"])
@pytest.mark.parametrize("strategy", ["saturate", "ring"])
@pytest.mark.parametrize("asked", RANGES)
def test_stamps_of_other_iterations_are_left_out(asked: str, strategy: str, buffer: str, tmp_path: Path):
    workload = WORKLOADS["matmul_fp16"]
    options = {"strategy": strategy, "buffer": buffer, "buffer_bytes": 64 << 10}
    run = run_profiled(workload, tmp_path / "out.kpf", log=True, iterations=asked, **options)
    workload.verify(run.arguments)
    layout = layout_of(run)
    assert layout["version"] >= 3
    assert not layout.get("flows")

    # Clocks are read all the same: the n-th read of one in the loop is of iteration n.
    executed = executed_stamps(run.launch)
    number = executed.groupby(["cta", "warp", "pc"]).cumcount()
    trips = number.max() + 1
    in_loop = executed.groupby(["cta", "warp", "pc"])["pc"].transform("size") == trips
    wanted = range(trips)[RANGES[asked]]
    assert 0 < len(wanted) < trips
    kept = executed[~in_loop | number.isin(wanted)]
    stamps = run.timeline.stamps
    assert set(zip(stamps["cta"], stamps["warp"], strict=True)) == set(zip(kept["cta"], kept["warp"], strict=True))
    for key, found in stamps.groupby(["cta", "warp"]):
        truth = kept[(kept["cta"] == key[0]) & (kept["warp"] == key[1])]
        np.testing.assert_array_equal(found["clock"].to_numpy(), truth["issue"].to_numpy())

    tracks = run.timeline.tracks
    assert (tracks["dropped"] == 0).all()
    assert tracks["records"].sum() == len(kept)
    iterations = run.timeline.spans[run.timeline.spans["kind"] == "iteration"]
    assert (iterations.groupby(["cta", "warp"])["iteration"].agg(list).map(lambda found: found == list(wanted))).all()
    # It ends where it does, not where the next recorded one begins.
    last = kept[in_loop.loc[kept.index]].groupby(["cta", "warp", number.loc[kept.index]])["issue"].max()
    assert (iterations["end_cycles"].to_numpy() == last.to_numpy()).all()
    said = f"recorded are iterations {resolve({}, iterations=asked).iterations};"
    assert any(said in note for note in run.timeline.notes)


@triton.jit
def marked(out, rows, begin, COLUMNS: tl.constexpr):
    for i in range(begin, begin + rows):
        kl.mark("row", i - begin)
        for j in range(0, 3 * COLUMNS, 3):
            kl.mark("column", j // 3)
            if (i + j) % 2 == 0:
                kl.mark("even", j // 3)
        kl.mark("behind", i - begin)
    tl.store(out + tl.program_id(0), rows)


@pytest.mark.parametrize("strategy", ["saturate", "ring"])
@pytest.mark.parametrize("asked", RANGES)
def test_inner_loops_are_recorded_in_recorded_iterations(asked: str, strategy: str, tmp_path: Path):
    rows, columns = 5, 7
    out = torch.zeros(2, dtype=torch.int32)
    with kperfir.profile(
        tmp_path / "out.kpf", device="simt", iterations=asked, strategy=strategy, buffer_bytes=64 << 10
    ):
        marked[(2,)](out, rows, 10, COLUMNS=columns, num_warps=4)
    assert out.tolist() == [rows, rows]
    expected: list[tuple[str, int]] = []
    for i in range(rows)[RANGES[asked]]:
        expected.append(("row", i))
        for j in range(columns)[RANGES[asked]]:
            expected.append(("column", j))
            if (10 + i + 3 * j) % 2 == 0:
                expected.append(("even", j))
        expected.append(("behind", i))
    marks = kperfir.load(tmp_path / "out.kpf").marks
    assert len(marks.groupby(["cta", "warp"])) == 8
    for _, found in marks.groupby(["cta", "warp"]):
        assert list(zip(found["name"].astype(str), found["value"], strict=True)) == expected
        assert (found["iteration"] == found["value"]).all()

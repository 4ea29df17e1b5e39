"""Where records are held changes nothing about them: in global memory, and with CTAs left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kernels.cases import CASES, WORKLOADS
from kperfir.capture.layout_json import parse_layout
from support.compiling import attempt, instrumentation
from support.ground_truth import compare_stamps
from support.launch import differing_arguments, layout_of, run_plain, run_profiled

if TYPE_CHECKING:
    from pathlib import Path

KERNELS = ("matmul_fp16", "softmax_fp32", "nested_loops", "early_return", "branchy_loop")


@pytest.mark.parametrize("strategy", ["saturate", "ring"])
@pytest.mark.parametrize("name", KERNELS)
def test_stamps_in_global_memory_equal_the_logged_clock(name: str, strategy: str, tmp_path: Path):
    workload = WORKLOADS[name]
    run = run_profiled(
        workload, tmp_path / "out.kpf", log=True, strategy=strategy, buffer="global", buffer_bytes=64 << 10
    )
    workload.verify(run.arguments)
    compared = compare_stamps(run, strategy=strategy)
    assert compared.decoded == compared.executed > 0


@pytest.mark.parametrize("buffer", ["shared", "global"])
def test_layout_says_what_records_take_of_shared_memory(buffer: str):
    plain = attempt(CASES["matmul_fp16"], "sm_80")
    with instrumentation(buffer=buffer):
        recorded = attempt(CASES["matmul_fp16"], "sm_80")
    own, both = (each.compiled.metadata.shared for each in (plain, recorded))
    layout = parse_layout(recorded.layout)
    assert layout.buffer == buffer
    assert both == -(-own // 16) * 16 + layout.shared_bytes


# Marks of one and two words, values of which the last is padding; branches and early returns.
BATCHED = ("matmul_fp16", "nested_loops", "early_return", "branchy_loop", "fa_fwd_fp16")


@pytest.mark.parametrize("batch", [2, 4])
@pytest.mark.parametrize("buffer", ["shared", "global"])
@pytest.mark.parametrize("strategy", ["saturate", "ring"])
@pytest.mark.parametrize("name", BATCHED)
def test_stamps_that_are_stored_together_equal_the_logged_clock(
    name: str, strategy: str, buffer: str, batch: int, tmp_path: Path
):
    workload = WORKLOADS[name]
    options = {"strategy": strategy, "buffer": buffer, "batch": batch}
    run = run_profiled(workload, tmp_path / "out.kpf", log=True, buffer_bytes=64 << 10, **options)
    workload.verify(run.arguments)
    compared = compare_stamps(run, strategy=strategy)
    assert compared.decoded == compared.executed > 0
    assert layout_of(run)["frame_align"] == batch


# What is asked for, and which of so many CTAs or warps that is.
CTAS = {"::3": slice(0, None, 3), "1:3": slice(1, 3), "1:": slice(1, None)}
WARPS = {
    ("warps", "1,3"): {1, 3},
    ("granularity", "warp-group"): {0, 4},
    ("granularity", "cta"): {0},
}


@pytest.mark.parametrize("buffer", ["shared", "global"])
@pytest.mark.parametrize("ctas", CTAS)
def test_ctas_that_were_asked_for_are_recorded(ctas: str, buffer: str, tmp_path: Path):
    workload = WORKLOADS["softmax_fp32"]
    run = run_profiled(workload, tmp_path / "out.kpf", log=True, buffer=buffer, ctas=ctas)
    workload.verify(run.arguments)
    launch = run.timeline.launches.iloc[0]
    wanted = list(range(int(launch["ctas_total"])))[CTAS[ctas]]
    assert 0 < len(wanted) < launch["ctas_total"]
    assert sorted(run.timeline.tracks["cta"].unique()) == wanted
    assert launch["ctas_recorded"] == len(wanted)
    assert (run.timeline.tracks["dropped"] == 0).all()


@pytest.mark.parametrize("buffer", ["shared", "global"])
@pytest.mark.parametrize("option", WARPS)
def test_warps_that_were_asked_for_are_recorded(option: tuple[str, str], buffer: str, tmp_path: Path):
    workload = WORKLOADS["matmul_fp16"]
    whole = run_profiled(workload, tmp_path / "whole.kpf", log=True, buffer=buffer, buffer_bytes=64 << 10)
    part = run_profiled(
        workload, tmp_path / "part.kpf", log=True, buffer=buffer, buffer_bytes=64 << 10, **dict([option])
    )
    workload.verify(part.arguments)
    tracks = part.timeline.tracks
    assert set(tracks[tracks["records"] > 0]["warp"]) == WARPS[option]
    assert (tracks["dropped"] == 0).all()
    expected = whole.timeline.tracks.set_index(["cta", "warp"])["records"]
    found = tracks[tracks["records"] > 0].set_index(["cta", "warp"])["records"]
    assert (found == expected[found.index]).all()


# Of 5 CTAs: those asked for, how many fit, which record, and how many of those asked for have no room.
ROOM = {
    ("::", 3): (range(0, 2), 3),
    ("::", 1): (range(0, 1), 4),
    ("1:", 2): (range(1, 3), 2),
    ("1::2", 3): (range(1, 3, 2), 1),
    ("::3", 4): (range(0, 4, 3), 0),
}


@pytest.mark.parametrize("buffer", ["shared", "global"])
@pytest.mark.parametrize("case", ROOM)
def test_ctas_without_room_write_nothing(case: tuple[str, int], buffer: str, tmp_path: Path):
    workload, (ctas, fitting) = WORKLOADS["softmax_fp32"], case
    whole = run_profiled(workload, tmp_path / "whole.kpf", buffer=buffer)
    stride = whole.compiled.metadata.profile_scratch_size
    run = run_profiled(
        workload, tmp_path / "part.kpf", log=True, buffer=buffer, ctas=ctas, launch_bytes=fitting * stride
    )
    workload.verify(run.arguments)
    recorded, left_out = ROOM[case]
    assert sorted(run.timeline.tracks["cta"].unique()) == list(recorded)
    said = [note for note in run.timeline.notes if "had no room (raise TRITON_KPERF_LAUNCH_BYTES)" in note]
    assert [f"; {left_out} had no room" in note for note in said] == [True] * bool(left_out)


def test_sms_that_were_asked_for_are_recorded(tmp_path: Path):
    run = run_profiled(WORKLOADS["softmax_fp32"], tmp_path / "out.kpf", sms="1:3")
    assert set(run.timeline.tracks["sm"]) == {1, 2}


# A kernel of whose CTAs fewer would share an SM, and one whose registers let no more on it anyway.
@pytest.mark.parametrize(("name", "buffer"), [("embedding_bwd_f16", "global"), ("matmul_fp16", "shared")])
def test_records_do_not_keep_ctas_from_sharing_an_sm(name: str, buffer: str, tmp_path: Path):
    workload = WORKLOADS[name]
    plain = run_plain(workload)
    run = run_profiled(workload, tmp_path / "auto.kpf", log=True)
    workload.verify(run.arguments)
    assert layout_of(run)["buffer"] == buffer
    assert run.launch.result.occupancy == plain.launch.result.occupancy
    compared = compare_stamps(run)
    assert compared.decoded == compared.executed > 0
    assert differing_arguments(plain.arguments, run.arguments) == []
    inside = run_profiled(workload, tmp_path / "inside.kpf", buffer="shared")
    assert layout_of(inside)["buffer"] == "shared"
    assert (inside.launch.result.occupancy < plain.launch.result.occupancy) == (buffer == "global")


@pytest.mark.parametrize("strategy", ["saturate", "ring"])
@pytest.mark.parametrize(("name", "room"), [("nested_loops", 1024), ("matmul_fp16", 2048)])
def test_second_pass_has_room_for_what_the_first_one_counted(name: str, room: int, strategy: str, tmp_path: Path):
    workload = WORKLOADS[name]
    first = run_profiled(workload, tmp_path / "first.kpf", strategy=strategy, buffer_bytes=room)
    second = run_profiled(workload, tmp_path / "second.kpf", log=True, strategy=strategy, buffer_bytes=str(first.path))
    workload.verify(second.arguments)
    assert first.timeline.launches["dropped"].sum() > 0
    compared = compare_stamps(second, strategy=strategy)
    assert compared.decoded == compared.executed == first.timeline.tracks["records"].sum()
    # And not for much more than a frame for each, which takes four words.
    used = second.timeline.tracks["records"].max()
    assert used < layout_of(second)["words_per_warp"] < 5 * used

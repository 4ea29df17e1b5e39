"""Timeline: columns as docs/contracts.md, section 5, says; content equal to what was executed."""

from __future__ import annotations

import itertools
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import kperfir
from kperfir.errors import CaptureError, UsageError
from support.synthetic import CLOCK_HZ, CaptureShape, matmul_plan, write_capture, write_matmul_capture

if TYPE_CHECKING:
    from support.programs import CtaRun

SPAN_DTYPES = {
    "launch": "int32", "kernel": "category", "cta": "int32", "cta_x": "int32", "cta_y": "int32", "cta_z": "int32",
    "sm": "int32", "warp": "int32", "role": "category", "region": "int32", "name": "category", "kind": "category",
    "file": "category", "line": "int32", "depth": "int16", "parent": "int64", "iteration": "int64",
    "start_cycles": "int64", "end_cycles": "int64", "duration_cycles": "int64", "start_ns": "float64",
    "duration_ns": "float64", "complete": "bool",
}  # fmt: skip
LAUNCH_COLUMNS = [
    "launch", "kernel", "grid_x", "grid_y", "grid_z", "ctas_total", "ctas_recorded", "simulated", "chip", "cycles",
    "clock_hz", "ns_uncertainty", "dropped",
]  # fmt: skip
RING = CaptureShape(strategy="ring", words_per_warp=48, iterations=20, launches=2, specialised=True)


def capture(tmp_path: Path, shape: CaptureShape) -> tuple[kperfir.Timeline, list[list[CtaRun]]]:
    path = tmp_path / "x.kpf"
    runs = write_matmul_capture(path, shape)
    return kperfir.load(path), runs


@pytest.mark.parametrize("shape", [CaptureShape(), RING, CaptureShape(launches=0)], ids=["saturate", "ring", "empty"])
def test_tables_have_the_columns_of_the_contract(tmp_path: Path, shape: CaptureShape) -> None:
    timeline, _ = capture(tmp_path, shape)
    assert {name: str(dtype) for name, dtype in timeline.spans.dtypes.items()} == SPAN_DTYPES
    assert list(timeline.spans) == list(SPAN_DTYPES)
    assert list(timeline.tracks) == ["launch", "cta", "sm", "warp", "role", "stamps", "records", "dropped", "laps"]
    assert list(timeline.launches)[: len(LAUNCH_COLUMNS)] == LAUNCH_COLUMNS
    assert list(timeline.stamps) == ["launch", "cta", "sm", "warp", "frame", "slot", "clock_raw", "clock"]
    assert str(timeline.stamps["clock_raw"].dtype) == "uint32"
    assert len(timeline.launches) == shape.launches
    assert (len(timeline.summary()) > 0) == (shape.launches > 0)


@pytest.mark.parametrize("shape", [CaptureShape(launches=2, ctas=5), RING], ids=["saturate", "ring"])
def test_tables_equal_what_was_executed(tmp_path: Path, shape: CaptureShape) -> None:
    timeline, runs = capture(tmp_path, shape)
    spans, stamps = timeline.spans, timeline.stamps
    warps = [
        (launch, cta, warp, truth)
        for launch, ctas in enumerate(runs)
        for cta, run in enumerate(ctas)
        for warp, truth in enumerate(run.warps)
    ]
    assert list(timeline.tracks[["launch", "cta", "warp"]].itertuples(index=False, name=None)) == [w[:3] for w in warps]
    for (launch, cta, warp, truth), track in zip(warps, timeline.tracks.itertuples(), strict=True):
        assert track.records == len(truth.stamps)
        assert track.dropped == track.records - track.stamps
        place = dict(launch=launch, cta=cta, warp=warp)
        mine = stamps[np.logical_and.reduce([stamps[key] == value for key, value in place.items()])]
        kept = truth.stamps[-track.stamps :]
        assert list(mine[["frame", "slot", "clock"]].itertuples(index=False, name=None)) == kept
        assert (mine["clock_raw"] == (mine["clock"] & 0xFFFFFFFF)).all()
        mine = spans[np.logical_and.reduce([spans[key] == value for key, value in place.items()])]
        begun = {(s.region, s.start, s.end) for s in truth.spans}
        complete = mine[mine["complete"]]
        assert set(complete[["region", "start_cycles", "end_cycles"]].itertuples(index=False, name=None)) <= begun
        assert track.dropped or len(complete) == len(truth.spans)
        assert (complete["cta_x"] == cta).all()
        assert (complete["sm"] == runs[launch][cta].header.sm).all()


@pytest.mark.parametrize("shape", [CaptureShape(launches=3), RING], ids=["saturate", "ring"])
def test_spans_are_sorted_and_parents_enclose(tmp_path: Path, shape: CaptureShape) -> None:
    spans = capture(tmp_path, shape)[0].spans
    keys = ["launch", "cta", "warp", "start_cycles", "depth"]
    assert spans[keys].equals(spans.sort_values(keys, kind="stable")[keys])
    child = spans[spans["parent"] >= 0]
    parent = spans.loc[child["parent"]]
    assert (child.index > child["parent"]).all()
    for key in ("launch", "cta", "warp"):
        assert (child[key].to_numpy() == parent[key].to_numpy()).all()
    assert (child["depth"].to_numpy() == parent["depth"].to_numpy() + 1).all()
    assert (child["start_cycles"].to_numpy() >= parent["start_cycles"].to_numpy()).all()
    assert (child["end_cycles"].to_numpy() <= parent["end_cycles"].to_numpy()).all()
    assert (spans.loc[spans["parent"] < 0, "depth"] == 0).all()
    assert (spans["duration_cycles"] == spans["end_cycles"] - spans["start_cycles"]).all()


def test_spans_that_start_together_are_ordered_by_depth(tmp_path: Path) -> None:
    """Regions without length: two stamps in one cycle. The decoder's order is that of opening."""
    from kperfir.capture.reference import CtaHeader, ReferenceWarp, encode_cta
    from support.programs import Loop, Plan, Region, Role, plan_program
    from support.synthetic import CaptureWriter, LaunchInfo, ProcessInfo

    inner = [Region("load", []), Region("dot", [])]
    plan: Plan = plan_program([Role("default", 1, [Region("kernel", [Loop(inner), Region("store", [])])])])
    layout = plan.layout(strategy="saturate", words_per_warp=64)
    warp = ReferenceWarp(layout)
    for frame in (0, 1, 1, 2):
        warp.frame(frame, [500] * len(plan.frames[frame]))
    data = encode_cta(layout, CtaHeader(start_clock=490, end_clock=510), [warp])
    with CaptureWriter(tmp_path / "x.kpf", ProcessInfo.of_this_process(device="d", simulated=True)) as writer:
        writer.add_launch(writer.add_kernel(layout.text), LaunchInfo((1, 1, 1)), data)
    spans = kperfir.load(tmp_path / "x.kpf").spans
    assert spans["depth"].is_monotonic_increasing
    assert spans["depth"].tolist() == [0, 1, 1, 2, 2, 3, 3, 3, 3]
    assert (spans["depth"].to_numpy()[spans["parent"][1:]] == spans["depth"].to_numpy()[1:] - 1).all()


def test_iterations_are_numbered_within_their_loop(tmp_path: Path) -> None:
    spans = capture(tmp_path, CaptureShape(iterations=5))[0].spans
    one = spans[(spans["cta"] == 0) & (spans["warp"] == 0)]
    assert one.loc[one["kind"] == "iteration", "iteration"].tolist() == [0, 1, 2, 3, 4]
    assert one.loc[one["kind"] == "dot", "iteration"].tolist() == [0, 1, 2, 3, 4]
    assert (one.loc[one["depth"] <= 1, "iteration"] == -1).all()


def test_ns_follow_cycles_and_align_sms(tmp_path: Path) -> None:
    timeline, runs = capture(tmp_path, CaptureShape(ctas=8, launches=2, simulated=False))
    spans = timeline.spans
    assert timeline.launches["clock_hz"].to_numpy() == pytest.approx(CLOCK_HZ, rel=1e-3)
    assert (timeline.launches["ns_uncertainty"] < 3).all()
    assert spans["duration_ns"].to_numpy() == pytest.approx(spans["duration_cycles"] * 1e9 / CLOCK_HZ, rel=1e-3)
    for launch, ctas in enumerate(runs):
        origin = min(run.header.start_ns for run in ctas)
        for cta, run in enumerate(ctas):
            first = spans[(spans["launch"] == launch) & (spans["cta"] == cta)].iloc[0]
            expected = run.header.start_ns - origin
            assert first["start_ns"] == pytest.approx(expected, abs=12 + 4)  # Warps start up to 12 cycles apart.


def test_notes_tell_of_drops_simulation_and_uncertainty(tmp_path: Path) -> None:
    timeline, _ = capture(tmp_path, CaptureShape(words_per_warp=40, launches=2))
    notes = "\n".join(timeline.notes)
    dropped = timeline.tracks["dropped"].sum()
    assert dropped == timeline.launches["dropped"].sum() > 0
    assert "simulated: times come from" in notes
    per_launch = timeline.launches["dropped"].iloc[0]
    assert f"launch 0 of matmul_kernel: {per_launch} of 880 records were dropped, in 16 of 16 warps; the first" in notes
    assert "to within" in notes
    real, _ = capture(tmp_path, CaptureShape(simulated=False))
    assert not any("simulated" in note or "dropped" in note for note in real.notes)


def test_load_merges_files_and_numbers_launches(tmp_path: Path) -> None:
    paths = [tmp_path / "a.kpf", tmp_path / "b.kpf"]
    write_matmul_capture(paths[0], CaptureShape(launches=2))
    write_matmul_capture(paths[1], CaptureShape(launches=1, seed=5, warps=2))
    both = kperfir.load(paths)
    assert both.launches["launch"].tolist() == [0, 1, 2]
    assert both.launches["process_launch"].tolist() == [0, 1, 0]
    assert both.metadata["files"] == [str(path) for path in paths]
    assert len(both.metadata["processes"]) == 2
    parts = [kperfir.load(path).spans for path in paths]
    assert len(both.spans) == sum(map(len, parts))
    second = both.spans.iloc[len(parts[0]) :].reset_index(drop=True)
    assert (second["launch"] == 2).all()
    assert (second["parent"] - len(parts[0])).where(second["parent"] >= 0, -1).equals(parts[1]["parent"])
    for column in ("name", "kind", "role", "start_cycles", "iteration"):
        assert second[column].astype(object).equals(parts[1][column].astype(object))
    assert kperfir.load(*map(str, paths)).spans.equals(both.spans)


def test_load_reads_no_buffer_before_a_table_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kperfir.capture.reader import LaunchRecord

    timeline, _ = capture(tmp_path, CaptureShape())

    def fail(self: LaunchRecord) -> None:
        raise AssertionError("decoded too early")

    monkeypatch.setattr(LaunchRecord, "read", fail)
    assert timeline.metadata["device"] == "simt:a100"
    with pytest.raises(AssertionError):
        _ = timeline.spans


def test_load_asks_for_a_path() -> None:
    with pytest.raises(UsageError) as caught:
        kperfir.load()
    assert caught.value.exit_code == 2


def test_corrupt_buffer_in_a_whole_file_names_launch_and_word(tmp_path: Path) -> None:
    """CRCs are right: the buffer was overwritten before it was captured."""
    from support.synthetic import CaptureWriter, LaunchInfo, ProcessInfo, matmul_plan, run_launch

    shape = CaptureShape()
    layout = matmul_plan(shape).layout(strategy="saturate", words_per_warp=512)
    runs = run_launch(matmul_plan(shape), layout, shape, random.Random(0), 1000)
    words = np.frombuffer(b"".join(run.data for run in runs), np.uint32).copy()
    segment = layout.cta_bytes // 4 * 2 + 16 + 516
    words[segment + 4] = 0xBADC0DE  # The tag of the first frame.
    with CaptureWriter(tmp_path / "x.kpf", ProcessInfo.of_this_process(device="d", simulated=True)) as writer:
        writer.add_launch(writer.add_kernel(layout.text), LaunchInfo((4, 1, 1)), words.view(np.uint8))
    with pytest.raises(CaptureError, match=r"launch 0 of matmul_kernel, CTA 2, warp 1, word") as caught:
        _ = kperfir.load(tmp_path / "x.kpf").tracks
    assert caught.value.code == "corrupt-buffer"
    assert "0x0badc0de" in caught.value.found


def test_summary_agrees_with_pandas(tmp_path: Path) -> None:
    timeline, runs = capture(tmp_path, CaptureShape(launches=2, specialised=True))
    summary = timeline.summary().set_index("name")
    spans = timeline.spans
    busy = 0
    for run in itertools.chain(*runs):
        first = min(run.header.start_clock, *(warp.stamps[0][2] for warp in run.warps))
        busy += (max(warp.stamps[-1][2] for warp in run.warps) - first) * len(run.warps)
    for name, group in spans.groupby("name", observed=True):
        row, duration = summary.loc[str(name)], group["duration_cycles"]
        assert (row["count"], row["incomplete"]) == (len(group), 0)
        assert row["total_cycles"] == duration.sum()
        assert row["mean_cycles"] == pytest.approx(duration.mean())
        assert row["p50_cycles"] == pytest.approx(duration.median())
        assert row["p95_cycles"] == pytest.approx(duration.quantile(0.95))
        assert (row["min_cycles"], row["max_cycles"]) == (duration.min(), duration.max())
        assert row["share"] == pytest.approx(duration.sum() / busy)
        children = spans[spans["parent"].isin(group.index)]["duration_cycles"].sum()
        assert row["self_cycles"] == duration.sum() - children
        totals = group.groupby(["launch", "cta", "warp"])["duration_cycles"].sum()
        assert (row["warps"], row["warp_min_cycles"], row["warp_max_cycles"]) == (
            len(totals),
            totals.min(),
            totals.max(),
        )
        assert row["warp_spread"] == pytest.approx(totals.std(ddof=0) / totals.mean() if totals.mean() else 0.0)
    assert summary["self_share"].sum() <= 1.0
    assert summary["share"].max() < 1.0
    assert timeline.summary()["region"].is_monotonic_increasing


@pytest.mark.parametrize(
    ("strategy", "words", "anchored"), [("saturate", 512, False), ("saturate", 40, True), ("ring", 40, False)]
)
def test_a_cta_ends_with_its_last_stamp_unless_that_was_dropped(
    tmp_path: Path, strategy: str, words: int, anchored: bool
) -> None:
    """What comes behind it is recording's own."""
    from support.synthetic import CaptureWriter, LaunchInfo, ProcessInfo, matmul_plan, run_launch

    shape = CaptureShape(ctas=3)
    layout = matmul_plan(shape).layout(strategy=strategy, words_per_warp=words)
    runs = run_launch(matmul_plan(shape), layout, shape, random.Random(0), 1000)
    with CaptureWriter(tmp_path / "x.kpf", ProcessInfo.of_this_process(device="d", simulated=True)) as writer:
        data = b"".join(bytes(run.data) for run in runs)
        writer.add_launch(writer.add_kernel(layout.text), LaunchInfo((3, 1, 1)), data)
    timeline = kperfir.load(tmp_path / "x.kpf")
    assert (timeline.tracks["dropped"].sum() > 0) == (words == 40)
    last = [run.header.end_clock if anchored else max(warp.stamps[-1][2] for warp in run.warps) for run in runs]
    stored = timeline.stamps.groupby("cta")["clock"].min()
    first = [min(run.header.start_clock, int(stored[cta])) for cta, run in enumerate(runs)]
    warps = len(runs[0].warps)
    assert timeline.kernel_cycles == {"matmul_kernel": sum(b - a for a, b in zip(first, last, strict=True)) * warps}


def test_shares_are_of_the_warps_that_recorded(tmp_path: Path) -> None:
    """Segments of warps that the settings leave out stay 0; the time of such warps is nobody's."""
    from support.synthetic import CaptureWriter, LaunchInfo, ProcessInfo, matmul_plan, run_launch

    shape = CaptureShape(ctas=3)
    layout = matmul_plan(shape).layout(strategy="saturate", words_per_warp=512)
    runs = run_launch(matmul_plan(shape), layout, shape, random.Random(0), 1000)
    words = np.stack([np.frombuffer(run.data, np.uint32) for run in runs])
    words[:, 16 + 516 :] = 0  # Behind the header of the CTA and the segment of its first warp.
    with CaptureWriter(tmp_path / "x.kpf", ProcessInfo.of_this_process(device="d", simulated=True)) as writer:
        writer.add_launch(writer.add_kernel(layout.text), LaunchInfo((3, 1, 1)), words.reshape(-1).view(np.uint8))
    timeline = kperfir.load(tmp_path / "x.kpf")
    assert timeline.tracks["warp"].nunique() == 4
    busy = sum(run.warps[0].stamps[-1][2] - min(run.header.start_clock, run.warps[0].stamps[0][2]) for run in runs)
    kernel = timeline.summary().set_index("kind").loc["kernel"]
    assert kernel["share"] == pytest.approx(kernel["total_cycles"] / busy)
    assert kernel["share"] > 0.9
    assert "launch 0 of matmul_kernel: 1 of 4 warps of a CTA recorded; shares are of their time" in timeline.notes


def test_summary_leaves_incomplete_spans_out_of_the_distribution(tmp_path: Path) -> None:
    timeline, _ = capture(tmp_path, RING)
    summary = timeline.summary().set_index("kind")
    kernel = summary.loc["kernel"]
    assert kernel["incomplete"] > 0
    assert kernel["total_cycles"] > 0
    waits = timeline.spans[(timeline.spans["kind"] == "async_wait") & timeline.spans["complete"]]
    assert summary.loc["async_wait", "mean_cycles"] == pytest.approx(waits["duration_cycles"].mean())


def test_summary_keeps_kernels_apart(tmp_path: Path) -> None:
    from support.programs import Region, Role, Work, plan_program, run_cta
    from support.synthetic import CaptureWriter, LaunchInfo, ProcessInfo

    with CaptureWriter(tmp_path / "x.kpf", ProcessInfo.of_this_process(device="d", simulated=True)) as writer:
        for kernel in ("b", "a", "b"):
            plan = plan_program([Role("default", 1, [Region("kernel", [Region("load", [Work()], 7)])])], kernel)
            layout = plan.layout(strategy="saturate", words_per_warp=32 if kernel == "a" else 64)
            data = run_cta(plan, layout, random.Random(0)).data
            writer.add_launch(writer.add_kernel(layout.text), LaunchInfo((1, 1, 1)), data)
    summary = kperfir.load(tmp_path / "x.kpf").summary()
    rows = list(summary[["kernel", "name", "count"]].itertuples(index=False, name=None))
    assert rows == [("b", "b", 2), ("b", "load kernel.py:7", 2), ("a", "a", 1), ("a", "load kernel.py:7", 1)]


def test_timeline_imports_neither_triton_nor_torch(tmp_path: Path) -> None:
    write_matmul_capture(tmp_path / "x.kpf", CaptureShape())
    code = (
        "import sys, kperfir; t = kperfir.load(sys.argv[1]); t.spans, t.summary(), t.notes\n"
        "print([m for m in ('triton', 'torch') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "x.kpf")], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_to_perfetto_writes_what_the_export_writes(tmp_path: Path) -> None:
    from kperfir.export import write_file

    timeline, _ = capture(tmp_path, CaptureShape())
    timeline.to_perfetto(str(tmp_path / "a.pftrace"))
    write_file([timeline], tmp_path / "b.pftrace")
    assert (tmp_path / "a.pftrace").read_bytes() == (tmp_path / "b.pftrace").read_bytes()


def test_note_says_that_a_source_file_was_changed_after_the_capture(tmp_path: Path) -> None:
    source = tmp_path / "kernel.py"
    source.write_text("x = 1\n")
    plan = matmul_plan(CaptureShape())
    for region in plan.regions:
        region["file"] = str(source)
    write_capture(tmp_path / "x.kpf", plan, CaptureShape())
    os.utime(source, (0, 0))
    assert not any("changed" in note for note in kperfir.load(tmp_path / "x.kpf").notes)
    os.utime(source)
    os.utime(tmp_path / "x.kpf", (1, 1))
    (note,) = (note for note in kperfir.load(tmp_path / "x.kpf").notes if "changed" in note)
    assert note.startswith(f"{source} was changed on ")


def test_kernels_that_share_a_name_are_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where cells of a notebook define a kernel again; not where one kernel was compiled twice."""
    paths = [tmp_path / f"{name}.kpf" for name in ("first", "again", "other")]
    write_matmul_capture(paths[0], CaptureShape(launches=2))
    write_matmul_capture(paths[1], CaptureShape(words_per_warp=64))
    assert not [note for note in kperfir.load(paths[:2]).notes if "is the name of" in note]
    monkeypatch.setattr("support.programs.SOURCE", "/elsewhere/kernel.py")
    write_matmul_capture(paths[2], CaptureShape())
    (note,) = [note for note in kperfir.load(paths).notes if "is the name of" in note]
    assert note.startswith("matmul_kernel is the name of 2 kernels, which are reported together: ")
    assert note.endswith("/elsewhere/kernel.py:10")

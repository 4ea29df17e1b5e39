"""What is predicted of accesses to memory, against what the SIMT device counted from the addresses of their lanes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

import kperfir
from kernels.cases import HOPPER_WORKLOADS, WORKLOADS
from kperfir.analysis.accesses import access_patterns
from kperfir.compile.access_shapes import from_text
from kperfir.compile.accesses import predict
from kperfir.runtime.simt import SimtDriver
from support.access_kernels import picks, row_sums, shared_picks, stepped, turned, turned_padded
from support.access_truth import compare, compare_copies, copies_as_stores
from support.advice_kernels import odd_sum
from support.compiling import attempt, instrumentation
from support.launch import run_profiled

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from kernels.workload import Workload

# Regions of which all accesses are predicted, and those of them that are exact.
KERNELS = {
    "transpose_fp16@aligned": (3, 1),
    "rope_bf16": (6, 6),
    "reduce_rows": (4, 3),
    "topk_fp32": (4, 4),
    "embedding_fwd": (3, 3),
    "split_join_flip": (6, 6),
    "matmul_fp16": (13, 6),
    "matmul_tf32": (13, 6),
    "matmul_int8": (11, 4),
    "fa_fwd_fp16@even": (14, 5),
    "fa_bwd_dkdv": (24, 15),
    "g_mma_v2": (6, 6),
    "g_cp_mbarrier": (3, 3),
    "branchy_loop": (5, 5),
    # Atomics, and the scratch of sorts and scans.
    "embedding_bwd_f32": (4, 4),
    "layernorm_bwd_lock": (19, 11),
    "sort_i32": (5, 5),
    "cumsum_fp32": (3, 1),
}
HOPPER = {"fa_fwd_fp16@even": (12, 3), "cluster_2": (3, 2)}


@pytest.mark.parametrize("name", KERNELS)
def test_prediction_is_what_the_device_counts(name: str, tmp_path: Path) -> None:
    check(WORKLOADS[name], KERNELS[name], tmp_path)


@pytest.mark.parametrize("name", HOPPER)
def test_prediction_is_what_the_device_counts_on_hopper(name: str, tmp_path: Path) -> None:
    check(HOPPER_WORKLOADS[name], HOPPER[name], tmp_path, simt_chip="h100")


def test_shared_side_of_copies_is_what_stores_to_the_same_addresses_cost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = SimtDriver.load
    monkeypatch.setattr(
        SimtDriver, "load", lambda self, name, binary: load(self, name, copies_as_stores(binary.decode()).encode())
    )
    run = run_profiled(WORKLOADS["matmul_fp16"], tmp_path / "out.kpf", log=True, buffer_bytes=64 << 10)
    table = compare_copies(run)
    assert len(table) == 6
    assert table["exact"].all()
    assert (table["cost"] == table["ideal"]).all()
    assert (table["least"] == table["cost"]).all()
    assert (table["most"] == table["cost"]).all()


def check(workload: Workload, expected: tuple[int, int], folder: Path, **options: Any) -> None:
    """Each execution of an exact region costs what is predicted, of the others no more."""
    table = compare(run_profiled(workload, folder / "out.kpf", log=True, buffer_bytes=64 << 10, **options))
    exact = table[table["exact"]]
    assert (len(table), len(exact)) == expected, table.to_string()
    assert (table["most"] <= table["cost"]).all(), table.to_string()
    assert (exact["most"] == exact["cost"]).all(), exact.to_string()
    by_all = exact[exact["copies"] == 1]
    assert (by_all["least"] == by_all["cost"]).all(), by_all.to_string()
    by_one = exact[exact["copies"] > 1]
    assert (by_one["mean"] * by_one["copies"] == by_one["cost"]).all(), by_one.to_string()


def patterns(launch: Callable[[], None], folder: Path) -> pd.DataFrame:
    """The analysis of a launch, by the kind of region."""
    with kperfir.profile(folder / "out.kpf", device="simt", simt_threads=1):
        launch()
    timeline = kperfir.load(folder / "out.kpf")
    table = access_patterns(timeline.spans, timeline.accesses)
    return table.set_index(table["name"].str.split().str[0])


@pytest.mark.parametrize(("swizzled", "degree"), [(1, 32), (8, 4), (32, 1)])
def test_bank_conflicts_are_named_and_timed(swizzled: int, degree: int, tmp_path: Path) -> None:
    table = patterns(lambda: turned(swizzled), tmp_path)
    read, write = table.loc["local_load"], table.loc["local_store"]
    assert (read["instruction"], read["requests"], read["bound"]) == ("ld.shared.b32", 32, "exact")
    assert (read["cost"], read["degree"], read["lost_cycles"]) == (32 * degree, degree, 32 * (degree - 1))
    assert (write["cost"], write["degree"]) == (32, 1)
    assert read["mean_cycles"] > read["cost"]


def test_coalescing_is_named_and_timed(tmp_path: Path) -> None:
    down = patterns(lambda: row_sums(along=False), tmp_path).loc["load"]
    along = patterns(lambda: row_sums(along=True), tmp_path).loc["load"]
    assert (down["run_bytes"], along["run_bytes"]) == (4, 256)
    assert (down["bytes"], down["cost"], down["ideal"]) == (4, 32 * down["requests"], 4 * down["requests"])
    assert (along["bytes"], along["degree"]) == (16, 1)
    assert down["lost_bytes"] == 32 * 28 * down["requests"]
    # Rows lie apart by a run-time value: were it 0, there would be fewer.
    assert (down["bound"], along["bound"]) == ("at most", "at most")


def test_narrow_requests_for_the_same_sectors_are_seen(tmp_path: Path) -> None:
    load = patterns(lambda: odd_sum(False, count=1024), tmp_path).loc["load"].iloc[0]
    assert (load["bytes"], load["requests"], load["run_bytes"]) == (2, 8, 2)
    assert (load["cost"], load["touched"], load["lines"]) == (128, 16, 32)


# A thread holds four numbers in a row: two steps apart, each of its four loads meets a sector of its own.
@pytest.mark.parametrize(("step", "degree"), [(1, 1), (2, 8), (64, 8)])
def test_steps_cost_the_sectors_that_they_touch(step: int, degree: int, tmp_path: Path) -> None:
    load = patterns(lambda: stepped(step), tmp_path).loc["load"]
    assert (load["degree"], load["bound"]) == (degree, "exact")


@pytest.mark.parametrize(("padding", "degree"), [(1, 1), (2, 2), (32, 32)])
def test_conflicts_of_padded_rows_are_those_of_their_addresses(padding: int, degree: int, tmp_path: Path) -> None:
    table = patterns(lambda: turned_padded(padding), tmp_path)
    read = table.loc["local_load"]
    assert (read["bound"], read["degree"], table.loc["local_store"]["degree"]) == ("exact", degree, 1)


def test_addresses_from_memory_have_a_worst_case_and_say_why(tmp_path: Path) -> None:
    load = patterns(picks, tmp_path).loc["load"].iloc[1]
    assert (load["requests"], load["bound"], load["cost"]) == (1, "worst case", 32)
    assert "data" in load["why"]
    assert load["mean_cycles"] > 0


def test_places_in_shared_memory_from_memory_have_a_worst_case(tmp_path: Path) -> None:
    load = patterns(lambda: shared_picks(32), tmp_path).loc["local_load"]
    assert (load["requests"], load["bound"], load["cost"], load["ideal"]) == (8, "worst case", 256, 8)
    assert "data" in load["why"]


def test_every_access_of_another_target_says_that_it_is_not_predicted() -> None:
    with instrumentation():
        compiled = attempt(WORKLOADS["fa_fwd_fp16@even"].case, "gfx942").compiled
    metadata = compiled.metadata
    rows = predict(from_text(metadata.kperf_accesses), metadata.kperf_layout, compiled.asm.get("ptx", ""))["accesses"]
    assert len(rows) >= 5
    assert all("NVIDIA" in row["why"] and "gfx942" in row["why"] and "cost" not in row for row in rows)

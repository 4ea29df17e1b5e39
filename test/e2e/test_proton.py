"""Kernels with Proton's records where kperfir's would be: what side-by-side figures are made of."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import triton

from conftest import RunPython
from kernels.cases import CASES, HOPPER_WORKLOADS, WORKLOADS
from kperfir.compile.proton import proton_instrumentation
from kperfir.config import resolve
from support.compiling import attempt
from support.launch import differing_arguments, run_plain, run_profiled
from support.proton_reader import read_with_proton, run_proton


@pytest.mark.parametrize(
    ("name", "chip", "arch"),
    [("softmax_fp32", "a100", 80), ("matmul_fp16", "a100", 80), ("matmul_persistent_tma_ws", "h100", 90)],
)
def test_kernel_with_protons_records_computes_the_same(name: str, chip: str, arch: int) -> None:
    workload = (WORKLOADS | HOPPER_WORKLOADS)[name]
    plain = run_plain(workload, chip=chip)
    with proton_instrumentation(resolve({}), arch=arch):
        recorded = run_plain(workload, chip=chip)
    assert differing_arguments(plain.arguments, recorded.arguments) == []
    assert recorded.compiled.metadata.profile_scratch_size > 0
    assert recorded.cycles > plain.cycles
    again = run_plain(workload, chip=chip)
    assert again.compiled.metadata.profile_scratch_size == 0, "nothing of it is left"


@pytest.mark.parametrize(("target", "arch"), [("sm_90", 90), ("sm_100", 100)])
def test_every_region_is_a_scope_with_a_start_and_an_end(target: str, arch: int) -> None:
    with triton.knobs.compilation.scope(), proton_instrumentation(resolve({}), arch=arch) as records:
        triton.knobs.compilation.always_compile = True
        made = attempt(CASES["matmul_persistent_tma_ws"], target)
    assert made.error == ""
    text = made.compiled.asm["ttgir"]
    assert text.count("proton.record start") == text.count("proton.record end") == records.count / 2 > 10
    assert "kind iteration" not in text


def test_protons_own_decoder_reads_what_the_device_has_written(tmp_path: Path) -> None:
    workload = WORKLOADS["vadd_fp32"]
    regions = ("kernel", "load", "store")
    proton = run_proton(workload, chip="a100", arch=80, regions=regions)
    profiled = run_profiled(workload, tmp_path / "out.kpf", regions=regions)
    executions = profiled.timeline.spans["kind"].isin(regions).sum()
    assert proton.records == 2 * executions > 0
    once, thrice = (read_with_proton(proton, tmp_path, repeat=times) for times in (1, 3))
    assert (once.slices, thrice.slices) == (executions, 3 * executions)
    assert thrice.trace_bytes > 2 * once.trace_bytes > 0


def test_bundle_holds_protons_variant_and_runs_it(run_python: RunPython, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from kernels.cases import WORKLOADS as w\nw['matmul_fp16'].launch(w['matmul_fp16'].arguments())\n"
    )
    command = ("-c", "import sys; from kperfir.cli.main import main; sys.exit(main())", "bundle")
    kit = tmp_path / "kit"
    done = run_python(*command, "create", "-o", str(kit), "--targets", "sm_80", "--proton", script)
    assert done.returncode == 0, done.stderr
    ran = run_python(*command, "run", kit, "--device", "simt", "--repeat", "1")
    assert ran.returncode == 0, ran.stderr
    rows = json.loads((kit / "results" / "results.json").read_text())["rows"]
    assert [(row["kind"], row["status"], row["bits_differ"]) for row in rows] == [
        ("plain", "ok", 0), ("kperf", "ok", 0), ("proton", "ok", 0),
    ]  # fmt: skip
    plain, ours, theirs = (row["median_us"] for row in rows)
    assert plain < ours < theirs

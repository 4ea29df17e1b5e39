"""`kperfir audit` on real kernels: machine code of three targets, a capture, and what the report says of a failure."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from kernels.cases import CASES, WORKLOADS
from kperfir.audit.builds import Build, build_of, compile_with, disassemble
from kperfir.audit.findings import findings_path
from kperfir.audit.kernel import audit_kernel
from kperfir.audit.regions import Code, CodeAudit, audit_code
from kperfir.capture.layout_json import parse_layout
from kperfir.capture.reader import Capture
from kperfir.cli.main import main
from kperfir.code.ptx import parse_ptx
from kperfir.code.sass import parse_sass
from kperfir.config import Options, resolve
from kperfir.errors import CompileError
from support.compiling import attempt, instrumentation
from support.launch import run_profiled

if TYPE_CHECKING:
    from pathlib import Path


def audit(name: str, target: str, **options: Any) -> CodeAudit:
    with instrumentation(**options):
        build = build_of(attempt(CASES[name], target).compiled, instrumented=True)
    code = Code(parse_ptx(build.ptx, build.kernel), parse_sass(disassemble(build.cubin), build.kernel))
    layout = parse_layout(build.layout)
    found = audit_code(code, layout)
    assert found.records >= sum(len(frame.stamps) for frame in layout.frames)
    return found


@pytest.mark.parametrize(
    ("name", "target"), [("fa_fwd_fp16", "sm_80"), ("matmul_fp16", "sm_90"), ("matmul_fp16", "sm_100")]
)
def test_ptxas_leaves_what_is_measured_in_its_region(name: str, target: str):
    found = audit(name, target)
    assert not found.failed, [(region.name, region.left, region.entered) for region in found.failed]
    assert all(region.anchors for region in found.regions if region.kind in ("load", "store", "async_copy", "wgmma"))


def test_regions_of_warp_specialised_kernels_are_followed_through_the_branch_table():
    found = audit("matmul_persistent_tma_ws", "sm_100")
    assert not found.failed
    assert {"tma", "tcgen05"} <= {region.kind for region in found.regions if region.anchors}


def test_code_without_our_marks_is_not_taken_for_code_that_lost_its_records():
    with instrumentation():
        build = build_of(attempt(CASES["vadd_fp32"], "sm_80").compiled, instrumented=True)
    other = dataclasses.replace(build, ptx=re.sub(r"// kperf.*", "", build.ptx))
    with pytest.raises(CompileError, match="unmarked-code"):
        audit_kernel(other, lambda options: build)


def test_a_load_that_ptxas_moves_is_found():
    # The address of a matrix: an ordinary load, which ptxas takes past the clock read behind it.
    # Regions are asked for, so that they stay although registers are short.
    found = audit("grouped_gemm", "sm_80", regions=("auto", "user"))
    assert "load" in {region.kind for region in found.failed}
    assert all(region.verdict == "moved" for region in found.failed)


def test_a_capture_is_audited_and_the_report_warns(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "out.kpf"
    run_profiled(WORKLOADS["softmax_fp32"], path)
    assert main(["audit", str(path)]) == 0
    text = capsys.readouterr().out
    assert "without records" in text
    assert "hold what they are named after" in text
    assert main(["report", str(path), "--json"]) == 0
    assert not [note for note in json.loads(capsys.readouterr().out)["notes"] if "audit" in note]

    kept = json.loads(findings_path(path).read_text())
    (load,) = [region for region in kept["kernels"][0]["code"]["regions"] if region["kind"] == "load"]
    load.update(verdict="moved", left=[{"instruction": "@!P0 LDG.E R4, [R2.64]", "ptx": "ld.global", "ptx_line": 9}])
    findings_path(path).write_text(json.dumps(kept))
    assert main(["report", str(path), "--json"]) == 0
    (note,) = [note for note in json.loads(capsys.readouterr().out)["notes"] if "audit" in note]
    assert load["name"] in note
    assert "LDG.E left it" in note


def test_a_kernel_that_the_cache_no_longer_has_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / "out.kpf"
    run_profiled(WORKLOADS["vadd_fp32"], path)
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "empty"))
    assert main(["audit", str(path)]) == 1
    assert "not-in-cache" in capsys.readouterr().out
    assert not findings_path(path).exists()


def test_a_cheaper_setting_was_compiled_and_keeps_all_records():
    name, target = "dropout_philox", "sm_80"
    with instrumentation():
        build = build_of(attempt(CASES[name], target).compiled, instrumented=True)

    def compile(options: Options | None, /, maxnreg: int = 0) -> Build:
        case = CASES[name]
        bounded = dataclasses.replace(case, options={**case.options, "maxnreg": maxnreg}) if maxnreg else case
        return compile_with(options, lambda: attempt(bounded, target).compiled)

    audit = audit_kernel(build, compile, resolve({}))
    assert audit.after.ctas_per_sm < audit.before.ctas_per_sm
    assert audit.before.registers <= audit.step < audit.after.registers
    assert audit.cheaper is not None
    assert audit.cheaper.setting == f"maxnreg={audit.step} (an option of the launch)"
    assert audit.cheaper.footprint.ctas_per_sm == audit.before.ctas_per_sm
    assert audit.cheaper.note == ""


def test_settings_of_the_capture_are_what_cheaper_ones_are_derived_from(tmp_path: Path):
    path = tmp_path / "out.kpf"
    run_profiled(WORKLOADS["softmax_fp32"], path, regions="memory", batch=2)
    assert Capture.open(path).process["settings"] == {"TRITON_KPERF_REGIONS": "memory", "TRITON_KPERF_BATCH": "2"}

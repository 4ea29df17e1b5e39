"""Every sm_80 kernel runs to completion on the SIMT device, and computes what it must."""

from __future__ import annotations

import pytest

from kernels.cases import CASES, WORKLOADS
from support.launch import run_plain

LINES_PRINTED = 128


@pytest.mark.parametrize("name", WORKLOADS)
def test_kernel_matches_reference(name: str):
    workload = WORKLOADS[name]
    run = run_plain(workload)
    workload.verify(run.arguments)


def test_corpus_covers_sixty_sm80_kernels_of_triton_and_gluon():
    from kernels import control_flow, language

    written_here = {case.name for case in control_flow.CASES + language.CASES}
    ran = {workload.case.name for workload in WORKLOADS.values()} - written_here
    assert ran == {name for name, case in CASES.items() if 80 in case.archs} - written_here
    assert len(ran) == 60


def test_print_kernel_prints_one_line_per_thread(capfd: pytest.CaptureFixture[str]):
    run = run_plain(WORKLOADS["assert_print"])
    printed = [line for line in "".join(run.launch.result.printf).splitlines() if "v" in line]
    assert len(printed) == LINES_PRINTED
    expected = sorted(round(float(value), 4) for value in run.arguments["x"])
    assert sorted(round(float(line.split()[-1]), 4) for line in printed) == pytest.approx(expected, abs=2e-4)
    assert capfd.readouterr().out.count("\n") >= LINES_PRINTED

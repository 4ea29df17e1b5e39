"""The advisor finds faults of real kernels, says what to do, and is right about it: on the SIMT device.

The KPerfIR paper's story in two kernels: the bubble of a software-pipelined matmul, and that of a warp-specialised
flash attention whose buffers are handed back too late. More pairs are in `make bench`, section advice.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import kperfir
from kperfir.advice.advise import advise
from kperfir.advice.registry import RULES
from support.advice_pairs import PAIRS, attention, measure

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from subprocess import CompletedProcess

CHOSEN = (
    ("attention, 1 buffer", "h100"), ("attention, shared barrier", "h100"),
    ("row sums", "a100"), ("uneven blocks", "a100-small"),
)  # fmt: skip


def test_every_rule_has_a_pair_that_is_measured() -> None:
    assert {pair.rule for pair in PAIRS} == set(RULES)


@pytest.mark.parametrize(("name", "chip"), CHOSEN)
def test_change_achieves_what_was_expected(name: str, chip: str, tmp_path: Path) -> None:
    (pair,) = [pair for pair in PAIRS if (pair.name, pair.chip) == (name, chip)]
    measured = measure(pair, tmp_path)
    assert measured.achieved > 1.15
    assert abs(measured.error) < 0.15
    assert measured.achieved < measured.finding.bound * 1.05
    if pair.settings is not None:
        assert measured.finding.change.settings == pair.settings


def test_bubble_of_attention_is_named_and_goes_away(tmp_path: Path) -> None:
    findings = {}
    for split in (False, True):
        path = tmp_path / f"attention-{split}.kpf"
        with kperfir.profile(path, device="simt", simt_chip="h100", buffer_bytes=64 << 10):
            attention(1, split=split)
        findings[split] = {finding.rule: finding for finding in advise(kperfir.load(path)).findings}
    finding = findings[False]["split-barrier"]
    bubble = finding.places[0]
    assert (bubble.kind, bubble.share > 0.2) == ("mbarrier_wait", True)
    with open(bubble.file, encoding="utf-8") as source:  # noqa: PTH123 - a line of it is what counts.
        assert "mbarrier.wait(ready" in source.read().splitlines()[bubble.line - 1]
    assert "arrive" in finding.change.what
    assert "split-barrier" not in findings[True]
    assert "deepen-pipeline" not in findings[True]


SCRIPT = """
import torch
from kperfir.advice.registry import RULES
from support.advice_pairs import gemm
gemm(stages=2, k=512, ctas=1)
print("done")
"""


def test_whatif_finds_and_verifies_the_stage(tmp_path: Path, run_python: Callable[..., CompletedProcess[str]]) -> None:
    script = tmp_path / "gemm.py"
    script.write_text(SCRIPT, encoding="utf-8")
    done = run_python("-m", "kperfir", "whatif", "--json", script, TRITON_KPERF_DEVICE="simt")
    assert done.returncode == 0, done.stderr
    (outcome,) = json.loads(done.stdout)["outcomes"]
    assert (outcome["kernel"], outcome["rule"]) == ("matmul", "deepen-pipeline")
    assert outcome["settings"] == {"num_stages": 4}
    assert outcome["achieved"] > 1.4
    assert abs(outcome["error"]) < 0.15


def test_whatif_of_a_script_without_kernels_says_so(
    tmp_path: Path, run_python: Callable[..., CompletedProcess[str]]
) -> None:
    script = tmp_path / "nothing.py"
    script.write_text("print('no kernel')", encoding="utf-8")
    done = run_python("-m", "kperfir", "whatif", script, TRITON_KPERF_DEVICE="simt")
    assert done.returncode == 2
    assert "no-launch" in done.stderr


def test_whatif_of_a_script_that_fails_has_failed(
    tmp_path: Path, run_python: Callable[..., CompletedProcess[str]]
) -> None:
    script = tmp_path / "broken.py"
    script.write_text("raise SystemExit(7)", encoding="utf-8")
    done = run_python("-m", "kperfir", "whatif", "--set", "num_warps=4", script, TRITON_KPERF_DEVICE="simt")
    assert done.returncode == 1
    assert "exit code 7" in done.stderr
    assert "kperfir report" not in done.stderr


def test_whatif_of_runs_that_dropped_records_is_incomplete(
    tmp_path: Path, run_python: Callable[..., CompletedProcess[str]]
) -> None:
    script = tmp_path / "sums.py"
    script.write_text(_SUMS, encoding="utf-8")
    done = run_python(
        "-m", "kperfir", "whatif", "--json", "--set", "num_warps=2", script,
        TRITON_KPERF_DEVICE="simt", TRITON_KPERF_BUFFER_BYTES="2048",
    )  # fmt: skip
    assert done.returncode == 3, done.stderr
    (outcome,) = json.loads(done.stdout)["outcomes"]
    assert outcome["dropped"] > 0


_SUMS = """
import numpy as np
import triton
import triton.language as tl


@triton.jit
def sums(x, y, columns, BLOCK: tl.constexpr):
    total = tl.full([], 0.0, tl.float32)
    for start in range(0, columns, BLOCK):
        total += tl.sum(tl.load(x + start + tl.arange(0, BLOCK)), 0)
    tl.store(y, total)


y = np.zeros(1, np.float32)
sums[(1,)](np.ones(16384, np.float32), y, 16384, BLOCK=128)
"""

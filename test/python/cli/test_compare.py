"""`kperfir compare`: verdicts in text and JSON, and what the exit code says."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from support.synthetic import CaptureShape, write_matmul_capture

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Answer


@pytest.fixture
def longer(tmp_path: Path) -> Path:
    """The kernel of `whole` with twice the iterations."""
    path = tmp_path / "longer.kpf"
    write_matmul_capture(path, CaptureShape(launches=2, specialised=True, iterations=16))
    return path


def test_capture_is_the_same_as_itself(kperfir: Callable[..., Answer], whole: Path) -> None:
    answer = kperfir("compare", whole, whole, "--json")
    report = json.loads(answer.out)
    assert answer.code == 0
    assert (report["kperfir_compare"], report["threshold"]) == (1, 0.02)
    assert {row["verdict"] for row in report["rows"]} == {"same"}
    assert all(row["change"] == 0 for row in report["rows"])
    assert json.loads(kperfir("compare", whole, whole, "--json", "--changed").out)["rows"] == []


@pytest.mark.parametrize(
    ("options", "code"),
    [([], 4), (["--fail-on", "region"], 4), (["--fail-on", "never"], 0), (["--threshold", "500"], 0)],
)
def test_slower_kernel_is_exit_code_4(
    kperfir: Callable[..., Answer], whole: Path, longer: Path, options: list[str], code: int
) -> None:
    answer = kperfir("compare", whole, longer, *options)
    assert answer.code == code
    kernel = next(line for line in answer.out.splitlines() if line.startswith("matmul_kernel "))
    assert ("slower" in kernel) == ("--threshold" not in options)
    assert ("exit code 4" in answer.err) == (code == 4)
    assert "simulated" in answer.err


def test_faster_kernel_is_no_failure(kperfir: Callable[..., Answer], whole: Path, longer: Path) -> None:
    answer = kperfir("compare", longer, whole)
    assert answer.code == 0
    assert "faster" in answer.out
    # A loop that turns half as often: the turns of one launch, before and after.
    iteration = next(line for line in answer.out.splitlines() if "iteration" in line)
    assert "256 > 128" in iteration


def test_dropped_records_are_exit_code_3(kperfir: Callable[..., Answer], lossy: Path) -> None:
    assert kperfir("compare", lossy, lossy).code == 3


def test_kernel_pattern(kperfir: Callable[..., Answer], whole: Path) -> None:
    assert kperfir("compare", whole, whole, "--kernel", "matmul*").code == 0
    answer = kperfir("compare", whole, whole, "--kernel", "softmax*")
    assert answer.code == 2
    assert "expected: matmul_kernel" in answer.err

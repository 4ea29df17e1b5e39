"""`kperfir doctor`: a healthy installation passes; what is wrong is named with its fix."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kperfir.cli import doctor
from kperfir.cli.doctor import CHECKS, Finding
from kperfir.errors import PluginError
from support.synthetic import CaptureShape, write_matmul_capture

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Answer


def test_installation_is_healthy(kperfir: Callable[..., Answer]) -> None:
    answer = kperfir("doctor", "--json")
    checks = {check["check"]: check for check in json.loads(answer.out)["checks"]}
    assert {name: check["status"] for name, check in checks.items()} == dict.fromkeys(CHECKS, "ok")
    assert answer.code == 0


@pytest.fixture
def only(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Finding]], None]:
    return lambda check: monkeypatch.setattr(doctor, "CHECKS", {"it": check})


def test_failed_check_shows_its_fix_and_is_exit_code_1(
    kperfir: Callable[..., Answer], only: Callable[[Callable[[], Finding]], None]
) -> None:
    only(lambda: Finding("failed", "broken", "mend it"))
    answer = kperfir("doctor")
    assert answer.code == 1
    assert "broken" in answer.out
    assert "fix: mend it" in answer.out


def test_error_of_a_check_is_a_finding(
    kperfir: Callable[..., Answer], only: Callable[[Callable[[], Finding]], None]
) -> None:
    def refuse() -> Finding:
        raise PluginError("triton-not-audited", what="not audited", found="x", expected="y", fix="reinstall")

    only(refuse)
    answer = kperfir("doctor", "--json")
    (check,) = json.loads(answer.out)["checks"]
    assert check["status"] == "failed"
    assert check["detail"] == "not audited; found x; expected y"
    assert check["fix"] == "reinstall"


def test_child_that_dies_is_a_finding(
    kperfir: Callable[..., Answer], only: Callable[[Callable[[], Finding]], None]
) -> None:
    only(lambda: Finding("ok", doctor._child("-c", "import os; os.abort()")))
    answer = kperfir("doctor")
    assert answer.code == 1
    assert "killed by signal 6" in answer.out


def test_capture_without_a_launch_is_a_finding(
    kperfir: Callable[..., Answer],
    only: Callable[[Callable[[], Finding]], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def child(*arguments: str, **environment: str) -> str:
        write_matmul_capture(Path(arguments[-1]), CaptureShape(launches=0))
        return ""

    monkeypatch.setattr(doctor, "_child", child)
    only(doctor.check_simt)
    answer = kperfir("doctor")
    assert answer.code == 1
    assert "its timeline is empty" in answer.out


def test_unknown_variable_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_KPERF_KERNEL", "x")
    finding = doctor.check_environment()
    assert finding.status == "warning"
    assert "TRITON_KPERF_KERNELS" in finding.detail


def test_bad_value_is_a_failure(kperfir: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "CHECKS", {"environment": doctor.check_environment})
    monkeypatch.setenv("TRITON_KPERF_DEVICE", "tpu")
    answer = kperfir("doctor")
    assert answer.code == 1
    assert "TRITON_KPERF_DEVICE" in answer.out

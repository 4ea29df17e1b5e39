"""`kperfir run` hands the script its own arguments, and the session its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import kperfir.runtime.run

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from conftest import Answer
    from kperfir.config import Options


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []

    def run_script(argv: Sequence[str], options: Options, *, cuda_as_cpu: bool) -> int:
        made.append({"argv": argv, "options": options, "cuda_as_cpu": cuda_as_cpu})
        return 7

    monkeypatch.setattr(kperfir.runtime.run, "run_script", run_script)
    return made


def test_options_before_the_script_are_ours_and_those_after_are_not(
    kperfir: Callable[..., Answer], calls: list[dict[str, Any]]
) -> None:
    answer = kperfir(
        "run", "-o", "x.kpf", "--kernels", "a,b*", "--launches", 2, "train.py", "--steps", "3", "-o", "y", "--help"
    )
    (call,) = calls
    assert call["argv"] == ["train.py", "--steps", "3", "-o", "y", "--help"]
    assert (str(call["options"].out), call["options"].kernels, call["options"].launches) == ("x.kpf", ("a", "b*"), 2)
    assert not call["cuda_as_cpu"]
    assert answer.code == 7


def test_module_is_passed_on(kperfir: Callable[..., Answer], calls: list[dict[str, Any]]) -> None:
    kperfir("run", "--cuda-as-cpu", "-m", "package.train", "-x")
    (call,) = calls
    assert call["argv"] == ["-m", "package.train", "-x"]
    assert call["cuda_as_cpu"]


def test_environment_gives_what_is_not_an_argument(
    kperfir: Callable[..., Answer], calls: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITON_KPERF_KERNELS", "softmax*")
    kperfir("run", "train.py")
    assert calls[0]["options"].kernels == ("softmax*",)


def test_bad_setting_is_exit_code_2(kperfir: Callable[..., Answer], calls: list[dict[str, Any]]) -> None:
    answer = kperfir("run", "--device", "tpu", "train.py")
    assert answer.code == 2
    assert "expected: one of auto, simt, cuda, hip" in answer.err
    assert calls == []


def test_missing_script_is_exit_code_2(kperfir: Callable[..., Answer]) -> None:
    assert kperfir("run").code == 2
    answer = kperfir("run", "absent.py")
    assert answer.code == 2
    assert "found: absent.py" in answer.err

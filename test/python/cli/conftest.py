"""Captures and a way to call the command line in this process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from kperfir.cli.main import main
from support.synthetic import CaptureShape, write_matmul_capture

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str


@pytest.fixture
def kperfir(capsys: pytest.CaptureFixture[str]) -> Callable[..., Answer]:
    def run(*arguments: object) -> Answer:
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    return run


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two launches, two roles, nothing dropped."""
    path = tmp_path_factory.mktemp("captures") / "whole.kpf"
    write_matmul_capture(path, CaptureShape(launches=2, specialised=True))
    return path


@pytest.fixture(scope="session")
def lossy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture whose buffers were too small."""
    path = tmp_path_factory.mktemp("captures") / "lossy.kpf"
    write_matmul_capture(path, CaptureShape(words_per_warp=40))
    return path

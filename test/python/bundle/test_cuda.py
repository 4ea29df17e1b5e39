"""The CUDA driver by ctypes: calls reach a library that was compiled against the real cuda.h as they should."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.bundles import toy_bundle
from support.fake_cuda import build_fake_cuda

# `Run(folder, ...)` runs the bundle in `folder`; keywords are variables.
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with a libcuda.so.1 that has no GPU."""
    folder = tmp_path_factory.mktemp("cuda")
    build_fake_cuda(folder)
    return folder


@pytest.fixture
def run(driver: Path, tmp_path: Path) -> Run:
    def run(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        fake = {"LD_LIBRARY_PATH": str(driver), "FAKE_CUDA_LOG": str(tmp_path / "log"), "FAKE_CUDA_ARCH": "90"}
        return subprocess.run(
            [sys.executable, "-P", "-m", "kperfir.bundle", str(folder), *arguments],
            env=os.environ | fake | variables, capture_output=True, text=True, check=False,
        )  # fmt: skip

    return run


def rows_of(folder: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((folder / "results" / "results.json").read_text())["rows"]
    return rows


def log_of(folder: Path) -> list[str]:
    return (folder / "log").read_text().splitlines()


def test_launch_arrives_as_it_was_described(run: Run, tmp_path: Path) -> None:
    toy_bundle(tmp_path, shared_bytes=100_000, cluster=16, cooperative=True, dependent=True)
    done = run(tmp_path, "--repeat", "2", FAKE_CUDA_PARAMETERS="3")
    rows = rows_of(tmp_path)
    assert [(row["kind"], row["status"], row["error"]) for row in rows] == [("plain", "ok", ""), ("kperf", "ok", "")]
    assert done.returncode == 1, "the toy's layout is none, so there is nothing to collect"
    log = log_of(tmp_path)
    assert log.count("allow toy shared=100000") == 2
    assert log.count("allow toy cluster=1") == 2
    # Two dimensions, innermost first; strides in bytes.
    assert log.count("map type=6 swizzle=3 fill=1 shape=32,4, strides=128, box=16,8,") == 2
    launches = [line for line in log if line.startswith("launch")]
    assert len(launches) == 2 + 2 * 2
    expected = (
        r"launch toy grid=32,3,1 block=128 shared=100000 dependent=1 cooperative=1 cluster=16,1,1 spread=1"
        r" [0-9a-f]{6}10 abababab 0000002a"
    )
    assert all(re.fullmatch(expected, line) for line in launches), launches[0]


def test_small_kernel_asks_for_nothing_special(run: Run, tmp_path: Path) -> None:
    toy_bundle(tmp_path)
    run(tmp_path, "--repeat", "0")
    assert [line for line in log_of(tmp_path) if line.startswith("allow")] == []
    assert log_of(tmp_path)[-1] == "launch toy grid=2,3,1 block=128 shared=1024"


def test_table_says_what_was_found(run: Run, tmp_path: Path) -> None:
    toy_bundle(tmp_path)
    done = run(tmp_path, "--repeat", "3")
    assert "Fake GPU, sm_90\n" in done.stdout
    plain, kperf = rows_of(tmp_path)
    assert (plain["registers"], plain["local_bytes"], plain["times"]) == (96, 16, [250.0] * 3)
    assert (kperf["median_us"], kperf["ratio"], kperf["bits_differ"]) == (250.0, 1.0, 0)
    assert (tmp_path / "results" / kperf["profile"]).stat().st_size == 2 * 3 * 64
    about = json.loads((tmp_path / "results" / "results.json").read_text())["device"]
    assert about == {
        "name": "Fake GPU", "simulated": False, "arch": 90, "clock_hz": 1.5e9, "sm_count": 132, "driver": 12040,
    }  # fmt: skip


def test_result_that_is_wrong_is_told(run: Run, tmp_path: Path) -> None:
    bundle = toy_bundle(tmp_path)
    after = tmp_path / "data" / "after.bin"
    after.write_bytes(bytes(256))
    path = tmp_path / "bundle.json"
    path.write_text(path.read_text().replace('"after": ""', '"after": "data/after.bin"'))
    done = run(tmp_path)
    assert done.returncode == 1
    assert [row["status"] for row in rows_of(tmp_path)] == ["wrong results"] * len(bundle.kernels[0].variants)
    assert rows_of(tmp_path)[0]["beyond"] == 255  # The first byte is 0 before and after.


@pytest.mark.parametrize(
    ("fault", "error"),
    [("hang", "still running after 5 s"), ("die", "exit status 9"), ("fail", "unspecified launch failure")],
)
def test_kernel_that_hangs_or_faults_is_a_row(run: Run, tmp_path: Path, fault: str, error: str) -> None:
    toy_bundle(tmp_path)
    done = run(tmp_path, "--seconds", "5", FAKE_CUDA_FAULT=fault)
    assert done.returncode == 1
    rows = rows_of(tmp_path)
    assert [row["status"] for row in rows] == ["failed", "failed"]
    assert all(error in row["error"] for row in rows), rows


def test_device_of_another_architecture_is_told(run: Run, tmp_path: Path) -> None:
    toy_bundle(tmp_path)
    done = run(tmp_path, FAKE_CUDA_ARCH="80")
    assert done.returncode == 1
    assert "found: a device of sm_80" in done.stderr
    assert "expected: sm_90" in done.stderr


def test_no_driver_and_no_gpu_are_told(run: Run, tmp_path: Path) -> None:
    toy_bundle(tmp_path)
    no_gpu = run(tmp_path, FAKE_CUDA_ARCH="0")
    assert no_gpu.returncode == 1
    assert "there is no CUDA device [no-cuda]" in no_gpu.stderr
    no_driver = run(tmp_path, LD_LIBRARY_PATH="")
    assert no_driver.returncode == 1
    assert "there is no CUDA driver [no-cuda]" in no_driver.stderr

"""Kernels go into a bundle, and come out of it on a device that has never seen their source."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

import kperfir
from conftest import RunPython
from kperfir.bundle.answers import answer, describe
from kperfir.bundle.manifest import read_bundle
from support.small_chip import write_small_chip

SCRIPT = """
import sys
from kernels.cases import HOPPER_WORKLOADS, WORKLOADS
for name in sys.argv[1:]:
    workload = (HOPPER_WORKLOADS | WORKLOADS)[name]
    workload.launch(workload.arguments())
"""
KPERFIR = ("-c", "import sys; from kperfir.cli.main import main; sys.exit(main())")


def create(
    run_python: RunPython, folder: Path, names: list[str], *options: str, script: str = SCRIPT
) -> subprocess.CompletedProcess[str]:
    path = folder / "script.py"
    path.write_text(script)
    return run_python(*KPERFIR, "bundle", "create", "-o", str(folder / "kit"), *options, path, *names)


def rows_of(folder: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((folder / "kit" / "results" / "results.json").read_text())["rows"]
    return rows


def test_bundle_computes_and_records_what_a_profile_does(run_python: RunPython, tmp_path: Path) -> None:
    names = ["softmax_fp32", "matmul_fp16"]
    done = create(run_python, tmp_path, names, "--targets", "sm_80,sm_100")
    assert done.returncode == 0, done.stderr
    assert "matmul: 1 launch; sm_80 plain, sm_80 kperf, sm_100 plain, sm_100 kperf" in done.stdout
    ran = run_python(*KPERFIR, "bundle", "run", tmp_path / "kit", "--device", "simt", "--repeat", "1")
    assert ran.returncode == 0, ran.stderr
    assert [
        (row["kernel"], row["kind"], row["status"], row["bits_differ"], row["worst"]) for row in rows_of(tmp_path)
    ] == [
        ("softmax", "plain", "ok", 0, 0.0),
        ("softmax", "kperf", "ok", 0, 0.0),
        ("matmul", "plain", "ok", 0, 0.0),
        ("matmul", "kperf", "ok", 0, 0.0),
    ]
    # The same kernels, profiled in their own process.
    own = tmp_path / "own.kpf"
    profiled = run_python(
        *KPERFIR, "run", "-o", own, tmp_path / "script.py", *names, TRITON_KPERF_DEVICE="simt",
        TRITON_KPERF_SIMT_SEED="0", TRITON_KPERF_SIMT_THREADS="1",
    )  # fmt: skip
    assert profiled.returncode == 0, profiled.stderr
    collected, direct = kperfir.load(tmp_path / "kit" / "results" / "a100.kpf"), kperfir.load(own)
    # Times differ by what is in the caches, and by where memory lies.
    for kernel in ("softmax", "matmul"):
        assert spans(collected, kernel) == spans(direct, kernel)
    assert list(collected.launches["cycles"]) == [row["facts"]["cycles"] for row in rows_of(tmp_path) if row["profile"]]
    assert collected.launches["dropped"].sum() == 0


def spans(timeline: kperfir.Timeline, kernel: str) -> list[tuple[Any, ...]]:
    """CTA, warp, region and iteration of every span of a kernel's launch, in order."""
    (launch,) = timeline.launches.loc[timeline.launches["kernel"] == kernel, "launch"]
    found = timeline.spans[timeline.spans["launch"] == launch]
    return list(zip(found["cta"], found["warp"], found["region"], found["iteration"], strict=True))


def test_hopper_kernels_with_host_descriptors_clusters_and_roles(run_python: RunPython, tmp_path: Path) -> None:
    names = ["fa_tma", "matmul_2cta", "g_attention_ws"]
    done = create(run_python, tmp_path, names, "--targets", "sm_90", "--chip", "h100")
    assert done.returncode == 0, done.stderr
    ran = run_python(
        *KPERFIR, "bundle", "run", tmp_path / "kit", "--device", "simt", "--repeat", "0", TRITON_KPERF_SIMT_CHIP="h100"
    )
    assert ran.returncode == 0, ran.stderr
    rows = rows_of(tmp_path)
    assert [(row["status"], row["bits_differ"]) for row in rows] == [("ok", 0)] * 6
    bundle = read_bundle(tmp_path / "kit")
    kinds = {parameter.kind for launch in bundle.launches for one in launch.parameters.values() for parameter in one}
    assert "tensormap" in kinds
    assert 2 in {variant.cluster for kernel in bundle.kernels for variant in kernel.variants}
    roles = set(kperfir.load(tmp_path / "kit" / "results" / "h100.kpf").tracks["role"])
    assert len(roles) > 2


def test_runner_needs_neither_kperfir_nor_triton(run_python: RunPython, tmp_path: Path) -> None:
    assert create(run_python, tmp_path, ["vadd_fp32"], "--targets", "sm_80").returncode == 0
    kit = tmp_path / "kit"
    for variant in read_bundle(kit).kernels[0].variants:
        assert (kit / variant.cubin).read_bytes()[:4] == b"\x7fELF"
    # The interpreter sees its standard library, NumPy, and what is in the zip; nothing else.
    numpy = tmp_path / "packages"
    numpy.mkdir()
    import numpy as np

    home = Path(np.__file__).parents[1]
    for name in ("numpy", "numpy.libs"):
        if (home / name).exists():
            (numpy / name).symlink_to(home / name)
    watch = (
        "import runpy, sys\n"
        f"sys.path.append({str(numpy)!r})\n"
        f"sys.argv = ['run.pyz', {str(kit)!r}]\n"
        "try:\n    runpy.run_path(sys.argv[0], run_name='__main__')\n"
        "except SystemExit as end:\n    print('exit', end.code)\n"
        "unwanted = {'triton', 'torch', 'pandas', 'click', 'rich'}\n"
        "print(sorted({name.partition('.')[0] for name in sys.modules} & unwanted))\n"
        "import kperfir\nprint(kperfir.__file__)\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", watch], cwd=kit, check=False, capture_output=True, text=True,
        env={"PATH": os.environ["PATH"]},
    )  # fmt: skip
    assert "there is no CUDA driver" in done.stderr, done.stderr
    assert done.stdout.splitlines()[:2] == ["exit 1", "[]"]
    assert done.stdout.splitlines()[2].endswith(str(Path("run.pyz") / "kperfir" / "__init__.py"))
    assert "kperfir/bundle/cuda.py" in zipfile.ZipFile(kit / "run.pyz").namelist()


def test_launch_that_cannot_be_run_by_itself_is_left_out_with_its_reason(run_python: RunPython, tmp_path: Path) -> None:
    done = create(run_python, tmp_path, ["grouped_gemm", "vadd_fp32"], "--targets", "sm_80")
    assert done.returncode == 0, done.stderr
    assert "a launch of grouped" in done.stderr
    assert "is not in the bundle: run by itself, " in done.stderr
    bundle = read_bundle(tmp_path / "kit")
    assert [bundle.kernels[launch.kernel].name for launch in bundle.launches] == ["vadd"]


def test_configurations_of_a_kernel_are_kernels_of_their_own(run_python: RunPython, tmp_path: Path) -> None:
    script = SCRIPT + "    workload.launch(workload.arguments())\n"  # Each twice, of which one is kept.
    names = ["matmul_fp16", "matmul_fp16_small"]
    done = create(run_python, tmp_path, names, "--targets", "sm_80", script=script)
    assert done.returncode == 0, done.stderr
    assert [launch.kernel for launch in read_bundle(tmp_path / "kit").launches] == [0, 1]


def test_wrong_requests_are_told(run_python: RunPython, tmp_path: Path) -> None:
    nothing = create(run_python, tmp_path, [], "--targets", "sm_80")
    assert nothing.returncode == 1
    assert "there is nothing to put into a bundle [empty-bundle]" in nothing.stderr
    assert not (tmp_path / "kit").exists()
    absent = run_python(*KPERFIR, "bundle", "create", "-o", tmp_path / "kit", "absent.py")
    assert absent.returncode == 2
    assert "found: absent.py, which does not exist" in absent.stderr
    assert not (tmp_path / "kit").exists()
    (tmp_path / "kit").mkdir()
    (tmp_path / "kit" / "mine.txt").touch()
    other = create(run_python, tmp_path, ["vadd_fp32"])
    assert other.returncode == 1
    assert "the folder holds other files [folder-in-use]" in other.stderr
    target = create(run_python, tmp_path, ["vadd_fp32"], "--targets", "hopper")
    assert target.returncode == 2
    assert "found: hopper" in target.stderr
    unrun = run_python(*KPERFIR, "bundle", "collect", tmp_path)
    assert unrun.returncode == 1
    assert "there is no bundle" in unrun.stderr


def test_kernel_that_a_target_lacks_is_listed_with_the_reason(run_python: RunPython, tmp_path: Path) -> None:
    done = create(run_python, tmp_path, ["g_attention_ws"], "--targets", "sm_80,sm_90", "--chip", "h100")
    assert done.returncode == 0, done.stderr
    assert "not for sm_80 plain: " in done.stdout
    (kernel,) = read_bundle(tmp_path / "kit").kernels
    assert {(one.arch, one.kind) for one in kernel.missing} == {(80, "plain"), (80, "kperf")}


def test_answers_set_what_was_measured_against_what_is_predicted(run_python: RunPython, tmp_path: Path) -> None:
    assert create(run_python, tmp_path, ["softmax_fp32", "matmul_fp16"], "--targets", "sm_80").returncode == 0
    kit = tmp_path / "kit"
    early = run_python(*KPERFIR, "bundle", "answer", kit)
    assert early.returncode == 1
    assert "no-results" in early.stderr
    # In the place of a GPU, a chip whose memory is slower than that of the model that predicts.
    slow = write_small_chip(tmp_path, dram_latency=2000)
    run = (*KPERFIR, "bundle", "run", kit, "--device", "simt", "--repeat", "1")
    assert run_python(*run, TRITON_KPERF_SIMT_CHIP=slow).returncode == 0
    answers = answer(kit)
    assert answers.prediction == "a100"
    assert not answers.device["chip"].startswith("a100")
    for one in answers.launches:
        assert set(one.statuses.values()) == {"ok"}
        assert (one.bits_differ, one.decoded) == (0, "yes")
        assert one.slowdown["kperf"] > 1
        assert one.megahertz == pytest.approx(1410, rel=0.01)
        assert one.record_cycles is not None
        assert 0 < one.record_cycles < 100
        assert one.ratio is not None
        assert one.regions >= 5
        assert one.ratio[2] > 1.5, "what waits for memory takes longer than predicted"
        assert one.ratio[0] < 1.1, "what does not takes as long"
    text = describe(answers)
    assert "2 of 2 launches are as expected" in text
    assert "timing model of a100" in text
    assert text.count("\n| ") == 4
    # The same chip as the one that predicts.
    assert run_python(*run, TRITON_KPERF_SIMT_CHIP="a100").returncode == 0
    assert [one.ratio for one in answer(kit).launches] == [(1.0, 1.0, 1.0)] * 2


def test_answers_say_of_a_buffer_that_it_cannot_be_decoded(run_python: RunPython, tmp_path: Path) -> None:
    assert create(run_python, tmp_path, ["vadd_fp32"], "--targets", "sm_80").returncode == 0
    kit = tmp_path / "kit"
    assert run_python(*KPERFIR, "bundle", "run", kit, "--device", "simt", "--repeat", "1").returncode == 0
    (profile,) = (kit / "results").glob("*.profile")
    buffer = bytearray(profile.read_bytes())
    buffer[64:68] = b"\x08\0\0\0"  # The first segment ends in the middle of a frame.
    profile.write_bytes(buffer)
    (one,) = answer(kit).launches
    assert "profile buffer" in one.decoded
    assert one.ratio is None

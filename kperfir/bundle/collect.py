"""Make .kpf files of the profile buffers that a run of a bundle has left.

path = collect(Path("kit"))      # kit/results/<device>.kpf
"""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from kperfir.bundle.__main__ import RESULTS, RESULTS_FILE
from kperfir.bundle.execute import OK
from kperfir.bundle.manifest import read_bundle
from kperfir.capture.writer import CaptureWriter, LaunchInfo, ProcessInfo, writer_version
from kperfir.errors import BundleError
from kperfir.runtime.buffer import as_written
from kperfir.runtime.kernel import Kernel

if TYPE_CHECKING:
    from pathlib import Path


def collect(folder: Path, results: str = RESULTS) -> Path:
    """Write what was recorded in the last run of the bundle in `folder` to a .kpf file, and return its path.

    Args:
        folder: Of the bundle.
        results: Name of the folder inside it that the run has written.

    Raises:
        BundleError: ``no-results`` if it was not run, or if no variant with records came through.
        CaptureError: If a buffer does not fit its kernel.
    """
    bundle = read_bundle(folder)
    written = folder / results
    try:
        found = json.loads((written / RESULTS_FILE).read_text(encoding="utf-8"))
    except OSError as error:
        raise _no_results(folder, f"{results}/{RESULTS_FILE}: {error.strerror}") from None
    rows = [row for row in found["rows"] if row["profile"]]
    if not rows:
        failed = [row for row in found["rows"] if row["status"] != OK]
        raise _no_results(folder, failed[0]["error"] if failed else "no variant with records")
    device = found["device"]
    path = written / (re.sub(r"[^A-Za-z0-9]+", "-", device.get("chip") or device["name"]).strip("-").lower() + ".kpf")
    with CaptureWriter(path, _process(found)) as writer:
        for row in rows:
            launch = bundle.launches[row["launch"]]
            (variant,) = [one for one in bundle.kernels[launch.kernel].variants if one.id == row["variant"]]
            x, y, z = launch.grid
            grid = (x * variant.cluster, y, z)
            kernel = Kernel(variant.entry, variant.layout, variant.facts)
            data = as_written(kernel, math.prod(grid), np.fromfile(written / row["profile"], np.uint8))
            facts = {key: value for key, value in row["facts"].items() if key != "cycles"}
            writer.add_launch(
                writer.add_kernel(variant.layout, variant.facts),
                LaunchInfo(grid, cycles=row["facts"].get("cycles"), clock_hz=device.get("clock_hz"), facts=facts),
                data,
            )
    return path


def _process(found: dict[str, Any]) -> ProcessInfo:
    device = found["device"]
    versions = {"kperfir": writer_version(), "python": found["python"]}
    return ProcessInfo(
        host=found["host"], pid=found["pid"], device=device["name"], simulated=device["simulated"],
        chip=device.get("chip", ""), clock_hz=device.get("clock_hz"), versions=versions,
    )  # fmt: skip


def _no_results(folder: Path, found: str) -> BundleError:
    return BundleError("no-results", where=str(folder), found=found, fix=f"python {folder}/run.pyz {folder}")

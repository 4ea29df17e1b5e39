"""`python run.pyz FOLDER`, and what `kperfir bundle run` does: run a bundle, write a table.

Each launch runs in a process of its own with a time limit, since a kernel that hangs or faults takes its process along.
Results go to FOLDER/results: results.json, and the profile buffers. Where all of kperfir is there, they become a .kpf
file at once; else `kperfir bundle collect` makes it later, elsewhere.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kperfir.bundle.execute import FAILED, OK, Row, run_launch, variants_for
from kperfir.bundle.manifest import PLAIN, read_bundle
from kperfir.errors import BundleError, KPerfError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kperfir.bundle.execute import BundleDevice
    from kperfir.bundle.manifest import Bundle

RESULTS = "results"
RESULTS_FILE = "results.json"
_ROWS_FILE = "rows.json"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code: 0 all right, 1 something is not, 2 wrong usage."""
    options = _parser().parse_args(arguments)
    try:
        bundle = read_bundle(options.folder)
        if options.only is not None:
            return _run_one(options, bundle)
        return _run_all(options, bundle)
    except KPerfError as error:
        print(f"kperfir bundle run: {error}", file=sys.stderr)
        return error.exit_code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kperfir bundle run", description="Run the kernels of a bundle and time them."
    )
    parser.add_argument("folder", type=Path, help="what `kperfir bundle create` made")
    parser.add_argument("--device", default="cuda", choices=("cuda", "simt"), help="simt needs kperfir and Triton")
    parser.add_argument("--index", type=int, default=0, help="number of the GPU")
    parser.add_argument("--repeat", type=int, default=20, help="timed launches per variant")
    parser.add_argument("--seconds", type=float, default=60.0, help="time limit of a launch with all its variants")
    parser.add_argument("--results", default=RESULTS, help="folder inside it to write to")
    parser.add_argument("--only", type=int, help=argparse.SUPPRESS)  # One launch, in this process.
    return parser


def open_device(name: str, index: int) -> BundleDevice:
    """Return the device of that name.

    Raises:
        DeviceError: If there is none.
    """
    if name == "simt":
        from kperfir.bundle.simt import SimtBundleDevice

        return SimtBundleDevice()
    from kperfir.bundle.cuda import CudaDevice

    return CudaDevice(index)


def _run_one(options: argparse.Namespace, bundle: Bundle) -> int:
    out = options.folder / options.results
    rows: list[Row] = []
    device = open_device(options.device, options.index)
    for row in run_launch(options.folder, bundle, options.only, device, out, repeat=options.repeat):
        rows.append(row)
        _write(out / _ROWS_FILE, [asdict(one) for one in rows])  # Kept if the next variant takes the process along.
    _write(out / _ROWS_FILE, [asdict(one) for one in rows])
    return 0


def _run_all(options: argparse.Namespace, bundle: Bundle) -> int:
    out = options.folder / options.results
    out.mkdir(exist_ok=True)
    for old in out.glob("*.profile"):
        old.unlink()
    device = open_device(options.device, options.index)
    about, arch = device.describe(), device.arch
    fitting = [number for number, launch in enumerate(bundle.launches) if variants_for(bundle, launch, arch)]
    if not fitting:
        made = sorted({f"sm_{variant.arch}" for kernel in bundle.kernels for variant in kernel.variants})
        raise BundleError(
            "wrong-target", where=str(options.folder), found=f"a device of sm_{arch}", expected=", ".join(made),
            fix=f"kperfir bundle create --targets sm_{arch} ...",
        )  # fmt: skip
    rows: list[dict[str, Any]] = []
    for number in fitting:
        rows += _isolated(options, bundle, number, arch)
    for row in rows:
        row["median_us"] = Row(**row).median_us
    _add_ratios(rows)
    facts = {"host": platform.node(), "pid": os.getpid(), "python": platform.python_version()}
    _write(
        out / RESULTS_FILE, {"format": "kperfir-bundle-results", "version": 1, "device": about, **facts, "rows": rows}
    )
    print(describe(about, rows))
    print(f"written: {out / RESULTS_FILE}", file=sys.stderr)
    if any(row["profile"] for row in rows):
        print(_collect(options.folder, options.results), file=sys.stderr)
    return int(any(row["status"] != OK for row in rows))


def _isolated(options: argparse.Namespace, bundle: Bundle, number: int, arch: int) -> list[dict[str, Any]]:
    """Run a launch in a process of its own; variants it did not come to are rows that failed."""
    found = options.folder / options.results / _ROWS_FILE
    found.unlink(missing_ok=True)
    # Of a zip application argv[0] is the file; else this is a module of an installed package.
    program = [sys.argv[0]] if sys.argv[0].endswith(".pyz") else ["-P", "-m", "kperfir.bundle"]
    settings = ["--device", options.device, "--index", str(options.index), "--repeat", str(options.repeat)]
    settings += ["--results", options.results]
    command = [sys.executable, *program, str(options.folder), *settings, "--only", str(number)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=options.seconds)
        last = done.stderr.strip() or f"exit status {done.returncode}"
    except subprocess.TimeoutExpired:
        last = f"still running after {options.seconds:g} s"
    rows: list[dict[str, Any]] = json.loads(found.read_text(encoding="utf-8")) if found.exists() else []
    found.unlink(missing_ok=True)
    launch = bundle.launches[number]
    for variant in variants_for(bundle, launch, arch)[len(rows) :]:
        name = bundle.kernels[launch.kernel].name
        rows.append(asdict(Row(number, name, variant.id, variant.kind, variant.arch, FAILED, last)))
    return rows


def _collect(folder: Path, results: str) -> str:
    """Make the .kpf file if this is more than the runner alone; say what is next."""
    try:
        from kperfir.bundle.collect import collect
    except ImportError:
        return f"next, where kperfir is installed: kperfir bundle collect {folder}"
    return f"next: kperfir report {collect(folder, results)}"


def _add_ratios(rows: list[dict[str, Any]]) -> None:
    plain = {row["launch"]: row["median_us"] for row in rows if row["kind"] == PLAIN}
    for row in rows:
        base, own = plain.get(row["launch"]), row["median_us"]
        row["ratio"] = own / base if base and own else None


def describe(device: dict[str, Any], rows: list[dict[str, Any]]) -> str:
    """A table of the rows as text."""
    heading = (
        "launch",
        "kernel",
        "variant",
        "status",
        "median us",
        "ratio",
        "registers",
        "local B",
        "bits differ",
        "worst",
    )
    cells = [heading]
    for row in rows:
        cells.append((
            str(row["launch"]), row["kernel"], f"sm_{row['arch']} {row['kind']}", row["status"],
            _number(row["median_us"], ".1f"), _number(row["ratio"], ".3f"), str(row["registers"]),
            str(row["local_bytes"]), "" if row["bits_differ"] is None else str(row["bits_differ"]),
            f"{row['worst']:.2g}",
        ))  # fmt: skip
    widths = [max(len(line[column]) for line in cells) for column in range(len(heading))]
    lines = ["  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in cells]
    notes = [f"launch {row['launch']} {row['variant']}: {row['error']}" for row in rows if row["error"]]
    title = f"{device['name']}, sm_{device['arch']}" + (" (simulated time)" if device["simulated"] else "")
    return "\n".join([title, *lines, *notes])


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def _write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())

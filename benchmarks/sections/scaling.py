"""Host speed on a capture of ten million records: decoding, tables, export, reports as a user calls them."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import kperfir
from kperfir.capture.decode import RawBuffer, decode_buffer
from kperfir.capture.reader import Capture
from kperfir.export import write, write_file
from sections.table import table
from sections.timing import REPEATS, fastest
from support.large_capture import write_large_capture

CTAS = 6400
SMALL_CTAS = 640  # JSON of ten million slices would be five gigabytes.
REPORTED_CTAS = (64, 640, 2000, CTAS)
FORMS = (
    "report", "report --json", "report --for-agent", "report --html out.html", "advise", "advise --json", "compare",
    "export -o out.pprof", "export -o out.pftrace", "export -o out.parquet", "export -o out.speedscope.json",
    "export -o out.csv",
)  # fmt: skip


def run() -> tuple[str, int]:
    """Time each step; CPU seconds of the fastest of a few, and the memory of the report's process."""
    with tempfile.TemporaryDirectory() as folder:
        # First, since a process counts the memory of the one that it was forked from as its own.
        reported = Path(folder) / "reported.kpf"
        reports = [[write_large_capture(reported, ctas=ctas), *_command("report", reported)] for ctas in REPORTED_CTAS]
        forms = [[f"`kperfir {form}`", *_command(form, reported)] for form in FORMS]
        path, small = Path(folder) / "large.kpf", Path(folder) / "small.kpf"
        records = write_large_capture(path, ctas=CTAS)
        write_large_capture(small, ctas=SMALL_CTAS)
        rows = [
            *_decode(path, records),
            *_export(path, Path(folder), ("pftrace",)),
            *_export(small, Path(folder), ("json",)),
        ]
    text = f"## Ten million records\n\n{records:,} records of {CTAS:,} CTAs of a tiled matmul. "
    text += f"CPU seconds, the fastest of {REPEATS}; a core does no more than one step at a time. "
    text += f"The JSON is\nthat of a tenth of them ({SMALL_CTAS} CTAs).\n\n"
    text += table(("step", "CPU seconds", "M/s", "of"), rows)
    text += "\n`kperfir report` as a process: its start, imports and all of its output. Up to a million\n"
    text += (
        "spans it corrects durations, for which it needs each span; of more it adds them up while they are decoded.\n\n"
    )
    text += table(("records", "CPU seconds", "peak memory, GB"), reports)
    text += (
        "\nThe same of other commands on the ten million; `compare` has two captures of so many. Findings, and the\n"
    )
    text += (
        "page's timeline, are of whole CTAs with 400,000 spans together, which each output says; all other figures\n"
    )
    text += (
        "are of all records. Exports but .pprof hold each span: what bounds them is the size of what they write.\n\n"
    )
    return text + table(("command", "CPU seconds", "peak memory, GB"), forms), 0


def _decode(path: Path, records: int) -> list[list[Any]]:
    launch = Capture.open(path).launches[0]
    ids, data = launch.read()
    raw = RawBuffer(ids, data, launch.grid)
    inflate = fastest(launch.read)
    decode = fastest(lambda: decode_buffer(launch.kernel.layout, raw))
    spans = fastest(lambda: kperfir.load(path).spans)
    return [
        ["read the file and inflate it", inflate, records / inflate / 1e6, "records"],
        ["decode into columns", decode, records / decode / 1e6, "records"],
        ["file to `Timeline.spans`", spans, records / spans / 1e6, "records"],
    ]


class _Nowhere(io.RawIOBase):
    """Takes the bytes of a trace, and leaves the disk out."""

    def write(self, data: Any) -> int:
        return len(data)


def _export(path: Path, folder: Path, kinds: tuple[str, ...]) -> list[list[Any]]:
    timeline = kperfir.load(path)
    slices = len(timeline.spans)
    for made_before in ("flows", "marks"):  # As the spans are.
        getattr(timeline, made_before)
    rows = []
    for kind in kinds:
        file = folder / f"trace.{kind}"
        for what, call in (
            (f"spans to the bytes of a trace, .{kind}", lambda kind=kind: write([timeline], _Nowhere(), kind)),
            (f"spans to a file, .{kind}", lambda kind=kind, file=file: write_file([timeline], file, kind)),
        ):
            seconds = fastest(call)
            rows.append([what, seconds, slices / seconds / 1e6, "slices"])
        file.unlink()
    return rows


def _command(form: str, path: Path) -> list[float]:
    """CPU seconds and peak memory, in GB, of a kperfir command on a capture."""
    name, *options = form.split()
    files = [str(path)] * (2 if name == "compare" else 1)
    command = [sys.executable, "-P", "-m", "kperfir", name, *files, *options]
    with tempfile.TemporaryDirectory() as folder:  # For what the command writes.
        process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": ""}, cwd=folder, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    seconds = usage.ru_utime + usage.ru_stime
    return [seconds, usage.ru_maxrss / 1e6]

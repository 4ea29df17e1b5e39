"""What a launch's records cost behind the kernel, beside Proton: copy-out, decoding, traces.

Proton's buffer comes from the SIMT device; its decoder and its trace writer are its own (support/proton_reader.py).
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import kperfir
from kernels.cases import CASES, HOPPER_WORKLOADS, WORKLOADS
from kperfir.capture.decode import RawBuffer, decode_buffer
from kperfir.capture.reader import Capture
from kperfir.capture.writer import CaptureWriter, LaunchInfo, ProcessInfo
from kperfir.code.parts import Part, find_parts
from kperfir.code.ptx import parse_ptx
from kperfir.export import write_file
from kperfir.runtime.ghost import Ghost
from sections.proton import CHIPS, KERNELS, REGIONS, pair
from sections.table import table
from sections.timing import REPEATS, fastest
from support.launch import run_profiled
from support.proton_reader import read_with_proton, run_proton

if TYPE_CHECKING:
    from kernels.workload import Workload
    from kperfir.runtime.simt_launcher import LoadedKernel
    from support.launch import ProfiledRun

# Records of a launch that is decoded, about: its CTAs are repeated.
RECORDS = 300_000
CTA_ID_WORDS = slice(2, 5)  # Of a CTA's header (lib/Record/FORMAT.md): x, y, z.

HEADING = """## Behind the kernel, beside Proton

The same launches as above, on {chips}. Copy-out is how many cycles sooner the launch ends if what runs behind the
last record takes no time. Dropped are records that found no room in the default buffer: kperfir keeps the first ones,
Proton the last ones. Decoding and traces are of the same launch with its CTAs repeated, up to some {records:,} records:
CPU time from the buffer in host memory to columns of kperfir's and to Proton's own events, then to a file (.pftrace,
and Proton's Chrome JSON); the fastest of {repeats} here, once there.

"""


class _CopyOutIsFree(Ghost):
    """Of a kernel with Proton's records: what no clock read follows."""

    def launch_options(self, kernel: LoadedKernel) -> dict[str, Any]:
        """Arguments of the device's `launch`."""
        program = parse_ptx(kernel.ptx.decode(), str(kernel.module.entry))
        clocks = {number for number, each in enumerate(program.instructions) if "%clock" in each.operands}
        parts = find_parts(program.flow, clocks)
        lines = {each.line for each, part in zip(program.instructions, parts, strict=True) if part is Part.COPY_OUT}
        free = bytes(line in lines for line in kernel.module.ptx_lines)
        return {"free": free, "resident_registers": self.registers, "resident_shared_bytes": self.shared_bytes}


@dataclass(frozen=True, slots=True)
class Side:
    """One profiler's part of a row. Rates are in millions per CPU second."""

    records: int
    dropped: int
    copy_out: int
    decode_rate: float
    slice_bytes: float
    write_rate: float


def run() -> tuple[str, int]:
    """A row per chip and kernel; pairs of figures are kperfir's and Proton's."""
    rows = []
    for chip, arch in CHIPS.items():
        for name in KERNELS:
            if arch not in CASES[name].archs:
                continue
            workload = (WORKLOADS | HOPPER_WORKLOADS)[name]
            with tempfile.TemporaryDirectory() as folder:
                ours, theirs = (
                    measure_kperfir(workload, chip, Path(folder)),
                    measure_proton(workload, chip, Path(folder)),
                )
            rows.append([
                chip, name, f"{ours.records:,} / {theirs.records:,}", f"{ours.dropped:,} / {theirs.dropped:,}",
                f"{ours.copy_out} / {theirs.copy_out}", pair(ours.decode_rate, theirs.decode_rate),
                pair(ours.slice_bytes, theirs.slice_bytes), pair(ours.write_rate, theirs.write_rate),
            ])  # fmt: skip
    columns = (
        "chip", "kernel", "records", "dropped", "copy-out, cycles", "decoded, M records/s", "trace, bytes per slice",
        "written, M slices/s",
    )  # fmt: skip
    heading = HEADING.format(chips=" and ".join(CHIPS), records=RECORDS, repeats=REPEATS)
    return heading + table(columns, rows), 0


def measure_kperfir(workload: Workload, chip: str, folder: Path) -> Side:
    """Run, then decode and export, with kperfir."""
    path = folder / "one.kpf"
    profiled = run_profiled(workload, path, simt_chip=chip, regions=REGIONS)
    parts = frozenset({Part.COPY_OUT})
    spared = run_profiled(workload, folder / "free.kpf", simt_chip=chip, regions=REGIONS, ghost=profiled, parts=parts)
    tracks = profiled.timeline.tracks
    records, dropped = int(tracks["records"].sum()), int(tracks["dropped"].sum())
    buffer = repeat_ctas(profiled, folder / "many.kpf", max(1, RECORDS // records))
    decode = fastest(lambda: decode_buffer(profiled.timeline.captures[0].launches[0].kernel.layout, buffer))
    timeline = kperfir.load(folder / "many.kpf")
    slices, kept = len(timeline.spans), int((timeline.tracks["records"] - timeline.tracks["dropped"]).sum())
    trace = folder / "trace.pftrace"
    write = fastest(lambda: write_file([timeline], trace, "pftrace"))
    return Side(
        records, dropped, profiled.cycles - spared.cycles, kept / decode / 1e6, trace.stat().st_size / slices,
        slices / write / 1e6,
    )  # fmt: skip


def repeat_ctas(profiled: ProfiledRun, path: Path, times: int) -> RawBuffer:
    """Write a capture in which the CTAs of a launch come so many `times`; returns what it holds."""
    capture = Capture.open(profiled.path)
    launch = capture.launches[0]
    ids, data = launch.read()
    grid = (times * len(ids), 1, 1)
    words = np.tile(data.view(np.uint32).reshape(len(ids), -1), (times, 1))
    words[:, CTA_ID_WORDS] = 0
    words[:, CTA_ID_WORDS.start] = np.arange(len(words))
    many = words.view(np.uint8).reshape(-1)
    with CaptureWriter(path, ProcessInfo.of_this_process(device="simt", simulated=True)) as writer:
        kernel = writer.add_kernel(launch.kernel.layout.text, launch.kernel.facts)
        writer.add_launch(kernel, LaunchInfo(grid), many)
    return RawBuffer(np.arange(grid[0], dtype=ids.dtype), many, grid)


def measure_proton(workload: Workload, chip: str, folder: Path) -> Side:
    """The same with Proton."""
    arch = CHIPS[chip]
    proton = run_proton(workload, chip=chip, arch=arch, regions=REGIONS)
    free = _CopyOutIsFree.of(proton.run.launch)
    spared = run_proton(workload, chip=chip, arch=arch, regions=REGIONS, ghost=free)
    once = read_with_proton(proton, folder)
    made = proton.records
    many = read_with_proton(proton, folder, repeat=max(1, RECORDS // made))
    kept = 2 * once.slices
    return Side(
        made, made - kept, proton.run.cycles - spared.run.cycles, 2 * many.slices / many.decode_seconds / 1e6,
        many.trace_bytes / many.slices, many.slices / many.write_seconds / 1e6,
    )  # fmt: skip

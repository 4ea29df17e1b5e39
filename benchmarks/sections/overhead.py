"""What instrumentation costs in simulated cycles, kernel by kernel: set-up, records and copy-out apart."""

from __future__ import annotations

import tempfile
from pathlib import Path

from kernels.cases import HOPPER_WORKLOADS, WORKLOADS
from kperfir.code.parts import Part
from sections.table import table
from support.launch import run_plain, run_profiled

KERNELS = (
    "vadd_fp32",
    "softmax_fp32",
    "layernorm_fwd",
    "matmul_fp16",
    "matmul_persistent_tma",
    "fa_fwd_fp16",
    "fa_bwd_dkdv",
    "nested_loops",
    "branchy_loop",
)


CHIPS = {"a100": WORKLOADS, "h100": HOPPER_WORKLOADS}

HEADING = """## Cost of instrumentation (simulated)

The launch as a whole; the problems are small, so that fixed costs weigh more than in a real launch. Set-up is what runs
before the first record, copy-out what runs after the last one; each column says how much sooner the launch ends if that
part takes no time. The sum is less than what was added where parts hide each other, or fewer CTAs share an SM.

"""


def run() -> tuple[str, int]:
    """Compare plain and instrumented launches of the same arguments, and such in which a part costs nothing."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path, part_path = Path(folder) / "out.kpf", Path(folder) / "part.kpf"
        for chip, workloads in CHIPS.items():
            for name in KERNELS:
                plain = run_plain(workloads[name], chip=chip)
                profiled = run_profiled(workloads[name], path, simt_chip=chip)
                spared = [
                    profiled.cycles
                    - run_profiled(
                        workloads[name], part_path, ghost=profiled, parts=frozenset({part}), simt_chip=chip
                    ).cycles
                    for part in (Part.SET_UP, Part.RECORDS, Part.COPY_OUT)
                ]
                records = int(profiled.timeline.tracks["records"].sum())
                warps = len(profiled.timeline.tracks)
                rows.append([
                    chip, name, plain.cycles, profiled.cycles, profiled.cycles / plain.cycles, *spared,
                    records, records / warps,
                ])  # fmt: skip
    columns = (
        "chip", "kernel", "plain cycles", "instrumented cycles", "ratio", "set-up", "records", "copy-out",
        "records of the launch", "records per warp",
    )  # fmt: skip
    return HEADING + table(columns, rows), 0

"""What instrumentation costs in simulated cycles, kernel by kernel."""

from __future__ import annotations

import tempfile
from pathlib import Path

from kernels.cases import WORKLOADS
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


def run() -> tuple[str, int]:
    """Compare plain and instrumented launches of the same arguments."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in KERNELS:
            plain = run_plain(WORKLOADS[name])
            profiled = run_profiled(WORKLOADS[name], Path(folder) / f"{name}.kpf")
            records = int(profiled.timeline.tracks["records"].sum())
            warps = len(profiled.timeline.tracks)
            rows.append([name, plain.cycles, profiled.cycles, profiled.cycles / plain.cycles, records, records / warps])
    columns = ("kernel", "plain cycles", "instrumented cycles", "ratio", "records", "records per warp")
    text = "## Cost of instrumentation (simulated A100)\n\n"
    text += "The launch as a whole, set-up and copy-out of the profile buffer included; the problems are small, so\n"
    text += "that fixed costs weigh more than in a real launch.\n\n"
    return text + table(columns, rows), 0

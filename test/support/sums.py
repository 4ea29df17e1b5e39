"""What the device's event log says of the sums that a kernel kept, and what they are.

    assert device_sums(run) == logged_sums(run)

Clock reads are told apart by the comments in the PTX: stamps, and those that follow the end of something.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from kperfir.capture.aggregates import BUCKET_COLUMNS
from kperfir.capture.layout_json import parse_layout
from kperfir.capture.reference_sums import SummingWarp
from kperfir.code.ptx import parse_ptx

if TYPE_CHECKING:
    from support.launch import ProfiledRun

# CTA, warp, region; count, least, most, total, and the buckets.
Sums = dict[tuple[int, int, int], tuple[int, ...]]


def device_sums(run: ProfiledRun) -> Sums:
    """What was decoded. Squares are compared through the deviation, elsewhere."""
    table = run.timeline.aggregates
    keys = table[["cta", "warp", "region"]].itertuples(index=False, name=None)
    columns = ["count", "min_cycles", "max_cycles", "total_cycles", "squares_cycles2", *BUCKET_COLUMNS]
    values = table[columns].itertuples(index=False, name=None)
    return {key: tuple(map(int, value)) for key, value in zip(keys, values, strict=True)}


def logged_sums(run: ProfiledRun) -> Sums:
    """From the log. What begins where something else ended begins when the clock was read again."""
    layout = parse_layout(run.compiled.metadata.kperf_layout)
    found: Sums = {}
    for (cta, warp), reads in _clock_reads(run).groupby(["cta", "warp"], sort=False):
        summing = SummingWarp(layout)
        values, frames, slots = (reads[name].to_list() for name in ("value", "frame", "slot"))
        for index, (value, frame, slot) in enumerate(zip(values, frames, slots, strict=True)):
            if frame < 0:
                continue
            again = index + 1 < len(frames) and frames[index + 1] < 0
            summing.stamp((frame, slot), value, values[index + 1] if again else value)
        for region, sums in enumerate(summing.sums):
            if sums.count:
                figures = (sums.count, sums.least, sums.most, sums.total, sums.squares)
                found[int(cta), int(warp), region] = (*figures, *sums.buckets)
    return found


def _clock_reads(run: ProfiledRun) -> pd.DataFrame:
    """Reads of the 32-bit clock in the order of each warp; frame and slot of a stamp, else -1."""
    module, log = run.launch.kernel.module, run.launch.result.log
    program = parse_ptx(run.launch.kernel.ptx.decode(), str(module.entry))
    stamps = {
        each.line: each.stamp or (-1, -1)
        for each in program.instructions
        if each.own and each.opcode == "mov.u32" and each.operands.rstrip("; ").endswith("%clock")
    }
    of_pc = np.array([stamps.get(line, (-2, -2)) for line in module.ptx_lines])
    reads = pd.DataFrame({name: log[name] for name in ("cta", "warp", "pc", "value", "issue")})
    reads = reads.assign(frame=of_pc[reads["pc"], 0], slot=of_pc[reads["pc"], 1])
    return reads[reads["frame"] > -2].sort_values(["cta", "warp", "issue"], kind="stable", ignore_index=True)

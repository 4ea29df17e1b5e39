"""Kernels with a fault that the advisor knows, and the same kernels after its change.

Each pair launches the kernel as it is, or changed; `measure` says what was expected of the change and what it achieved,
the latter without any record.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

import kperfir
from kperfir.advice.advise import advise
from support import ptx_lab
from support.access_kernels import row_sums, turned
from support.advice_hopper import attention, copied, ws_gemm
from support.advice_kernels import (
    atomics,
    conversions,
    five_tiles,
    gemm,
    odd_gelu,
    odd_sum,
    ragged_rows,
    rows_in_parts,
    staged_tiles,
    sums,
    uneven_ctas,
    with_barriers,
    with_weights,
)
from support.launch import simt

if TYPE_CHECKING:
    from kperfir.advice.finding import Finding

SMS = 4  # Of the chips whose names end in -small.


@dataclass(frozen=True)
class Pair:
    """A kernel, the rule that has to apply to it, and how to launch it with (True) and without (False) the change.

    `settings` are what the advisor has to propose; `held_out` says that no rule was written with this pair in sight.
    """

    name: str
    rule: str
    launch: Callable[[bool], None]
    chip: str = "a100"
    settings: dict[str, Any] | None = None
    held_out: bool = False


@dataclass(frozen=True)
class Measured:
    """What came out."""

    pair: Pair
    finding: Finding
    before_cycles: int
    after_cycles: int

    @property
    def achieved(self) -> float:
        """How much faster the launch became."""
        return self.before_cycles / self.after_cycles

    @property
    def error(self) -> float:
        """Expected / achieved - 1."""
        return self.finding.speedup / self.achieved - 1


def measure(pair: Pair, folder: Path) -> Measured:
    """Profile the kernel, ask the advisor, and run both forms plain."""
    chip = _chip(pair.chip, folder)
    path = folder / "pair.kpf"
    with kperfir.profile(path, device="simt", simt_chip=chip, simt_threads=1, buffer_bytes=64 << 10):
        pair.launch(False)
    (finding,) = [found for found in advise(kperfir.load(path)).findings if found.rule == pair.rule]
    cycles = []
    for changed in (False, True):
        with simt(chip=chip) as driver, driver.observed() as launches:
            pair.launch(changed)
        cycles.append(int(launches[0].result.cycles))
    return Measured(pair, finding, *cycles)


def _chip(name: str, folder: Path) -> str:
    """The chip of that name; one that ends in -small has `SMS` SMs and is a file in `folder`."""
    if not name.endswith("-small"):
        return name
    chip = json.loads(ptx_lab.chip_text(name.removesuffix("-small")))
    chip["name"] = name
    chip["figures"]["sm_count"]["value"] = SMS
    path = folder / f"{name}.json"
    path.write_text(json.dumps(chip), encoding="utf-8")
    return str(path)


def _staged(before: int, after: int, **shape: int) -> Callable[[bool], None]:
    return lambda changed: gemm(stages=after if changed else before, **shape)


PAIRS = (
    Pair("matmul, 1 stage", "pipeline-loop", _staged(1, 3), settings={"num_stages": 3}),
    Pair("matmul, 2 stages", "deepen-pipeline", _staged(2, 3), settings={"num_stages": 3}),
    Pair("matmul, 2 stages", "deepen-pipeline", _staged(2, 4), "h100", {"num_stages": 4}),
    Pair("matmul, steps of 32", "bigger-step", lambda changed: gemm(stages=3, step=32 << changed), settings={"BK": 64}),
    Pair("matmul 32x32, 1 stage", "pipeline-loop", _staged(1, 3, tile=32), settings={"num_stages": 3}),
    Pair("attention, 1 buffer", "deepen-pipeline", lambda changed: attention(1 + changed), "h100", {"S": 2}),
    Pair("attention, shared barrier", "split-barrier", lambda changed: attention(1, split=changed), "h100"),
    Pair("matmul, producer, 1 buffer", "deepen-pipeline", lambda changed: ws_gemm(1 + 2 * changed), "h100", {"S": 3}),
    Pair("row sums", "reduce-after-loop", sums),
    Pair("5 tiles on 4 SMs", "last-wave", lambda changed: five_tiles(64 if changed else 128), "a100-small"),
    Pair("atomics", "spread-atomics", atomics),
    Pair("uneven blocks", "balance-sms", uneven_ctas, "a100-small"),
    Pair("matmul, 1 stage, 8 warps", "pipeline-loop", _staged(1, 3, warps=8, k=2048), held_out=True),
    Pair("matmul 128x128, 1 stage", "pipeline-loop", _staged(1, 3, tile=128, warps=8, k=512), held_out=True),
    Pair("matmul 128x128, 2 stages", "deepen-pipeline", _staged(2, 3, tile=128, warps=8, k=512), held_out=True),
    Pair("matmul 32x32, 2 stages", "deepen-pipeline", _staged(2, 4, tile=32), held_out=True),
    Pair(
        "attention of 2048, 1 buffer",
        "deepen-pipeline",
        lambda changed: attention(1 + changed, steps=2048),
        "h100",
        held_out=True,
    ),
    Pair(
        "row sums, 1 warp",
        "reduce-after-loop",
        lambda changed: sums(changed, block=128, columns=4096, warps=1),
    ),
    Pair("atomics, 8 warps", "spread-atomics", lambda changed: atomics(changed, count=16384, warps=8)),
    Pair("transpose, rows as they are", "avoid-bank-conflicts", lambda changed: turned(32 if changed else 1)),
    Pair("transpose, spread over 8", "avoid-bank-conflicts", lambda changed: turned(32 if changed else 8)),
    Pair("rows, down columns", "coalesce-accesses", row_sums),
    Pair("conversions", "convert-layout", conversions),
    Pair("2 rows on 108 SMs", "fill-device", lambda changed: rows_in_parts(16 if changed else 1), held_out=True),
    Pair(
        "3 barriers an iteration", "fewer-barriers", lambda changed: with_barriers(1 if changed else 3), held_out=True
    ),
    Pair("weights for each tile", "shorten-ends", with_weights, "a100-small", held_out=True),
    Pair(
        "8 buffers, one used",
        "raise-occupancy",
        lambda changed: staged_tiles(4 if changed else 8),
        "a100-small",
        held_out=True,
    ),
    Pair(
        "4 buffers, one used",
        "raise-occupancy",
        lambda changed: staged_tiles(3 if changed else 4),
        "a100-small",
        held_out=True,
    ),
    Pair(
        "transpose of 256, spread over 4",
        "avoid-bank-conflicts",
        lambda changed: turned(32 if changed else 4, size=256),
        "a100-small",
        held_out=True,
    ),
    Pair(
        "few rows, down columns",
        "coalesce-accesses",
        lambda changed: row_sums(changed, columns=1024, rows=32, ctas=16),
    ),
    Pair("conversions, 32 rows", "convert-layout", lambda changed: conversions(changed, tile=32), held_out=True),
    Pair(
        "weights for tiles of 8",
        "shorten-ends",
        lambda changed: with_weights(changed, rows=8, tiles=32),
        "a100-small",
        held_out=True,
    ),
    Pair(
        "3 barriers, 8 warps",
        "fewer-barriers",
        lambda changed: with_barriers(1 if changed else 3, warps=8),
        held_out=True,
    ),
    Pair(
        "4 rows on 108 SMs",
        "fill-device",
        lambda changed: rows_in_parts(27 if changed else 1, rows=4, columns=27 * 4096),
        held_out=True,
    ),
    Pair("rows of many turns, next to each other", "balance-warps", ragged_rows, held_out=True),
    Pair(
        "8 rows of many turns",
        "balance-warps",
        lambda changed: ragged_rows(changed, heavy=8, columns=1024),
        held_out=True,
    ),
    Pair("matmul, 3 stages, its own copies", "specialise-warps", lambda changed: copied(changed, stages=3), "h100"),
    Pair("matmul, 4 stages, its own copies", "specialise-warps", lambda changed: copied(changed, stages=4), "h100"),
    Pair(
        "matmul, 5 stages, its own copies",
        "specialise-warps",
        lambda changed: copied(changed, stages=5, k=2048),
        "h100",
        held_out=True,
    ),
    Pair(
        "attention, scores waited for",
        "overlap-products",
        lambda changed: attention(2, split=True, ahead=changed),
        "h100",
    ),
    Pair(
        "attention of 2048, scores waited for",
        "overlap-products",
        lambda changed: attention(4, split=True, ahead=changed, steps=2048),
        "h100",
        held_out=True,
    ),
    Pair("65535 numbers through gelu", "widen-accesses", odd_gelu),
    Pair("131071 sums", "widen-accesses", odd_sum, "a100-small"),
    Pair(
        "131071 sums of 4 bytes",
        "widen-accesses",
        lambda changed: odd_sum(changed, dtype=torch.float32),
        "a100-small",
    ),
    Pair(
        "262143 numbers through gelu, 2048 each",
        "widen-accesses",
        lambda changed: odd_gelu(changed, count=1 << 18, block=2048),
        "a100-small",
        held_out=True,
    ),
    Pair(
        "16383 sums of 8 bytes",
        "widen-accesses",
        lambda changed: odd_sum(changed, count=1 << 14, dtype=torch.float64),
        held_out=True,
    ),
)

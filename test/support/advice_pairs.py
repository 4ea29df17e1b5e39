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
import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, mbarrier, tma, warpgroup_mma

import kperfir
from kernels.matmuls import matmul
from kernels.workloads import hopper
from kperfir.advice.advise import advise
from support import ptx_lab
from support.access_kernels import row_sums, turned
from support.advice_kernels import conversions, rows_in_parts, staged_tiles, with_barriers, with_weights
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


def gemm(*, stages: int, step: int = 32, tile: int = 64, k: int = 1024, ctas: int = 4, warps: int = 4) -> None:
    """A row of `ctas` tiles of a matrix product."""
    a, b = torch.zeros(tile, k, dtype=torch.float16), torch.zeros(k, tile * ctas, dtype=torch.float16)
    c = torch.empty(tile, tile * ctas, dtype=torch.float16)
    n = tile * ctas
    matmul[(ctas,)](
        a, b, c, tile, n, k, k, 1, n, 1, n, 1, BM=tile, BN=tile, BK=step, G=8, P="tf32", AT=tl.float32,
        num_warps=warps, num_stages=stages,
    )  # fmt: skip


def five_tiles(tile: int) -> None:
    """A product of 128 x 640 in tiles of 128 rows; of those with 128 columns, an SM has room for one."""
    m, n, k = 128, 640, 512
    a, b = torch.zeros(m, k, dtype=torch.float16), torch.zeros(k, n, dtype=torch.float16)
    c = torch.empty(m, n, dtype=torch.float16)
    matmul[(n // tile,)](
        a, b, c, m, n, k, k, 1, n, 1, n, 1, BM=m, BN=tile, BK=64, G=8, P="tf32", AT=tl.float32,
        num_warps=8 * tile // 128, num_stages=4,
    )  # fmt: skip


def attention(buffers: int, *, split: bool = False, steps: int = 1024) -> None:
    """A block of queries of a warp-specialised flash attention; `split`: keys and values have barriers of their own."""
    workload = hopper.attention_ws(1, steps)
    arguments = workload.arguments()
    passed = {name: value for name, value in arguments.items() if not name.startswith("_")}
    kernel = split_attention if split else workload.case.kernel
    kernel[(1, 1)](**passed, **{**workload.case.constexprs, "S": buffers})
    if split:
        expected = workload.reference(workload.arguments())
        found = arguments["_od"][:64].double()
        torch.testing.assert_close(found, expected["_od"][:64], rtol=2e-3, atol=2e-3)


def ws_gemm(buffers: int) -> None:
    """One tile of the warp-specialised product."""
    case = next(w.case for w in hopper.WORKLOADS if w.case.name == "g_warp_specialize_wgmma")
    arguments = hopper.gemm(64, 128, 1024, "K")(torch.Generator().manual_seed(0))
    passed = {name: value for name, value in arguments.items() if not name.startswith("_")}
    case.kernel[(1, 1)](**passed, **{**case.constexprs, "S": buffers})


@gluon.jit
def _split_load(
    qd, kd, vd, sq, sk, sv, q_ready, k_ready, k_empty, v_ready, v_empty, T, BM: gl.constexpr, BN: gl.constexpr
):
    S: gl.constexpr = sk.type.shape[0]
    first = gl.program_id(1) * T
    mbarrier.expect(q_ready, qd.block_type.nbytes)
    tma.async_load(qd, [first + gl.program_id(0) * BM, 0], q_ready, sq)
    for n in range(0, T, BN):
        step = n // BN
        s = step % S
        mbarrier.wait(k_empty.index(s), ((step // S) & 1) ^ 1)
        mbarrier.expect(k_ready.index(s), kd.block_type.nbytes)
        tma.async_load(kd, [first + n, 0], k_ready.index(s), sk.index(s))
        mbarrier.wait(v_empty.index(s), ((step // S) & 1) ^ 1)
        mbarrier.expect(v_ready.index(s), vd.block_type.nbytes)
        tma.async_load(vd, [first + n, 0], v_ready.index(s), sv.index(s))


@gluon.jit
def _split_multiply(
    od, sq, sk, sv, so, q_ready, k_ready, k_empty, v_ready, v_empty, scale, T, BM: gl.constexpr, BN: gl.constexpr
):  # fmt: skip
    S: gl.constexpr = sk.type.shape[0]
    D: gl.constexpr = sq.type.shape[1]
    SL: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BN, 16])
    OL: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, D, 16])
    PL: gl.constexpr = gl.DotOperandLayout(0, OL, 2)
    m_i = gl.full([BM], -float("inf"), gl.float32, gl.SliceLayout(1, SL))
    l_i = gl.zeros([BM], gl.float32, gl.SliceLayout(1, SL))
    acc = gl.zeros([BM, D], gl.float32, OL)
    mbarrier.wait(q_ready, 0)
    for n in range(0, T, BN):
        step = n // BN
        s = step % S
        mbarrier.wait(k_ready.index(s), (step // S) & 1)
        x = warpgroup_mma(sq, sk.index(s).permute((1, 0)), gl.zeros([BM, BN], gl.float32, SL), use_acc=False)
        mbarrier.arrive(k_empty.index(s))
        mn = gl.maximum(m_i, gl.max(x, 1) * scale)
        p = gl.exp2(x * scale - mn[:, None])
        alpha = gl.exp2(m_i - mn)
        l_i = l_i * alpha + gl.sum(p, 1)
        acc = acc * gl.convert_layout(alpha, gl.SliceLayout(1, OL))[:, None]
        mbarrier.wait(v_ready.index(s), (step // S) & 1)
        acc = warpgroup_mma(gl.convert_layout(p.to(gl.float16), PL), sv.index(s), acc)
        mbarrier.arrive(v_empty.index(s))
        m_i = mn
    acc = acc / gl.convert_layout(l_i, gl.SliceLayout(1, OL))[:, None]
    so.store(acc.to(gl.float16))
    fence_async_shared()
    tma.async_store(od, [gl.program_id(1) * T + gl.program_id(0) * BM, 0], so)
    tma.store_wait(0)


@gluon.jit
def split_attention(qd, kd, vd, od, scale, T, BM: gl.constexpr, BN: gl.constexpr, D: gl.constexpr, S: gl.constexpr):
    sq = gl.allocate_shared_memory(gl.float16, [BM, D], qd.layout)
    sk = gl.allocate_shared_memory(gl.float16, [S, BN, D], kd.layout)
    sv = gl.allocate_shared_memory(gl.float16, [S, BN, D], vd.layout)
    so = gl.allocate_shared_memory(gl.float16, [BM, D], od.layout)
    q_ready = mbarrier.allocate_mbarrier()
    k_ready = mbarrier.allocate_mbarrier(batch=S)
    k_empty = mbarrier.allocate_mbarrier(batch=S)
    v_ready = mbarrier.allocate_mbarrier(batch=S)
    v_empty = mbarrier.allocate_mbarrier(batch=S)
    mbarrier.init(q_ready, count=1)
    for i in gl.static_range(S):
        mbarrier.init(k_ready.index(i), count=1)
        mbarrier.init(k_empty.index(i), count=1)
        mbarrier.init(v_ready.index(i), count=1)
        mbarrier.init(v_empty.index(i), count=1)
    gl.warp_specialize(
        [
            (_split_multiply, (od, sq, sk, sv, so, q_ready, k_ready, k_empty, v_ready, v_empty, scale, T, BM, BN)),
            (_split_load, (qd, kd, vd, sq, sk, sv, q_ready, k_ready, k_empty, v_ready, v_empty, T, BM, BN)),
        ],
        [1],
        [24],
    )


@triton.jit
def sum_rows(x, y, columns, BLOCK: tl.constexpr, AFTER: tl.constexpr):
    row = tl.program_id(0)
    if AFTER:
        partial = tl.zeros([BLOCK], tl.float32)
        for start in range(0, columns, BLOCK):
            partial += tl.load(x + row * columns + start + tl.arange(0, BLOCK))
        tl.store(y + row, tl.sum(partial, 0))
    else:
        total = tl.full([], 0.0, tl.float32)
        for start in range(0, columns, BLOCK):
            total += tl.sum(tl.load(x + row * columns + start + tl.arange(0, BLOCK)), 0)
        tl.store(y + row, total)


def sums(after: bool, *, columns: int = 8192, block: int = 512, warps: int = 4) -> None:
    """Rows, reduced in each iteration or after them."""
    x, y = torch.ones(8, columns), torch.empty(8)
    sum_rows[(8,)](x, y, columns, BLOCK=block, AFTER=after, num_warps=warps)
    assert y.eq(columns).all()


@triton.jit
def uneven(x, y, trips, BLOCK: tl.constexpr, LONGEST_FIRST: tl.constexpr):
    cta = tl.program_id(0)
    if LONGEST_FIRST:
        cta = tl.num_programs(0) - 1 - cta
    i = cta * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i)
    for _ in range(tl.load(trips + cta)):
        value = value * value + 0.25
    tl.store(y + i, value)


def uneven_ctas(longest_first: bool) -> None:
    """12 CTAs, one to an SM of 4 at a time, the last three times as long as the others."""
    count, ctas = 4096, 12
    trips = torch.full((ctas,), 200, dtype=torch.int32)
    trips[-1] = 600
    x, y = torch.zeros(count * ctas), torch.empty(count * ctas)
    uneven[(ctas,)](x, y, trips, BLOCK=count, LONGEST_FIRST=longest_first, num_warps=32)


@triton.jit
def counts(x, y, BLOCK: tl.constexpr, SPREAD: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(y + (i if SPREAD else i % 4), tl.load(x + i))


def atomics(spread: bool, *, count: int = 4096, warps: int = 4) -> None:
    """Atomic additions of blocks of 512, to four addresses or each to its own."""
    x, y = torch.ones(count), torch.zeros(count)
    counts[(count // 512,)](x, y, BLOCK=512, SPREAD=spread, num_warps=warps)
    assert y.sum() == count


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
)

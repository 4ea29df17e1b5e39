"""Rules that any credible timing model keeps, as tests on simulated cycles.

What a single figure does to the clock is in python/simt/test_timing.py.
Every test states its rule and the bound that it is held to. Kernels are what Triton compiles, where the rule is about
kernels; instruction costs are measured on bare PTX. `one_sm` is a chip with a single SM, so that few CTAs fill it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from kperfir._native.simt import Device, Error, Module

from kernels.matmuls import matmul
from kernels.workload import Workload
from kernels.workloads import hopper
from support import ptx_lab
from support.ground_truth import spans_of
from support.launch import run_plain, simt

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CHIPS = ("a100", "h100")
TARGET = {"a100": "sm_80", "h100": "sm_90a"}


@pytest.fixture
def one_sm(tmp_path: Path) -> Callable[[str], str]:
    """Name of a file that describes a chip with one SM."""

    def write(name: str) -> str:
        chip = json.loads(ptx_lab.chip_text(name))
        chip["name"] = f"{name}-one-sm"
        chip["figures"]["sm_count"]["value"] = 1
        path = tmp_path / f"{name}-one-sm.json"
        path.write_text(json.dumps(chip), encoding="utf-8")
        return str(path)

    return write


def figure(chip: str, name: str) -> float:
    """A figure of the chip file."""
    return float(json.loads(ptx_lab.chip_text(chip))["figures"][name]["value"])


def multiply(
    chip: str, tile: tuple[int, int, int], k: int, *, stages: int, warps: int = 4, ctas: int = 1
) -> Any:  # fmt: skip
    """Multiply so that each of `ctas` CTAs has one tile, with a loop of `k` / BK steps; the device's result."""
    m, n, step = tile
    a, b = torch.zeros(m, k, dtype=torch.float16), torch.zeros(k, n * ctas, dtype=torch.float16)
    c = torch.empty(m, n * ctas, dtype=torch.float16)
    constexprs = {"BM": m, "BN": n, "BK": step, "G": 8, "P": "tf32", "AT": tl.float32}
    with simt(chip=chip) as driver, driver.observed() as launches:
        matmul[(ctas,)](
            a, b, c, m, n * ctas, k, k, 1, n * ctas, 1, n * ctas, 1, **constexprs, num_warps=warps, num_stages=stages
        )
    return launches[0].result


@pytest.mark.parametrize("chip", CHIPS)
def test_more_stages_hide_load_latency_until_buffers_run_out(chip: str) -> None:
    # Each stage more keeps one more tile in flight. Once the flight is longer than the latency nothing is left to gain;
    # from then on the time is the same within 3 %. The first stages at least halve it together.
    cycles = [multiply(chip, (64, 64, 32), 1024, stages=stages).cycles for stages in range(1, 7)]
    best = min(cycles)
    assert cycles[0] > cycles[1] > cycles[2] >= 0.97 * cycles[3]
    assert cycles[0] > (2.5 if chip == "h100" else 1.8) * best
    assert all(value < 1.03 * best for value in cycles[3:])


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("stages", [1, 3])
def test_doubling_the_loop_doubles_the_steady_state(chip: str, stages: int) -> None:
    # What is around the loop costs the same for every trip count: only differences are compared, within 2 %.
    one, two, four = (multiply(chip, (64, 64, 32), k, stages=stages).cycles for k in (512, 1024, 2048))
    assert (four - two) / (two - one) == pytest.approx(2, rel=0.02)


TILES = ((32, 32, 32), (64, 64, 32), (128, 64, 32), (128, 128, 32))


def mma_share(chip: str, one_sm: str, tile: tuple[int, int, int], *, stages: int, warps: int = 4) -> float:
    """Share of the tensor cores' peak that the loop of a matmul reaches on an SM filled with CTAs."""
    ctas = multiply(one_sm, tile, 64, stages=stages, warps=warps).occupancy
    short, long = (multiply(one_sm, tile, k, stages=stages, warps=warps, ctas=ctas).cycles for k in (512, 1024))
    rate = 4 * figure(chip, "wgmma_f16_per_cycle" if chip == "h100" else "mma_f16_per_cycle")
    return tile[0] * tile[1] * 512 * ctas / rate / (long - short)


@pytest.mark.parametrize("chip", CHIPS)
def test_mma_share_grows_with_the_tile(chip: str, one_sm: Callable[[str], str]) -> None:
    # A tile of twice the area needs less than twice the loads. mma.sync stays below two thirds of the peak: in the
    # order of the PTX, loads and multiplications of one warp do not interleave (docs/timing-model.md).
    shares = [mma_share(chip, one_sm(chip), tile, stages=4) for tile in TILES]
    assert shares == sorted(shares)
    assert shares[-1] > 2.2 * shares[0]
    assert 0.6 < shares[-1] < 1


def test_mma_share_of_wgmma_reaches_the_peak(one_sm: Callable[[str], str]) -> None:
    # Asynchronous products of a 128x256 tile take longer than all that is around them.
    assert 0.95 < mma_share("h100", one_sm("h100"), (128, 256, 64), stages=3, warps=8) <= 1


def covered(spans: list[tuple[int, int]]) -> set[int]:
    """All cycles that some span covers."""
    return {cycle for start, end in spans for cycle in range(start, end)}


def test_warp_specialisation_overlaps_load_and_mma() -> None:
    # With one buffer a tile is loaded, then multiplied. With three the producer's copies run for at least 90 % of the
    # time in which the consumer multiplies, and the whole takes at most 0.6 of what it takes without overlap.
    def run(buffers: int) -> tuple[int, float]:
        case = next(w.case for w in hopper.WORKLOADS if w.case.name == "g_warp_specialize_wgmma")
        build = hopper.gemm(64, 128, 1024, "K")
        ran = run_plain(Workload(case, (1, 1), build, constexprs={"S": buffers}), chip="h100", log=True)
        copies = covered(spans_of(ran, "cp.async.bulk.tensor", "mbarrier::complete_tx"))
        products = covered(spans_of(ran, "wgmma.mma_async"))
        return ran.cycles, len(copies & products) / len(products)

    alone, together = run(1), run(3)
    assert alone[1] < 0.1
    assert together[1] > 0.9
    assert together[0] < 0.6 * alone[0]


@triton.jit
def copy(x, y, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)


@triton.jit
def fill(y, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + i, i, mask=i < n)


def dram_share(chip: str, kernel: Any, *arguments: Any, count: int) -> float:
    """Bytes that DRAM moved in a launch, as a share of what it could have moved in that time."""
    with simt(chip=chip) as driver, driver.observed() as launches:
        kernel[(count // 4096,)](*arguments, count, B=4096, num_warps=8)
    result = launches[0].result
    moved = result.stats["dram_read_bytes"] + result.stats["dram_write_bytes"]
    seconds = result.cycles / (figure(chip, "clock_mhz") * 1e6)
    return moved / seconds / figure(chip, "dram_bytes_per_second")


@pytest.mark.parametrize("chip", CHIPS)
def test_copy_reaches_the_bandwidth_of_dram(chip: str) -> None:
    # 85 to 100 %: far more CTAs than places, so that all latency is hidden; 64 MB in and 64 MB out.
    count = 1 << 24
    x, y = torch.zeros(count), torch.empty(count)
    assert 0.85 < dram_share(chip, copy, x, y, count=count) <= 1


@pytest.mark.parametrize("chip", CHIPS)
def test_stores_alone_are_bound_by_dram_too(chip: str) -> None:
    # What does not fit L2 has to leave it. The end stays in L2, so less than 100 % of the time is DRAM's.
    count = 1 << 25
    y = torch.empty(count, dtype=torch.int32)
    assert 0.75 < dram_share(chip, fill, y, count=count) <= 1


@pytest.mark.parametrize("chip", CHIPS)
def test_two_waves_take_twice_one(chip: str) -> None:
    # CTAs that only compute, one to an SM. A wave begins up to one step (L2 latency) after the last: within 1 %.
    body = "LOOP: " + "fma.rn.f32 %f1, %f1, %f1, %f1;" * 32
    body = "mov.u32 %r1, 400;" + body + "add.u32 %r1, %r1, -1; setp.ne.u32 %p1, %r1, 0; @%p1 bra LOOP;"
    text = json.loads(ptx_lab.chip_text(chip))
    text["figures"]["sm_count"]["value"] = 4
    device = Device(json.dumps(text))
    shape = {"threads": 256, "shared": 120 << 10, "on": device, "target": TARGET[chip]}

    def cycles(waves: int) -> int:
        return int(ptx_lab.run(body, np.zeros(1, np.uint32), grid=(4 * waves, 1, 1), **shape).cycles)

    one = cycles(1)
    assert cycles(2) / one == pytest.approx(2, rel=0.01)
    assert cycles(3) / one == pytest.approx(3, rel=0.01)


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("degree", [1, 2, 4, 8, 16, 32])
def test_bank_conflict_of_degree_k_costs_k(chip: str, degree: int) -> None:
    # Back to back, loads take the unit `degree` cycles each; without a conflict it is the issue interval that counts.
    def cycles(loads: int) -> int:
        out = np.zeros(1, np.uint32)
        before = (
            f"mul.lo.u32 %r2, %r0, {4 * degree}; mov.u32 %r1, smem; add.u32 %r1, %r1, %r2; st.shared.u32 [%r1], %r0;"
        )
        body = "".join(f"ld.shared.u32 %r{3 + i % 64}, [%r1];" for i in range(loads))
        shape = {"shared": 4 * 32 * degree, "target": TARGET[chip]}
        return int(ptx_lab.run(before + body, out, **shape).cycles)

    issue = json.loads(ptx_lab.chip_text(chip))["instructions"]["load"]["interval"]
    assert (cycles(256) - cycles(128)) / 128 == pytest.approx(max(degree, issue), rel=0.02)


SLOTS = (
    ("ex2", "ex2.approx.f32 %f{0}, %f40;"),
    ("sfu", "rsqrt.approx.f32 %f{0}, %f40;"),
    ("div-full", "div.full.f32 %f{0}, %f40, %f41;"),
    ("div-rn-32", "div.rn.f32 %f{0}, %f40, %f41;"),
    ("sqrt-rn-32", "sqrt.rn.f32 %f{0}, %f40;"),
)


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize(("cost", "text"), SLOTS, ids=[name for name, _ in SLOTS])
def test_expanded_instructions_take_their_slots(chip: str, cost: str, text: str) -> None:
    # A PTX instruction that ptxas expands takes its pipe for as long as the expansion would, whether or not it is used.
    def cycles(count: int) -> int:
        body = "".join(text.format(i % 32) for i in range(count))
        return int(ptx_lab.run(body, np.zeros(1, np.uint32), target=TARGET[chip]).cycles)

    slots = json.loads(ptx_lab.chip_text(chip))["instructions"][cost]["interval"]
    assert (cycles(128) - cycles(64)) / 64 == pytest.approx(slots, rel=0.02)
    assert slots >= 8  # A quarter of the lanes at a time, at least.


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize(
    ("shape", "expected", "limiter"),
    [
        # 64 warps; 65536 registers in units of 256 per warp; shared memory with 1 KB of the system per CTA.
        ({"threads": 256, "registers": 32}, (8, 8), "warps"),
        ({"threads": 32, "registers": 32}, (32, 32), "cta slots"),
        ({"threads": 128, "registers": 128}, (4, 4), "registers"),
        ({"threads": 128, "registers": 255}, (2, 2), "registers"),
        ({"threads": 128, "registers": 32, "shared": 48 << 10}, (3, 4), "shared memory"),
        ({"threads": 128, "registers": 32, "shared": 80 << 10}, (2, 2), "shared memory"),
    ],
)
def test_occupancy_is_what_the_scarcest_resource_allows(
    chip: str, shape: dict[str, int], expected: tuple[int, int], limiter: str
) -> None:
    result = ptx_lab.run("mov.u32 %r1, 0;", np.zeros(1, np.uint32), target=TARGET[chip], **shape)
    assert result.occupancy == expected[CHIPS.index(chip)]
    assert result.stats["occupancy_limiter"] == limiter


@pytest.mark.parametrize(
    ("body", "limit", "registers"),
    [("", 40, 16), ("", 0, 16), ("setmaxnreg.dec.sync.aligned.u32 24;", 168, 168), ("", 8, 8)],
    ids=["limit", "no limit", "moved at run time", "low limit"],
)
def test_registers_are_bound_by_the_kernel(body: str, limit: int, registers: int) -> None:
    # A kernel that moves registers between warps starts with as many as .maxnreg says, whatever it needs.
    text = ptx_lab.ptx(body, 1, target="sm_90a")
    if limit:
        text = text.replace(")\n{", f") .maxnreg {limit}\n{{", 1)
    assert Module(text).registers == registers


@pytest.mark.parametrize("count", [16, 28, 264])
def test_setmaxnreg_takes_multiples_of_8_from_24_to_256(count: int) -> None:
    with pytest.raises(Error, match="multiple of 8 from 24 to 256"):
        Module(ptx_lab.ptx(f"setmaxnreg.inc.sync.aligned.u32 {count};", 1, target="sm_90a"))

"""Sampled launches: CTAs that are not simulated in detail leave the same results, and time is estimated well."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kperfir._native import simt

from support import ptx_lab
from support.small_chip import small_chip

SMS, CTAS_PER_SM = 8, 3
WAVE = SMS * CTAS_PER_SM
GRID = 12 * WAVE + 7
THREADS = 64

# y[i] = a sum over a loop that stores to and loads from shared memory, of x[i]; every CTA counts itself.
REGULAR = """
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x;
  mad.lo.u32 %r3, %r1, %r2, %r0;
  mul.wide.u32 %rd10, %r3, 4;
  add.u64 %rd11, %rd0, %rd10; add.u64 %rd12, %rd1, %rd10;
  ld.global.u32 %r4, [%rd11];
  mov.u32 %r5, smem; shl.b32 %r6, %r0, 2; add.u32 %r7, %r5, %r6;
  xor.b32 %r8, %r6, 128; add.u32 %r8, %r5, %r8;
  mov.u32 %r9, 20;
again:
  st.shared.u32 [%r7], %r4;
  bar.sync 0;
  ld.shared.u32 %r10, [%r8];
  bar.sync 0;
  mad.lo.u32 %r4, %r10, 3, %r4;
  sub.u32 %r9, %r9, 1;
  setp.ne.u32 %p1, %r9, 0;
  @%p1 bra again;
  st.global.u32 [%rd12], %r4;
  ld.global.u32 %r11, [%rd12];
  add.u32 %r11, %r11, 1;
  st.global.u32 [%rd12], %r11;
  setp.eq.u32 %p2, %r0, 0;
  @%p2 red.global.add.u32 [%rd2], 1;
"""

# Every CTA waits for the one before, in either direction over the border of what is simulated in detail.
CHAIN = """
  mov.u32 %r1, %ctaid.x;
  mul.wide.u32 %rd10, %r1, 4; add.u64 %rd11, %rd0, %rd10;
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra ready;
wait:
  ld.acquire.gpu.global.u32 %r2, [%rd11+-4];
  setp.eq.u32 %p2, %r2, 0;
  @%p2 bra wait;
ready:
  add.u32 %r2, %r2, 1;
  @%p1 mov.u32 %r2, 1;
  st.release.gpu.global.u32 [%rd11], %r2;
"""


# Every CTA says that it has come, and waits for one that comes later, but that a GPU has placed by then.
AHEAD = WAVE - 3
FORWARD = f"""
  mov.u32 %r1, %ctaid.x; mov.u32 %r3, %nctaid.x;
  mul.wide.u32 %rd10, %r1, 4; add.u64 %rd11, %rd0, %rd10;
  mov.u32 %r4, 1;
  st.release.gpu.global.u32 [%rd11], %r4;
  add.u32 %r5, %r1, {AHEAD}; setp.ge.u32 %p1, %r5, %r3;
  @%p1 bra done;
wait:
  ld.acquire.gpu.global.u32 %r2, [%rd11+{4 * AHEAD}];
  setp.eq.u32 %p2, %r2, 0;
  @%p2 bra wait;
done:
"""

# Each CTA of a pair stores to the other one and adds what it got to y[cta], after a loop of its own length.
PAIRS = """
  mov.u32 %r1, smem; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %cluster_ctarank; xor.b32 %r4, %r3, 1;
  mov.u32 %r9, 40;
again:
  shl.b32 %r5, %r0, 2; add.u32 %r6, %r1, %r5; mapa.shared::cluster.u32 %r7, %r6, %r4;
  st.shared::cluster.u32 [%r7], %r2;
  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
  ld.shared.u32 %r8, [%r6];
  sub.u32 %r9, %r9, 1; setp.ne.u32 %p1, %r9, 0;
  @%p1 bra again;
  mad.lo.u32 %r10, %r2, 32, %r0; mul.wide.u32 %rd10, %r10, 4; add.u64 %rd11, %rd0, %rd10;
  st.global.u32 [%rd11], %r8;
"""


def small_device(waves: int, **options: Any) -> Any:
    chip = small_chip(sm_count=SMS, max_ctas_per_sm=CTAS_PER_SM)
    return simt.Device(chip, waves=waves, **options)


def regular(waves: int, *, grid: int = GRID, **options: Any) -> tuple[Any, list[np.ndarray[Any, Any]]]:
    arrays = [np.arange(grid * THREADS, dtype=np.uint32), np.zeros(grid * THREADS, np.uint32), np.zeros(1, np.uint32)]
    on = small_device(waves, **options)
    result = ptx_lab.run(REGULAR, *arrays, on=on, threads=THREADS, grid=(grid, 1, 1), shared=1024)
    return result, arrays


def test_sampled_launch_has_the_results_and_about_the_cycles_of_the_full_one() -> None:
    full, expected = regular(0)
    sampled, found = regular(3)
    assert full.untimed_ctas == []
    assert sampled.untimed_ctas == [(WAVE, 10 * WAVE)], "the last wave, which is not whole, is simulated too"
    assert all(np.array_equal(a, b) for a, b in zip(expected, found, strict=True))
    assert found[2][0] == GRID
    assert sampled.warp_instructions == full.warp_instructions
    assert sampled.thread_instructions == full.thread_instructions
    assert sampled.cycles == pytest.approx(full.cycles, rel=0.03)
    assert sampled.cycles_per_wave * 9 < sampled.cycles


def test_sampled_launch_is_the_same_for_any_number_of_host_threads() -> None:
    cycles = {regular(3, threads=threads)[0].cycles for threads in (1, 2, 4)}
    assert len(cycles) == 1


def test_waiting_for_ctas_without_time_does_not_begin_before_they_run() -> None:
    """A step of the machine is the latency of L2: the first wave takes more of them than anything is waited for."""
    long = REGULAR.replace("mov.u32 %r9, 20;", "mov.u32 %r9, 1500;")
    chip = small_chip(sm_count=2, max_ctas_per_sm=1, l2_latency=8)
    cycles = []
    for waves in (0, 3):
        arrays = [np.arange(24 * THREADS, dtype=np.uint32), np.zeros(24 * THREADS, np.uint32), np.zeros(1, np.uint32)]
        on = simt.Device(chip, waves=waves)
        result = ptx_lab.run(long, *arrays, on=on, threads=THREADS, grid=(24, 1, 1), shared=1024)
        cycles.append(result.cycles)
    assert cycles[0] > 12 * 4096 * 8, "so many steps to each wave"
    assert cycles[1] == pytest.approx(cycles[0], rel=0.01)


def test_last_wave_costs_what_it_costs_in_a_full_launch() -> None:
    whole, partial = 12 * WAVE, 12 * WAVE + 1
    added = [regular(waves, grid=partial)[0].cycles - regular(waves, grid=whole)[0].cycles for waves in (0, 3)]
    assert added[1] == pytest.approx(added[0], rel=0.1)


@pytest.mark.parametrize("grid", [1, WAVE, 3 * WAVE, 4 * WAVE])
def test_grid_without_whole_waves_to_leave_out_is_simulated_in_full(grid: int) -> None:
    sampled, full = regular(3, grid=grid)[0], regular(0, grid=grid)[0]
    assert sampled.untimed_ctas == []
    assert sampled.cycles == full.cycles


@pytest.mark.parametrize("threads", [1, 2])
def test_clusters_are_sampled_as_wholes(threads: int) -> None:
    grid = 150
    chip = small_chip("h100", sm_count=5, max_ctas_per_sm=3)  # Room for 15 CTAs, so for 7 pairs.
    shape = {"threads": 32, "grid": (grid, 1, 1), "cluster": (2, 1, 1), "target": "sm_90a", "shared": 256}
    outs = [np.zeros((grid, 32), np.uint32) for _ in range(2)]
    full, sampled = (
        ptx_lab.run(PAIRS, out, on=simt.Device(chip, waves=waves, threads=threads), **shape)
        for waves, out in zip((0, 3), outs, strict=True)
    )
    assert sampled.untimed_ctas == [(14, 8 * 14)]
    assert sampled.untimed_waves == 7
    assert np.array_equal(outs[1], np.repeat(np.arange(grid) ^ 1, 32).reshape(grid, 32))
    assert np.array_equal(*outs)
    assert sampled.warp_instructions == full.warp_instructions
    assert sampled.cycles == pytest.approx(full.cycles, rel=0.03)


# As PAIRS, for CTAs at any place of the grid; the event log tells which were simulated in detail.
ANYWHERE = PAIRS.replace(
    "mov.u32 %r2, %ctaid.x;",
    "mov.u32 %r2, %ctaid.z; mov.u32 %r11, %nctaid.y; mov.u32 %r12, %ctaid.y; mad.lo.u32 %r2, %r2, %r11, %r12;"
    "mov.u32 %r11, %nctaid.x; mov.u32 %r12, %ctaid.x; mad.lo.u32 %r2, %r2, %r11, %r12;",
)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("grid", "cluster", "ranges"),
    [
        # The cluster of y and y + 1, or z and z + 1, at an x: of 75, 7 to 55 are without time.
        ((15, 10, 1), (1, 2, 1), [(7, 15), (22, 101), (105, 116)]),
        ((1, 150, 1), (1, 2, 1), [(14, 112)]),
        ((5, 3, 10), (1, 1, 2), [(7, 15), (22, 101), (105, 116)]),
    ],
    ids=["y", "only y", "z"],
)
def test_clusters_along_other_dimensions_are_sampled(
    grid: tuple[int, int, int], cluster: tuple[int, int, int], ranges: list[tuple[int, int]], threads: int
) -> None:
    ctas = 150
    chip = small_chip("h100", sm_count=5, max_ctas_per_sm=3)  # Room for 15 CTAs, so for 7 pairs.
    shape = {"threads": 32, "grid": grid, "cluster": cluster, "target": "sm_90a", "shared": 256, "log": True}
    outs = [np.zeros((ctas, 32), np.uint32) for _ in range(2)]
    full, sampled = (
        ptx_lab.run(ANYWHERE, out, on=simt.Device(chip, waves=waves, threads=threads), **shape)
        for waves, out in zip((0, 3), outs, strict=True)
    )
    assert full.untimed_ctas == []
    assert sampled.untimed_ctas == ranges
    without_time = {cta for begin, end in ranges for cta in range(begin, end)}
    assert set(np.unique(sampled.log["cta"])) == set(range(ctas)) - without_time
    assert np.array_equal(*outs)
    axis = cluster[::-1].index(2)
    partners = np.take(np.arange(ctas).reshape(grid[::-1]), np.arange(grid[::-1][axis]) ^ 1, axis)
    assert np.array_equal(outs[0], np.repeat(partners.ravel(), 32).reshape(ctas, 32))
    assert sampled.cycles == pytest.approx(full.cycles, rel=0.03)


@pytest.mark.parametrize("threads", [1, 2])
def test_ctas_that_wait_for_each_other_go_on(threads: int) -> None:
    grid = 6 * WAVE + 2
    flags = np.zeros(grid, np.uint32)
    result = ptx_lab.run(CHAIN, flags, on=small_device(3, threads=threads), grid=(grid, 1, 1))
    assert result.untimed_ctas == [(WAVE, 4 * WAVE)]
    assert np.array_equal(flags, np.arange(1, grid + 1))


@pytest.mark.parametrize("threads", [1, 2])
def test_ctas_that_wait_for_later_ones_go_on(threads: int) -> None:
    grid = 9 * WAVE + 2
    flags = np.zeros(grid, np.uint32)
    on = small_device(3, threads=threads, instruction_limit=1_000_000)
    result = ptx_lab.run(FORWARD, flags, on=on, grid=(grid, 1, 1))
    assert result.untimed_ctas == [(WAVE, 7 * WAVE)]
    assert flags.all()


def test_wait_for_a_cta_that_has_no_room_is_an_error_that_says_so() -> None:
    body = FORWARD.replace(str(4 * AHEAD), str(8 * WAVE)).replace(str(AHEAD), str(2 * WAVE))
    body = body.replace("wait:", f"  setp.lt.u32 %p3, %r1, {WAVE}; @%p3 bra done;\nwait:")
    on = small_device(3, instruction_limit=1_000_000)
    with pytest.raises(simt.Error, match=f"sampled launch .* further behind than the {WAVE} .*waves = 0") as error:
        ptx_lab.run(body, np.zeros(9 * WAVE, np.uint32), on=on, grid=(9 * WAVE, 1, 1))
    assert error.value.kind == "limit"


def test_warps_that_wait_for_a_clock_or_for_each_other_without_a_barrier_go_on() -> None:
    body = """
      mov.u32 %r1, smem; setp.lt.u32 %p1, %r0, 32;
      mov.u32 %r2, 0; setp.eq.u32 %p2, %r0, 0;
      @%p2 st.shared.u32 [%r1], %r2;
      bar.sync 0;
      @!%p1 bra second;
    spin:
      ld.volatile.shared.u32 %r3, [%r1];
      setp.eq.u32 %p3, %r3, 0;
      @%p3 bra spin;
      bra done;
    second:
      mov.u64 %rd10, %clock64;
    later:
      mov.u64 %rd11, %clock64; sub.u64 %rd12, %rd11, %rd10;
      setp.lt.u64 %p4, %rd12, 2000;
      @%p4 bra later;
      setp.eq.u32 %p5, %r0, 32; mov.u32 %r4, 1;
      @%p5 st.volatile.shared.u32 [%r1], %r4;
    done:
      setp.eq.u32 %p2, %r0, 0;
      @%p2 red.global.add.u32 [%rd0], 1;
    """
    count = np.zeros(1, np.uint32)
    grid = 6 * WAVE
    result = ptx_lab.run(body, count, on=small_device(3), threads=64, grid=(grid, 1, 1), shared=16)
    assert result.untimed_ctas == [(WAVE, 3 * WAVE)]
    assert count[0] == grid


def test_error_in_a_cta_without_time_names_it() -> None:
    wrong = 4 * WAVE + 1
    body = f"""
      mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %r1, {wrong};
      @%p1 ld.global.u32 %r2, [%rd0+64];
    """
    with pytest.raises(simt.Error) as error:
        ptx_lab.run(body, np.zeros(4, np.uint32), on=small_device(3), grid=(9 * WAVE, 1, 1))
    assert (error.value.kind, error.value.cta) == ("out-of-bounds", wrong)


def test_deadlock_of_a_cta_without_time_is_reported() -> None:
    wrong = 4 * WAVE + 1
    body = f"""
      mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %r1, {wrong};
      @%p1 bar.sync 1, 64;
    """
    with pytest.raises(simt.Error) as error:
        ptx_lab.run(body, on=small_device(3), grid=(9 * WAVE, 1, 1))
    assert (error.value.kind, error.value.cta) == ("deadlock", wrong)

"""The timing model: what a figure of the chip file does to the clock, and that time is the same in every run."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from kperfir._native import simt

from support import ptx_lab

CHIP = json.loads(ptx_lab.chip_text())


def figure(name: str) -> int:
    return int(CHIP["figures"][name]["value"])


def cost(name: str, field: str = "latency") -> int:
    return int(CHIP["instructions"][name][field])


def elapsed(body: str, *, before: str = "", **shape: object) -> int:
    """Cycles between the issue of two clock reads around `body`, in warp 0."""
    out = np.zeros(1, np.uint32)
    arrays = shape.pop("arrays", [])
    text = f"{before} nanosleep.u32 100; mov.u32 %r80, %clock; {body} mov.u32 %r81, %clock; sub.u32 %r82, %r81, %r80;"
    text += f"setp.eq.u32 %p9, %r0, 0; @%p9 st.global.u32 [%rd{len(arrays)}], %r82;"
    ptx_lab.run(text, *arrays, out, **shape)
    return int(out[0])


def test_dependent_instructions_wait_for_the_latency() -> None:
    one = elapsed("add.u32 %r1, %r1, %r0;" * 20)
    two = elapsed("add.u32 %r1, %r1, %r0;" * 40)
    assert two - one == 20 * cost("alu")


def test_independent_instructions_wait_for_the_pipe() -> None:
    def body(count: int) -> str:
        return "".join(f"add.u32 %r{1 + i % 16}, %r0, {i};" for i in range(count))

    assert elapsed(body(80)) - elapsed(body(40)) == 40 * cost("alu", "interval")


def test_pipes_of_a_sub_core_work_side_by_side() -> None:
    both = "".join(f"add.u32 %r{1 + i % 16}, %r0, {i}; fma.rn.f32 %f{1 + i % 16}, %f0, %f0, %f0;" for i in range(40))
    # One instruction a cycle: two pipes that take two cycles each are busy all the time.
    assert elapsed(both) <= 2 * 40 + 8


def test_warps_of_different_sub_cores_do_not_share_pipes() -> None:
    body = "".join(f"add.u32 %r{1 + i % 16}, %r0, {i};" for i in range(400))

    def cycles(threads: int) -> int:
        return int(ptx_lab.run(body, np.zeros(1, np.uint32), threads=threads).cycles)

    alone = cycles(32)
    assert cycles(128) == alone
    assert cycles(256) > 1.8 * alone


def test_sizes_of_the_launch_are_read_like_parameters_and_other_special_registers_slowly() -> None:
    def body(name: str, count: int) -> str:
        return "".join(f"mov.u32 %r{1 + i % 16}, %{name};" for i in range(count))

    for name, kind in {
        "nctaid.x": "load-param",
        "ntid.y": "load-param",
        "ctaid.x": "special",
        "tid.x": "special",
    }.items():
        assert elapsed(body(name, 80)) - elapsed(body(name, 40)) == 40 * cost(kind, "interval"), name


def test_shared_load_has_its_latency() -> None:
    body = "ld.shared.u32 %r2, [%r1]; add.u32 %r3, %r2, 1;"
    before = "mov.u32 %r1, smem; st.shared.u32 [%r1], %r0; bar.sync 0; nanosleep.u32 100;"
    assert abs(elapsed(body, before=before, shared=128) - figure("shared_latency")) <= 6


def test_bank_conflicts_cost_a_wavefront_each() -> None:
    def time(stride: int) -> int:
        before = f"""
          mov.u32 %r1, smem;
          mul.lo.u32 %r2, %r0, {stride};
          add.u32 %r1, %r1, %r2;
          st.shared.u32 [%r1], %r0;
          bar.sync 0;
          nanosleep.u32 1000;
        """
        return elapsed("ld.shared.u32 %r3, [%r1]; add.u32 %r4, %r3, 1;", before=before, shared=4096)

    free = time(4)
    assert time(8) - free == 1
    assert time(128) - free == 31
    assert time(0) - free == 0


def test_scheduler_looks_at_all_warps_in_every_cycle() -> None:
    # Four-way conflicts keep the load/store unit behind, warps come to it at different times, and other pipes are busy
    # as well. The figure is that of a scheduler without any look ahead.
    before = """
      mov.u32 %r1, smem; mul.lo.u32 %r2, %r0, 16; add.u32 %r1, %r1, %r2; st.shared.u32 [%r1], %r0; bar.sync 0;
      mov.u32 %r2, %warpid; mul.lo.u32 %r2, %r2, 7; nanosleep.u32 %r2;
    """
    body = "".join(
        f"ld.shared.u32 %r{3 + i % 4}, [%r1]; ex2.approx.f32 %f{1 + i % 4}, %f0; "
        f"add.u32 %r{10 + i % 4}, %r{3 + (i + 2) % 4}, 1; fma.rn.f32 %f{6 + i % 4}, %f{1 + i % 4}, %f0, %f0;"
        for i in range(16)
    )
    assert ptx_lab.run(before + body, np.zeros(1, np.uint32), threads=512, shared=8192).cycles == 1408


def test_scheduler_is_greedy_then_takes_the_oldest() -> None:
    """Warps 0, 4 and 8 share a sub-core: each goes on until it has to wait, and then the oldest that can."""
    busy = "".join(f"add.u32 %r{3 + i % 8}, %r0, {i}; fma.rn.f32 %f{3 + i % 8}, %f0, %f0, %f0;" for i in range(16))
    body = f"bar.sync 0; {busy} ex2.approx.f32 %f1, %f0; ex2.approx.f32 %f1, %f1; ex2.approx.f32 %f1, %f1; {busy}"
    log = ptx_lab.run(body, threads=12 * 32, log=True).log
    instructions = simt.Module(ptx_lab.ptx(body, 0)).instructions
    begin, first, _, last = (pc for pc, (text, _, _) in enumerate(instructions) if text.startswith(("bar", "ex2")))

    def turns(part: np.ndarray) -> list[int]:
        mine = np.flatnonzero(part & (log["warp"] % 4 == 0))
        return [int(warp) for warp, _ in itertools.groupby(log["warp"][mine[np.argsort(log["issue"][mine])]])]

    assert turns((log["pc"] > begin) & (log["pc"] < first)) == [0, 4, 8]
    assert turns(log["pc"] > last) == [0, 4, 8]


def test_global_load_comes_from_dram_then_l2_then_l1() -> None:
    data = np.zeros(1024, np.uint32)
    load = "ld.global{}.u32 %r2, [%rd0]; add.u32 %r3, %r2, 1;"
    miss = elapsed(load.format(""), arrays=[data])
    l1 = elapsed(load.format(""), before=load.format("") + "nanosleep.u32 500;", arrays=[data])
    l2 = elapsed(load.format(".relaxed.gpu").replace("ld.global.relaxed.gpu", "ld.relaxed.gpu.global"),
                 before=load.format("") + "nanosleep.u32 500;", arrays=[data])  # fmt: skip
    assert abs(miss - figure("l2_latency") - figure("dram_latency")) <= 8
    assert abs(l2 - figure("l2_latency")) <= 8
    assert abs(l1 - figure("l1_latency")) <= 8


def test_independent_loads_overlap() -> None:
    data = np.zeros(1024, np.uint32)
    one = elapsed("ld.global.u32 %r2, [%rd0]; add.u32 %r3, %r2, 1;", arrays=[data])
    four = "".join(f"ld.global.u32 %r{2 + i}, [%rd0+{512 * i}];" for i in range(4))
    use = "".join(f"add.u32 %r9, %r9, %r{2 + i};" for i in range(4))
    assert elapsed(four + use, arrays=[data]) < one + 30


def test_store_makes_the_next_load_leave_l1() -> None:
    data = np.zeros(32, np.uint32)
    before = "ld.global.u32 %r2, [%rd0]; add.u32 %r3, %r2, 1; st.global.u32 [%rd0], %r3; nanosleep.u32 1000;"
    time = elapsed("ld.global.u32 %r4, [%rd0]; add.u32 %r5, %r4, 1;", before=before, arrays=[data])
    assert time >= figure("l2_latency")
    assert data[0] == 1


def test_dram_bandwidth_bounds_a_copy() -> None:
    data = np.zeros(4 << 20, np.uint32)
    out = np.zeros_like(data)
    body = """
      mov.u32 %r1, %ctaid.x;
      mad.lo.u32 %r2, %r1, 256, %r0;
      mul.wide.u32 %rd10, %r2, 16;
      add.s64 %rd11, %rd0, %rd10;
      add.s64 %rd12, %rd1, %rd10;
      ld.global.v4.u32 {%r3, %r4, %r5, %r6}, [%rd11];
      st.global.v4.u32 [%rd12], {%r3, %r4, %r5, %r6};
    """
    result = ptx_lab.run(body, data, out, threads=256, grid=(4096, 1, 1))
    seconds = result.cycles / (figure("clock_mhz") * 1e6)
    read = data.nbytes / seconds
    bandwidth = CHIP["figures"]["dram_bytes_per_second"]["value"]
    assert 0.3 * bandwidth < read < bandwidth
    assert result.stats["dram_read_bytes"] == data.nbytes


def test_mma_rate_is_the_peak_of_the_chip() -> None:
    # Independent accumulators: every sub-core's tensor core is always busy.
    mma = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{%f{0}, %f{1}, %f{2}, %f{3}}}, {{%r1, %r1, %r1, %r1}}, {{%r1, %r1}}, {{%f{0}, %f{1}, %f{2}, %f{3}}};"
    body = "".join(mma.format(*range(4 * (i % 8), 4 * (i % 8) + 4)) for i in range(160))
    cycles = elapsed("mov.b32 %r1, 0;" + body, threads=128)
    per_cycle = 160 * 2048 / cycles
    assert 0.9 * figure("mma_f16_per_cycle") < per_cycle < 1.01 * figure("mma_f16_per_cycle")


def test_divergent_sides_are_issued_one_after_the_other() -> None:
    side = "".join(f"add.u32 %r{1 + i % 16}, %r0, {i};" for i in range(100))
    text = f"setp.lt.u32 %p1, %r0, {{}}; @%p1 bra L1; {side} bra L2; L1: {side} L2:"
    both, one = elapsed(text.format(16)), elapsed(text.format(32))
    assert both > 1.8 * one


@pytest.mark.parametrize("read", ["%globaltimer", "%clock64"])
def test_wide_clocks_agree_with_the_narrow_one(read: str) -> None:
    out = np.zeros(2, np.uint64)
    body = f"mov.u32 %r1, %clock; mov.u64 %rd5, {read}; cvt.u64.u32 %rd6, %r1; st.global.u64 [%rd0], %rd6; st.global.u64 [%rd0+8], %rd5;"
    ptx_lab.run(body, out)
    scale = 1000 / figure("clock_mhz") if "globaltimer" in read else 1
    assert abs(int(out[1]) - int(out[0]) * scale) <= 4


def test_clock_goes_on_over_launches() -> None:
    out = np.zeros(1, np.uint32)
    device = ptx_lab.device()
    body = "mov.u32 %r1, %clock; st.global.u32 [%rd0], %r1;"
    first = ptx_lab.run(body, out, on=device)
    one = int(out[0])
    second = ptx_lab.run(body, out, on=device)
    assert int(out[0]) >= one + first.cycles
    assert second.start_cycles >= first.start_cycles + first.cycles + figure("launch_cycles")


def test_ctas_are_placed_breadth_first_and_in_waves() -> None:
    out = np.zeros(2 * 300, np.uint32)
    body = """
      mov.u32 %r1, %ctaid.x;
      mov.u32 %r2, %smid;
      mov.u32 %r3, %clock;
      mul.wide.u32 %rd10, %r1, 8;
      add.s64 %rd11, %rd0, %rd10;
      st.global.u32 [%rd11], %r2;
      st.global.u32 [%rd11+4], %r3;
      nanosleep.u32 5000;
    """
    # 1024 threads: two CTAs on an SM, 216 in the first wave.
    result = ptx_lab.run(body, out, threads=1024, grid=(300, 1, 1))
    assert result.occupancy == 2
    sm, clock = out[::2], out[1::2]
    assert np.array_equal(sm[:216], np.tile(np.arange(108), 2))
    assert clock[:216].max() < clock[216:].min()


BUSY = """
  mov.u32 %r1, %ctaid.x;
  mad.lo.u32 %r2, %r1, 128, %r0;
  mul.wide.u32 %rd10, %r2, 4;
  add.s64 %rd11, %rd0, %rd10;
  mov.u32 %r5, smem;
  shl.b32 %r6, %r0, 2;
  add.u32 %r6, %r5, %r6;
  ld.global.u32 %r3, [%rd11];
  st.shared.u32 [%r6], %r3;
  bar.sync 0;
  xor.b32 %r7, %r6, 64;
  ld.shared.u32 %r4, [%r7];
  and.b32 %r8, %r3, 7;
LOOP:
  add.u32 %r4, %r4, 3;
  setp.ne.u32 %p1, %r8, 0;
  add.u32 %r8, %r8, -1;
  @%p1 bra LOOP;
  red.global.add.u32 [%rd1], %r4;
  mov.u32 %r9, %clock;
  st.global.u32 [%rd11], %r9;
"""


def busy(**options: object) -> tuple[object, ...]:
    """A kernel with everything in it; returns all that it leaves behind."""
    data = np.arange(128 * 500, dtype=np.uint32)
    total = np.zeros(1, np.uint32)
    result = ptx_lab.run(
        BUSY, data, total, on=ptx_lab.device(**options), threads=128, grid=(500, 1, 1), shared=512, log=True
    )
    log = {name: column.tobytes() for name, column in result.log.items()}
    return result.cycles, result.warp_instructions, data.tobytes(), total.tobytes(), log, result.stats


def test_every_run_is_the_same_for_any_number_of_host_threads() -> None:
    first = busy()
    assert busy() == first
    assert busy(threads=2) == first
    assert busy(threads=5) == first


def test_placement_in_host_memory_does_not_matter() -> None:
    def run(offset: int, swap: bool) -> int:
        memory = np.zeros((1 << 20) + 4096, np.uint8)
        start = -memory.ctypes.data % 4096 + offset
        parts = [
            memory[start : start + 256000].view(np.uint32),
            memory[start + 300032 : start + 300036].view(np.uint32),
        ]
        data, total = parts
        if swap:
            data = memory[start + 400000 : start + 656000].view(np.uint32)
        data[:] = np.arange(64000)
        return ptx_lab.run(BUSY, data, total, threads=128, grid=(500, 1, 1), shared=512).cycles

    assert len({run(0, False), run(64, False), run(0, True), run(2048, True)}) == 1


def test_seed_changes_the_outcome_of_a_race() -> None:
    def winner(seed: int) -> int:
        out = np.zeros(1, np.uint32)
        ptx_lab.run("st.global.u32 [%rd0], %r0;", out, on=ptx_lab.device(seed=seed), threads=1024)
        return int(out[0])

    outcomes = {winner(seed) for seed in range(6)}
    assert len(outcomes) > 1
    assert winner(3) == winner(3)


def test_without_timing_the_results_are_the_same() -> None:
    timed, untimed = busy(), busy(timing=False)
    assert timed[1] == untimed[1]
    assert timed[3] == untimed[3]
    assert untimed[0] < timed[0]

"""bar, barrier and mbarrier: who waits, who is released, and what a CTA that can never go on says."""

from __future__ import annotations

import numpy as np
import pytest
from kperfir._native import simt

from support import ptx_lab


def failure(body: str, *arrays: np.ndarray, **shape: object) -> simt.Error:
    with pytest.raises(simt.Error) as caught:
        ptx_lab.run(body, *arrays, **shape)
    return caught.value


@pytest.mark.parametrize("barrier", ["bar.sync 0;", "barrier.sync 3;", "barrier.sync.aligned 3;", "bar.sync 15, 256;"])
def test_barrier_orders_shared_memory_between_warps(barrier: str) -> None:
    target = np.zeros(256, np.uint32)
    body = f"""
      mov.u32 %r1, smem;
      shl.b32 %r2, %r0, 2;
      add.u32 %r3, %r1, %r2;
      st.shared.u32 [%r3], %r0;
      {barrier}
      xor.b32 %r4, %r2, 1020;
      add.u32 %r4, %r1, %r4;
      ld.shared.u32 %r5, [%r4];
      mul.wide.u32 %rd10, %r0, 4;
      add.s64 %rd11, %rd0, %rd10;
      st.global.u32 [%rd11], %r5;
    """
    ptx_lab.run(body, target, threads=256, shared=1024)
    assert np.array_equal(target, np.arange(256)[::-1])


def test_counted_barrier_lets_other_warps_pass() -> None:
    # Warps 0 and 1 meet at barrier 1; warps 2 and 3 do not take part.
    target = np.zeros(128, np.uint32)
    body = """
      setp.ge.u32 %p1, %r0, 64;
      @%p1 bra AFTER;
      bar.sync 1, 64;
    AFTER:
      mul.wide.u32 %rd10, %r0, 4;
      add.s64 %rd11, %rd0, %rd10;
      st.global.u32 [%rd11], 1;
    """
    ptx_lab.run(body, target, threads=128)
    assert target.all()


def test_producer_arrives_without_waiting() -> None:
    # Warp 0 produces and arrives; warp 1 waits for it.
    target = np.zeros(32, np.uint32)
    body = """
      mov.u32 %r1, smem;
      and.b32 %r2, %r0, 31;
      shl.b32 %r2, %r2, 2;
      add.u32 %r3, %r1, %r2;
      setp.ge.u32 %p1, %r0, 32;
      @%p1 bra CONSUME;
      st.shared.u32 [%r3], %r0;
      bar.arrive 2, 64;
      bra DONE;
    CONSUME:
      bar.sync 2, 64;
      ld.shared.u32 %r4, [%r3];
      cvt.u64.u32 %rd10, %r2;
      add.s64 %rd11, %rd0, %rd10;
      st.global.u32 [%rd11], %r4;
    DONE:
    """
    ptx_lab.run(body, target, threads=64, shared=128)
    assert np.array_equal(target, np.arange(32))


def test_warps_that_have_ended_are_not_waited_for() -> None:
    target = np.zeros(128, np.uint32)
    body = """
      setp.ge.u32 %p1, %r0, 64;
      @%p1 ret;
      bar.sync 0;
      mul.wide.u32 %rd10, %r0, 4;
      add.s64 %rd11, %rd0, %rd10;
      st.global.u32 [%rd11], 1;
    """
    ptx_lab.run(body, target, threads=128)
    assert target.sum() == 64


@pytest.mark.parametrize(("operation", "expected"), [("popc.u32 %r5", 40), ("and.pred %p2", 0), ("or.pred %p2", 1)])
def test_barrier_reduces_a_predicate(operation: str, expected: int) -> None:
    target = np.zeros(64, np.uint32)
    convert = "" if "popc" in operation else "selp.u32 %r5, 1, 0, %p2;"
    body = f"""
      setp.lt.u32 %p1, %r0, 40;
      bar.red.{operation}, 0, %p1;
      {convert}
      mul.wide.u32 %rd10, %r0, 4;
      add.s64 %rd11, %rd0, %rd10;
      st.global.u32 [%rd11], %r5;
    """
    ptx_lab.run(body, target, threads=64)
    assert (target == expected).all()


def test_release_comes_after_the_last_arrival() -> None:
    # Warp 1 works for long before it arrives; warp 0 reads the clock before and after.
    target = np.zeros(2, np.uint32)
    body = """
      setp.lt.u32 %p1, %r0, 32;
      @%p1 bra WAIT;
      nanosleep.u32 1000;
      mov.u32 %r3, %clock;
      bar.sync 0;
      st.global.u32 [%rd0+4], %r3;
      bra DONE;
    WAIT:
      bar.sync 0;
      mov.u32 %r2, %clock;
      st.global.u32 [%rd0], %r2;
    DONE:
    """
    ptx_lab.run(body, target, threads=64)
    after, arrival = int(target[0]), int(target[1])
    assert 15 <= after - arrival <= 40


def test_missing_arrival_is_a_deadlock_that_names_the_warps() -> None:
    body = """
      setp.ge.u32 %p1, %r0, 32;
      @%p1 bra OTHER;
      bar.sync 1, 64;
      bra DONE;
    OTHER:
      bar.sync 2, 64;
    DONE:
    """
    error = failure(body, np.zeros(1, np.uint32), threads=64)
    assert error.kind == "deadlock"
    assert "warp 0 waits at `bar.sync 1, 64" in error.message
    assert "warp 1 waits at `bar.sync 2, 64" in error.message
    assert error.cta == 0


def test_deadlocked_cta_is_found_while_others_end() -> None:
    body = "mov.u32 %r1, %ctaid.x; setp.ne.u32 %p1, %r1, 7; @%p1 ret; bar.sync 1, 64;"
    error = failure(body, np.zeros(1, np.uint32), grid=(300, 1, 1))
    assert (error.kind, error.cta) == ("deadlock", 7)


def test_diverged_warp_at_an_aligned_barrier_is_refused() -> None:
    body = "setp.lt.u32 %p1, %r0, 16; @%p1 bra SKIP; bar.sync 0; SKIP: mov.u32 %r1, 0;"
    error = failure(body, np.zeros(1, np.uint32))
    assert error.kind == "deadlock"
    assert "16 of 32 lanes" in error.message


def test_barrier_count_must_be_whole_warps() -> None:
    assert failure("bar.sync 0, 33;", np.zeros(1, np.uint32)).kind in ("unsupported", "parse")


MBARRIER = """
  mov.u32 %r1, smem;
  setp.ne.u32 %p1, %r0, 0;
  @!%p1 mbarrier.init.shared::cta.b64 [%r1], {count};
  bar.sync 0;
"""


def test_mbarrier_phase_ends_with_the_last_arrival() -> None:
    # 64 threads arrive; all spin on the parity, then read what the others wrote.
    target = np.zeros(64, np.uint32)
    body = (
        MBARRIER.format(count=64)
        + """
      shl.b32 %r2, %r0, 2;
      add.u32 %r3, %r1, %r2;
      st.shared.u32 [%r3+8], %r0;
      mbarrier.arrive.shared::cta.b64 %rd5, [%r1];
    WAIT:
      mbarrier.test_wait.parity.shared::cta.b64 %p2, [%r1], 0;
      @!%p2 bra WAIT;
      xor.b32 %r4, %r2, 252;
      add.u32 %r4, %r1, %r4;
      ld.shared.u32 %r5, [%r4+8];
      mul.wide.u32 %rd10, %r0, 4;
      add.s64 %rd11, %rd0, %rd10;
      st.global.u32 [%rd11], %r5;
    """
    )
    ptx_lab.run(body, target, threads=64, shared=8 + 256)
    assert np.array_equal(target, np.arange(64)[::-1])


def test_mbarrier_waits_by_state_over_several_phases() -> None:
    target = np.zeros(1, np.uint32)
    body = (
        MBARRIER.format(count=32)
        + """
      mov.u32 %r6, 0;
    LOOP:
      mbarrier.arrive.shared.b64 %rd5, [%r1];
    WAIT:
      mbarrier.test_wait.shared.b64 %p2, [%r1], %rd5;
      @!%p2 bra WAIT;
      add.u32 %r6, %r6, 1;
      setp.lt.u32 %p3, %r6, 5;
      @%p3 bra LOOP;
      mbarrier.pending_count.b64 %r7, %rd5;
      @!%p1 st.global.u32 [%rd0], %r6;
      mbarrier.inval.shared.b64 [%r1];
    """
    ).replace("mbarrier.inval.shared.b64 [%r1];", "@!%p1 mbarrier.inval.shared.b64 [%r1];")
    ptx_lab.run(body, target, shared=8)
    assert target[0] == 5


def test_mbarrier_try_wait_suspends_and_wakes() -> None:
    # Warp 1 suspends in try_wait while warp 0 sleeps; it must wake soon after the arrival.
    target = np.zeros(2, np.uint32)
    body = (
        MBARRIER.format(count=1)
        + """
      setp.ge.u32 %p3, %r0, 32;
      @%p3 bra WAIT;
      nanosleep.u32 2000;
      @!%p1 mbarrier.arrive.shared::cta.b64 _, [%r1];
      mov.u32 %r3, %clock;
      @!%p1 st.global.u32 [%rd0], %r3;
      bra DONE;
    WAIT:
      mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 0;
      @!%p2 bra WAIT;
      mov.u32 %r4, %clock;
      st.global.u32 [%rd0+4], %r4;
    DONE:
    """
    )
    result = ptx_lab.run(body, target, threads=64, shared=8)
    assert 0 < int(target[1]) - int(target[0]) < 100
    assert result.warp_instructions < 60  # Nobody spun.


def test_mbarrier_nobody_arrives_at_is_a_deadlock() -> None:
    body = MBARRIER.format(count=1) + "W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 0; @!%p2 bra W;"
    assert failure(body, np.zeros(1, np.uint32), shared=8).kind == "deadlock"


def test_mbarrier_must_be_initialised_and_aligned() -> None:
    arrive = "mov.u32 %r1, smem; mbarrier.arrive.shared::cta.b64 _, [%r1+{}];"
    assert failure(arrive.format(0), np.zeros(1, np.uint32), shared=16).kind == "uninitialised"
    assert failure(arrive.format(4), np.zeros(1, np.uint32), shared=16).kind == "misaligned"
    assert failure(arrive.format(16), np.zeros(1, np.uint32), shared=16).kind == "out-of-bounds"


def test_too_many_arrivals_are_refused() -> None:
    body = MBARRIER.format(count=40) + "mbarrier.arrive.shared::cta.b64 _, [%r1], 41;"
    assert "more arrivals" in failure(body, np.zeros(1, np.uint32), shared=8).message

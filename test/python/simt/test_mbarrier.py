"""mbarrier: what test_barriers.py leaves to sm_90: transactions, drops, tokens, and warps that wait for others."""

from __future__ import annotations

import numpy as np
import pytest
from kperfir._native import simt

from support import ptx_lab

INIT = """
  mov.u32 %r1, smem; setp.eq.u32 %p1, %r0, 0;
  @%p1 mbarrier.init.shared::cta.b64 [%r1], {count};
  bar.sync 0;
"""
STORE = "mul.wide.u32 %rd10, %r0, 4; add.s64 %rd10, %rd0, %rd10; st.global.u32 [%rd10], {value};"


def run(body: str, *arrays: np.ndarray, count: int = 1, threads: int = 32, **shape: object) -> object:
    return ptx_lab.run(INIT.format(count=count) + body, *arrays, target="sm_90a", threads=threads, shared=64, **shape)


def pending(body: str, count: int) -> list[int]:
    """`test_wait` of parity 0 and 1 after `body`, which one thread executes."""
    out = np.zeros(2, np.uint32)
    tail = "".join(
        f"mbarrier.test_wait.parity.shared::cta.b64 %p2, [%r1], {parity}; selp.u32 %r9, 1, 0, %p2; st.global.u32 [%rd0+{4 * parity}], %r9;"
        for parity in (0, 1)
    )
    run(body + tail, out, count=count, threads=1)
    return out.tolist()


DONE, OPEN = [1, 0], [0, 1]


@pytest.mark.parametrize(
    ("body", "count", "expected"),
    [
        ("mbarrier.arrive.shared::cta.b64 _, [%r1];", 1, DONE),
        ("mbarrier.arrive.shared::cta.b64 _, [%r1];", 2, OPEN),
        ("mbarrier.arrive.shared::cta.b64 _, [%r1], 2;", 2, DONE),
        ("mbarrier.arrive.release.cta.shared::cta.b64 %rd5, [%r1];", 1, DONE),
        ("mbarrier.arrive.noComplete.shared::cta.b64 %rd5, [%r1], 1;", 2, OPEN),
        ("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 64;", 1, OPEN),
        ("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 0;", 1, DONE),
        ("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 64; mbarrier.complete_tx.shared::cta.b64 [%r1], 64;", 1, DONE),
        ("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 64; mbarrier.complete_tx.shared::cta.b64 [%r1], 32;", 1, OPEN),
        ("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r1], 64; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 64;", 1, DONE),
        ("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r1], 8; mbarrier.arrive.shared::cta.b64 _, [%r1];", 1, OPEN),
        # A drop counts once now, and lowers what the next phase needs: 2, then 1.
        ("mbarrier.arrive_drop.shared::cta.b64 %rd5, [%r1]; mbarrier.arrive.shared::cta.b64 _, [%r1];", 2, DONE),
        ("mbarrier.arrive_drop.shared::cta.b64 %rd5, [%r1]; mbarrier.arrive.shared::cta.b64 _, [%r1]; mbarrier.arrive.shared::cta.b64 _, [%r1];", 2, OPEN),
        ("mbarrier.arrive_drop.expect_tx.shared::cta.b64 _, [%r1], 8; mbarrier.complete_tx.shared::cta.b64 [%r1], 8; mbarrier.arrive.shared::cta.b64 _, [%r1];", 2, DONE),
        ("mbarrier.arrive_drop.noComplete.shared::cta.b64 %rd5, [%r1], 1; mbarrier.arrive.shared::cta.b64 _, [%r1];", 2, DONE),
    ],
)  # fmt: skip
def test_each_form_of_arrival(body: str, count: int, expected: list[int]) -> None:
    assert pending(body, count) == expected


@pytest.mark.parametrize("form", ["test_wait", "try_wait"])
def test_wait_for_a_token(form: str) -> None:
    out = np.zeros(32, np.uint32)
    body = f"""
      mbarrier.arrive.shared::cta.b64 %rd5, [%r1];
      mbarrier.{form}.shared::cta.b64 %p2, [%r1], %rd5;
      selp.u32 %r9, 1, 0, %p2;
    """
    run(body + STORE.format(value="%r9"), out, count=32)
    assert out.all()


def test_pending_count_of_a_token() -> None:
    out = np.zeros(32, np.uint32)
    run(
        "mbarrier.arrive.shared::cta.b64 %rd5, [%r1]; mbarrier.pending_count.b64 %r9, %rd5;"
        + STORE.format(value="%r9"),
        out,
        count=32,
    )
    assert sorted(out) == list(range(1, 33))


def test_waiting_warp_executes_nothing() -> None:
    out = np.zeros(64, np.uint32)
    body = f"""
      setp.lt.u32 %p3, %r0, 32;
      @%p3 bra consume;
      nanosleep.u32 20000;
      setp.eq.u32 %p4, %r0, 32;
      @%p4 mbarrier.arrive.shared::cta.b64 _, [%r1];
      bra done;
    consume:
      mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 0, 1000;
      @!%p2 bra.uni consume;
      mov.u32 %r9, %clock;
      {STORE.format(value="%r9")}
    done:
      bar.sync 1;
    """
    result = run(body, out, threads=64, log=True)
    instructions = simt.Module(ptx_lab.ptx(INIT.format(count=1) + body, 1, target="sm_90a")).instructions
    [wait] = [pc for pc, (text, _, _) in enumerate(instructions) if "try_wait" in text]
    [arrive] = [pc for pc, (text, _, _) in enumerate(instructions) if "mbarrier.arrive" in text]
    log = result.log
    assert np.count_nonzero(log["pc"] == wait) == 1
    woken = int(log["complete"][log["pc"] == wait][0])
    arrived = int(log["issue"][log["pc"] == arrive][0])
    # FlashGPU-Sim's figure for the wake-up.
    assert woken - arrived == 32
    assert out[:32].min() >= woken


def test_wait_without_an_arrival_is_a_deadlock_with_its_line() -> None:
    with pytest.raises(simt.Error) as caught:
        run("wait: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 0; @!%p2 bra.uni wait;")
    assert caught.value.kind == "deadlock"
    assert "try_wait" in caught.value.message


def test_more_arrivals_than_the_phase_expects_is_an_error() -> None:
    with pytest.raises(simt.Error) as caught:
        run("mbarrier.arrive.shared::cta.b64 _, [%r1], 3;", count=2, threads=1)
    assert caught.value.kind == "out-of-bounds"


def test_invalidated_mbarrier_may_not_be_used() -> None:
    with pytest.raises(simt.Error) as caught:
        run("mbarrier.inval.shared::cta.b64 [%r1]; mbarrier.arrive.shared::cta.b64 _, [%r1];", threads=1)
    assert caught.value.kind == "uninitialised"


def test_elect_and_hints() -> None:
    out = np.zeros(32, np.uint32)
    body = """
      setmaxnreg.dec.sync.aligned.u32 40; griddepcontrol.wait; griddepcontrol.launch_dependents;
      elect.sync %r8|%p2, -1;
      selp.u32 %r9, 1, 0, %p2;
      setmaxnreg.inc.sync.aligned.u32 232;
    """
    run(body + STORE.format(value="%r9"), out)
    assert out.sum() == 1

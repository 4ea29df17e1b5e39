"""The event log: the device's own account of when instructions issued and completed."""

from __future__ import annotations

import numpy as np
import pytest
from kperfir._native import simt

from support import ptx_lab

BODY = """
  mov.u32 %r1, %clock;
  ld.global.u32 %r2, [%rd0];
  add.u32 %r3, %r2, 1;
  mov.u32 %r4, %clock;
  bar.sync 0;
  mul.wide.u32 %rd10, %r0, 8;
  add.s64 %rd11, %rd1, %rd10;
  st.global.u32 [%rd11], %r1;
  st.global.u32 [%rd11+4], %r4;
"""


def logged(**options: object) -> tuple[simt.Module, dict[str, np.ndarray], np.ndarray]:
    module = simt.Module(ptx_lab.ptx(BODY, 2))
    data, out = np.zeros(32, np.uint32), np.zeros((96, 2), np.uint32)
    result = ptx_lab.launch(module, data, out, threads=96, log=True, **options)
    if "free" not in options:
        assert len(result.log["issue"]) == result.warp_instructions
    return module, result.log, out


def entries(module: simt.Module, log: dict[str, np.ndarray], text: str, warp: int) -> np.ndarray:
    pcs = [i for i, (ptx, _, _) in enumerate(module.instructions) if text in ptx]
    return np.flatnonzero(np.isin(log["pc"], pcs) & (log["warp"] == warp))


def test_clock_reads_return_their_issue_cycle() -> None:
    module, log, out = logged()
    for warp in range(3):
        rows = entries(module, log, "%clock", warp)
        assert np.array_equal(log["value"][rows], log["issue"][rows].astype(np.uint32))
        assert np.array_equal(log["value"][rows], out[32 * warp])


def test_load_completes_before_its_use_issues() -> None:
    module, log, _ = logged()
    for warp in range(3):
        (load,), (use,) = entries(module, log, "ld.global", warp), entries(module, log, "add.u32 %r3", warp)
        assert log["complete"][load] == log["issue"][use]
        assert log["complete"][load] - log["issue"][load] >= 200


def test_barrier_completes_for_all_warps_at_once() -> None:
    module, log, _ = logged()
    rows = np.concatenate([entries(module, log, "bar.sync", warp) for warp in range(3)])
    assert len(set(log["complete"][rows])) == 1
    assert log["complete"][rows[0]] > log["issue"][rows].max()


def test_warps_issue_in_program_order() -> None:
    module, log, _ = logged()
    for warp in range(3):
        mine = log["warp"] == warp
        assert (np.diff(log["issue"][mine].astype(np.int64)) > 0).all()
        assert (np.diff(log["pc"][mine]) > 0).all()
    assert len(module.instructions) == log["pc"].max() + 1


def test_free_instructions_take_no_time() -> None:
    module = simt.Module(ptx_lab.ptx(BODY, 2))
    free = bytes("st.global" in text or "%clock" in text for text, _, _ in module.instructions)
    _, log, _ = logged(free=free)
    rows = entries(module, log, "%clock", 0)
    following = rows + 1
    # The clock reads issue with the instruction that follows them.
    assert log["issue"][rows[0]] <= log["issue"][following[0]]
    all_free = bytes(1 for _ in module.instructions)
    data, out = np.zeros(32, np.uint32), np.zeros((96, 2), np.uint32)
    result = ptx_lab.launch(module, data, out, threads=96, free=all_free)
    assert result.warp_instructions == 0


# Loads, arithmetic and shared memory of sixteen warps, and between them what a profiler would add: FREE.
WORK = """
  mov.u32 %r1, smem; shl.b32 %r2, %r0, 2; add.u32 %r3, %r1, %r2;
  FREE
  ld.global.u32 %r4, [%rd0];
  FREE
  st.shared.u32 [%r3], %r0;
  FREE
  bar.sync 0;
  FREE
  ld.shared.u32 %r5, [%r3];
  FREE
  add.u32 %r6, %r5, %r4;
  FREE
  div.u32 %r7, %r6, %r4;
  FREE
  mul.wide.u32 %rd10, %r0, 4; add.s64 %rd11, %rd1, %rd10;
  st.global.u32 [%rd11], %r7;
"""
# With addresses and values that are still being computed.
ADDED = "mov.u32 %r20, %clock; st.shared.u32 [%r3+4096], %r20; add.u32 %r20, %r7, %r5;"


def test_free_instructions_change_nothing_for_the_others() -> None:
    issues = []
    for added in ("", ADDED):
        module = simt.Module(ptx_lab.ptx(WORK.replace("FREE", added), 2))
        free = bytes("%r20" in text for text, _, _ in module.instructions)
        data, out = np.ones(32, np.uint32), np.zeros(512, np.uint32)
        log = ptx_lab.launch(module, data, out, threads=512, shared=8192, log=True, free=free).log
        assert np.array_equal(out, np.arange(512) + 1)
        counts = ~np.frombuffer(free, bool)[log["pc"]]
        order = np.lexsort((log["pc"][counts], log["warp"][counts]))
        issues.append(log["issue"][counts][order] - log["issue"].min())
    assert np.array_equal(*issues)


@pytest.mark.parametrize(("flag", "waits"), [(1, False), (2, True)])
def test_what_is_free_waits_for_its_operands_if_it_is_told_to(flag: int, waits: bool) -> None:
    body = "mov.u32 %r1, %tid.y; add.u32 %r20, %r1, 1; mov.u32 %r2, 7;"
    module = simt.Module(ptx_lab.ptx(body, 1))
    free = bytes(flag if "%r20" in text else 0 for text, _, _ in module.instructions)
    log = ptx_lab.launch(module, np.zeros(1, np.uint32), log=True, free=free).log
    ((read,), (own,), (after,)) = (entries(module, log, text, 0) for text in ("%tid.y", "%r20", "mov.u32 %r2,"))
    assert (log["issue"][own] == log["complete"][read]) == waits
    assert log["issue"][own] == log["issue"][after] or not waits


def test_a_result_that_nobody_reads_holds_up_nobody() -> None:
    body = "atom.global.add.u32 %r20, [%rd0], 1; mov.u32 %r21, 5; st.global.u32 [%rd0+4], %r21;"
    module = simt.Module(ptx_lab.ptx(body, 1))
    log = ptx_lab.launch(module, np.zeros(2, np.uint32), log=True).log
    (atom,), (move,) = entries(module, log, "atom", 0), entries(module, log, "mov.u32 %r21", 0)
    assert log["complete"][atom] - log["issue"][atom] > 200
    assert log["issue"][move] <= log["issue"][atom] + 2


@pytest.mark.parametrize(("space", "waits"), [("", True), (".shared::cta", False)])
def test_a_fence_of_shared_memory_does_not_wait_for_stores_elsewhere(space: str, waits: bool) -> None:
    body = f"st.global.u32 [%rd0], %r0; fence.proxy.async{space}; mov.u32 %r21, 5;"
    module = simt.Module(ptx_lab.ptx(body, 1, target="sm_90a"))
    log = ptx_lab.launch(module, np.zeros(1, np.uint32), on=ptx_lab.device("h100"), log=True).log
    (store,), (move,) = entries(module, log, "st.global", 0), entries(module, log, "mov.u32 %r21", 0)
    assert (log["issue"][move] - log["issue"][store] > 100) == waits


def test_no_log_unless_asked_for() -> None:
    assert ptx_lab.run("mov.u32 %r1, 0;", np.zeros(1, np.uint32)).log is None

"""cp.async.bulk without a tensor map, its groups, and what goes wrong with it."""

from __future__ import annotations

import numpy as np
import pytest
from kperfir._native import simt

from support import ptx_lab
from support.tensor_maps import aligned_like

BARRIER = 8192
INIT = ptx_lab.mbarrier_prologue(BARRIER)
INIT += """
  shl.b32 %r3, %r0, 2; add.u32 %r4, %r1, %r3; cvt.u64.u32 %rd20, %r3;
  add.s64 %rd21, %rd0, %rd20; add.s64 %rd22, %rd1, %rd20;
"""
WAIT = ptx_lab.MBARRIER_WAIT
FILL = "ld.global.u32 %r5, [%rd21]; st.shared.u32 [%r4], %r5; fence.proxy.async.shared::cta; bar.sync 0;"


def words(count: int = 32, seed: int = 0) -> np.ndarray:
    return aligned_like(np.random.default_rng(seed).integers(0, 2**31, count, dtype=np.uint32))


def run(body: str, *arrays: np.ndarray, **shape: object) -> object:
    return ptx_lab.run(INIT + body, *arrays, target="sm_90a", **{"shared": BARRIER + 8} | shape)


@pytest.mark.parametrize("size", [16, 64, 128])
@pytest.mark.parametrize("space", ["shared::cta", "shared::cluster"])
def test_load_arrives_with_the_mbarrier(size: int, space: str) -> None:
    source, target = words(), np.zeros(32, np.uint32)
    body = f"""
      @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], {size};
      @%p1 cp.async.bulk.{space}.global.mbarrier::complete_tx::bytes [%r1], [%rd0], {size}, [%r2];
      {WAIT}
      setp.lt.u32 %p3, %r0, {size // 4};
      @%p3 ld.shared.u32 %r5, [%r4];
      @%p3 st.global.u32 [%rd22], %r5;
    """
    run(body, source, target)
    assert np.array_equal(target[: size // 4], source[: size // 4])
    assert not target[size // 4 :].any()


def test_expected_bytes_may_come_before_they_are_expected() -> None:
    source, target = words(), np.zeros(32, np.uint32)
    body = f"""
      @%p1 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%rd0], 128, [%r2];
      nanosleep.u32 2000;
      @%p1 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r2], 128;
      @%p1 mbarrier.arrive.shared::cta.b64 _, [%r2];
      {WAIT}
      ld.shared.u32 %r5, [%r4]; st.global.u32 [%rd22], %r5;
    """
    run(body, source, target)
    assert np.array_equal(target, source)


@pytest.mark.parametrize("wait", ["wait_group.read", "wait_group"])
def test_store_to_global(wait: str) -> None:
    source, target = words(), aligned_like(np.zeros(32, np.uint32))
    body = (
        FILL
        + f"@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 64; cp.async.bulk.commit_group; cp.async.bulk.{wait} 0;"
    )
    run(body, source, target)
    assert np.array_equal(target[:16], source[:16])
    assert not target[16:].any()


REDUCTIONS = {
    "add.u32": np.add, "min.u32": np.minimum, "max.u32": np.maximum, "and.b32": np.bitwise_and,
    "or.b32": np.bitwise_or, "xor.b32": np.bitwise_xor,
}  # fmt: skip


@pytest.mark.parametrize("operation", REDUCTIONS)
def test_reduction_to_global(operation: str) -> None:
    source, target = words(), words(seed=1)
    expected = REDUCTIONS[operation](target, source)
    body = (
        FILL
        + f"""
      @%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group.{operation} [%rd1], [%r1], 128;
      cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
    """
    )
    run(body, source, target)
    assert np.array_equal(target, expected)


def test_groups_are_waited_for_in_order() -> None:
    source, target = words(), aligned_like(np.zeros(32, np.uint32))
    body = (
        FILL
        + """
      @%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 64; cp.async.bulk.commit_group;
      add.s64 %rd10, %rd1, 64; add.u32 %r6, %r1, 64;
      @%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd10], [%r6], 64; cp.async.bulk.commit_group;
      cp.async.bulk.wait_group 1;
      cp.async.bulk.wait_group 0;
    """
    )
    result = run(body, source, target, log=True)
    assert np.array_equal(target, source)
    texts = [text for text, _, _ in simt.Module(ptx_lab.ptx(INIT + body, 2, target="sm_90a")).instructions]

    def ends(fragment: str) -> list[int]:
        pcs = [pc for pc, text in enumerate(texts) if fragment in text]
        return [int(result.log["complete"][result.log["pc"] == pc].max()) for pc in pcs]

    copies = ends("cp.async.bulk.global")
    assert copies[0] < copies[1]
    assert ends("wait_group 1")[0] >= copies[0]
    assert ends("wait_group 0")[0] >= copies[1]


def test_prefetch_brings_lines_to_l2() -> None:
    source = words(1024)
    result = run("@%p1 cp.async.bulk.prefetch.L2.global [%rd0], 4096;", source, source)
    assert result.stats["dram_read_bytes"] >= 4096


@pytest.mark.parametrize(
    ("copy", "kind"),
    [
        ("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%rd0], 24, [%r2];", "misaligned"),
        ("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%rd0+4], 16, [%r2];", "misaligned"),
        ("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%rd0], 256, [%r2];", "out-of-bounds"),
        (
            "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1+8192], [%rd0], 16, [%r2];",
            "out-of-bounds",
        ),
        ("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%rd0], 16, [%r1];", "uninitialised"),
        ("cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 16;", "uninitialised"),
    ],
)
def test_wrong_copy_is_an_error(copy: str, kind: str) -> None:
    with pytest.raises(simt.Error) as caught:
        run("@%p1 " + copy, words(), words())
    assert caught.value.kind == kind
    assert caught.value.opcode.startswith("cp.async.bulk")
    assert caught.value.lane == 0


def test_store_to_read_only_memory_is_an_error() -> None:
    body = FILL + "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 16;"
    with pytest.raises(simt.Error) as caught:
        run(body, words(), words(), read_only=[1])
    assert caught.value.kind == "out-of-bounds"
    assert "read-only" in caught.value.message


def test_groups_that_are_only_waited_for_until_read_are_forgotten_when_they_end() -> None:
    # 3000 stores in flight one after the other; the wait at the end knows of the last ones alone, and of no older one.
    source, target = words(), aligned_like(np.zeros(32, np.uint32))
    store = "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 128; cp.async.bulk.commit_group;"
    body = (
        FILL
        + f"""
      mov.u32 %r9, 0;
    again:
      {store} cp.async.bulk.wait_group.read 0;
      add.u32 %r9, %r9, 1; setp.lt.u32 %p3, %r9, 3000;
      @%p3 bra again;
      cp.async.bulk.wait_group 0;
    """
    )
    run(body, source, target)
    assert np.array_equal(target, source)

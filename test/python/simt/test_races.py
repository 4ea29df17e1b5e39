"""Accesses that nothing orders against an asynchronous unit: reported with their place, and only if they happen.

The product multiplies two tiles of ones: m64n8k16, so that every sum is 16.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from kperfir._native import simt

from support import ptx_lab
from support.tensor_maps import aligned_like

THREADS = 128
B_AT = 8192
BARRIER = 16384
# Rows of 8 x 16 bytes, no swizzle: the halves of k 128 bytes apart, groups of 8 rows 256.
DESCRIPTOR = (128 >> 4) << 16 | (256 >> 4) << 32
SETUP = f"""
  .reg .f32 %acc<4>;
  mov.b32 %acc0, 0f00000000; mov.b32 %acc1, 0f00000000; mov.b32 %acc2, 0f00000000; mov.b32 %acc3, 0f00000000;
  mov.u32 %r1, smem; shl.b32 %r2, %r0, 4; add.u32 %r2, %r2, %r1;
  mov.b32 %r3, 0x3C003C00; mov.b32 %r10, %r3; mov.b32 %r11, %r3; mov.b32 %r12, %r3; mov.b32 %r13, %r3;
  setp.eq.u32 %p1, %r0, 0;
  @%p1 mbarrier.init.shared::cta.b64 [%r1+{BARRIER}], 1;
  st.shared.v4.b32 [%r2], {{%r3, %r3, %r3, %r3}};
  st.shared.v4.b32 [%r2+{B_AT}], {{%r3, %r3, %r3, %r3}};
  cvt.u64.u32 %rd1, %r1; shr.u64 %rd2, %rd1, 4; or.b64 %rd2, %rd2, {DESCRIPTOR};
  add.u64 %rd3, %rd1, {B_AT}; shr.u64 %rd3, %rd3, 4; or.b64 %rd3, %rd3, {DESCRIPTOR};
  shl.b32 %r4, %r0, 2; cvt.u64.u32 %rd4, %r4; add.s64 %rd4, %rd4, %rd0;
"""
FENCE = "fence.proxy.async.shared::cta; bar.sync 0;"
SUMS = "{%acc0, %acc1, %acc2, %acc3}"
FORM = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"
MULTIPLY = f"wgmma.fence.sync.aligned; {FORM} {SUMS}, %rd2, %rd3, 1, 1, 1, 0, 0; wgmma.commit_group.sync.aligned;"
FROM_REGISTERS = f"wgmma.fence.sync.aligned; {FORM} {SUMS}, {{%r10, %r11, %r12, %r13}}, %rd3, 1, 1, 1, 0;"
FROM_REGISTERS += "wgmma.commit_group.sync.aligned;"
WAIT = "wgmma.wait_group.sync.aligned {};"
STORE = "st.global.f32 [%rd4], %acc0;"


def run(body: str, *, setup: str = SETUP + FENCE) -> np.ndarray:
    out = np.zeros(THREADS, np.float32)
    ptx_lab.run(setup + body, out, target="sm_90a", threads=THREADS, shared=BARRIER + 8)
    return out


def race(body: str, *, setup: str = SETUP + FENCE) -> simt.Error:
    with pytest.raises(simt.Error) as caught:
        run(body, setup=setup)
    assert caught.value.kind == "race"
    assert caught.value.kernel == "kernel"
    assert caught.value.ptx_line > 0
    assert caught.value.cta == 0
    assert caught.value.warp >= 0
    return caught.value


ORDERED = {
    "waited": MULTIPLY + WAIT.format(0) + STORE,
    "follows": MULTIPLY + MULTIPLY + WAIT.format(0) + STORE,
    "older group": MULTIPLY + WAIT.format(0) + "mov.b32 %r20, %acc0;" + MULTIPLY + WAIT.format(0) + STORE,
    "registers": FROM_REGISTERS + WAIT.format(0) + "mov.b32 %r10, 0;" + STORE,
    "reads operands": MULTIPLY + "ld.shared.b32 %r20, [%r1];" + WAIT.format(0) + STORE,
    "writes elsewhere": MULTIPLY + "st.shared.b32 [%r2+4096], %r3;" + WAIT.format(0) + STORE,
    "branch not taken": MULTIPLY + "setp.gt.u32 %p2, %r0, 1000; @%p2 bra use;" + WAIT.format(0) + "use:" + STORE,
    "loop": "mov.b32 %r20, 0; again:" + MULTIPLY + WAIT.format(0) + "add.f32 %acc0, %acc0, %acc1; add.u32 %r20, %r20, 1;"
    "setp.lt.u32 %p2, %r20, 4; @%p2 bra again;" + STORE,
}  # fmt: skip


@pytest.mark.parametrize("name", ORDERED)
def test_programs_that_wait_are_not_reported(name: str) -> None:
    assert (run(ORDERED[name]) > 0).all()


def test_product_is_right() -> None:
    assert (run(MULTIPLY + WAIT.format(0) + STORE) == 16).all()


@pytest.mark.parametrize(
    "use", [STORE, "add.f32 %f1, %acc3, %acc3;", "mov.b32 %acc1, 0f00000000;", "setp.gt.f32 %p2, %acc2, 0f00000000;"]
)
def test_sums_are_used_before_the_wait(use: str) -> None:
    error = race(MULTIPLY + use + WAIT.format(0))
    assert "wgmma.wait_group is missing" in error.message
    assert "has still to write" in error.message


def test_sums_of_the_group_that_may_be_pending_are_used() -> None:
    race(MULTIPLY + WAIT.format(1) + STORE)


def test_sums_of_products_without_a_group_are_used() -> None:
    race(MULTIPLY.replace("wgmma.commit_group.sync.aligned;", "") + WAIT.format(0) + STORE)


def test_sums_of_the_last_iteration_are_used_at_the_begin_of_the_next() -> None:
    body = "mov.b32 %r20, 0; again: add.f32 %acc0, %acc0, %acc1;" + MULTIPLY
    race(body + "add.u32 %r20, %r20, 1; setp.lt.u32 %p2, %r20, 4; @%p2 bra again;" + WAIT.format(0) + STORE)


def test_operand_in_registers_is_changed_before_the_wait() -> None:
    error = race(FROM_REGISTERS + "mov.b32 %r11, 0;" + WAIT.format(0) + STORE + "st.global.b32 [%rd4], %r11;")
    assert "still reads" in error.message


UNFENCED = MULTIPLY.replace("wgmma.fence.sync.aligned; ", "")
UNFENCED_REGISTERS = FROM_REGISTERS.replace("wgmma.fence.sync.aligned; ", "")
OTHER_SHAPE = UNFENCED.replace("m64n8k16.f32.f16.f16", "m64n8k8.f32.tf32.tf32").replace("1, 0, 0;", "1;")
WAITED = MULTIPLY + WAIT.format(0)
FENCED = {
    "products follow": MULTIPLY + UNFENCED + WAIT.format(0) + STORE,
    "moved after the fence": "add.f32 %acc0, %acc0, %acc0; wgmma.fence.sync.aligned; mov.b32 %f1, %acc0; mov.b32 %acc0, %f1;"
    + UNFENCED + WAIT.format(0) + STORE,
    "zeros after the fence": "wgmma.fence.sync.aligned; mov.b32 %acc0, 0f00000000;" + UNFENCED + WAIT.format(0) + STORE,
    "sums are dropped": WAITED + "add.f32 %acc0, %acc0, %acc0;" + UNFENCED.replace("%rd3, 1,", "%rd3, 0,") + WAIT.format(0) + STORE,
    "other registers": WAITED + "add.f32 %f1, %f2, %f2;" + UNFENCED + WAIT.format(0) + STORE,
    "used after the last": WAITED + "add.f32 %acc0, %acc0, %acc0;" + STORE,
    "path not taken": WAITED + "setp.gt.u32 %p2, %r0, 1000; @!%p2 bra on; add.f32 %acc0, %acc0, %acc0; on:"
    + UNFENCED + WAIT.format(0) + STORE,
    "shape that is fenced": WAITED + MULTIPLY.replace(UNFENCED, OTHER_SHAPE) + WAIT.format(0) + STORE,
    "A is fenced": "add.u32 %r10, %r10, 0;" + FROM_REGISTERS + WAIT.format(0) + STORE,
}  # fmt: skip


@pytest.mark.parametrize("name", FENCED)
def test_programs_that_fence_registers_are_not_reported(name: str) -> None:
    assert (run(FENCED[name]) > 0).all()


LACKING = {
    "sum is written": (WAITED + "add.f32 %acc0, %acc0, %acc0;" + UNFENCED, "an accumulator that the add.f32 of line"),
    "sum is read": (WAITED + "add.f32 %f1, %acc0, %acc0;" + UNFENCED, "an accumulator that the add.f32 of line"),
    "sum is moved": (WAITED + "add.f32 %f1, %acc0, %acc0; mov.b32 %acc1, %f1;" + UNFENCED, "an accumulator that the add.f32"),
    "sum is loaded": (WAITED + "ld.global.f32 %acc2, [%rd4];" + UNFENCED, "an accumulator that the ld.global.f32 of line"),
    "in a loop": (WAITED + "mov.b32 %r20, 0; again:" + UNFENCED + WAIT.format(0)
      + "mul.f32 %acc0, %acc0, %acc1; add.u32 %r20, %r20, 1; setp.lt.u32 %p2, %r20, 4; @%p2 bra again;", "that the mul.f32 of line"),
    "in some lanes": (WAITED + "@%p1 add.f32 %acc0, %acc0, %acc0;" + UNFENCED, "an accumulator that the add.f32 of line"),
    "A is written": (WAITED + "add.u32 %r11, %r10, 0;" + UNFENCED_REGISTERS, "a part of A that the add.u32 of line"),
    "other shape": (WAITED + OTHER_SHAPE, "an accumulator that the wgmma.mma_async.sync.aligned.m64n8k16"),
    "no fence at all": (UNFENCED, "no wgmma.fence comes before the first product"),
}  # fmt: skip


@pytest.mark.parametrize("name", LACKING)
def test_registers_of_a_product_are_touched_without_a_fence(name: str) -> None:
    body, what = LACKING[name]
    error = race(body + WAIT.format(0) + STORE)
    assert what in error.message
    assert "wgmma.fence" in error.message
    lines = ptx_lab.ptx(SETUP + FENCE + body, 1, target="sm_90a").splitlines()
    assert "wgmma.mma_async" in lines[error.ptx_line - 1]
    if "of line" in error.message:
        touched = re.search(r"of line (\d+) of the PTX", error.message)
        assert touched
        assert what.split("the ")[1].split(" of")[0] in lines[int(touched[1]) - 1]


@pytest.mark.parametrize("offset", [0, B_AT], ids=["a", "b"])
def test_operand_in_memory_is_stored_to_before_the_wait(offset: int) -> None:
    error = race(MULTIPLY + f"@%p1 st.shared.b32 [%r1+{offset}], %r3;" + WAIT.format(0) + STORE)
    assert error.lane == 0
    assert error.address == offset
    assert "still reads" in error.message


def test_operand_is_filled_by_a_bulk_copy_before_the_wait() -> None:
    copy = f"@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1+{BARRIER}], 64; add.u32 %r21, %r1, {BARRIER};"
    copy += "@%p1 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%rd0], 64, [%r21];"
    error = race(MULTIPLY + copy + "nanosleep.u32 2000;" + WAIT.format(0) + STORE)
    assert "still reads" in error.message


def test_operand_is_stored_without_a_proxy_fence() -> None:
    assert "fence.proxy.async is missing" in race(MULTIPLY + WAIT.format(0), setup=SETUP + "bar.sync 0;").message


def test_other_fences_are_no_proxy_fence() -> None:
    race(MULTIPLY + WAIT.format(0), setup=SETUP + "membar.cta; fence.mbarrier_init.release.cluster; bar.sync 0;")


def test_bulk_copy_reads_what_has_not_been_fenced() -> None:
    out = aligned_like(np.zeros(32, np.uint32))
    store = "mov.u32 %r1, smem; shl.b32 %r2, %r0, 2; add.u32 %r2, %r2, %r1; st.shared.u32 [%r2], %r0;"
    copy = "setp.eq.u32 %p1, %r0, 0; @%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r1], 128;"
    copy += "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"
    shape = {"target": "sm_90a", "shared": 128}
    with pytest.raises(simt.Error, match=r"fence\.proxy\.async is missing"):
        ptx_lab.run(store + "bar.sync 0;" + copy, out, **shape)
    ptx_lab.run(store + "fence.proxy.async.shared::cta; bar.sync 0;" + copy, out, **shape)
    assert np.array_equal(out, np.arange(32))

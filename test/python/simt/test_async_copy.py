"""cp.async: data, zero fill, groups, completion through an mbarrier, and reads that come too early."""

from __future__ import annotations

import numpy as np
import pytest
from kperfir._native import simt

from support import ptx_lab

COPY = """
  mov.u32 %r1, smem;
  mul.lo.u32 %r2, %r0, {size};
  add.u32 %r3, %r1, %r2;
  mul.wide.u32 %rd10, %r0, {size};
  add.s64 %rd11, %rd0, %rd10;
  add.s64 %rd12, %rd1, %rd10;
"""
READ = {4: "u32 %r5", 8: "u64 %rd5", 16: "v4.u32 {%r5, %r6, %r7, %r8}"}


def store_back(size: int, *, to: str = "%rd12", address: str = "%r3") -> str:
    """Shared to global, `size` bytes per thread."""
    kind, register = READ[size].split(" ", 1)
    return f"ld.shared.{kind} {register}, [{address}]; st.global.{kind} [{to}], {register};"


def failure(body: str, *arrays: np.ndarray, **shape: object) -> simt.Error:
    with pytest.raises(simt.Error) as caught:
        ptx_lab.run(body, *arrays, **shape)
    return caught.value


@pytest.mark.parametrize(("size", "cache"), [(4, "ca"), (8, "ca"), (16, "ca"), (16, "cg")])
@pytest.mark.parametrize("wait", ["cp.async.commit_group; cp.async.wait_group 0;", "cp.async.wait_all;"])
def test_copy_arrives_after_the_wait(size: int, cache: str, wait: str) -> None:
    source = np.random.default_rng(0).integers(0, 256, 64 * size, dtype=np.uint8)
    target = np.zeros_like(source)
    body = COPY.format(size=size) + f"cp.async.{cache}.shared.global [%r3], [%rd11], {size}; {wait} bar.sync 0;"
    ptx_lab.run(body + store_back(size), source, target, threads=64, shared=64 * size)
    assert np.array_equal(source, target)


@pytest.mark.parametrize("source_bytes", [0, 1, 7, 16])
def test_bytes_behind_the_source_size_are_zero(source_bytes: int) -> None:
    source = np.full(32 * 16, 0xAB, np.uint8)
    target = np.full_like(source, 0xCD)
    body = (
        COPY.format(size=16)
        + f"""
      mov.u32 %r4, {source_bytes};
      cp.async.cg.shared.global [%r3], [%rd11], 16, %r4;
      cp.async.wait_all;
    """
    )
    ptx_lab.run(body + store_back(16), source, target, shared=512)
    expected = np.zeros((32, 16), np.uint8)
    expected[:, :source_bytes] = 0xAB
    assert np.array_equal(target, expected.ravel())


def test_source_of_a_zero_fill_is_not_touched() -> None:
    target = np.full(32 * 16, 0xCD, np.uint8)
    body = (
        COPY.format(size=16)
        + """
      mov.u64 %rd11, 0;
      mov.u32 %r4, 0;
      cp.async.cg.shared.global [%r3], [%rd11], 16, %r4;
      cp.async.wait_all;
    """
    )
    ptx_lab.run(body + store_back(16), np.zeros(1, np.uint8), target, shared=512)
    assert not target.any()


def test_wait_group_leaves_the_newest_pending() -> None:
    source = np.arange(64, dtype=np.uint32)
    target = np.zeros(32, np.uint32)
    body = (
        COPY.format(size=4)
        + """
      cp.async.ca.shared.global [%r3], [%rd11], 4;
      cp.async.commit_group;
      cp.async.ca.shared.global [%r3+128], [%rd11+128], 4;
      cp.async.commit_group;
      cp.async.wait_group 1;
    """
    )
    ptx_lab.run(body + store_back(4), source, target, shared=256)
    assert np.array_equal(target, source[:32])
    error = failure(body + store_back(4, address="%r3+128"), source, target, shared=256)
    assert error.kind == "uninitialised"


@pytest.mark.parametrize("wait", ["", "cp.async.commit_group;", "cp.async.wait_group 0;"])
def test_read_before_the_wait_is_diagnosed(wait: str) -> None:
    # The last case waits for groups, but the copy was never committed to one.
    source = np.arange(32, dtype=np.uint32)
    body = COPY.format(size=4) + f"cp.async.ca.shared.global [%r3], [%rd11], 4; {wait} nanosleep.u32 10000;"
    error = failure(body + store_back(4), source, np.zeros(32, np.uint32), shared=128)
    assert error.kind == "uninitialised"
    assert "cp.async" in error.message
    assert "wait_group" in error.message


def test_overwriting_a_buffer_that_is_still_read_is_diagnosed() -> None:
    # The second copy goes where the load still reads: a stage too few.
    source = np.arange(32, dtype=np.uint32)
    body = (
        COPY.format(size=4)
        + """
      cp.async.ca.shared.global [%r3], [%rd11], 4;
      cp.async.wait_all;
      cp.async.ca.shared.global [%r3], [%rd11], 4;
    """
    )
    assert failure(body + store_back(4), source, np.zeros(32, np.uint32), shared=128).kind == "uninitialised"


def test_copy_of_unmapped_memory_names_the_thread() -> None:
    body = COPY.format(size=4) + "cp.async.ca.shared.global [%r3], [%rd11], 4; cp.async.wait_all;"
    error = failure(body, np.zeros(20, np.uint32), np.zeros(1, np.uint32), shared=128)
    assert (error.kind, error.lane) == ("out-of-bounds", 20)


def test_misaligned_copy_is_refused() -> None:
    body = COPY.format(size=16) + "cp.async.cg.shared.global [%r3], [%rd11+4], 16;"
    assert failure(body, np.zeros(1024, np.uint8), np.zeros(1, np.uint8), shared=512).kind == "misaligned"


@pytest.mark.parametrize("noinc", [True, False])
def test_completion_arrives_at_an_mbarrier(noinc: bool) -> None:
    source = np.arange(64, dtype=np.uint32)
    target = np.zeros(64, np.uint32)
    # Without .noinc the instruction adds its own pending arrival, so each thread must arrive besides.
    arrive = "" if noinc else "mbarrier.arrive.shared.b64 _, [%r9];"
    body = (
        COPY.format(size=4)
        + f"""
      add.u32 %r9, %r1, 256;
      setp.eq.u32 %p1, %r0, 0;
      @%p1 mbarrier.init.shared.b64 [%r9], 64;
      bar.sync 0;
      cp.async.ca.shared.global [%r3], [%rd11], 4;
      cp.async.mbarrier.arrive{".noinc" if noinc else ""}.shared.b64 [%r9];
      {arrive}
    WAIT:
      mbarrier.test_wait.parity.shared.b64 %p2, [%r9], 0;
      @!%p2 bra WAIT;
      xor.b32 %r4, %r2, 252;
      add.u32 %r4, %r1, %r4;
    """
    )
    ptx_lab.run(body + store_back(4, address="%r4"), source, target, threads=64, shared=264)
    assert np.array_equal(target, source[::-1])


def test_arrival_comes_after_copies_that_queue_for_the_memory_unit() -> None:
    """Each copy of a warp takes the unit four cycles, so that the last ones begin after the arrival has issued."""
    copies, threads = 12, 128
    source = np.arange(copies * threads * 4, dtype=np.uint32)
    target = np.zeros_like(source)
    places = range(0, copies * threads * 16, threads * 16)
    body = (
        COPY.format(size=16)
        + f"""
      add.u32 %r9, %r1, {source.nbytes};
      setp.eq.u32 %p1, %r0, 0;
      @%p1 mbarrier.init.shared.b64 [%r9], {threads};
      bar.sync 0;
      {"".join(f"cp.async.cg.shared.global [%r3+{place}], [%rd11+{place}], 16;" for place in places)}
      cp.async.mbarrier.arrive.noinc.shared.b64 [%r9];
    WAIT:
      mbarrier.test_wait.parity.shared.b64 %p2, [%r9], 0;
      @!%p2 bra WAIT;
    """
        + "".join(store_back(16, to=f"%rd12+{place}", address=f"%r3+{place}") for place in places)
    )
    result = ptx_lab.run(body, source, target, threads=threads, shared=source.nbytes + 8)
    assert np.array_equal(target, source)
    assert result.cycles < 5000


def test_wait_takes_until_memory_has_answered() -> None:
    target = np.zeros(2, np.uint32)
    body = (
        COPY.format(size=4)
        + """
      mov.u32 %r10, %clock;
      cp.async.ca.shared.global [%r3], [%rd11], 4;
      cp.async.commit_group;
      mov.u32 %r11, %clock;
      cp.async.wait_group 0;
      mov.u32 %r12, %clock;
      sub.u32 %r11, %r11, %r10;
      sub.u32 %r12, %r12, %r10;
      st.global.u32 [%rd1], %r11;
      st.global.u32 [%rd1+4], %r12;
    """
    )
    ptx_lab.run(body, np.zeros(32, np.uint32), target, shared=128)
    assert target[0] < 30  # Issue does not wait.
    assert target[1] >= 390  # L2 and DRAM of the A100.

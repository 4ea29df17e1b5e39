"""Clusters: special registers, mapa, distributed shared memory, barrier.cluster, remote mbarriers, multicast."""

from __future__ import annotations

import numpy as np
import pytest
from kperfir._native import simt

from support import ptx_lab
from support.tensor_maps import aligned_like, tensor_map

CLUSTER_BARRIER = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
# %r1 shared memory, %r5 rank, %r6 linear CTA, %rd10 place of the CTA's 32 words in a0.
PROLOGUE = """
  mov.u32 %r1, smem;
  mov.u32 %r5, %cluster_ctarank;
  mov.u32 %r6, %ctaid.x;
  shl.b32 %r7, %r6, 5; add.u32 %r7, %r7, %r0; mul.wide.u32 %rd10, %r7, 4; add.s64 %rd10, %rd0, %rd10;
"""


def run(body: str, *arrays: np.ndarray, size: int = 2, clusters: int = 2, **shape: object) -> object:
    return ptx_lab.run(
        PROLOGUE + body,
        *arrays,
        target="sm_90a",
        **{"shared": 1024, "grid": (size * clusters, 1, 1), "cluster": (size, 1, 1)} | shape,
    )


REGISTERS = {
    "%cluster_ctarank": lambda x, y: x % 2 + 2 * (y % 3),
    "%cluster_nctarank": lambda x, y: 6 + 0 * x,
    "%cluster_ctaid.x": lambda x, y: x % 2,
    "%cluster_ctaid.y": lambda x, y: y % 3,
    "%cluster_nctaid.x": lambda x, y: 2 + 0 * x,
    "%cluster_nctaid.y": lambda x, y: 3 + 0 * x,
    "%clusterid.x": lambda x, y: x // 2,
    "%clusterid.y": lambda x, y: y // 3,
    "%nclusterid.x": lambda x, y: 2 + 0 * x,
    "%nclusterid.y": lambda x, y: 2 + 0 * x,
    "%ctaid.x": lambda x, y: x,
}


@pytest.mark.parametrize("register", REGISTERS)
def test_special_registers(register: str) -> None:
    out = np.zeros((6, 4), np.uint32)
    body = f"""
      mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ctaid.y; mad.lo.u32 %r4, %r3, 4, %r2;
      mul.wide.u32 %rd10, %r4, 4; add.s64 %rd10, %rd0, %rd10;
      mov.u32 %r8, {register}; st.global.u32 [%rd10], %r8;
    """
    ptx_lab.run(body, out, target="sm_90a", threads=1, grid=(4, 6, 1), cluster=(2, 3, 1))
    y, x = np.indices(out.shape)
    assert np.array_equal(out, REGISTERS[register](x, y))


@pytest.mark.parametrize("size", [2, 4, 8])
@pytest.mark.parametrize("generic", [False, True])
def test_load_from_the_next_cta(size: int, generic: bool) -> None:
    out = np.zeros((size * 3, 32), np.uint32)
    address = (
        "cvta.shared.u64 %rd11, %rd12; mapa.u64 %rd11, %rd11, %r9; ld.u32 %r11, [%rd11];"
        if generic
        else "mapa.shared::cluster.u32 %r10, %r8, %r9; ld.shared::cluster.u32 %r11, [%r10];"
    )
    body = f"""
      shl.b32 %r8, %r0, 2; add.u32 %r8, %r8, %r1; cvt.u64.u32 %rd12, %r8;
      shl.b32 %r9, %r6, 8; add.u32 %r9, %r9, %r0; st.shared.u32 [%r8], %r9;
      {CLUSTER_BARRIER}
      add.u32 %r9, %r5, 1; rem.u32 %r9, %r9, {size};
      {address}
      st.global.u32 [%rd10], %r11;
      {CLUSTER_BARRIER}
    """
    run(body, out, size=size, clusters=3)
    cta = np.arange(size * 3)
    neighbour = cta // size * size + (cta + 1) % size
    assert np.array_equal(out, neighbour[:, None] * 256 + np.arange(32))


@pytest.mark.parametrize(
    "what",
    [
        "st.shared::cluster.u32 [%r10], %r9;",
        "red.shared::cluster.add.u32 [%r10], %r9;",
        "atom.shared::cluster.add.u32 %r12, [%r10], %r9;",
    ],
)
def test_writes_to_the_other_cta(what: str) -> None:
    out = np.zeros((4, 32), np.uint32)
    body = f"""
      shl.b32 %r8, %r0, 2; add.u32 %r8, %r8, %r1; mov.u32 %r9, 0; st.shared.u32 [%r8], %r9;
      {CLUSTER_BARRIER}
      xor.b32 %r9, %r5, 1;
      mapa.shared::cluster.u32 %r10, %r8, %r9;
      shl.b32 %r9, %r6, 8; add.u32 %r9, %r9, %r0;
      {what}
      {CLUSTER_BARRIER}
      ld.shared.u32 %r11, [%r8]; st.global.u32 [%rd10], %r11;
    """
    run(body, out)
    assert np.array_equal(out, (np.arange(4) ^ 1)[:, None] * 256 + np.arange(32))


@pytest.mark.parametrize("space", ["shared::cluster", "generic"])
def test_load_from_both_ctas_at_once(space: str) -> None:
    out = np.zeros((2, 32), np.uint32)
    load = {
        "shared::cluster": "ld.shared::cluster.u32 %r11, [%r10];",
        "generic": "cvt.u64.u32 %rd11, %r10; cvta.shared::cluster.u64 %rd11, %rd11; ld.u32 %r11, [%rd11];",
    }[space]
    body = f"""
      shl.b32 %r8, %r0, 2; add.u32 %r8, %r8, %r1; shl.b32 %r9, %r6, 8; add.u32 %r9, %r9, %r0; st.shared.u32 [%r8], %r9;
      {CLUSTER_BARRIER}
      and.b32 %r9, %r0, 1; mapa.shared::cluster.u32 %r10, %r8, %r9;
      {load}
      shfl.sync.bfly.b32 %r12, %r11, 1, 31, -1; add.u32 %r11, %r11, %r12;
      st.global.u32 [%rd10], %r11;
      {CLUSTER_BARRIER}
    """
    run(body, out, clusters=1)
    lane = np.arange(32)
    assert np.array_equal(out, np.tile(256 + lane + (lane ^ 1), (2, 1)))


def test_atomic_of_another_cta_returns_what_was_there() -> None:
    out = np.zeros((2, 32), np.uint32)
    body = f"""
      setp.eq.u32 %p1, %r0, 0; mov.u32 %r9, 100; @%p1 st.shared.u32 [%r1], %r9;
      {CLUSTER_BARRIER}
      xor.b32 %r9, %r5, 1; mapa.shared::cluster.u32 %r10, %r1, %r9;
      atom.shared::cluster.add.u32 %r11, [%r10], 1;
      st.global.u32 [%rd10], %r11;
      {CLUSTER_BARRIER}
    """
    run(body, out, clusters=1)
    assert np.array_equal(out, np.tile(100 + np.arange(32), (2, 1)))


@pytest.mark.parametrize(
    ("form", "own"), [("shared::cluster.u32", "r1"), ("shared::cluster.u64", "rd5"), ("u64", "rd6")]
)
def test_getctarank_undoes_mapa(form: str, own: str) -> None:
    out = np.zeros((4, 32), np.uint32)
    other = "%rd8" if form.endswith("64") else "%r10"
    body = f"""
      cvt.u64.u32 %rd5, %r1; cvta.shared.u64 %rd6, %rd5;
      mapa.{form} {other}, %{own}, 1; getctarank.{form} %r11, {other};
      getctarank.{form} %r12, %{own}; shl.b32 %r12, %r12, 8; or.b32 %r11, %r11, %r12;
      st.global.u32 [%rd10], %r11;
    """
    run(body, out)
    assert np.array_equal(out, np.repeat((np.arange(4) % 2 * 256 + 1)[:, None], 32, axis=1))


# Every lane sends what it has to its place in the other CTA, whose mbarrier expects all of it.
def asynchronous(send: str, size: int) -> str:
    return f"""
      setp.eq.u32 %p1, %r0, 0; @%p1 mbarrier.init.shared::cta.b64 [%r1], 1;
      @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], {32 * size};
      mad.lo.u32 %r8, %r0, {size}, %r1; add.u32 %r8, %r8, 512;
      mad.lo.u32 %r11, %r6, 1000, %r0; add.u32 %r12, %r11, 500;
      cvt.u64.u32 %rd6, %r11; st.shared.u32 [%r8], 7;
      {CLUSTER_BARRIER}
      xor.b32 %r9, %r5, 1;
      mapa.shared::cluster.u32 %r10, %r1, %r9; mapa.shared::cluster.u32 %r13, %r8, %r9;
      {send}
    wait:
      mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r1], 0;
      @!%p2 bra.uni wait;
      ld.shared.u32 %r14, [%r8+{size - 4}];
      st.global.u32 [%rd10], %r14;
      {CLUSTER_BARRIER}
    """


@pytest.mark.parametrize(
    ("form", "values", "size", "added"),
    [
        ("b32", "%r11", 4, 0),
        ("v2.b32", "{%r11, %r12}", 8, 500),
        ("v4.u32", "{%r11, %r11, %r11, %r12}", 16, 500),
        ("v2.b64", "{%rd6, %rd6}", 16, None),
    ],
)
def test_asynchronous_store_to_another_cta(form: str, values: str, size: int, added: int | None) -> None:
    out = np.zeros((2, 32), np.uint32)
    send = f"st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.{form} [%r13], {values}, [%r10];"
    run(asynchronous(send, size), out, clusters=1)
    lane = np.arange(32)
    expected = np.zeros((2, 32)) if added is None else np.array([1000 + lane, lane]) + added
    assert np.array_equal(out, expected)


def test_asynchronous_reduction_in_another_cta() -> None:
    out = np.zeros((2, 32), np.uint32)
    send = """red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32
        [%r13], %r11, [%r10];"""
    run(asynchronous(send, 4), out, clusters=1)
    assert np.array_equal(out, np.array([1000 + np.arange(32), np.arange(32)]) + 7)


def test_what_an_asynchronous_store_is_filling_cannot_be_read() -> None:
    """From the end of the step of time in which it is sent until its mbarrier is told."""

    def kind(delay: int) -> str:
        clock = "mov.u32 %r15, %clock;\n{0}: mov.u32 %r16, %clock; sub.u32 %r16, %r16, %r15;"
        clock += " setp.lt.u32 %p3, %r16, {1}; @%p3 bra {0};\n"
        send = clock.format("early", delay)
        send += "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r13], %r11, [%r10];\n"
        send += clock.format("later", 100) + "ld.shared.u32 %r14, [%r8];"
        try:
            run(asynchronous(send, 4), np.zeros((2, 32), np.uint32), clusters=1)
        except simt.Error as error:
            return str(error.kind)
        return "none"

    assert {kind(delay) for delay in range(0, 240, 40)} == {"none", "uninitialised"}


def test_mbarrier_of_an_asynchronous_store_is_beside_its_data() -> None:
    send = "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r13], %r11, [%r1];"
    with pytest.raises(simt.Error, match="not in the CTA that the data goes to"):
        run(asynchronous(send, 4), np.zeros((2, 32), np.uint32), clusters=1)


def test_barrier_waits_for_the_slowest_cta() -> None:
    out = np.zeros((2, 32), np.uint32)
    body = f"""
      setp.eq.u32 %p1, %r5, 1; mov.u32 %r8, 0; selp.u32 %r8, 5000, 0, %p1; nanosleep.u32 %r8;
      {CLUSTER_BARRIER}
      mov.u32 %r9, %clock; st.global.u32 [%rd10], %r9;
    """
    result = run(body, out, clusters=1)
    assert out.min() - result.start_cycles > 5000 * 1.83


def test_ended_ctas_are_not_waited_for() -> None:
    out = np.zeros((2, 32), np.uint32)
    body = f"setp.eq.u32 %p1, %r5, 1; @%p1 ret; {CLUSTER_BARRIER} st.global.u32 [%rd10], 1;"
    run(body, out, clusters=1)
    assert out[0].all()


@pytest.mark.parametrize(
    "arrive",
    [
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r10];",
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r10], 1;",
    ],
)
def test_arrival_at_the_mbarrier_of_another_cta(arrive: str) -> None:
    out = np.zeros((2, 32), np.uint32)
    body = f"""
      setp.eq.u32 %p1, %r0, 0; @%p1 mbarrier.init.shared::cta.b64 [%r1], 32;
      {CLUSTER_BARRIER}
      xor.b32 %r9, %r5, 1; mapa.shared::cluster.u32 %r10, %r1, %r9;
      {arrive}
    wait:
      mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r1], 0;
      @!%p2 bra.uni wait;
      st.global.u32 [%rd10], 1;
      {CLUSTER_BARRIER}
    """
    run(body, out, clusters=1)
    assert out.all()


@pytest.mark.parametrize(("offset", "kind"), [(0, "out-of-bounds"), (4, "misaligned")])
def test_arrival_at_another_cta_that_its_mbarrier_does_not_expect(offset: int, kind: str) -> None:
    body = f"""
      setp.eq.u32 %p1, %r0, 0; @%p1 mbarrier.init.shared::cta.b64 [%r1], 2; st.shared.u32 [%r1+8], %r0;
      {CLUSTER_BARRIER}
      xor.b32 %r9, %r5, 1; mapa.shared::cluster.u32 %r10, %r1, %r9;
      setp.eq.u32 %p2, %r0, 5;
      @%p2 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r10+{offset}], 3;
      {CLUSTER_BARRIER}
    """
    with pytest.raises(simt.Error) as caught:
        run(body, np.zeros((2, 32), np.uint32), clusters=1)
    assert caught.value.kind == kind
    assert caught.value.lane == 5
    assert "mbarrier" in caught.value.message
    assert caught.value.ptx_line > 0


def test_copy_to_another_cta_completes_its_mbarrier() -> None:
    out = np.zeros((2, 32), np.uint32)
    body = f"""
      setp.eq.u32 %p1, %r0, 0; add.u32 %r2, %r1, 512;
      @%p1 mbarrier.init.shared::cta.b64 [%r2], 1;
      shl.b32 %r8, %r0, 2; add.u32 %r8, %r8, %r1; shl.b32 %r9, %r6, 8; add.u32 %r9, %r9, %r0; st.shared.u32 [%r8], %r9;
      fence.proxy.async.shared::cta;
      {CLUSTER_BARRIER}
      xor.b32 %r9, %r5, 1; add.u32 %r11, %r1, 256;
      mapa.shared::cluster.u32 %r10, %r11, %r9; mapa.shared::cluster.u32 %r12, %r2, %r9;
      @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 128;
      @%p1 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r10], [%r1], 128, [%r12];
    wait:
      mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0;
      @!%p2 bra.uni wait;
      ld.shared.u32 %r13, [%r8+256]; st.global.u32 [%rd10], %r13;
      {CLUSTER_BARRIER}
    """
    run(body, out, clusters=1)
    assert np.array_equal(out, (np.arange(2) ^ 1)[:, None] * 256 + np.arange(32))


@pytest.mark.parametrize("mask", [1, 2, 3, 13, 15])
def test_multicast_reaches_the_ctas_of_its_mask(mask: int) -> None:
    tensor = aligned_like(np.random.default_rng(0).integers(0, 2**31, (8, 32), dtype=np.uint32))
    out = np.zeros((4, 32), np.uint32)
    body = f"""
      setp.eq.u32 %p1, %r0, 0; add.u32 %r2, %r1, 512;
      @%p1 mbarrier.init.shared::cta.b64 [%r2], 1;
      @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 128;
      {CLUSTER_BARRIER}
      setp.eq.and.u32 %p3, %r5, 0, %p1; mov.b32 %r10, 0; mov.b32 %r11, 3; mov.b16 %h1, {mask};
      @%p3 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
        [%r1], [%rd1, {{%r10, %r11}}], [%r2], %h1;
      mov.b32 %r12, {mask}; shr.u32 %r12, %r12, %r5; and.b32 %r12, %r12, 1; setp.eq.u32 %p4, %r12, 0;
      @%p4 bra done;
    wait:
      mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0;
      @!%p2 bra.uni wait;
      shl.b32 %r8, %r0, 2; add.u32 %r8, %r8, %r1; ld.shared.u32 %r13, [%r8]; st.global.u32 [%rd10], %r13;
    done:
      {CLUSTER_BARRIER}
    """
    run(body, out, tensor_map(tensor, (1, 32)), tensor, size=4, clusters=1)
    for rank in range(4):
        assert np.array_equal(out[rank], tensor[3] if mask >> rank & 1 else np.zeros(32))


def failure(body: str, *arrays: np.ndarray, **shape: object) -> simt.Error:
    with pytest.raises(simt.Error) as caught:
        run(body, *arrays, **shape)
    return caught.value


def test_cta_that_does_not_exist_is_an_error() -> None:
    error = failure(
        "mapa.shared::cluster.u32 %r10, %r1, 7; ld.shared::cluster.u32 %r11, [%r10];", np.zeros(128, np.uint32)
    )
    assert error.kind == "out-of-bounds"
    assert "CTA 7" in error.message


def test_memory_of_another_cta_that_nobody_wrote_is_an_error() -> None:
    body = f"{CLUSTER_BARRIER} xor.b32 %r9, %r5, 1; mapa.shared::cluster.u32 %r10, %r1, %r9; ld.shared::cluster.u32 %r11, [%r10]; {CLUSTER_BARRIER}"
    assert failure(body, np.zeros(128, np.uint32)).kind == "uninitialised"


def test_missing_arrival_is_a_deadlock() -> None:
    body = "setp.eq.u32 %p1, %r5, 1; @!%p1 barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; @%p1 bar.sync 1, 64;"
    assert failure(body, np.zeros(128, np.uint32)).kind == "deadlock"


def test_grid_must_be_a_multiple_of_the_cluster() -> None:
    with pytest.raises(ValueError, match="multiple of the cluster"):
        run("", np.zeros(128, np.uint32), grid=(3, 1, 1))


def test_cycles_do_not_depend_on_host_threads() -> None:
    body = f"{CLUSTER_BARRIER} st.global.u32 [%rd10], 1; {CLUSTER_BARRIER}"
    cycles = {
        run(body, np.zeros((8, 32), np.uint32), clusters=4, on=ptx_lab.device("h100", threads=threads)).cycles
        for threads in (1, 3)
    }
    assert len(cycles) == 1

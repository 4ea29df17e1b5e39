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


class Mbarrier:
    """What PTX says of an mbarrier: a plain model."""

    def __init__(self, count: int) -> None:
        self.expected = self.pending = count
        self.bytes, self.phase = 0, 0

    def complete_if_done(self) -> None:
        if self.pending == 0 and self.bytes == 0:
            self.phase, self.pending = self.phase ^ 1, self.expected

    def arrive(self, count: int = 1, *, expects: int = 0, drops: bool = False) -> None:
        self.bytes += expects
        self.pending -= count
        self.expected -= count if drops else 0
        self.complete_if_done()

    def complete(self, count: int) -> None:
        self.bytes -= count
        self.complete_if_done()


ORDERS = ("", ".release.cta", ".release.cluster", ".relaxed.cta", ".relaxed.cluster")
COUNTING = ("", ".relaxed.cta", ".relaxed.cluster")
SPACES = (".shared::cta", ".shared", "", ".shared::cluster")
# What a form does to the model. Those to another CTA have no state as their result.
FORMS = {
    **{f"mbarrier.arrive{order}{space}.b64 {{state}}, {{at}};": lambda model: model.arrive()
       for order in ORDERS for space in SPACES},
    **{f"mbarrier.arrive{order}{space}.b64 {{state}}, {{at}}, 2;": lambda model: model.arrive(2)
       for order in ORDERS[:2] for space in SPACES},
    **{f"mbarrier.arrive.expect_tx{order}{space}.b64 {{state}}, {{at}}, 24;": lambda model: model.arrive(expects=24)
       for order in ORDERS for space in SPACES},
    **{f"mbarrier.arrive.noComplete{order}{space}.b64 {{state}}, {{at}}, 2;": lambda model: model.arrive(2)
       for order in ORDERS[:2] for space in SPACES[:3]},
    **{f"mbarrier.arrive_drop{order}{space}.b64 {{state}}, {{at}};": lambda model: model.arrive(drops=True)
       for order in ORDERS for space in SPACES},
    **{f"mbarrier.arrive_drop{order}{space}.b64 {{state}}, {{at}}, 2;": lambda model: model.arrive(2, drops=True)
       for order in ORDERS[:2] for space in SPACES},
    **{f"mbarrier.arrive_drop.expect_tx{order}{space}.b64 {{state}}, {{at}}, 8;": lambda model: model.arrive(expects=8, drops=True)
       for order in ORDERS for space in SPACES},
    **{f"mbarrier.arrive_drop.noComplete{order}{space}.b64 {{state}}, {{at}}, 1;": lambda model: model.arrive(drops=True)
       for order in ORDERS[:2] for space in SPACES[:3]},
    **{f"mbarrier.expect_tx{order}{space}.b64 {{at}}, 40;": lambda model: model.complete(-40)
       for order in COUNTING for space in SPACES},
    **{f"mbarrier.complete_tx{order}{space}.b64 {{at}}, 16;": lambda model: model.complete(16)
       for order in COUNTING for space in SPACES},
}  # fmt: skip
WAITS = [
    f"{wait}.b64 {{done}}, {{at}}, {what};"
    for wait, what in (
        [(f"mbarrier.{name}{order}{space}", what + hint) for name in ("test_wait", "try_wait")
         for order in ("", ".acquire.cta", ".acquire.cluster", ".relaxed.cta", ".relaxed.cluster") for space in SPACES[:3]
         for what in ("{token}",) for hint in ("", ", 20")[: 1 if name == "test_wait" else 2]]
        + [(f"mbarrier.{name}.parity{order}{space}", what + hint) for name in ("test_wait", "try_wait")
         for order in ("", ".acquire.cta", ".acquire.cluster", ".relaxed.cta", ".relaxed.cluster") for space in SPACES[:3]
         for what in ("{parity}",) for hint in ("", ", 20")[: 1 if name == "test_wait" else 2]]
    )
]  # fmt: skip
COUNT = 5


def place(form: str) -> str:
    """The mbarrier's address, generic where the form names no space."""
    return "[%r1]" if ".shared" in form else "[%rd7]"


def bring_to(phase: int) -> str:
    return f"mbarrier.arrive.shared::cta.b64 _, [%r1], {COUNT};" * phase


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("phase", [0, 1])
def test_form_does_what_the_model_does(form: str, phase: int) -> None:
    """Phase, pending arrivals and bytes: before and after a phase that ends with what the form left to do."""
    model = Mbarrier(COUNT)
    for _ in range(phase):
        model.arrive(COUNT)
    FORMS[form](model)
    out, expected = np.zeros(8, np.uint32), []
    look = """
      mbarrier.arrive.shared::cta.b64 %rd5, [%r1]; mbarrier.pending_count.b64 %r9, %rd5; st.global.u32 [%rd0+{at}], %r9;
      mbarrier.test_wait.parity.shared::cta.b64 %p2, [%r1], 0; selp.u32 %r9, 1, 0, %p2; st.global.u32 [%rd0+{after}], %r9;
    """
    body = "cvt.u64.u32 %rd7, %r1; cvta.shared.u64 %rd7, %rd7;" + bring_to(phase)
    body += form.format(state="_" if "cluster.b64" in form else "%rd6", at=place(form))
    for step in range(4):
        body += look.format(at=8 * step, after=8 * step + 4)
        expected += [model.pending]
        model.arrive()
        expected += [model.phase]
        if step == 1 and model.bytes > 0:  # What the form expects comes.
            body += f"mbarrier.complete_tx.shared::cta.b64 [%r1], {model.bytes};"
            model.complete(model.bytes)
        if step == 1 and model.bytes < 0:
            body += f"mbarrier.expect_tx.shared::cta.b64 [%r1], {-model.bytes};"
            model.complete(model.bytes)
        if model.pending == 0:
            break
    run(body, out, count=COUNT, threads=1)
    assert out.tolist()[: len(expected)] == expected


@pytest.mark.parametrize("form", [form for form in FORMS if "cluster.b64" in form])
def test_form_does_the_same_to_the_mbarrier_of_another_cta(form: str) -> None:
    model = Mbarrier(COUNT)
    FORMS[form](model)
    out, expected = np.zeros(2, np.uint32), [model.pending]
    balance = "complete_tx" if model.bytes > 0 else "expect_tx"
    body = f"""
      mov.u32 %r5, %cluster_ctarank; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
      mov.u32 %r9, 0; mapa.shared::cluster.u32 %r10, %r1, %r9;
      setp.eq.u32 %p3, %r5, 1;
      @%p3 {form.format(state="_", at="[%r10]")}
      barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
      @%p3 bra end;
      nanosleep.u32 2000;
      mbarrier.{balance}.shared::cta.b64 [%r1], {abs(model.bytes)};
      mbarrier.arrive.shared::cta.b64 %rd5, [%r1]; mbarrier.pending_count.b64 %r9, %rd5; st.global.u32 [%rd0], %r9;
      sub.u32 %r9, %r9, 1; setp.gt.u32 %p4, %r9, 0;
      @%p4 mbarrier.arrive.shared::cta.b64 _, [%r1], %r9;
      mbarrier.test_wait.parity.shared::cta.b64 %p2, [%r1], 0; selp.u32 %r9, 1, 0, %p2; st.global.u32 [%rd0+4], %r9;
    end:
    """
    model.complete(model.bytes)
    model.arrive(model.pending)
    expected += [model.phase]
    run(body, out, count=COUNT, threads=1, grid=(2, 1, 1), cluster=(2, 1, 1))
    assert out.tolist() == expected
    assert expected[1] == 1, "the phase has ended"


@pytest.mark.parametrize("form", WAITS)
@pytest.mark.parametrize("ended", [False, True])
def test_form_of_waiting_tells_whether_the_phase_has_ended(form: str, ended: bool) -> None:
    """Of two arrivals the other warp's comes before, or long after; try_wait sleeps until it is there."""
    out = np.zeros(1, np.uint32)
    body = f"""
      cvt.u64.u32 %rd7, %r1; cvta.shared.u64 %rd7, %rd7;
      setp.eq.u32 %p3, %r0, 32; @%p3 bra second;
      setp.ne.u32 %p4, %r0, 0; @%p4 bra end;
      mbarrier.arrive.shared::cta.b64 %rd5, [%r1];
      nanosleep.u32 {2000 if ended else 0};
      {form.format(done="%p2", at=place(form), token="%rd5", parity="0")}
      selp.u32 %r9, 1, 0, %p2; st.global.u32 [%rd0], %r9;
      bra end;
    second:
      nanosleep.u32 {0 if ended else 2000};
      mbarrier.arrive.shared::cta.b64 _, [%r1];
    end:
    """
    run(body, out, count=2, threads=64)
    assert out[0] == (ended or "try_wait" in form)


REFUSED = [
    "mbarrier.init.shared::cluster.b64 [%r1], 1;", "mbarrier.init.global.b64 [%rd0], 1;",
    "mbarrier.init.release.cta.shared::cta.b64 [%r1], 1;", "mbarrier.init.noComplete.shared::cta.b64 [%r1], 1;",
    "mbarrier.init.shared::cta.b32 [%r1], 1;", "mbarrier.inval.shared::cluster.b64 [%r1];",
    "mbarrier.inval.parity.shared::cta.b64 [%r1];", "mbarrier.expect_tx.release.cta.shared::cta.b64 [%r1], 8;",
    "mbarrier.expect_tx.relaxed.gpu.shared::cta.b64 [%r1], 8;", "mbarrier.expect_tx.relaxed.shared::cta.b64 [%r1], 8;",
    "mbarrier.complete_tx.acquire.cta.shared::cta.b64 [%r1], 8;", "mbarrier.complete_tx.local.b64 [%r1], 8;",
    "mbarrier.arrive.acquire.cta.shared::cta.b64 %rd5, [%r1];", "mbarrier.arrive.release.sys.shared::cta.b64 %rd5, [%r1];",
    "mbarrier.arrive.cta.shared::cta.b64 %rd5, [%r1];", "mbarrier.arrive.parity.shared::cta.b64 %rd5, [%r1];",
    "mbarrier.arrive.release.cluster.shared::cluster.b64 %rd5, [%r1];", "mbarrier.arrive.v2.shared::cta.b64 %rd5, [%r1];",
    "mbarrier.arrive.noComplete.relaxed.cta.shared::cta.b64 %rd5, [%r1], 1;",
    "mbarrier.arrive.noComplete.release.cluster.shared::cta.b64 %rd5, [%r1], 1;",
    "mbarrier.arrive.noComplete.shared::cluster.b64 _, [%r1], 1;",
    "mbarrier.arrive.noComplete.expect_tx.shared::cta.b64 %rd5, [%r1], 1;",
    "mbarrier.arrive_drop.acquire.cta.shared::cta.b64 %rd5, [%r1];", "mbarrier.arrive_drop.shared::cluster.b64 %rd5, [%r1];",
    "mbarrier.test_wait.release.cta.shared::cta.b64 %p2, [%r1], %rd5;", "mbarrier.test_wait.shared::cluster.b64 %p2, [%r1], %rd5;",
    "mbarrier.try_wait.parity.acquire.gpu.shared::cta.b64 %p2, [%r1], 0;", "mbarrier.try_wait.expect_tx.shared::cta.b64 %p2, [%r1], %rd5;",
    "mbarrier.pending_count.shared::cta.b64 %r9, %rd5;", "mbarrier.pending_count.b32 %r9, %rd5;",
    "mbarrier.wait.shared::cta.b64 %p2, [%r1], 0;",
]  # fmt: skip
MALFORMED = [
    "mbarrier.init.shared::cta.b64 [%r1];", "mbarrier.inval.shared::cta.b64 [%r1], 1;", "mbarrier.expect_tx.shared::cta.b64 [%r1];",
    "mbarrier.arrive.shared::cta.b64 [%r1];", "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1];",
    "mbarrier.arrive.noComplete.shared::cta.b64 %rd5, [%r1];", "mbarrier.arrive.shared::cta.b64 %rd5, [%r1], 1, 1;",
    "mbarrier.test_wait.parity.shared::cta.b64 %p2, [%r1], 0, 20;", "mbarrier.try_wait.parity.shared::cta.b64 _, [%r1], 0;",
    "mbarrier.try_wait.shared::cta.b64 %p2, [%r1];", "mbarrier.pending_count.b64 %r9;",
]  # fmt: skip


@pytest.mark.parametrize("form", [*REFUSED, *MALFORMED])
def test_form_that_ptx_does_not_have_is_named(form: str) -> None:
    text = ptx_lab.ptx(form, 1, target="sm_90a")
    with pytest.raises(simt.Error) as caught:
        simt.Module(text)
    assert caught.value.kind == ("unsupported" if form in REFUSED else "parse")
    assert caught.value.kernel == "kernel"
    assert form.split()[0] in text.splitlines()[caught.value.ptx_line - 1]
    if form in REFUSED:
        assert form.split()[0] in caught.value.message


@pytest.mark.parametrize(
    ("body", "count", "what"),
    [
        ("mbarrier.arrive.noComplete.shared::cta.b64 %rd5, [%r1], 2;", 2, "noComplete"),
        ("mbarrier.arrive_drop.noComplete.shared::cta.b64 %rd5, [%r1], 1;", 1, "noComplete"),
        ("mov.u32 %r9, 0; mbarrier.arrive.shared::cta.b64 _, [%r1], %r9;", 1, "count for the mbarrier is 0"),
        ("mbarrier.arrive.shared::cta.b64 _, [%r1], 1048576;", 1, "1048575 arrivals"),
        ("mbarrier.expect_tx.shared::cta.b64 [%r1], 1048576;", 1, "1048575 bytes"),
        ("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 1048576;", 1, "1048575 bytes"),
        ("mbarrier.arrive_drop.shared::cta.b64 _, [%r1], 3;", 2, "more arrivals"),
        ("mbarrier.arrive.b64 _, [%rd0];", 1, "not one of shared memory"),
        ("mbarrier.arrive.shared::cta.b64 _, [%r1+4];", 1, "aligned"),
        ("mbarrier.arrive.shared::cta.b64 _, [%r1+1024];", 1, "outside of the CTA"),
        ("mbarrier.arrive.shared::cta.b64 _, [%r1+8];", 1, "has not been initialised"),
        ("mov.u32 %r9, 0; mbarrier.init.shared::cta.b64 [%r1+8], %r9;", 1, "1 to 1048575"),
    ],
)  # fmt: skip
def test_wrong_use_is_an_error_with_its_place(body: str, count: int, what: str) -> None:
    with pytest.raises(simt.Error, match=what) as caught:
        run(body, np.zeros(4, np.uint32), count=count, threads=1)
    assert caught.value.kernel == "kernel"
    assert caught.value.ptx_line > 0
    assert (caught.value.cta, caught.value.warp, caught.value.lane) == (0, 0, 0)


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

"""What the host does while a kernel runs: the kernel hands words over through a mailbox, and waits for each to be taken.

Both sides meet in memory that the host can see, with `.sys` scope, as on a GPU.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kperfir._native import simt

from support import ptx_lab
from support.small_chip import small_chip

WORDS = 20
# The mailbox of a CTA, in words: how many were put into it, how many were taken out, the latest, the last time.
MAILBOX = 4
PUT, TAKEN, WORD = range(3)

# Thread 0 of each CTA hands over 1 to WORDS, times 3 plus its CTA. It stops after %r9 nanoseconds of waiting.
PRODUCER = f"""
  mov.u32 %r1, %ctaid.x;
  mul.wide.u32 %rd10, %r1, {4 * MAILBOX}; add.u64 %rd11, %rd0, %rd10;
  setp.ne.u32 %p1, %r0, 0;
  @%p1 bra done;
  mov.u32 %r2, 0;
next:
  add.u32 %r2, %r2, 1;
  mad.lo.u32 %r3, %r2, 3, %r1;
  st.global.b32 [%rd11+8], %r3;
  st.release.sys.global.b32 [%rd11], %r2;
  mov.u64 %rd12, %globaltimer; add.u64 %rd12, %rd12, 50000;
wait:
  ld.acquire.sys.global.b32 %r4, [%rd11+4];
  setp.eq.u32 %p2, %r4, %r2;
  @%p2 bra taken;
  mov.u64 %rd13, %globaltimer;
  setp.gt.u64 %p3, %rd13, %rd12;
  @%p3 bra done;
  nanosleep.u32 200;
  bra wait;
taken:
  setp.lt.u32 %p2, %r2, {WORDS};
  @%p2 bra next;
done:
"""


class Consumer:
    """Takes what is in the mailboxes, and notes it."""

    def __init__(self, ctas: int) -> None:
        self.mailboxes = np.zeros((ctas, MAILBOX), np.uint32)
        self.words: list[list[int]] = [[] for _ in range(ctas)]
        self.calls: list[list[int]] = []

    def __call__(self) -> None:
        self.calls.append(self.mailboxes[:, PUT].tolist())
        for box, words in zip(self.mailboxes, self.words, strict=True):
            if box[PUT] != box[TAKEN]:
                words.append(int(box[WORD]))
                box[TAKEN] = box[PUT]


def run(consumer: Any, mailboxes: np.ndarray, *, on: Any = None, **shape: Any) -> Any:
    cycles = shape.pop("service_cycles", 2000)
    return ptx_lab.run(
        PRODUCER, mailboxes, on=on, grid=(len(mailboxes), 1, 1), service=consumer, service_cycles=cycles, **shape
    )


def handed_over(cta: int) -> list[int]:
    return [3 * word + cta for word in range(1, WORDS + 1)]


def test_kernel_and_host_take_turns_while_it_runs() -> None:
    consumer = Consumer(3)
    result = run(consumer, consumer.mailboxes, threads=64)
    assert consumer.words == [handed_over(cta) for cta in range(3)]
    assert result.cycles > (WORDS - 1) * 2000, "each word waits for a turn of the host"


@pytest.mark.parametrize("threads", [2, 4])
def test_turns_of_the_host_depend_on_simulated_time_alone(threads: int) -> None:
    one, other = Consumer(8), Consumer(8)
    first = run(one, one.mailboxes, on=ptx_lab.device())
    second = run(other, other.mailboxes, on=ptx_lab.device(threads=threads))
    assert one.calls == other.calls
    assert first.cycles == second.cycles


def test_more_turns_make_it_wait_less() -> None:
    often, seldom = Consumer(1), Consumer(1)
    assert run(often, often.mailboxes, service_cycles=500).cycles < run(seldom, seldom.mailboxes).cycles
    assert often.words == seldom.words


def test_kernel_that_nobody_answers_can_end_by_its_own_clock() -> None:
    calls: list[int] = []
    mailboxes = np.zeros((1, MAILBOX), np.uint32)
    result = run(lambda: calls.append(0), mailboxes)
    assert mailboxes[0, PUT] == 1
    assert result.ns >= 50_000
    assert calls


def test_host_that_fails_ends_the_launch_with_its_exception() -> None:
    def fail() -> None:
        raise KeyError("host")

    mailboxes = np.zeros((1, MAILBOX), np.uint32)
    device = ptx_lab.device()
    with pytest.raises(KeyError, match="host"):
        run(fail, mailboxes, on=device)
    consumer = Consumer(1)
    run(consumer, consumer.mailboxes, on=device)  # The device is as before.
    assert consumer.words == [handed_over(0)]


def test_ctas_without_time_meet_the_host_too() -> None:
    ctas = 200
    consumer = Consumer(ctas)
    device = simt.Device(small_chip(sm_count=8, max_ctas_per_sm=3), waves=3)
    result = run(consumer, consumer.mailboxes, on=device)
    assert result.untimed_ctas
    assert consumer.words == [handed_over(cta) for cta in range(ctas)]

"""The thread that takes records of launches that still run."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from kperfir.runtime.drain import Drain


def test_submit_does_not_wait_and_tasks_are_done_in_order() -> None:
    drain, complete, done = Drain(1000), threading.Event(), []
    drain.submit(10, lambda: (complete.wait(), done.append(1)))  # type: ignore[arg-type, return-value]
    drain.submit(10, lambda: done.append(2))
    assert done == []
    complete.set()
    drain.wait()
    assert done == [1, 2]
    drain.close()


def test_submit_waits_while_there_is_no_room() -> None:
    drain, complete, done = Drain(100), threading.Event(), []
    drain.submit(60, lambda: (complete.wait(), done.append(1)))  # type: ignore[arg-type, return-value]
    with ThreadPoolExecutor(1) as launching:
        second = launching.submit(drain.submit, 60, lambda: done.append(2))
        with pytest.raises(TimeoutError):
            second.result(timeout=0.1)
        complete.set()
        second.result(timeout=30)
    drain.close()
    assert done == [1, 2]


def test_task_larger_than_the_limit_is_done_alone() -> None:
    drain, done = Drain(0), []
    drain.submit(1 << 40, lambda: done.append(1))
    drain.submit(1 << 40, lambda: done.append(2))
    drain.close()
    assert done == [1, 2]


def test_close_ends_the_thread_and_a_later_task_starts_another() -> None:
    drain, names = Drain(100), []
    for _ in range(2):
        drain.submit(1, lambda: names.append(threading.current_thread().name))
        drain.close()
        assert not [thread for thread in threading.enumerate() if thread.name.startswith("kperfir-drain")]
    assert len(names) == 2


def test_task_is_done_at_once_where_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in functions that are called at the end of the interpreter."""

    def refuse(self: ThreadPoolExecutor, *arguments: object) -> None:
        raise RuntimeError("cannot schedule new futures after interpreter shutdown")

    monkeypatch.setattr(ThreadPoolExecutor, "submit", refuse)
    drain, names = Drain(100), []
    drain.submit(1, lambda: names.append(threading.current_thread()))
    assert names == [threading.current_thread()]
    drain.wait()

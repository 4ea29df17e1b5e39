"""Takes the records of launches that still run, in a thread of its own, so that launching waits for no device.

    drain = Drain(limit=256 << 20)
    drain.submit(nbytes, take)  # `take` waits for the launch, and is called in the order of `submit`.
    drain.wait()

Owns how much memory may wait to be read. Knows nothing of devices or files: the task does.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Drain:
    """A queue of tasks and the thread that does them, one after the other; the thread starts with the first.

    Args:
        limit: Bytes that all tasks together may hold; one task alone may hold more.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._changed = threading.Condition()
        self._tasks = 0
        self._bytes = 0
        self._thread: ThreadPoolExecutor | None = None

    def submit(self, nbytes: int, task: Callable[[], None]) -> None:
        """Have `task` done; waits for earlier ones first while there is no room for its `nbytes`.

        The caller must hold no lock that tasks take.
        """
        with self._changed:
            self._changed.wait_for(lambda: not self._tasks or self._bytes + nbytes <= self._limit)
            self._tasks += 1
            self._bytes += nbytes
            self._thread = self._thread or ThreadPoolExecutor(1, thread_name_prefix="kperfir-drain")
        try:
            self._thread.submit(self._run, nbytes, task)
        except RuntimeError:  # The interpreter is ending and starts no thread any more.
            self._run(nbytes, task)

    def wait(self) -> None:
        """Wait until all tasks are done."""
        with self._changed:
            self._changed.wait_for(lambda: not self._tasks)

    def close(self) -> None:
        """Wait until all tasks are done, and end the thread."""
        self.wait()
        with self._changed:
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.shutdown()

    def _run(self, nbytes: int, task: Callable[[], None]) -> None:
        try:
            task()
        finally:
            with self._changed:
                self._tasks -= 1
                self._bytes -= nbytes
                self._changed.notify_all()

"""Which launches Triton's autotuner makes to measure configurations: they are no part of what a program computes."""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from kperfir.runtime.patches import Patches


class BenchmarkWatch:
    """Knows of each thread whether it is measuring."""

    def __init__(self) -> None:
        self._local = threading.local()

    def install(self, patches: Patches) -> None:
        """Watch the autotuner until `patches` are undone."""
        from triton.runtime.autotuner import Autotuner

        patches.replace(Autotuner, "_bench", self._wrap(Autotuner._bench))

    @property
    def active(self) -> bool:
        """Whether this thread is measuring."""
        return bool(getattr(self._local, "active", False))

    def _wrap(self, bench: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(bench)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            previous = self.active
            self._local.active = True
            try:
                return bench(*args, **kwargs)
            finally:
                self._local.active = previous

        return wrapper

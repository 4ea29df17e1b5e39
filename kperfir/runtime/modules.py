"""Kernels that this process has loaded on the SIMT device, so that the same PTX is parsed once.

A kernel is loaded again whenever Triton compiles it again, by way of its own cache: after `kperfir.profile()` has begun
or ended, for one.
"""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

# Variables of a module begin anew with every load, so a module that has some is not shared.
_VARIABLE = re.compile(rb"^\s*(\.visible |\.weak |\.extern )?\.global\b", re.MULTILINE)


class LoadedModules:
    """At most `limit` modules; the one that was used least recently goes first."""

    def __init__(self, limit: int = 256) -> None:
        self._limit = limit
        self._modules: dict[tuple[str, bytes], Any] = {}
        self._lock = threading.Lock()

    def load(self, parse: Callable[[str, str], Any], name: str, ptx: bytes) -> Any:
        """Return the module of `ptx`, by `parse(text, name)` if there is none yet; what that raises is passed on."""
        if _VARIABLE.search(ptx):
            return parse(ptx.decode(), name)
        key = (name, ptx)
        with self._lock:
            module = self._modules.pop(key, None)
            if module is None:
                module = parse(ptx.decode(), name)
            self._modules[key] = module
            if len(self._modules) > self._limit:
                del self._modules[next(iter(self._modules))]
        return module

"""Run what `kperfir.passes` has registered: callbacks over a module, pipelines around Triton's passes.

Owns how a callback's requests get into the IR, and the wrappers of Triton's passes. When they run is
`triton_hook`'s business.
"""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING, Any

from kperfir.compile.pipeline import Pipeline, add_passes

if TYPE_CHECKING:
    from collections.abc import Callable

    from kperfir.passes.custom import Callback, Custom
    from kperfir.passes.view import Kernel
    from kperfir.runtime.patches import Patches

# What the settings choose, and what is said of the time between that.
_AUTOMATIC = ("kperf-insert-regions", "kperf-fill-gaps")


def run_passes(module: Any, pipeline: str) -> Any:
    """Run `pipeline` on `module`, and return it.

    Raises:
        RuntimeError: If a pass fails; its diagnostics went to file descriptor 2.
    """
    from triton._C.libtriton import ir

    manager = ir.pass_manager(module.context)
    add_passes(manager, pipeline)
    manager.run(module, "kperfir")
    return module


def instrument(module: Any, pipeline: str, custom: Custom) -> Any:
    """Run kperfir's `pipeline` for a module of TTGIR, with what `custom` adds to it."""
    if not custom.callbacks:
        return run_passes(module, pipeline)
    # Scopes come first: their records are around what callbacks put inside them.
    if pipeline.startswith("kperf-insert-scopes"):
        run_passes(module, "kperf-insert-scopes")
    for callback in custom.callbacks:
        _ask(callback, module)
    calls = Pipeline.parse(pipeline).calls
    kept = tuple(call for call in calls if custom.automatic or call.name not in _AUTOMATIC)
    return run_passes(module, str(Pipeline(kept)))


def read_kernel(module: Any) -> Kernel:
    """The operations of `module`, which keeps the list of them as an attribute."""
    from kperfir.passes.view import Kernel

    run_passes(module, "kperf-list-operations")
    return Kernel(module.get_entry_func_name(), module.get_operation().get_str_attr("kperf.operations"))


def _ask(callback: Callback, module: Any) -> None:
    kernel = read_kernel(module)
    callback(kernel)
    run_passes(module, str(kernel.requests()))


class PassWrappers:
    """Wrappers around Triton's passes, which run the patches of the compilation that this thread is in."""

    def __init__(self, patches: Patches) -> None:
        self._patches = patches
        self._wrapped: set[str] = set()
        self._here = threading.local()
        self._lock = threading.Lock()  # A pass that is wrapped twice would run its patch twice.

    def wrap(self, custom: Custom) -> None:
        """Wrap the passes that `custom` names, as far as they are not yet."""
        from kperfir.passes.custom import triton_passes

        with self._lock:
            missing = {name for name, _ in custom.patches} - self._wrapped
            known = triton_passes() if missing else {}
            for name in sorted(missing):
                module, attribute = known[name]
                self._patches.replace(module, attribute, self._wrapper(name, getattr(module, attribute)))
                self._wrapped.add(name)

    def forget(self) -> None:
        """The patches were undone."""
        self._wrapped.clear()

    def run_stage(self, stage: Callable[[], Any], custom: Custom) -> Any:
        """Run a stage of Triton's with the patches of `custom`."""
        self._here.patches = dict(custom.patches)
        try:
            return stage()
        finally:
            self._here.patches = {}

    def _wrapper(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def wrapper(manager: Any, *arguments: Any, **keywords: Any) -> Any:
            patch = getattr(self._here, "patches", {}).get(name)
            if patch is not None:
                add_passes(manager, patch.before)
            result = original(manager, *arguments, **keywords)
            if patch is not None:
                add_passes(manager, patch.after)
            return result

        return wrapper

"""Activation by the environment: wait for the program to import Triton, then switch kperfir on.

Called from `kperfir_activate.pth` at the start of every interpreter in which `TRITON_KPERF` or `TRITON_KPERF_DEVICE`
is set. Must be cheap, and must not import Triton: most such interpreters never do.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType, TracebackType

    from kperfir.errors import KPerfError


def activate() -> None:
    """Switch kperfir on when Triton is imported, as the environment says."""
    if "triton" in sys.modules:
        _triton_is_imported()
    elif not any(isinstance(finder, _TritonFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _TritonFinder(_triton_is_imported))
        sys.excepthook = _with_advice(sys.excepthook)


def deactivate() -> None:
    """Wait for Triton no more, if it is not yet imported: for a command that is no program to be profiled."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _TritonFinder)]


class NotActive(RuntimeError):
    """There is no GPU, and kperfir could not bring the device that was asked for.

    Of the type of Triton's own error: libraries that probe for a device expect that.
    """


def _with_advice(report: Callable[..., object]) -> Callable[..., object]:
    """Return `report`, an exception hook, followed by advice where a script failed for want of a GPU.

    Of a setting that is wrong the script's author needs no traceback, which is through Triton's files and ours.
    """

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if isinstance(error, NotActive):
            print(f"{_place(trace)}{error}", file=sys.stderr)
            return
        report(kind, error, trace)
        from kperfir.runtime.no_gpu import advice

        if hint := advice(error):
            print(hint, file=sys.stderr)

    return hook


def _place(trace: TracebackType | None) -> str:
    """Where in the program it was: the innermost line that is of no installed package."""
    place = ""
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not any(folder in file for folder in ("site-packages", "dist-packages", "<frozen")):
            place = f"{file}:{trace.tb_lineno}: "
        trace = trace.tb_next
    return place


def _triton_is_imported() -> None:
    from kperfir import config, session
    from kperfir.errors import KPerfError

    try:
        options = config.resolve()
        if options.device == "simt":
            session.hold_device(options)
        if options.active:
            os.environ.setdefault(config.OWNER_VARIABLE, str(os.getpid()))
            session.start_process_session(options)
    except KPerfError as error:
        # The program runs on as it would without kperfir: it may be hours away from where this was typed.
        print(f"kperfir is not active: {error}", file=sys.stderr)
        _explain_missing_driver(error)


def _explain_missing_driver(reason: KPerfError) -> None:
    """Let Triton's error say why there is no device, where kperfir would have brought one."""
    from importlib import import_module

    module: Any = import_module("triton.runtime.driver")
    create = getattr(module, "_create_driver", None)
    if create is None:  # Not the Triton that we know.
        return

    def create_or_explain() -> Any:
        try:
            return create()
        except RuntimeError as error:
            if not str(error).startswith("0 active drivers"):
                raise
            raise NotActive(f"Triton finds no GPU, and kperfir is not active: {reason}") from None

    module._create_driver = create_or_explain


class _TritonFinder:
    """Finds `triton` as the other finders do, and calls back once it is imported."""

    def __init__(self, imported: Callable[[], None]) -> None:
        self._imported = imported
        self._searching = False

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != "triton" or self._searching:
            return None
        from importlib.util import find_spec

        self._searching = True
        try:
            spec = find_spec(name)
        finally:
            self._searching = False
        if spec is not None and spec.loader is not None:
            spec.loader = _TritonLoader(spec.loader, self._loaded)  # type: ignore[assignment]
        return spec

    def _loaded(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)
            self._imported()


class _TritonLoader:
    """Loads a module as another loader does, and calls back."""

    def __init__(self, inner: Any, loaded: Callable[[], None]) -> None:
        self._inner = inner
        self._loaded = loaded

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = self._inner.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        # Nothing of ours stays behind in the module.
        module.__loader__ = self._inner
        if module.__spec__ is not None:
            module.__spec__.loader = self._inner
        self._inner.exec_module(module)
        self._loaded()

"""The only module that changes how Triton compiles.

    install(options)
    ...                # kernels compile instrumented; their metadata carry `kperf_layout`
    uninstall()

What happens to one kernel is in `compilation`.

Both hooks that Triton offers hold one callback. The stages hook is chained: the one found at `install` still runs. The
instrumentation points are left to others (Proton registers there, and refuses if somebody has); their dispatcher is
wrapped instead.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kperfir.compile.compilation import Compilation, FrontEnd
from kperfir.compile.custom_passes import PassWrappers
from kperfir.compile.metadata import LAYOUT_KEY
from kperfir.compile.pipeline import add_passes, plan_pipelines, records_kind, with_words
from kperfir.compile.plugin import load_plugin, plugin_digest
from kperfir.compile.sizes import measured_words
from kperfir.compile.source_file import source_file
from kperfir.compile.spills import plan_ladder
from kperfir.errors import UsageError
from kperfir.passes import custom
from kperfir.runtime.patches import Patches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kperfir.compile.placement import RegistersOf
    from kperfir.config import Options

    Wrapper = Callable[[Callable[..., None]], Callable[..., None]]

_PLACING = "ttgpuir-to-llvmir"
_POINTS = (_PLACING, "llvmir-to-llvm")


def _unknown(kernel: str, binary: bytes) -> None:
    """Know no registers: only a device that takes assembly does."""


class TritonHook:
    """Instruments what Triton compiles, from `install` to `uninstall`; see `install`."""

    def __init__(self, options: Options, registers_of: RegistersOf) -> None:
        self.options = options
        self.registers_of = registers_of
        self.pipelines = plan_pipelines(options)
        self.ladder = plan_ladder(options)
        self._patches = Patches()
        self._previous: Callable[..., Any] | None = None
        self._lowering = threading.local()
        self.front_end = FrontEnd()
        self._wraps_builder = False
        self._words: dict[str, int] = {}  # Per kernel, where an earlier capture has measured it.
        self.passes = PassWrappers(self._patches)

    def install(self) -> None:
        """Load the plugin and take part in Triton's compilation.

        Raises:
            PluginError: If the plugin is missing, or was not audited against this Triton.
        """
        from triton import knobs
        from triton.backends.amd import compiler as amd
        from triton.backends.nvidia import compiler as nvidia
        from triton.compiler import code_generator, compiler

        load_plugin()
        if isinstance(self.options.buffer_bytes, str):
            self._words = measured_words(Path(self.options.buffer_bytes))
        text = f"kperfir {plugin_digest()} {self.pipelines} {self.ladder} {self.options.kernels}"
        text += f" {sorted(self._words.items())}" if self._words else ""
        self._key = text  # Asked for once per launch: made once.
        self._previous = knobs.runtime.add_stages_inspection_hook
        self._patches.replace(knobs.runtime, "add_stages_inspection_hook", self._hook_stages)
        for name, backend in (("nvidia", nvidia), ("amd", amd)):
            self._patches.replace(backend, "instrument", self._wrap_points(backend.instrument, name))
        self._patches.replace(code_generator, "ast_to_ttir", self._noting_file(code_generator.ast_to_ttir, 1))
        self._patches.replace(compiler.IRSource, "make_ir", self._noting_file(compiler.IRSource.make_ir, 0))
        self._patches.replace(compiler, "get_cache_key", _with_file(compiler.get_cache_key))
        self.passes.wrap(custom.current())

    def uninstall(self) -> None:
        """Undo `install`."""
        self._patches.undo()
        self._wraps_builder = False
        self.passes.forget()

    def wrap_builder(self, wrappers: dict[str, Wrapper]) -> None:
        """Wrap methods of the front end's builder until `uninstall`. Called for every scope: does it once."""
        from triton._C.libtriton import ir

        with _wrapping:
            if self._wraps_builder:
                return
            for name, wrap in wrappers.items():
                self._patches.replace(ir.builder, name, wrap(getattr(ir.builder, name)))
            self._wraps_builder = True

    def _hook_stages(self, *arguments: Any) -> tuple[str, str] | None:
        """Triton's stages hook: without arguments, the cache key; with arguments, the stages to change."""
        if not arguments:
            before = self._previous() if self._previous else ("", "")
            self.front_end.custom = custom.current()
            key = self._key + self.front_end.custom.key
            return before[0] + key, before[1] + key
        if self._previous:
            self._previous(*arguments)
        Compilation(self, stages=arguments[1], options=arguments[2]).take_part()
        return None

    def _noting_file(self, make_ir: Callable[..., Any], position: int) -> Callable[..., Any]:
        """`make_ir`, whose argument at `position` is what is compiled; the stages hook does not get to see that."""

        @functools.wraps(make_ir)
        def wrapper(*arguments: Any, **keywords: Any) -> Any:
            compilation = self.front_end.compilation
            if compilation is not None:
                compilation.file = source_file(arguments[position])
            return make_ir(*arguments, **keywords)

        return wrapper

    def _wrap_points(self, instrument: Callable[..., Any], backend: str) -> Callable[..., Any]:
        @functools.wraps(instrument)
        def wrapper(*arguments: Any, point: str, **keywords: Any) -> Any:
            result = instrument(*arguments, point=point, **keywords)
            if point in _POINTS and getattr(self._lowering, "active", False):
                placing = point == _PLACING
                add_passes(arguments[0], self._lowering.allocation if placing else self.pipelines.lowering[backend])
            return result

        return wrapper

    def lower(self, stage: Callable[..., Any], module: Any, metadata: dict[str, Any], allocation: str) -> Any:
        """Run the ``llir`` stage with the passes of its two points; `allocation` is the pipeline of the first."""
        kernel = module.get_entry_func_name()
        words = self._words.get(kernel)
        self._lowering.allocation = allocation if words is None else with_words(allocation, words)
        self._lowering.active = True
        try:
            result = stage(module, metadata)
        finally:
            self._lowering.active = False
        metadata[LAYOUT_KEY] = module.get_operation().get_str_attr("kperf.layout")
        return result


def _with_file(make_key: Callable[..., str]) -> Callable[..., str]:
    """Triton's cache key with the file of the source, which a layout names: a copy of a kernel is another kernel."""

    @functools.wraps(make_key)
    def wrapper(source: Any, *arguments: Any, **keywords: Any) -> str:
        return f"{make_key(source, *arguments, **keywords)}-{source_file(source)}"

    return wrapper


_hooks: list[TritonHook] = []
_wrapping = threading.Lock()


def install(options: Options, registers_of: RegistersOf = _unknown) -> None:
    """Instrument what Triton compiles from now on.

    Args:
        options: What is recorded, of which kernels.
        registers_of: Of the device that kernels are for, if it takes their assembly.

    Raises:
        PluginError: If the plugin is missing, or was not audited against this Triton.
        UsageError: ``installed-twice``.
    """
    if _hooks:
        raise UsageError(
            "installed-twice",
            what="kperfir already takes part in Triton's compilation",
            where="kperfir.compile.triton_hook.install",
            found="a second install",
            fix="call uninstall() first",
        )
    hook = TritonHook(options, registers_of)
    hook.install()
    _hooks.append(hook)


def refresh() -> None:
    """What `kperfir.passes` has registered changed."""
    for hook in _hooks:
        hook.passes.wrap(custom.current())


def takes_part(options: Any, kind: str) -> bool:
    """Whether regions of `kind` that the front end marks are recorded: it reads a source for a compilation of ours.

    Args:
        options: Those that the backend parsed for the compilation; `builder.options` in the front end.
        kind: ``user`` or ``mark``.
    """
    for hook in _hooks:
        compilation = hook.front_end.compilation
        if compilation is not None and compilation.options is options and records_kind(hook.options, kind):
            compilation.has_scopes = True
            return True
    return False


def has_scopes(options: Any) -> bool:
    """Whether the front end has left scopes in what it reads for `options`."""
    compilations = (hook.front_end.compilation for hook in _hooks)
    return any(it is not None and it.options is options and it.has_scopes for it in compilations)


def note_hidden_scopes(options: Any) -> None:
    """The front end could not leave a scope in what it reads for `options`: say so if the kernel is recorded."""
    for hook in _hooks:
        compilation = hook.front_end.compilation
        if compilation is not None and compilation.options is options:
            compilation.hides_scopes = True


def wrap_builder(wrappers: dict[str, Wrapper]) -> None:
    """See `TritonHook.wrap_builder`; nothing happens if no hook is installed."""
    for hook in _hooks:
        hook.wrap_builder(wrappers)


def uninstall() -> None:
    """Leave Triton's compilation as `install` found it."""
    while _hooks:
        _hooks.pop().uninstall()


@contextlib.contextmanager
def installed(options: Options) -> Iterator[None]:
    """Instrument what is compiled in a `with` block; see `install`."""
    install(options)
    try:
        yield
    finally:
        uninstall()

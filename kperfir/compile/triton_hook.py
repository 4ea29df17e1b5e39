"""The only module that changes how Triton compiles.

    install(options)
    ...                # kernels compile instrumented; their metadata carry `kperf_layout`
    uninstall()

A kernel goes through three points: the end of its ``ttgir`` stage, and two instrumentation points inside its ``llir``
stage. If anything fails at or after the first, the kernel is compiled as it is, from the TTGIR it had before, and one
warning says why: a compile never fails because of kperfir.

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

from kperfir.compile.access_shapes import find_accesses, to_text
from kperfir.compile.attempt import attempt, parse_module
from kperfir.compile.contraction import has_open_sums, has_other_closed_sums, has_same_arithmetic, with_sums_of
from kperfir.compile.custom_passes import PassWrappers, instrument, run_passes
from kperfir.compile.metadata import ACCESSES_KEY, LAYOUT_KEY, REASON_KEY
from kperfir.compile.pipeline import add_passes, plan_pipelines, records_kind, with_words
from kperfir.compile.placement import loses_ctas
from kperfir.compile.plugin import load_plugin, plugin_digest
from kperfir.compile.refusal import PROTON, announce
from kperfir.compile.sizes import measured_words
from kperfir.compile.source_file import source_file
from kperfir.errors import CompileError, UsageError, warn
from kperfir.passes import custom
from kperfir.runtime.patches import Patches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kperfir.compile.access_shapes import Found
    from kperfir.compile.placement import RegistersOf
    from kperfir.config import Options

    Wrapper = Callable[[Callable[..., None]], Callable[..., None]]

_PLACING = "ttgpuir-to-llvmir"
_POINTS = {_PLACING: "allocation", "llvmir-to-llvm": "lowering"}


def _unknown(kernel: str, binary: bytes) -> None:
    """Know no registers: only a device that takes assembly does."""


class TritonHook:
    """Instruments what Triton compiles, from `install` to `uninstall`; see `install`."""

    def __init__(self, options: Options, registers_of: RegistersOf) -> None:
        self.options = options
        self.registers_of = registers_of
        self.pipelines = plan_pipelines(options)
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
        text = f"kperfir {plugin_digest()} {self.pipelines} {self.options.kernels}"
        text += f" {sorted(self._words.items())}" if self._words else ""
        self._key = text  # Asked for once per launch: made once.
        self._previous = knobs.runtime.add_stages_inspection_hook
        self._patches.replace(knobs.runtime, "add_stages_inspection_hook", self._hook_stages)
        for name, backend in (("nvidia", nvidia), ("amd", amd)):
            self._patches.replace(backend, "instrument", self._wrap_points(backend.instrument, name))
        self._patches.replace(code_generator, "ast_to_ttir", self._noting_file(code_generator.ast_to_ttir, 1))
        self._patches.replace(compiler.IRSource, "make_ir", self._noting_file(compiler.IRSource.make_ir, 0))
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
                name = "outside" if point == _PLACING and self._lowering.outside else _POINTS[point]
                pipeline = getattr(self.pipelines, name)
                if point == _PLACING and self._lowering.kernel in self._words:
                    pipeline = with_words(pipeline, self._words[self._lowering.kernel])
                add_passes(arguments[0], pipeline if isinstance(pipeline, str) else pipeline[backend])
            return result

        return wrapper

    def lower(self, stage: Callable[..., Any], module: Any, metadata: dict[str, Any], *, outside: bool = False) -> Any:
        """Run the ``llir`` stage with the passes of its two points; `outside`: records are in global memory."""
        self._lowering.active, self._lowering.outside = True, outside
        self._lowering.kernel = module.get_entry_func_name()
        try:
            result = stage(module, metadata)
        finally:
            self._lowering.active = False
        metadata[LAYOUT_KEY] = module.get_operation().get_str_attr("kperf.layout")
        return result


class FrontEnd(threading.local):
    """What this thread compiles.

    Attributes:
        compilation: That whose source Triton's front end reads next, or reads at the moment.
        custom: What was in force when the cache key was made: the kernel that is stored under it must be made with it.
    """

    compilation: Compilation | None = None
    custom: custom.Custom | None = None


class Compilation:
    """One compilation of one kernel: its stages, and what is needed to start over without instrumentation.

    `options` are those of Triton's backend: the front end has the same object.
    """

    def __init__(self, hook: TritonHook, stages: dict[str, Callable[..., Any]], options: Any) -> None:
        self.hook = hook
        self.stages = stages
        self.options = options
        self.has_scopes = False  # The source has scopes or marks, and the front end left them in.
        self.hides_scopes = False  # It has scopes, but there are no locations to hold them.
        self.file = ""  # Where the kernel comes from.
        self.custom = hook.front_end.custom or custom.current()
        self._plain = dict(stages)
        self._module: Any = None  # The instrumented module, if there is one.
        self._kernel = ""
        self._reason = ""
        self._had_records = False  # When it came to us.
        self._products: dict[str, Any] = {}
        self._accesses: list[Found] = []

    def take_part(self) -> None:
        """Wrap the stages. A compilation without an ``llir`` stage is not for us."""
        if "llir" not in self.stages:
            return
        self.hook.front_end.compilation = self
        if "ttir" in self.stages:
            self.stages["ttir"] = self._run_ttir
        if "ttgir" in self.stages:
            self.stages["ttgir"] = self._run_ttgir
        self.stages["llir"] = self._run_llir
        for before, name in zip(self._later(), self._later()[1:], strict=False):
            self.stages[name] = functools.partial(self._run_later, before, name)

    def _later(self) -> list[str]:
        names = list(self._plain)
        return names[names.index("llir") :]

    def _run_ttir(self, source: Any, metadata: dict[str, Any]) -> Any:
        self._leave_front_end(source)
        return self._run_customised("ttir", source, metadata)

    def _run_ttgir(self, source: Any, metadata: dict[str, Any]) -> Any:
        self._leave_front_end(source)  # A Gluon kernel comes from there directly.
        return self._instrument(self._run_customised("ttgir", source, metadata))

    def _run_customised(self, name: str, source: Any, metadata: dict[str, Any]) -> Any:
        """Run a stage with the user's patches and pipelines; if one of those fails, without them."""
        stage = self._plain[name]
        pipelines = [text for where, text in self.custom.pipelines if where == name]
        if not (self.custom.patches or pipelines) or not self._is_selected(source):
            return stage(source, metadata)
        pristine, context, trial = source.str(), source.context, dict(metadata)

        def run() -> Any:
            module = self.hook.passes.run_stage(lambda: stage(source, trial), self.custom)
            for pipeline in pipelines:
                run_passes(module, pipeline)
            return module

        module, failure = attempt(run)
        if failure is not None:
            warn(f"the passes that the program added to stage {name} are left out of this kernel: {failure}")
            return stage(parse_module(pristine, context), metadata)
        metadata.update(trial)
        return module

    def _leave_front_end(self, module: Any) -> None:
        """A kernel that is not recorded goes on as if its source had no scopes."""
        if self.hook.front_end.compilation is not self:
            return
        self.hook.front_end.compilation = None
        if self.has_scopes and not self._is_selected(module):
            run_passes(module, "kperf-drop-scopes")

    def _is_selected(self, module: Any) -> bool:
        return self.hook.options.selects(module.get_entry_func_name(), self.file)

    def _instrument(self, module: Any) -> Any:
        """Return `module` with records, or as it was."""
        self._kernel = module.get_entry_func_name()
        if not self._is_selected(module):
            return module
        run_passes(module, "kperf-keep-module")
        found = module.get_operation().get_str_attr("kperf.records")
        if found == "kperf_gpu":
            # A .ttgir that was written while kperfir was active.
            self._module = module
            self._had_records = True
            return module
        if found == "proton":
            return self._give_up(PROTON, module)
        if self.hides_scopes:
            warn(
                f"the scopes of {self._kernel} are not recorded while TRITON_DISABLE_LINE_INFO is set: "
                "they are part of source locations"
            )

        self._module, failure = attempt(lambda: instrument(module, self.hook.pipelines.ttgir, self.custom))
        if failure is None:
            # Without predictions a kernel is as good as with them.
            self._accesses = attempt(lambda: find_accesses(module))[0] or []
            return module
        return self._give_up(failure, module)

    def _run_llir(self, module: Any, metadata: dict[str, Any]) -> Any:
        if module is not self._module and not self._reason:
            module = self._instrument(module)  # It entered as a file, or a file replaced it.
        if self._reason:
            metadata[REASON_KEY] = self._reason
        if self._module is None:
            return self._plain["llir"](module, metadata)

        # All later stages are tried here, so that what Triton stores is from one compilation, with or without records.
        tried, failure = attempt(lambda: self._compile_rest(module, metadata))
        if failure is None:
            products, trial = tried
            metadata.update(trial)
            if self._accesses:
                metadata[ACCESSES_KEY] = to_text(self._accesses)
            self._products = products
            run_passes(module, "kperf-keep-module{action=forget}")
            return products["llir"]
        plain = self._give_up(failure, module)
        metadata[REASON_KEY] = self._reason
        return self._plain["llir"](plain, metadata)

    def _compile_rest(self, module: Any, metadata: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """What the stages from ``llir`` on make of an instrumented module, and the metadata that come with it."""
        products, trial = self._compile_placed(module, metadata, outside=False)
        may_move = self.hook.pipelines.outside and not self._had_records
        if not (may_move and loses_ctas(products, trial, trial[LAYOUT_KEY], self.hook.registers_of)):
            return products, trial
        run_passes(module, "kperf-keep-module{action=restore},kperf-keep-module")
        instrument(module, self.hook.pipelines.ttgir, self.custom)
        return self._compile_placed(module, metadata, outside=True)

    def _compile_placed(
        self, module: Any, metadata: dict[str, Any], *, outside: bool
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        trial = dict(metadata)
        product, plain = self.hook.lower(self._plain["llir"], module, trial, outside=outside), None
        if getattr(self.options, "enable_fp_fusion", True) and has_open_sums(product):
            product, plain = self._with_plain_sums(product, module, metadata)
        products = {"llir": product}
        for name in self._later()[1:]:
            product = products[name] = self._plain[name](product, trial)
            if plain is not None and not has_same_arithmetic(product, self._plain[name](*plain)):
                raise self._rounds_differently()
            plain = None  # Assembly is what comes first.
        return products, trial

    def _with_plain_sums(
        self, product: str, module: Any, metadata: dict[str, Any]
    ) -> tuple[str, tuple[str, dict[str, Any]] | None]:
        """Make LLVM IR round as the kernel does without records; see `contraction`.

        Returns:
            The IR, and where its assembly has to be compared, the plain IR and metadata.
        """
        run_passes(module, "kperf-keep-module{action=restore},kperf-keep-module")
        own_metadata = dict(metadata)
        plain = self._plain["llir"](run_passes(module, "kperf-drop-scopes"), own_metadata)
        ordered = with_sums_of(product, plain)
        if ordered is None:
            raise self._rounds_differently()
        return ordered, (plain, own_metadata) if has_other_closed_sums(product, plain) else None

    def _rounds_differently(self) -> CompileError:
        return CompileError(
            "rounds-differently", what="with records in it, LLVM would fuse other products with sums",
            where=f"kernel {self._kernel}",
            fix="unset TRITON_DISABLE_LINE_INFO, or compile it with enable_fp_fusion=False",
        )  # fmt: skip

    def _run_later(self, before: str, name: str, source: Any, metadata: dict[str, Any]) -> Any:
        if self._products.get(before) is source:
            return self._products[name]
        return self._plain[name](source, metadata)

    def _give_up(self, reason: str, module: Any) -> Any:
        self._module = None
        self._reason = reason
        announce(self._kernel, reason)
        return run_passes(module, "kperf-keep-module{action=restore},kperf-drop-scopes")


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

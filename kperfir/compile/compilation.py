"""One compilation of one kernel with records, and the way back to the kernel as it is.

A kernel goes through three points: the end of its ``ttgir`` stage, and two instrumentation points inside its ``llir``
stage. If anything fails at or after the first, the kernel is compiled as it is, from the TTGIR it had before, and one
warning says why: a compile never fails because of kperfir.
"""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING, Any

from kperfir.compile.access_shapes import find_accesses
from kperfir.compile.attempt import attempt, parse_module
from kperfir.compile.custom_passes import instrument, run_passes
from kperfir.compile.metadata import REASON_KEY
from kperfir.compile.refusal import PROTON, announce
from kperfir.compile.spills import without_spills
from kperfir.compile.workshop import Instrumented, Workshop
from kperfir.errors import warn
from kperfir.passes import custom

if TYPE_CHECKING:
    from collections.abc import Callable

    from kperfir.compile.access_shapes import Found
    from kperfir.compile.triton_hook import TritonHook


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
        stages = {name: self._plain[name] for name in self._later()}
        kernel = Instrumented(
            self._kernel, module, metadata, self.options, self.custom, self._accesses, self._had_records
        )
        workshop = Workshop(self.hook, stages, kernel)
        build, failure = attempt(workshop.first)
        if failure is None:
            build = without_spills(build, self.hook.ladder, workshop)
            metadata.update(build.metadata)
            self._products = build.products
            run_passes(module, "kperf-keep-module{action=forget}")
            return build.products["llir"]
        plain = self._give_up(failure, module)
        metadata[REASON_KEY] = self._reason
        return self._plain["llir"](plain, metadata)

    def _run_later(self, before: str, name: str, source: Any, metadata: dict[str, Any]) -> Any:
        if self._products.get(before) is source:
            return self._products[name]
        return self._plain[name](source, metadata)

    def _give_up(self, reason: str, module: Any) -> Any:
        self._module = None
        self._reason = reason
        announce(self._kernel, reason)
        return run_passes(module, "kperf-keep-module{action=restore},kperf-drop-scopes")

"""Compiles one kernel with records from its ``llir`` stage on, as often as that takes.

    workshop = Workshop(hook, stages, kernel)
    build = workshop.first()          # Raises what Triton, LLVM or ptxas raise.
    build = without_spills(build, hook.ladder, workshop)

Owns what makes a second compilation necessary: records in shared memory that keep CTAs from an SM, sums that LLVM would
round otherwise. Which builds are asked for because registers do not suffice is `spills`' business.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kperfir.compile.access_shapes import find_accesses, to_text
from kperfir.compile.attempt import attempt
from kperfir.compile.contraction import has_open_sums, has_other_closed_sums, has_same_arithmetic, with_sums_of
from kperfir.compile.custom_passes import instrument, run_passes
from kperfir.compile.metadata import ACCESSES_KEY, LAYOUT_KEY
from kperfir.compile.placement import loses_ctas
from kperfir.compile.plain_kernel import Footprint, PlainKernel
from kperfir.compile.spills import Build
from kperfir.errors import CompileError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kperfir.compile.access_shapes import Found
    from kperfir.compile.pipeline import Pipelines
    from kperfir.compile.spills import Step
    from kperfir.compile.triton_hook import TritonHook
    from kperfir.passes.custom import Custom


@dataclass(slots=True)
class Instrumented:
    """A kernel at the end of its TTGIR.

    Attributes:
        name: Of its function.
        module: With records; it has kept what it was without (`kperf-keep-module`).
        metadata: Triton's, of the stages so far.
        options: Of Triton's backend.
        accesses: Found in the module, for predictions.
        had_records: It came with them: what it was without is not known.
    """

    name: str
    module: Any
    metadata: dict[str, Any]
    options: Any
    custom: Custom
    accesses: list[Found]
    had_records: bool


class Workshop:
    """See the module. `stages` are Triton's from ``llir`` on, in order."""

    def __init__(self, hook: TritonHook, stages: Mapping[str, Callable[..., Any]], kernel: Instrumented) -> None:
        self._hook = hook
        self._stages = stages
        self._kernel = kernel
        self._plain = PlainKernel(stages, kernel.module, kernel.metadata)
        self._allocation = hook.pipelines.allocation  # Of the last build.
        self._tried: set[tuple[str, str]] = set()  # TTGIR with records, and the pipeline that plans their buffer.

    def first(self) -> Build:
        """Compile by the settings in force. Raises whatever the stages do."""
        return self._compile(self._hook.pipelines)

    def plain_footprint(self) -> Footprint | None:
        """What the kernel takes without records; None where that cannot be known."""
        if self._kernel.had_records:
            return None
        footprint: Footprint | None = attempt(lambda: self._plain.footprint(self._kernel.options))[0]
        return footprint

    def build(self, step: Step) -> Build | None:
        """Compile by `step`; None if that fails, or gives what was there before."""
        if not self._tried:
            attempt(lambda: self._is_new(self._hook.pipelines, self._allocation))
        is_new, failure = attempt(lambda: self._is_new(step.pipelines, step.pipelines.allocation))
        if failure is not None or not is_new:
            return None
        self._kernel.accesses = attempt(lambda: find_accesses(self._kernel.module))[0] or []
        build: Build | None = attempt(lambda: self._compile(step.pipelines))[0]
        return build

    def assemble(self, build: Build, ptx: str) -> Build | None:
        """`build` with other assembly for the same code; None if that fails."""

        def run() -> Build:
            products, metadata = build.products | {"ptx": ptx}, dict(build.metadata)
            for before, name in itertools.pairwise(self._stages):
                if before != "llir":
                    products[name] = self._stages[name](products[before], metadata)
            return Build(products, metadata)

        again: Build | None = attempt(run)[0]
        return again

    def _is_new(self, pipelines: Pipelines, allocation: str) -> bool:
        """Insert records by `pipelines`, and tell whether a build of that would be another one."""
        self._insert_records(pipelines)
        made = (self._kernel.module.str_nodebug(), allocation)
        is_new = made not in self._tried
        self._tried.add(made)
        return is_new

    def _insert_records(self, pipelines: Pipelines) -> None:
        run_passes(self._kernel.module, "kperf-keep-module{action=restore},kperf-keep-module")
        instrument(self._kernel.module, pipelines.ttgir, self._kernel.custom)

    def _compile(self, pipelines: Pipelines) -> Build:
        """What the stages make of the module, which has its records, and the metadata that come with it."""
        build = self._compile_placed(pipelines.allocation)
        may_move = pipelines.outside and not self._kernel.had_records
        layout = build.metadata[LAYOUT_KEY]
        if may_move and loses_ctas(build.products, build.metadata, layout, self._hook.registers_of):
            self._insert_records(pipelines)
            build = self._compile_placed(pipelines.outside)
        if self._kernel.accesses:
            build.metadata[ACCESSES_KEY] = to_text(self._kernel.accesses)
        return build

    def _compile_placed(self, allocation: str) -> Build:
        self._allocation, trial = allocation, dict(self._kernel.metadata)
        product, compares = self._hook.lower(self._stages["llir"], self._kernel.module, trial, allocation), False
        if getattr(self._kernel.options, "enable_fp_fusion", True) and has_open_sums(product):
            product, compares = self._with_plain_sums(product)
        products = {"llir": product}
        for name in list(self._stages)[1:]:
            product = products[name] = self._stages[name](product, trial)
            if compares and not has_same_arithmetic(product, self._plain.product(name)):
                raise self._rounds_differently()
            compares = False  # Assembly is what comes first.
        return Build(products, trial)

    def _with_plain_sums(self, product: str) -> tuple[str, bool]:
        """Make LLVM IR round as the kernel does without records; see `contraction`.

        Returns:
            The IR, and whether its assembly has to be compared with the plain one.
        """
        plain = self._plain.product("llir")
        ordered = with_sums_of(product, plain)
        if ordered is None:
            raise self._rounds_differently()
        return ordered, has_other_closed_sums(product, plain)

    def _rounds_differently(self) -> CompileError:
        return CompileError(
            "rounds-differently", what="with records in it, LLVM would fuse other products with sums",
            where=f"kernel {self._kernel.name}",
            fix="unset TRITON_DISABLE_LINE_INFO, or compile it with enable_fp_fusion=False",
        )  # fmt: skip

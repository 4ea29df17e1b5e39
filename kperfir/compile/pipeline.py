"""Pass pipelines as text, and which passes run at which point of Triton's compilation.

    add_passes(pass_manager, "kperf-plan-buffer{buffer-bytes=8192 strategy=ring}, kperf-verify-balance")

A pipeline is a comma-separated list of passes, each with its options in braces, as MLIR writes them. What the passes
and their options do is documented in passes/Passes.td; what the user's settings are, in config.py.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kperfir.config import POLICIES
from kperfir.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kperfir.config import Options

_PASS = re.compile(r"\s*([a-z0-9-]+)\s*(?:\{([^{}]*)\})?\s*(,|$)")


@dataclass(frozen=True, slots=True)
class PassCall:
    """One pass of a pipeline and its options, each ``name=value``."""

    name: str
    options: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}{{{' '.join(self.options)}}}" if self.options else self.name


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Passes in the order in which they run; its text is what `parse` reads."""

    calls: tuple[PassCall, ...]

    @classmethod
    def parse(cls, text: str) -> Pipeline:
        """See `parse_pipeline`."""
        return cls(tuple(parse_pipeline(text)))

    def __str__(self) -> str:
        return ",".join(map(str, self.calls))


@dataclass(frozen=True, slots=True)
class Pipelines:
    """The pipelines of a kernel, one for each point of Triton's compilation at which kperfir acts.

    Attributes:
        ttgir: At the end of the ``ttgir`` stage, while loops are structured.
        allocation: At the instrumentation point ``ttgpuir-to-llvmir``: shared memory has just been allocated.
        outside: The same, with records in global memory; empty if that was not left to the compiler.
        lowering: At the instrumentation point ``llvmir-to-llvm``, by Triton backend.
    """

    ttgir: str
    allocation: str
    outside: str
    lowering: dict[str, str]


def plan_pipelines(options: Options) -> Pipelines:
    """The pipelines that do what `options` ask for."""
    scopes = "kperf-insert-scopes," if records_kind(options, "user") or records_kind(options, "mark") else ""
    insert = PassCall("kperf-insert-regions", (f"regions={','.join(options.regions)}", f"budget={options.budget}"))
    # Gaps cost nothing, but sums of them would.
    fill = PassCall("kperf-fill-gaps", (f"regions={','.join(options.regions)}",))
    gaps = "" if options.strategy == "aggregate" else f"{fill},"
    assign = PassCall("kperf-assign-frames", tuple(_iterations(options)))
    # Records that nothing holds back are those that go to global memory at once.
    buffer = "global" if options.strategy == "flush" else options.buffer
    return Pipelines(
        ttgir=f"{scopes}{insert},kperf-verify-balance,{gaps}{assign}",
        allocation=str(_plan(options, buffer)),
        outside=str(_plan(options, "global")) if buffer == "auto" else "",
        lowering={name: f"convert-kperf-gpu-to-llvm{{target={name}}}" for name in ("nvidia", "amd")},
    )


def _plan(options: Options, buffer: str) -> PassCall:
    measured = isinstance(options.buffer_bytes, str)  # Then each kernel has its own: `with_words`.
    sizes = (
        f"buffer-bytes={0 if measured else options.buffer_bytes}",
        f"strategy={options.strategy}",
        f"buffer={buffer}",
    )
    return PassCall("kperf-plan-buffer", (*sizes, *_selection(options)))


def with_words(pipeline: str, words: int) -> str:
    """`pipeline`, which plans a buffer, so that it has room for so many words of each warp."""
    (call,) = parse_pipeline(pipeline)
    return str(PassCall(call.name, (*call.options, f"words-per-warp={words}")))


def records_kind(options: Options, kind: str) -> bool:
    """Whether regions of `kind`, ``user`` or ``mark``, are to be recorded: every policy has them."""
    return kind in options.regions or not set(POLICIES).isdisjoint(options.regions)


def _iterations(options: Options) -> Iterator[str]:
    """What is recorded of a loop, where that is not all of it."""
    first, last, step = options.iterations
    counts = {"first-iteration": first, "last-iteration": last, "iteration-step": step - 1 and step}
    yield from (f"{name}={count}" for name, count in counts.items() if count)


def _selection(options: Options) -> Iterator[str]:
    """How records are stored, and which of a launch, where that is not as usual."""
    first, last, step = options.ctas
    if options.batch != 1:
        yield f"batch={options.batch}"
    counts = {"first-cta": first, "last-cta": last, "sample-ctas": step - 1 and step}
    counts |= {"first-sm": options.sms[0], "last-sm": options.sms[1]}
    yield from (f"{name}={count}" for name, count in counts.items() if count)
    if options.warps:
        yield f"warps={','.join(map(str, options.warps))}"
    if options.granularity != "warp":
        yield f"granularity={options.granularity}"


def parse_pipeline(text: str) -> list[PassCall]:
    """Parse a pipeline.

    Raises:
        UsageError: ``bad-pipeline`` if it is not a list of passes with options in braces.
    """
    calls: list[PassCall] = []
    position = 0
    while text[position:].strip():
        match = _PASS.match(text, position)
        if match is None:
            raise UsageError(
                "bad-pipeline",
                what="a pass pipeline cannot be read",
                where=f"column {position + 1}",
                found=text[position:].strip(),
                expected="pass{option=value option=value}, pass, ...",
                fix="separate passes by commas and options by spaces",
            )
        calls.append(PassCall(match[1], tuple((match[2] or "").split())))
        position = match.end()
    return calls


def add_passes(pass_manager: Any, pipeline: str) -> None:
    """Add the passes of `pipeline` to Triton's `pass_manager`. The plugin must be loaded.

    Raises:
        UsageError: ``bad-pipeline``, or ``unknown-pass`` if the plugin has no pass of that name.
    """
    from triton._C.libtriton import passes

    for call in parse_pipeline(pipeline):
        add = getattr(passes.plugin, f"add_{call.name.replace('-', '_')}", None)
        if add is None:
            raise UsageError(
                "unknown-pass",
                what="there is no such pass",
                where="pass pipeline",
                found=call.name,
                expected=f"one of {', '.join(list_passes())}",
            )
        add(pass_manager, list(call.options))


def list_passes() -> list[str]:
    """Names of the passes that plugins have added to Triton."""
    from triton._C.libtriton import passes

    names = (name for name in dir(passes.plugin) if name.startswith("add_"))
    return sorted(name.removeprefix("add_").replace("_", "-") for name in names)

"""Run one operation of a kernel library plain and profiled on the SIMT device, and say what became of each kernel.

    python -m libraries.check fla chunk_gla

Prints one JSON object: `error` (the operation itself cannot run), `differing` (outputs that profiling changed), and
`kernels`: name -> Kernel. A process of its own, because libtriton's assertions end the process.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import sys
import tempfile
import warnings
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import triton

import kperfir
from kperfir.cuda_as_cpu import cuda_as_cpu
from kperfir.errors import KPerfWarning
from kperfir.runtime.chip import load_chip
from support.compiling import TARGETS, instrumentation, stop_at_ptx
from support.launch import simt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from libraries.operation import Operation

OTHER_TARGETS = ("sm_90", "sm_100")
# Every launch of an operation is looked at, so none may be left out.
PROFILE = {"device": "simt", "simt_seed": 0, "simt_threads": 1, "launches": 1000, "file_bytes": 4 << 30}


@dataclass(slots=True)
class Kernel:
    """What became of one kernel, over all its launches in the operation."""

    launches: int = 0
    fallback: str = ""
    compiled: dict[str, str] = field(default_factory=dict)
    records: int = 0
    dropped: int = 0
    unbalanced: int = 0


@dataclass(slots=True)
class Outcome:
    """What became of an operation."""

    error: str = ""
    differing: list[int] = field(default_factory=list)
    unstable: bool = False
    kernels: dict[str, Kernel] = field(default_factory=dict)


def check(operation: Operation, *, assemble: bool) -> Outcome:
    """Run `operation` plain under two orders of the warps, then profiled; compile its kernels for other targets."""
    outcome = Outcome()
    operation.resolve()  # A library that is not there is our fault, not the operation's: it raises.
    with cuda_as_cpu(load_chip("a100")), first_configuration(), compilations() as compiled:
        try:
            with simt():
                plain = operation.run()
            with simt(scheduler_seed=1):
                again = operation.run()
        except Exception as error:
            outcome.error = first_line(error)
            return outcome
        # A result that the order of atomic additions decides cannot be compared bit for bit.
        outcome.unstable = bool(differences(plain, again))
        compiled.clear()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "out.kpf"
            with kperfir.profile(path, **PROFILE):
                profiled = operation.run()
            outcome.kernels = decoded(path)
        outcome.differing = [] if outcome.unstable else differences(plain, profiled)
    if not assemble:
        triton.knobs.runtime.add_stages_inspection_hook = stop_at_ptx
    for one in compiled:
        kernel = outcome.kernels.setdefault(one.name, Kernel())
        kernel.fallback = kernel.fallback or one.fallback
        for target in OTHER_TARGETS:
            kernel.compiled[target] = kernel.compiled.get(target) or one.compile_for(target)
    return outcome


@contextlib.contextmanager
def first_configuration() -> Iterator[None]:
    """Leave autotuners one configuration: the choice is not what is checked, and each costs a launch."""
    from triton.runtime.autotuner import Autotuner

    original = Autotuner.prune_configs
    Autotuner.prune_configs = lambda self, arguments: original(self, arguments)[:1]
    try:
        yield
    finally:
        Autotuner.prune_configs = original


@dataclass(slots=True)
class Compilation:
    """A kernel as the JIT compiled it, so that it can be compiled again for another target."""

    name: str
    source: Any
    options: dict[str, Any]
    fallback: str

    def compile_for(self, target: str) -> str:
        """Compile instrumented; return what went wrong, empty if nothing."""
        from triton.backends.compiler import GPUTarget

        options = {key: self.options[key] for key in ("num_warps", "num_stages", "num_ctas") if key in self.options}
        with instrumentation(), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                compiled = triton.compile(self.source, target=GPUTarget(*TARGETS[target]), options=options)
            except Exception as error:
                return f"error: {first_line(error)}"
        reasons = [str(one.message) for one in caught if issubclass(one.category, KPerfWarning)]
        return "" if getattr(compiled.metadata, "kperf_layout", "") else f"fallback: {'; '.join(reasons)}"


@contextlib.contextmanager
def compilations() -> Iterator[list[Compilation]]:
    """Collect what the JIT compiles inside."""
    import triton.compiler

    found: list[Compilation] = []
    original = triton.compiler.compile

    def compile(source: Any, target: Any = None, options: Any = None, **more: Any) -> Any:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            compiled = original(source, target=target, options=options, **more)
        reasons = [str(one.message) for one in caught if issubclass(one.category, KPerfWarning)]
        layout = getattr(compiled.metadata, "kperf_layout", "")
        found.append(
            Compilation(
                compiled.metadata.name, source, dict(options or {}), "" if layout else "; ".join(reasons) or "?"
            )
        )
        return compiled

    triton.compiler.compile = compile
    try:
        yield found
    finally:
        triton.compiler.compile = original


def decoded(path: Path) -> dict[str, Kernel]:
    """Count what the capture holds of every kernel."""
    timeline = kperfir.load(path)
    kernels: dict[str, Kernel] = {}
    launches = timeline.launches.set_index("launch")
    for launch, row in launches.iterrows():
        kernel = kernels.setdefault(str(row["kernel"]), Kernel())
        tracks = timeline.tracks[timeline.tracks["launch"] == launch]
        spans = timeline.spans[timeline.spans["launch"] == launch]
        kernel.launches += 1
        kernel.records += int(tracks["records"].sum())
        kernel.dropped += int(row["dropped"])
        whole = tracks.loc[tracks["dropped"] == 0, ["cta", "warp"]]
        kernel.unbalanced += int((~spans.merge(whole, on=["cta", "warp"])["complete"]).sum())
    return kernels


def differences(first: list[torch.Tensor], second: list[torch.Tensor]) -> list[int]:
    """Return the positions at which two runs differ in a bit; a NaN equals itself."""
    return [
        index
        for index, (one, other) in enumerate(zip(first, second, strict=True))
        if not torch.equal(one.reshape(-1).view(torch.uint8), other.reshape(-1).view(torch.uint8))
    ]


def first_line(error: BaseException) -> str:
    text = str(error).strip() or repr(error)
    return f"{type(error).__name__}: {text.splitlines()[0][:160]}"


def main(library: str, name: str, *flags: str) -> None:
    """Check one operation and print the outcome; ``--assemble`` has ptxas accept what is compiled for other targets."""
    operations = importlib.import_module(f"libraries.{library}").OPERATIONS
    (operation,) = [one for one in operations if one.name == name]
    print(json.dumps(asdict(check(operation, assemble="--assemble" in flags))))


if __name__ == "__main__":
    main(*sys.argv[1:])

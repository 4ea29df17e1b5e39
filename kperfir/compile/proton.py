"""Compile with Proton's records where kperfir's would be: what side-by-side measurements are made of.

    with proton_instrumentation(options, arch=90):
        triton.compile(...)

Every region that `options` select is a scope of Proton's with the region's name. Iterations are not: they have no end
record of their own here, and Proton needs one. Lowering, buffer and copy-out are all Proton's, in its default mode.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

from kperfir.compile.attempt import parse_module
from kperfir.compile.custom_passes import run_passes
from kperfir.compile.pipeline import Pipeline, plan_pipelines
from kperfir.compile.plugin import load_plugin
from kperfir.errors import UsageError
from kperfir.runtime.patches import Patches

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kperfir.config import Options

# Shared memory per CTA that a kernel may ask for, by compute capability (CUDA C++ Programming Guide, table of technical
# specifications); Proton plans its buffer into it.
MAX_SHARED_BYTES = {80: 163 << 10, 86: 99 << 10, 89: 99 << 10, 90: 227 << 10, 100: 227 << 10, 120: 99 << 10}
# As Proton's own hook sets them.
_BUFFER_BYTES, _ALIGNMENT = 1, 128
_BACKEND = "nvidia"

# Passes that say what records mean here.
_OWN_PASSES = ("kperf-fill-gaps", "kperf-assign-frames")
_ITERATION = re.compile(r"^.*kperf\.record start \"[^\"]*\" kind iteration.*$", re.M)
_RECORD = re.compile(r"kperf\.record (start|end) \"([^\"]*)\" kind \w+(?: of \"[^\"]*\")?")


class _Renamer:
    """Turns one record after another into Proton's; a region that every partition of a kernel has is several scopes."""

    def __init__(self) -> None:
        self._starts: Counter[str] = Counter()
        self._open: defaultdict[str, list[int]] = defaultdict(list)

    def __call__(self, record: re.Match[str]) -> str:
        edge, name = record.groups()
        if edge == "start":
            self._starts[name] += 1
            number = self._starts[name]
            self._open[name].append(number)
        else:  # Of several returns, each has an end.
            number = self._open[name].pop() if len(self._open[name]) > 1 else self._open[name][-1]
        return f'proton.record {edge} "{name}"' if number == 1 else f'proton.record {edge} "{name} ({number})"'


class ProtonRecords:
    """What was put into the kernels that were compiled; `count` is of the last one."""

    count = 0


@contextlib.contextmanager
def proton_instrumentation(options: Options, *, arch: int) -> Iterator[ProtonRecords]:
    """Instrument what is compiled inside with Proton, for NVIDIA's compute capability `arch` (times 10).

    Raises:
        RuntimeError: If Proton itself is active.
        UsageError: ``bad-option`` if nothing is known of `arch`.
    """
    from triton import knobs
    from triton._C.libtriton import passes, proton
    from triton._instrumentation import register_instrumentation, unregister_instrumentation
    from triton.profiler import mode

    if arch not in MAX_SHARED_BYTES:
        raise UsageError(
            "bad-option", what="Proton's buffer cannot be planned", found=f"sm_{arch}",
            expected=", ".join(f"sm_{known}" for known in MAX_SHARED_BYTES), fix="compile for one of these",
        )  # fmt: skip
    load_plugin()
    insert = Pipeline.parse(plan_pipelines(options).ttgir)
    insert_only = str(Pipeline(tuple(call for call in insert.calls if call.name not in _OWN_PASSES)))
    settings, records = mode.Default(), ProtonRecords()

    def plan(manager: Any) -> None:
        proton.add_convert_proton_to_protongpu(
            manager, settings.metric_type, settings.sampling_strategy, settings.sampling_options, settings.granularity,
            settings.buffer_strategy, settings.buffer_type, settings.buffer_size, MAX_SHARED_BYTES[arch],
            _BUFFER_BYTES, _ALIGNMENT, True,
        )  # fmt: skip
        passes.common.add_cse(manager)
        proton.add_allocate_proton_shared_memory(manager)

    def hook_stages(*arguments: Any) -> tuple[str, str] | None:
        if not arguments:
            key = f"kperfir proton {insert_only}"
            return key, key
        stages = arguments[1]
        ttgir = stages["ttgir"]
        stages["ttgir"] = lambda source, metadata: convert(ttgir(source, metadata))
        return None

    def convert(module: Any) -> Any:
        text = _ITERATION.sub("", run_passes(module, insert_only).str())
        text, records.count = _RECORD.subn(_Renamer(), text)
        proton.load_dialects(module.context)
        return parse_module(text, module.context)

    points = {
        "load-dialects": proton.load_dialects,
        "ttgpuir-to-llvmir": plan,
        "llvmir-to-llvm": proton.add_convert_proton_nvidia_gpu_to_llvm,
    }
    patches, registered = Patches(), []
    try:
        for point, callback in points.items():
            register_instrumentation(point=point, backend=_BACKEND, callback=callback)
            registered.append(point)
        patches.replace(knobs.runtime, "add_stages_inspection_hook", hook_stages)
        yield records
    finally:
        patches.undo()
        for point in registered:
            unregister_instrumentation(point=point, backend=_BACKEND)

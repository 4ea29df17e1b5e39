"""Decide in Python what is recorded, and take part in Triton's own passes.

    from kperfir import passes

    def loads_of_the_loop(kernel):
        for load in kernel.select(kind="load", loop_depth=1):
            kernel.region("main load", load)
            kernel.mark("step", before=load, value=load.loop.variable)

    with passes.use(loads_of_the_loop), kperfir.profile("out.kpf"):
        kernel[grid](...)

* `use`: a callback over the operations of each kernel asks for regions and marks (`Kernel`, `Operation`).
* `Kernel.frames`, `Kernel.new_frames`: stamps and frames, to read and to choose (`kperfir.passes.frames`);
  `parse_kernel` reads a kernel from its IR.
* `Pipeline`: a list of passes, from text or from `PassCall` objects, and back.
* `add_pipeline`: a pipeline at the end of the ``ttir`` or ``ttgir`` stage. `patch`, `unpatch`: one around a pass of
  Triton's, by its name; `triton_passes` lists those.
* `policy_flags`, `run_policy`: policies in C++ (kperfir/include/kperfir/Policy.h).

What is in force belongs to the process and to Triton's cache key: a kernel is compiled again when it changes.
"""

from __future__ import annotations

from kperfir.compile.pipeline import PassCall, Pipeline, list_passes
from kperfir.passes.custom import (
    add_pipeline,
    parse_kernel,
    patch,
    policy_flags,
    remove_pipeline,
    run_policy,
    triton_passes,
    unpatch,
    use,
)
from kperfir.passes.frames import Event, Frame, NewEvent, NewFrame, NewRegion, Stamp, StoredValue
from kperfir.passes.view import Kernel, Operation, Value

__all__ = [
    "Event",
    "Frame",
    "Kernel",
    "NewEvent",
    "NewFrame",
    "NewRegion",
    "Operation",
    "PassCall",
    "Pipeline",
    "Stamp",
    "StoredValue",
    "Value",
    "add_pipeline",
    "list_passes",
    "parse_kernel",
    "patch",
    "policy_flags",
    "remove_pipeline",
    "run_policy",
    "triton_passes",
    "unpatch",
    "use",
]

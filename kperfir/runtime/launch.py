"""What happens around a launch: a zeroed profile buffer before it, the records handed to the session after it.

Owns the change to Triton that makes launches go through here (`LaunchCapture`). Works for every Triton driver, since
each asks Triton's profile allocator for the buffer. What is kept is the session's decision.
"""

from __future__ import annotations

import functools
import json
import math
import sys
import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from kperfir.compile.source_file import source_file
from kperfir.config import EVERY
from kperfir.runtime.benchmarking import BenchmarkWatch
from kperfir.runtime.buffer import Nothing, Pending, ProfileAllocator
from kperfir.runtime.patches import Patches
from kperfir.runtime.room import Room

if TYPE_CHECKING:
    from collections.abc import Callable

    from kperfir.capture.writer import Ticket
    from kperfir.runtime.buffer import Records
    from kperfir.runtime.device import ProfileDevice

# Keys of Triton's metadata that kperfir.compile.triton_hook writes.
LAYOUT_KEY = "kperf_layout"
ACCESSES_KEY = "kperf_accesses"
REASON_KEY = "kperf_not_instrumented"


@dataclass(frozen=True, slots=True)
class Kernel:
    """A compiled kernel. `layout` is the JSON of its profile buffer, empty if it was compiled without
    instrumentation.
    """

    name: str
    layout: str
    facts: dict[str, Any] = field(hash=False)


@dataclass(frozen=True, slots=True)
class RawLaunch:
    """What one launch wrote.

    Attributes:
        kernel: What was launched.
        grid: CTAs per dimension, those of clusters included.
        stream: Handle of the stream.
        room: The CTAs that could record.
        records: Their profile buffer.
        device: What the device says about itself (`ProfileDevice.describe`).
        timing: What the device says about the launch (`ProfileDevice.describe_last_launch`).
    """

    kernel: Kernel
    grid: tuple[int, int, int]
    stream: int
    room: Room
    records: Records
    device: dict[str, Any]
    timing: dict[str, Any]


class LaunchSink(Protocol):
    """Who is told of launches."""

    @property
    def launch_bytes(self) -> int:
        """Bytes that a launch may record into at most."""
        ...

    def wants(self, kernel: Kernel) -> Ticket | None:
        """Decide before a launch of an instrumented kernel whether its records are kept; `accept` or `fail` follows."""
        ...

    def pass_over(self, kernel: Kernel) -> None:
        """Hear of a launch that the autotuner makes to measure a configuration."""
        ...

    def put_into_graph(self, kernel: Kernel) -> None:
        """Hear of a launch that went into a CUDA graph, whose replays nobody hears of."""
        ...

    def accept(self, launch: RawLaunch, ticket: Ticket) -> None:
        """Take the records of a launch that was wanted, now or when it is complete."""
        ...

    def miss(self, kernel: Kernel) -> None:
        """Hear of a launch of a kernel that is not instrumented."""
        ...

    def fail(self, kernel: Kernel, error: BaseException, ticket: Ticket) -> None:
        """Hear that a launch that was wanted left no records."""
        ...


class LaunchCapture:
    """Sends every launch of the process past a sink, from `install` to `uninstall`."""

    def __init__(self, current_sink: Callable[[], LaunchSink | None]) -> None:
        self._current_sink = current_sink
        self._patches = Patches()
        self._stages_patch = Patches()
        self._allocator = ProfileAllocator()
        self._benchmarks = BenchmarkWatch()
        self._kernels: weakref.WeakKeyDictionary[Any, Kernel] = weakref.WeakKeyDictionary()

    def install(self) -> None:
        """Change how Triton launches and how its autotuner measures."""
        from triton.compiler.compiler import CompiledKernel

        self._patches.replace(CompiledKernel, "run", property(functools.partial(self._run, CompiledKernel.run.fget)))
        self._benchmarks.install(self._patches)

    def uninstall(self) -> None:
        """Undo `install`."""
        self._patches.undo()
        self._allocator.uninstall()

    def spare_benchmarks(self, plain: Callable[..., Any] | None) -> None:
        """Let the autotuner measure what it would measure without kperfir, so that it chooses the same configuration.

        Args:
            plain: Triton's stages hook as it was before the one that instruments, which is in its place now.
        """
        from triton import knobs

        instrumenting = knobs.runtime.add_stages_inspection_hook

        def choose(*arguments: Any) -> Any:
            hook = plain if self._benchmarks.active else instrumenting
            if hook is None:
                return None if arguments else ("", "")
            return hook(*arguments)

        self._stages_patch.replace(knobs.runtime, "add_stages_inspection_hook", choose)

    def stop_sparing_benchmarks(self) -> None:
        """Undo `spare_benchmarks`."""
        self._stages_patch.undo()

    def _run(self, run_of: Callable[[Any], Callable[..., None]], compiled: Any) -> Callable[..., None]:
        """Return what `CompiledKernel.run` is while this is installed."""
        run = run_of(compiled)
        sink = self._current_sink()
        return run if sink is None else functools.partial(self._launch, sink, compiled, run)

    def _launch(
        self, sink: LaunchSink, compiled: Any, run: Callable[..., None],
        grid_x: int, grid_y: int, grid_z: int, stream: int, *rest: Any,
    ) -> None:  # fmt: skip
        kernel = self._kernels.get(compiled)
        if kernel is None:
            kernel = self._kernels[compiled] = describe_kernel(compiled)
        launch = functools.partial(run, grid_x, grid_y, grid_z, stream, *rest)
        if self._benchmarks.active:
            self._launch_unrecorded(kernel, launch)
            sink.pass_over(kernel)
        elif not kernel.layout:
            launch()
            sink.miss(kernel)
        elif grid_x * grid_y * grid_z == 0:
            launch()
        elif active_profile_device().is_capturing(stream):
            self._launch_unrecorded(kernel, launch)  # Into a graph, which replays without Triton.
            sink.put_into_graph(kernel)
        elif (ticket := sink.wants(kernel)) is None:
            self._launch_unrecorded(kernel, launch)
        else:
            self._capture(sink, ticket, kernel, launch, (grid_x, grid_y, grid_z, stream))

    def _launch_unrecorded(self, kernel: Kernel, launch: Callable[[], None]) -> None:
        """Launch, with no memory for records where the kernel would ask for some."""
        self._allocator.expect(Nothing() if kernel.layout else None)
        try:
            launch()
        finally:
            self._allocator.expect(None)

    def _capture(
        self, sink: LaunchSink, ticket: Ticket, kernel: Kernel, launch: Callable[[], None],
        place: tuple[int, int, int, int],
    ) -> None:  # fmt: skip
        grid = (place[0] * int(kernel.facts["num_ctas"]), *place[1:3])
        stride = int(kernel.facts["scratch_bytes"])
        selection = json.loads(kernel.layout).get("ctas", EVERY)
        room = Room.of(selection, math.prod(grid), stride, sink.launch_bytes)
        device = active_profile_device()
        pending = Pending(device, place[3], room, stride)
        self._allocator.expect(pending)
        try:
            launch()
        except BaseException as error:
            sink.fail(kernel, error, ticket)
            raise
        finally:
            self._allocator.expect(None)
        timing = device.describe_last_launch()
        records = pending.begin_read(kernel, timing.get("untimed_ctas"))
        sink.accept(RawLaunch(kernel, grid, place[3], room, records, device.describe(), timing), ticket)


def describe_kernel(compiled: Any) -> Kernel:
    """Return what a capture says about a kernel that Triton has compiled."""
    source, metadata = compiled.src, compiled.metadata
    target = metadata.target
    facts: dict[str, Any] = {
        "hash": metadata.hash,
        "target": f"{target.backend}:{target.arch}",
        "num_warps": metadata.num_warps,
        "num_ctas": metadata.num_ctas,
        "num_stages": getattr(metadata, "num_stages", None),
        "shared_bytes": metadata.shared,
        "scratch_bytes": metadata.profile_scratch_size,
        "scratch_align": metadata.profile_scratch_align,
        "signature": {str(name): _plain(kind) for name, kind in source.signature.items()},
    }
    if file := source_file(source):
        facts["file"] = file
    function = getattr(source, "fn", None)
    if function is not None:
        facts["line"] = function.starting_line_number
        names = function.arg_names
        facts["constants"] = {
            ".".join([names[path[0]], *map(str, path[1:])]): _plain(value) for path, value in source.constants.items()
        }
    reason = getattr(metadata, REASON_KEY, "")
    if reason:
        facts["not_instrumented"] = reason
    layout = getattr(metadata, LAYOUT_KEY, None)
    if accesses := _predicted(compiled, layout, getattr(metadata, ACCESSES_KEY, "")):
        facts["accesses"] = accesses
    return Kernel(metadata.name, layout if isinstance(layout, str) else "", facts)


def _predicted(compiled: Any, layout: Any, accesses: str) -> dict[str, Any] | None:
    """Return what is predicted of the accesses of a kernel; without it a kernel is as good as with it."""
    if not (layout and accesses):
        return None
    from kperfir.compile.access_shapes import from_text
    from kperfir.compile.accesses import predict

    try:
        return predict(from_text(accesses), layout, compiled.asm["ptx"])
    except Exception:  # Assembly that another tool has changed.
        return None


def active_profile_device() -> ProfileDevice:
    """Return the profile device behind Triton's current driver."""
    return profile_device_of(_active_driver())


def profile_device_of(driver: Any) -> ProfileDevice:
    """Return the profile device behind a Triton driver."""
    device: ProfileDevice | None = getattr(driver, "profile_device", None)
    if device is None:
        from kperfir.runtime.torch_device import TorchDevice

        device = TorchDevice(driver)
    return device


def _plain(value: Any) -> Any:
    if isinstance(value, (str, int, float, bool, type(None))):
        return value
    return [_plain(item) for item in value] if isinstance(value, (tuple, list)) else str(value)


def _active_driver() -> Any:
    return sys.modules["triton.runtime.driver"].driver.active

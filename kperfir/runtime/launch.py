"""What happens around a launch: a zeroed profile buffer before it, the records handed to the session after it.

Owns the change to Triton that makes launches go through here (`LaunchCapture`). Works for every Triton driver, since
each asks Triton's profile allocator for the buffer. What is kept is the session's decision.
"""

from __future__ import annotations

import functools
import json
import math
import sys
import threading
import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from kperfir.compile.source_file import source_file
from kperfir.config import EVERY
from kperfir.errors import CaptureError, KPerfError
from kperfir.runtime.benchmarking import BenchmarkWatch
from kperfir.runtime.patches import Patches
from kperfir.runtime.room import RecordAddress, Room

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from kperfir.runtime.device import ProfileBuffer, ProfileDevice

# Keys of Triton's metadata that kperfir.compile.triton_hook writes.
LAYOUT_KEY = "kperf_layout"
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
        data: Their profile buffer; shape ``(room.ctas * cta_bytes,)``, dtype uint8. Zero where one recorded nothing.
        device: What the device says about itself (`ProfileDevice.describe`).
        timing: What the device says about the launch (`ProfileDevice.describe_last_launch`).
    """

    kernel: Kernel
    grid: tuple[int, int, int]
    stream: int
    room: Room
    data: NDArray[np.uint8]
    device: dict[str, Any]
    timing: dict[str, Any]


class LaunchSink(Protocol):
    """Who is told of launches."""

    @property
    def launch_bytes(self) -> int:
        """Bytes that a launch may record into at most."""
        ...

    def wants(self, kernel: Kernel) -> bool:
        """Decide before a launch of an instrumented kernel whether its records are kept."""
        ...

    def pass_over(self, kernel: Kernel) -> None:
        """Hear of a launch that the autotuner makes to measure a configuration."""
        ...

    def put_into_graph(self, kernel: Kernel) -> None:
        """Hear of a launch that went into a CUDA graph, whose replays nobody hears of."""
        ...

    def accept(self, launch: RawLaunch) -> None:
        """Take the records of a launch that was wanted."""
        ...

    def miss(self, kernel: Kernel) -> None:
        """Hear of a launch of a kernel that is not instrumented."""
        ...

    def fail(self, kernel: Kernel, error: BaseException) -> None:
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
            kernel = self._kernels[compiled] = describe_kernel(compiled.src, compiled.metadata)
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
        elif not sink.wants(kernel):
            self._launch_unrecorded(kernel, launch)
        else:
            self._capture(sink, kernel, launch, (grid_x, grid_y, grid_z, stream))

    def _launch_unrecorded(self, kernel: Kernel, launch: Callable[[], None]) -> None:
        """Launch, with no memory for records where the kernel would ask for some."""
        self._allocator.expect(_Nothing() if kernel.layout else None)
        try:
            launch()
        finally:
            self._allocator.expect(None)

    def _capture(
        self, sink: LaunchSink, kernel: Kernel, launch: Callable[[], None], place: tuple[int, int, int, int]
    ) -> None:
        grid = (place[0] * int(kernel.facts["num_ctas"]), *place[1:3])
        stride = int(kernel.facts["scratch_bytes"])
        selection = json.loads(kernel.layout).get("ctas", EVERY)
        room = Room.of(selection, math.prod(grid), stride, sink.launch_bytes)
        pending = _Pending(active_profile_device(), room, stride)
        self._allocator.expect(pending)
        try:
            launch()
        except BaseException as error:
            sink.fail(kernel, error)
            raise
        finally:
            self._allocator.expect(None)
        try:
            sink.accept(_read_back(kernel, grid, place[3], pending))
        except KPerfError as error:  # The program's own result is there: a fault of ours must not take it away.
            sink.fail(kernel, error)


class _Request(Protocol):
    """What to do when Triton asks for the profile buffer of a launch."""

    def allocate(self, alignment: int) -> RecordAddress | None:
        """Return what the kernel is launched with."""
        ...


class _Nothing:
    """A launch that nobody keeps. Its kernel records nothing."""

    def allocate(self, alignment: int) -> None:
        """Return null."""


@dataclass(slots=True)
class _Pending:
    """A launch that is kept."""

    device: ProfileDevice
    room: Room
    stride: int
    buffer: ProfileBuffer | None = None
    error: KPerfError | None = None

    def allocate(self, alignment: int) -> RecordAddress | None:
        """Return the address of the buffer; null where there is no memory for one: the launch itself must not fail."""
        nbytes = self.room.ctas * self.stride
        try:
            if self.room.wanted and not nbytes:
                raise MemoryError(f"{self.stride} bytes per CTA are more than a launch may have")
            self.buffer = self.device.allocate_zeroed(nbytes, alignment)
        except Exception as error:  # Whatever the device's library raises.
            self.error = CaptureError(
                "no-room", where="the profile buffer of a launch",
                found=(str(error) or type(error).__name__).splitlines()[0],
                expected=f"memory for {nbytes or self.stride} bytes",
                fix="set a bound that fits (TRITON_KPERF_LAUNCH_BYTES), or record fewer CTAs (TRITON_KPERF_CTAS)",
            )  # fmt: skip
            return None
        return RecordAddress.of(self.buffer, self.room, self.stride)


class ProfileAllocator:
    """Stands in Triton's one slot for a profile allocator, and passes on what is not for us."""

    def __init__(self) -> None:
        self._local = threading.local()
        self._previous: Any = None

    def __call__(self, size: int, alignment: int, stream: int | None) -> Any:
        """Allocate, as Triton asks."""
        request: _Request | None = getattr(self._local, "request", None)
        if request is not None:
            return request.allocate(alignment)
        from triton.runtime import _allocation

        if self._previous is None or isinstance(self._previous, _allocation.NullAllocator):
            return _active_driver().allocate_default_profile_scratch(size, alignment, stream)
        return self._previous(size, alignment, stream)

    def expect(self, request: _Request | None) -> None:
        """Give the next allocation of this thread to `request`; None ends that."""
        from triton.runtime import _allocation

        slot = _allocation._profile_allocator
        if request is not None and slot.get() is not self:
            self._previous = slot.get()  # Somebody may have set another one since: theirs stays reachable.
            slot.set(self)
        self._local.request = request

    def uninstall(self) -> None:
        """Put back the allocator that was there."""
        if self._previous is None:
            return
        from triton.runtime import _allocation

        if _allocation._profile_allocator.get() is self:
            _allocation._profile_allocator.set(self._previous)
        self._previous = None


def describe_kernel(source: Any, metadata: Any) -> Kernel:
    """Return what a capture says about a kernel."""
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
    return Kernel(metadata.name, layout if isinstance(layout, str) else "", facts)


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


def _read_back(kernel: Kernel, grid: tuple[int, int, int], stream: int, pending: _Pending) -> RawLaunch:
    device = pending.device
    device.synchronize()
    if pending.error is not None:
        raise pending.error
    data = without_padding(kernel, pending.room.ctas, None if pending.buffer is None else pending.buffer.read())
    timing = device.describe_last_launch()
    data = _without_untimed(data, pending.room, timing.get("untimed_ctas"))
    return RawLaunch(kernel, grid, stream, pending.room, data, device.describe(), timing)


def _without_untimed(data: NDArray[np.uint8], room: Room, untimed: list[int] | None) -> NDArray[np.uint8]:
    """Return the buffer without the records of CTAs that a device has run without time: their clocks tell nothing."""
    if untimed is None or not room.ctas:
        return data
    first, last = (min(max(cta - room.first, 0), room.ctas) for cta in untimed)
    timed = data.copy().reshape(room.ctas, -1)
    timed[first:last] = 0
    return timed.reshape(-1)


def without_padding(kernel: Kernel, ctas: int, data: NDArray[np.uint8] | None) -> NDArray[np.uint8]:
    """Return the bytes of all CTAs, of which the device's buffer may hold more, to align each.

    Args:
        kernel: What was launched.
        ctas: CTAs that have room.
        data: The buffer; None if nobody asked for one.

    Raises:
        CaptureError: ``size-mismatch``.
    """
    stride, cta_bytes = int(kernel.facts["scratch_bytes"]), int(json.loads(kernel.layout)["cta_bytes"])
    if data is None or not cta_bytes <= stride < cta_bytes + int(kernel.facts["scratch_align"]):
        raise CaptureError(
            "size-mismatch", where=f"kernel {kernel.name}", found=f"{stride} bytes of profile buffer per CTA",
            expected=f"{cta_bytes}", fix="switch off other profilers that instrument kernels, such as Proton",
        )  # fmt: skip
    if data.nbytes != ctas * stride:
        raise CaptureError(
            "size-mismatch", where=f"kernel {kernel.name}", found=f"a profile buffer of {data.nbytes} bytes",
            expected=f"{ctas} CTAs of {stride} bytes", fix="report it: driver and launch disagree",
        )  # fmt: skip
    return data if stride == cta_bytes else data.reshape(-1, stride)[:, :cta_bytes].reshape(-1)


def _plain(value: Any) -> Any:
    if isinstance(value, (str, int, float, bool, type(None))):
        return value
    return [_plain(item) for item in value] if isinstance(value, (tuple, list)) else str(value)


def _active_driver() -> Any:
    return sys.modules["triton.runtime.driver"].driver.active

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
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from kperfir.config import EVERY
from kperfir.errors import as_ours, warn
from kperfir.runtime.benchmarking import BenchmarkWatch
from kperfir.runtime.buffer import Nothing, Pending, ProfileAllocator
from kperfir.runtime.kernel import describe_kernel, layout_of
from kperfir.runtime.patches import Patches
from kperfir.runtime.room import Room

if TYPE_CHECKING:
    from collections.abc import Callable

    from kperfir.capture.laps import Lap
    from kperfir.capture.writer import Ticket
    from kperfir.errors import KPerfError
    from kperfir.runtime.buffer import Records
    from kperfir.runtime.device import ProfileDevice
    from kperfir.runtime.kernel import Kernel


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

    def take_lap(self, kernel: Kernel, ticket: Ticket, keep_free: int, lap: Lap) -> bool:
        """Take a lap of a wanted launch that may still run; False if there will be no room for more, from any thread.

        Room for `keep_free` bytes is left for the rest of the launch.
        """
        ...

    def fail(self, kernel: Kernel, error: BaseException, ticket: Ticket) -> None:
        """Hear that a launch that was wanted left no records."""
        ...

    def fault(self, kernel: str, error: KPerfError, *, counted: bool) -> None:
        """Hear that kperfir failed around a launch; it was `counted` if `fail` was told of it."""
        ...


class _Launch:
    """A launch that the program asked for, and what came of it; `failed` if the sink heard that."""

    def __init__(self, run: Callable[[], None]) -> None:
        self._run = run
        self.made = False
        self.failed = False
        self.error: BaseException | None = None

    def __call__(self) -> None:
        """Make it."""
        self.made = True
        try:
            self._run()
        except BaseException as error:
            self.error = error
            raise


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
        launch = _Launch(functools.partial(run, grid_x, grid_y, grid_z, stream, *rest))
        try:
            self._watch(sink, compiled, launch, (grid_x, grid_y, grid_z, stream))
        except Exception as error:
            if error is launch.error:
                raise
            # Of ours: the program gets its launch all the same, and its error.
            _tell(sink, str(getattr(compiled, "name", "")), error, counted=launch.failed)
            if launch.error is not None:
                raise launch.error from None
            if not launch.made:
                self._launch_unrecorded(layout_of(compiled), launch)

    def _watch(
        self, sink: LaunchSink, compiled: Any, launch: _Launch, place: tuple[int, int, int, int],
    ) -> None:  # fmt: skip
        kernel = self._kernels.get(compiled)
        if kernel is None:
            kernel = self._kernels[compiled] = describe_kernel(compiled)
        if self._benchmarks.active:
            self._launch_unrecorded(kernel.layout, launch)
            sink.pass_over(kernel)
        elif not kernel.layout:
            launch()
            sink.miss(kernel)
        elif math.prod(place[:3]) == 0:
            launch()
        elif active_profile_device().is_capturing(place[3]):
            self._launch_unrecorded(kernel.layout, launch)  # Into a graph, which replays without Triton.
            sink.put_into_graph(kernel)
        elif (ticket := sink.wants(kernel)) is None:
            self._launch_unrecorded(kernel.layout, launch)
        else:
            self._capture(sink, ticket, kernel, launch, place)

    def _launch_unrecorded(self, layout: str, launch: Callable[[], None]) -> None:
        """Launch, with no memory for records where the kernel would ask for some."""
        self._allocator.expect(Nothing() if layout else None)
        try:
            launch()
        finally:
            self._allocator.expect(None)

    def _capture(
        self, sink: LaunchSink, ticket: Ticket, kernel: Kernel, launch: _Launch,
        place: tuple[int, int, int, int],
    ) -> None:  # fmt: skip
        from kperfir.capture.laps import LapShape

        pending: Pending | None = None
        try:
            grid = (place[0] * int(kernel.facts["num_ctas"]), *place[1:3])
            stride = int(kernel.facts["scratch_bytes"])
            layout = json.loads(kernel.layout)
            room = Room.of(layout.get("ctas", EVERY), math.prod(grid), stride, sink.launch_bytes)
            device = active_profile_device()
            take_lap = functools.partial(sink.take_lap, kernel, ticket, room.ctas * stride)
            pending = Pending(device, place[3], room, stride, LapShape.of(layout), take_lap)
            self._allocator.expect(pending)
            try:
                launch()
            finally:
                self._allocator.expect(None)
            timing = device.describe_last_launch()
            records = pending.begin_read(kernel, timing.get("untimed_ctas"))
            complete = RawLaunch(kernel, grid, place[3], room, records, device.describe(), timing)
        except BaseException as error:
            launch.failed = True
            if pending is not None:
                pending.abandon()
            sink.fail(kernel, error, ticket)
            raise
        sink.accept(complete, ticket)


def _tell(sink: LaunchSink, kernel: str, error: Exception, *, counted: bool) -> None:
    """Have a fault of ours said once and counted; said at least, where it is the sink that fails."""
    ours = as_ours(error, f"kernel {kernel}")
    try:
        sink.fault(kernel, ours, counted=counted)
    except Exception:
        warn(f"a launch of kernel {kernel} is not in the capture: {ours}")


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


def _active_driver() -> Any:
    return sys.modules["triton.runtime.driver"].driver.active

"""Decides which launches are kept, writes them to the file of this process, and counts the rest.

Owns one file. Takes launches from `runtime.launch.LaunchCapture`; nothing that goes wrong here may reach the program
that is profiled, so faults become warnings and counts.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from kperfir.compile.refusal import announce
from kperfir.config import OF_CODE
from kperfir.errors import CaptureError, DeviceError, KPerfError, as_ours, warn
from kperfir.runtime.drain import Drain
from kperfir.runtime.file_names import FileNames, capture_path, is_descendant, names_file, rank
from kperfir.runtime.summary import (
    AUTOTUNING,
    BEFORE_WINDOW,
    FAILED,
    IN_GRAPH,
    NOT_INSTRUMENTED,
    Summary,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from kperfir.capture.laps import Lap
    from kperfir.capture.writer import CaptureWriter, Ticket
    from kperfir.config import Options
    from kperfir.runtime.kernel import Kernel
    from kperfir.runtime.launch import RawLaunch


class Recorder:
    """One file and what goes into it.

    Args:
        options: Bounds, and which kernels are to be recorded.
        names: The names of the process's other files.

    Attributes:
        expects_launches: Somebody wants to know where there were none.
    """

    def __init__(self, options: Options, names: FileNames) -> None:
        self.options = options
        self.expects_launches = False
        self._names = names
        self._child = is_descendant()
        self._folder = Path.cwd()  # The program may change directory before its first launch.
        self._lock = threading.RLock()
        self._reset()

    def _reset(self) -> None:
        self._drain = Drain(self.options.launch_bytes)
        self._writer: CaptureWriter | None = None
        self._numbers: dict[Kernel, int] = {}  # Of kernels in the file.
        self._path: Path | None = None
        self._simulated = False
        self._kept: Counter[str] = Counter()
        self._skipped: Counter[tuple[str, str]] = Counter()
        self._passed_over: Counter[str] = Counter()
        self._launched: Counter[str] = Counter()
        self._warned: set[str] = set()
        self._reasons: dict[str, str] = {}
        self._unmatched: dict[str, None] = {}  # In order.
        self._closed = False

    @property
    def path(self) -> Path:
        """The file; it appears with the first launch of a kernel that is to be recorded."""
        with self._lock:
            if self._path is None:
                self._path = self._names.take(capture_path(self.options.out, self._folder, child=self._child))
            return self._path

    def prepare(self) -> None:
        """See to it that the file can be written when it comes to that; a folder that was asked for by a slash is made.

        Raises:
            CaptureError: ``write-failed``.
        """
        folder = self.path.parent
        if (self.options.out or "").endswith("/"):
            with contextlib.suppress(OSError):
                folder.mkdir(parents=True, exist_ok=True)
        if not (folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)):
            raise CaptureError(
                "write-failed",
                where=str(folder),
                found="no such folder, or not writable",
                fix="create it, or set TRITON_KPERF_OUT",
            )

    @property
    def launch_bytes(self) -> int:
        """Bytes that a launch may record into at most."""
        return self.options.launch_bytes

    @property
    def summary(self) -> Summary:
        """What has been done so far."""
        self.settle()
        with self._lock:
            return self._so_far()

    def wants(self, kernel: Kernel) -> Ticket | None:
        """Decide whether the records of the next launch of `kernel` are kept."""
        with self._lock:
            if self._closed:
                return None
            try:
                writer, number = self._open_for(kernel)
                for _ in range(self._passed_over.pop(kernel.name, 0)):
                    writer.skip(number, AUTOTUNING)
                early = self._launched[kernel.name] < self.options.first_launch
                self._launched[kernel.name] += 1
                if not early and (ticket := writer.reserve(number)) is not None:
                    return ticket
                reason = writer.skip(number, BEFORE_WINDOW if early else "").reason
            except KPerfError as error:
                self.fail(kernel, error)
                return None
            self._skipped[kernel.name, reason] += 1
            return None

    def pass_over(self, kernel: Kernel) -> None:
        """Note a launch that the autotuner made to measure a configuration."""
        if self._is_to_be_recorded(kernel):
            with self._lock:
                self._skipped[kernel.name, AUTOTUNING] += 1
                self._passed_over[kernel.name] += 1  # For the file, which has no number yet for the kernel.

    def put_into_graph(self, kernel: Kernel) -> None:
        """Count a launch that went into a CUDA graph, and warn once: the graph's replays are not recorded."""
        with self._lock:
            self._skipped[kernel.name, IN_GRAPH] += 1
            if self._closed:
                return
            try:
                writer, number = self._open_for(kernel)
                writer.skip(number, IN_GRAPH)
            except KPerfError as error:
                self._warn_once(kernel.name, f"a launch of kernel {kernel.name} is not in the capture: {error}")
            self._warn_once(
                f"graph {kernel.name}",
                f"kernel {kernel.name} was put into a CUDA graph; its replays are not recorded. "
                "Launch it without the graph too, such as in the warm-up, to see it",
            )

    def accept(self, launch: RawLaunch, ticket: Ticket) -> None:
        """Write the records of a launch: now if it is complete, else in the thread of the drain."""
        task = functools.partial(self._take, launch, ticket)
        if launch.records.pending_bytes:
            self._drain.submit(launch.records.pending_bytes, task)
        else:
            task()

    def take_lap(self, kernel: Kernel, ticket: Ticket, keep_free: int, lap: Lap) -> bool:
        """Write a lap of a launch that may still run, if the file has room for the rest of the launch besides."""
        with self._lock:
            if self._closed:
                return False
            writer, number = self._open_for(kernel)
            return writer.add_lap(number, ticket, lap, min(keep_free, self.options.file_bytes // 2))

    def _take(self, launch: RawLaunch, ticket: Ticket) -> None:
        try:
            self._write(launch, launch.records.read(), ticket)
        except Exception as error:  # The program's own result is there: a fault of ours must not take it away.
            self.fail(launch.kernel, as_ours(error, f"the records of kernel {launch.kernel.name}"), ticket)

    def _write(self, launch: RawLaunch, data: NDArray[np.uint8], ticket: Ticket) -> None:
        from kperfir.capture.writer import LaunchInfo

        timing, name = launch.timing, launch.kernel.name
        info = LaunchInfo(
            grid=launch.grid,
            stream=launch.stream,
            cycles=timing.get("cycles"),
            clock_hz=launch.device.get("clock_hz"),
            first_cta=launch.room.first,
            room=launch.room.ctas,
            facts={key: value for key, value in timing.items() if key != "cycles"} | _left_out(launch),
        )
        with self._lock:
            writer, number = self._open_for(launch.kernel)
            outcome = writer.add_launch(number, info, data, ticket)
            if outcome.kept:
                self._kept[name] += 1
            else:
                self._skipped[name, outcome.reason] += 1

    def settle(self) -> None:
        """Wait until the launches so far are complete and in the file."""
        self._drain.wait()

    def miss(self, kernel: Kernel) -> None:
        """Note a launch of a kernel without instrumentation, and warn once if it was to have any."""
        with self._lock:
            if not self._is_to_be_recorded(kernel):
                self._unmatched[kernel.name] = None
                return
            why = kernel.facts.get("not_instrumented")  # The compiler has said why, maybe in an earlier process.
            self._skipped[kernel.name, NOT_INSTRUMENTED] += 1
            if not self._closed:
                try:
                    self._open_writer().miss(kernel.name, why or "compiled past kperfir")
                except KPerfError as error:
                    self._warn_once(kernel.name, f"a launch of kernel {kernel.name} is not in the capture: {error}")
            if why:
                self._reasons[kernel.name] = why
                if kernel.name not in self._warned:
                    self._warned.add(kernel.name)
                    announce(kernel.name, why)
            else:
                self._warn_once(
                    kernel.name,
                    f"kernel {kernel.name} runs without instrumentation: its compilation did not pass through kperfir. "
                    "Another tool has probably replaced triton.knobs.runtime.add_stages_inspection_hook; "
                    "it should call the hook that it found there",
                )

    def fail(self, kernel: Kernel, error: BaseException, ticket: Ticket | None = None) -> None:
        """Note a launch whose records are lost."""
        with self._lock:
            self._skipped[kernel.name, FAILED] += 1
            if self._writer is not None:
                with contextlib.suppress(Exception):  # The file, or what writes it, may be what failed.
                    writer, number = self._open_for(kernel)
                    writer.skip(number, FAILED, ticket)
            if isinstance(error, KPerfError) and not isinstance(error, DeviceError):  # The program gets all others.
                self._warn_once(kernel.name, f"a launch of kernel {kernel.name} is not in the capture: {error}")

    def fault(self, kernel: str, error: KPerfError, *, counted: bool) -> None:
        """Warn once of what kperfir did wrong around a launch, and count the launch if that was not done."""
        with self._lock:
            if not counted:
                self._skipped[kernel, FAILED] += 1
                if self._writer is not None and not self._closed:
                    with contextlib.suppress(Exception):  # It has no number in the file: nothing is known of it.
                        self._writer.miss(kernel, f"a fault of kperfir: {error.code}")
            self._warn_once(kernel, f"a launch of kernel {kernel} is not in the capture: {error}")

    def close(self) -> Summary:
        """End the file and return what is in it. Without a launch of a kernel to be recorded there is no file."""
        self._drain.close()
        with self._lock:
            summary = self._so_far()
            self._closed = True
            if self._writer is not None:
                self._writer.close()
            if self._path is not None and names_file(self.options.out, self._folder):
                self._names.free(self._path)  # Who names a file again means to overwrite it.
            return summary

    def before_fork(self) -> None:
        """Let no other thread be in the middle of something that the child would inherit."""
        self._lock.acquire()

    def after_fork_in_parent(self) -> None:
        """Undo `before_fork`."""
        self._lock.release()

    def after_fork_in_child(self) -> None:
        """Leave the file to the parent process; this one writes its own."""
        self._lock = threading.RLock()
        self._child = True
        inherited = self._writer
        self._reset()
        if inherited is not None:
            inherited.close()

    def _so_far(self) -> Summary:
        return Summary(
            self._path if self._writer is not None else None,
            dict(self._kept),
            dict(self._skipped),
            dict(self._reasons),
            self._simulated,
            tuple(self._unmatched),
            self.options.kernels,
        )

    def _is_to_be_recorded(self, kernel: Kernel) -> bool:
        return self.options.selects(kernel.name, kernel.facts.get("file", ""))

    def _open_for(self, kernel: Kernel) -> tuple[CaptureWriter, int]:
        """Return the writer, and the number of `kernel` in its file: programs launch one kernel many times."""
        writer = self._open_writer()
        number = self._numbers.get(kernel)
        if number is None:
            number = self._numbers[kernel] = writer.add_kernel(kernel.layout, kernel.facts)
        return writer, number

    def _open_writer(self) -> CaptureWriter:
        if self._writer is None:
            from kperfir.capture.format import Bounds
            from kperfir.capture.writer import CaptureWriter, ProcessInfo
            from kperfir.runtime.launch import active_profile_device

            device = active_profile_device().describe()
            self._simulated = bool(device["simulated"])
            process = ProcessInfo.of_this_process(
                device=device["name"],
                simulated=self._simulated,
                chip=device.get("chip", ""),
                rank=rank(),
                clock_hz=device.get("clock_hz"),
                sm_count=device.get("sm_count"),
                versions={
                    name: getattr(sys.modules[name], "__version__", "")
                    for name in ("triton", "torch")
                    if name in sys.modules
                },
                settings=self.options.to_environment(OF_CODE),
            )
            self._writer = CaptureWriter(self.path, process, Bounds(self.options.launches, self.options.file_bytes))
            _call_at_end_of_worker(self.close)
        return self._writer

    def _warn_once(self, kernel: str, message: str) -> None:
        if kernel not in self._warned:
            self._warned.add(kernel)
            warn(message)


def _left_out(launch: RawLaunch) -> dict[str, int]:
    return {"ctas_without_room": launch.room.left_out} if launch.room.left_out else {}


def _call_at_end_of_worker(close: Callable[[], object]) -> None:
    """Have `close` called at the end of a process of multiprocessing, which skips what `atexit` knows."""
    multiprocessing = sys.modules.get("multiprocessing")
    if multiprocessing is not None and multiprocessing.parent_process() is not None:
        from multiprocessing.util import Finalize

        Finalize(None, close, exitpriority=0)

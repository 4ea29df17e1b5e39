"""Profiling sessions: what is recorded, how much of it is kept, and where it goes.

    with kperfir.profile("out.kpf", kernels="matmul*") as p:
        matmul[grid](a, b, c)
    p.load().summary()

`TRITON_KPERF=1` opens one session for the whole process (`start_process_session`). Owns the order in which the parts
are switched on and off; the parts are `runtime.select` (driver), `compile.triton_hook` (passes), `runtime.launch`
(buffers) and `runtime.recorder` (file).
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from typing import TYPE_CHECKING, Any

from kperfir.config import resolve
from kperfir.errors import KPerfError, UsageError, warn
from kperfir.runtime.file_names import FileNames
from kperfir.runtime.recorder import Recorder

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from kperfir.config import Options
    from kperfir.runtime.launch import LaunchCapture
    from kperfir.runtime.select import Selection
    from kperfir.runtime.summary import Summary
    from kperfir.timeline import Timeline


class Profile:
    """A session for the time of a `with` block. See `profile`."""

    def __init__(self, options: Options) -> None:
        self._recorder = Recorder(options, _runtime.names)
        self._state = "new"

    def __enter__(self) -> Profile:
        if self._state != "new":
            raise UsageError(
                "used-twice",
                what="a profile can be entered once",
                where="kperfir.profile",
                found=f"one that is {self._state}",
                fix="call kperfir.profile(...) again for another file",
            )
        self._recorder.prepare()
        _runtime.push(self._recorder)
        self._state = "active"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._state = "over"
        _runtime.pop(self._recorder)
        self._recorder.close()

    @property
    def path(self) -> Path:
        """The file. It exists once an instrumented kernel was launched."""
        return self._recorder.path

    @property
    def summary(self) -> Summary:
        """Launches kept and not kept so far."""
        return self._recorder.summary

    def load(self) -> Timeline:
        """Return the timeline of what was captured; the same as `kperfir.load(p.path)`."""
        from kperfir.timeline import load

        self._recorder.settle()
        return load(self.path)


def profile(out: str | os.PathLike[str] | None = None, **options: Any) -> Profile:
    """Profile the kernels that are launched in a `with` block.

    Args:
        out: File to write, or folder for a file of the default name; the working directory by default.
        **options: Any field of `kperfir.config.Options`, such as ``kernels="matmul*"``. They win over the environment.

    Within another session the inner one gets the launches.

    Raises:
        ConfigError: If there is no such option, or it cannot have this value.
        PluginError: If the compiler plugin does not fit this Triton.
        DeviceError: If the SIMT device is asked for and cannot be had.
    """
    return Profile(resolve(out=None if out is None else os.fspath(out), **options))


class _Runtime:
    """What is switched on in this process: the sessions, innermost last, and the parts that serve them."""

    def __init__(self) -> None:
        self.names = FileNames()
        self._lock = threading.RLock()
        self._sessions: list[Recorder] = []
        self._selection: Selection | None = None
        self._held = False
        self._capture: LaunchCapture | None = None
        self._compiling: Options | None = None
        self._forks_watched = False

    def current(self) -> Recorder | None:
        """Return the session that gets launches."""
        return self._sessions[-1] if self._sessions else None

    def push(self, session: Recorder) -> None:
        """Make `session` the one that gets launches."""
        _warn_if_interpreted()
        with self._lock:
            self._sessions.append(session)
            try:
                self._serve()
            except BaseException:
                self.pop(session)
                raise

    def pop(self, session: Recorder) -> None:
        """End `session`; the one around it gets launches again."""
        with self._lock:
            self._sessions.remove(session)
            self._serve()

    def hold_device(self, options: Options) -> None:
        """Choose the driver for the whole process, sessions or not."""
        with self._lock:
            self._select(options)
            self._held = True

    def release_device(self) -> None:
        """Undo `hold_device`."""
        with self._lock:
            self._held = False
            self._serve()

    def _serve(self) -> None:
        """Switch the parts on, over or off, so that they serve the innermost session."""
        session = self.current()
        if session is None:
            self._compile_for(None)
            if self._capture is not None:
                self._capture.uninstall()
                self._capture = None
            if self._selection is not None and not self._held:
                self._selection.uninstall()
                self._selection = None
            return
        self._watch_forks()
        self._select(session.options)
        if self._capture is None:
            from kperfir.runtime.launch import LaunchCapture

            capture = LaunchCapture(self.current)
            capture.install()
            self._capture = capture
        self._compile_for(session.options)

    def _select(self, options: Options) -> None:
        if self._selection is None:
            from kperfir.runtime.select import Selection

            selection = Selection(options)
            selection.install()
            self._selection = selection
        elif not self._selection.accepts(options.device):
            raise UsageError(
                "device-in-use",
                what="a session inside another uses the same device",
                where="option device",
                found=options.device,
                expected=self._selection.device,
                fix="leave the option away, or end the outer session first",
            )

    def _compile_for(self, options: Options | None) -> None:
        if options == self._compiling:
            return
        from kperfir.compile import triton_hook

        if self._compiling is not None:
            if self._capture is not None:
                self._capture.stop_sparing_benchmarks()
            triton_hook.uninstall()
            self._compiling = None
        if options is not None and self._capture is not None and self._selection is not None:
            from triton import knobs

            plain = knobs.runtime.add_stages_inspection_hook
            triton_hook.install(options, self._selection.registers)
            self._capture.spare_benchmarks(plain)
            self._compiling = options

    def _watch_forks(self) -> None:
        if not self._forks_watched:
            self._forks_watched = True
            os.register_at_fork(
                before=self._before_fork,
                after_in_parent=self._after_fork_in_parent,
                after_in_child=self._after_fork_in_child,
            )

    def _before_fork(self) -> None:
        self._lock.acquire()
        for session in self._sessions:
            session.before_fork()

    def _after_fork_in_parent(self) -> None:
        for session in self._sessions:
            session.after_fork_in_parent()
        self._lock.release()

    def _after_fork_in_child(self) -> None:
        self._lock = threading.RLock()
        for session in self._sessions:
            session.after_fork_in_child()


def _warn_if_interpreted() -> None:
    from triton import knobs

    if knobs.runtime.interpret:
        warn("TRITON_INTERPRET is set: kernels run as Python, there is nothing to record; unset it to profile them")


_runtime = _Runtime()


def start_process_session(options: Options) -> Recorder:
    """Profile everything until the process ends, and then say on stderr where it is."""
    session = Recorder(options, _runtime.names)
    session.prepare()
    _runtime.push(session)
    atexit.register(_end_process_session, session)
    return session


def hold_device(options: Options) -> None:
    """Choose the device for the whole process, profiled or not."""
    _runtime.hold_device(options)


def release_device() -> None:
    """Let Triton have its own driver again once no session needs another."""
    _runtime.release_device()


def _end_process_session(session: Recorder) -> None:
    try:
        summary = session.close()
    except KPerfError as error:
        print(f"kperfir: {error}", file=sys.stderr)
        return
    # A process that launched nothing, such as a helper of multiprocessing, has nothing to say.
    something = session.expects_launches or summary.path or summary.skipped or summary.unmatched
    if something and not session.options.quiet:
        print(f"kperfir: {summary}", file=sys.stderr)

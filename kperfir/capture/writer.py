"""Write a .kpf file while the process runs, so that it can be killed at any moment.

    with CaptureWriter(path, ProcessInfo.of_this_process(device="NVIDIA H100", simulated=False)) as writer:
        kernel = writer.add_kernel(layout_text)
        outcome = writer.add_launch(kernel, LaunchInfo(grid=(8, 8, 1)), buffer)

Every chunk is handed to the kernel of the operating system whole, in one append, before the call returns; nothing is
kept for later except the totals. The bounds are enforced here, and what they left out is counted in the file.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import platform
import threading
import zlib
from collections import Counter
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from kperfir._native import record

from kperfir.capture import format as kpf
from kperfir.capture.layout_json import parse_layout
from kperfir.errors import CaptureError

if TYPE_CHECKING:
    from types import TracebackType

    from numpy.typing import NDArray

    from kperfir.capture.laps import Lap
    from kperfir.capture.layout import BufferLayout

# Room that launches leave for the chunks that say what was skipped.
_RESERVED_BYTES = 64 << 10
_DEFLATE_LEVEL = 1
_DEFLATE_STEP = 4 << 20

OVER_LAUNCHES = "launches-per-kernel"
OVER_FILE_BYTES = "file-bytes"


@dataclass(frozen=True, slots=True)
class ProcessInfo:
    """Who captured, and on what. `chip` names the device's model; its nominal clock and SMs are None if not known.
    `settings` are the variables that kernels were compiled with, as far as those are not the defaults;
    None if nobody says.
    """

    host: str
    pid: int
    device: str
    simulated: bool
    chip: str = ""
    rank: int | None = None
    clock_domain: str = "sm"
    clock_hz: float | None = None
    sm_count: int | None = None
    versions: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] | None = None

    @classmethod
    def of_this_process(cls, **facts: Any) -> ProcessInfo:
        """Fill in host, pid and the version of kperfir; `facts` are the other fields."""
        versions = {"kperfir": writer_version(), "python": platform.python_version(), **facts.pop("versions", {})}
        return cls(host=platform.node(), pid=os.getpid(), versions=versions, **facts)


@dataclass(frozen=True, slots=True)
class LaunchInfo:
    """One launch.

    Attributes:
        grid: CTAs in x, y, z, those of clusters included.
        stream: Handle of the stream.
        cycles: Duration, where the device knows it.
        clock_hz: Clock of the SMs, where the device knows it.
        first_cta: Linear id of the first CTA that has room in the buffer.
        room: How many have; None: all from that one on.
        facts: Anything else, as JSON values; `ctas_without_room` says how many were left out for that reason,
            `untimed_ctas` which, as a list of [first, end], the SIMT device did not simulate in detail.
    """

    grid: tuple[int, int, int]
    stream: int = 0
    cycles: int | None = None
    clock_hz: float | None = None
    first_cta: int = 0
    room: int | None = None
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ticket:
    """A launch that is numbered when it is made and written when its records have come.

    Attributes:
        launch: Its number among all launches of the file.
        kernel_launch: Its number among those of its kernel.
    """

    launch: int
    kernel_launch: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """Whether a launch is in the file; `reason` says why it is not."""

    kept: bool
    reason: str = ""


def writer_version() -> str:
    """Version of the installed kperfir."""
    try:
        return metadata.version("kperfir")
    except metadata.PackageNotFoundError:
        return "0+source"


class CaptureWriter:
    """An open .kpf file of this process. Safe to use from several threads, not after a fork.

    Raises:
        CaptureError: ``file-busy`` if another process is writing `path`, ``write-failed`` if it cannot be written.
    """

    def __init__(self, path: Path | str, process: ProcessInfo, bounds: kpf.Bounds | None = None) -> None:
        self.path = Path(path)
        self.bounds = bounds or kpf.Bounds()
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._sequence = 0
        self._bytes = 0
        self._layouts: list[BufferLayout] = []
        self._kernel_ids: dict[tuple[str, str], int] = {}
        self._kept: Counter[int] = Counter()
        self._awaited: Counter[int] = Counter()
        self._seen: Counter[int] = Counter()
        self._skipped: Counter[tuple[int, str]] = Counter()
        self._uninstrumented: Counter[tuple[str, str]] = Counter()
        self._fd: int | None = self._open()
        meta = {**asdict(process), "bounds": asdict(self.bounds)}
        if process.settings is None:
            del meta["settings"]
        self._write(kpf.pack_file_header(writer_version()))
        self._append(kpf.PROCESS, meta)

    def add_kernel(self, layout_text: str, facts: dict[str, Any] | None = None) -> int:
        """Number of the kernel with this layout and these facts in the file; writes it the first time.

        Args:
            layout_text: The layout JSON, exactly as the compiler gave it.
            facts: Facts of the compilation (registers, shared memory, ...), as JSON values.
        """
        key = (layout_text, json.dumps(facts or {}, sort_keys=True))
        with self._lock:
            if key in self._kernel_ids:
                return self._kernel_ids[key]
            layout = parse_layout(layout_text)
            kernel = len(self._layouts)
            self._append(
                kpf.KERNEL, {"kernel": kernel, "name": layout.kernel, "layout": layout_text, "facts": facts or {}}
            )
            self._layouts.append(layout)
            self._kernel_ids[key] = kernel
            return kernel

    def reserve(self, kernel: int) -> Ticket | None:
        """Number the next launch of `kernel`; `add_launch` or `skip` gets the ticket once its records have come.

        None if it is sure to be skipped: then its buffer need not be read back.
        """
        with self._lock:
            if self._bound_reached(kernel, None):
                return None
            ticket = self._next(kernel)
            self._seen[kernel] += 1
            self._awaited[kernel] += 1
            return ticket

    def skip(self, kernel: int, reason: str = "", ticket: Ticket | None = None) -> Outcome:
        """Count a launch of `kernel` that is not kept; `reason` defaults to the bound that it would exceed."""
        with self._lock:
            return self._skip(kernel, reason or self._bound_reached(kernel, ticket) or "not-wanted", ticket)

    def miss(self, name: str, why: str) -> None:
        """Count a launch of kernel `name`, which has no layout because it could not be instrumented: `why`."""
        with self._lock:
            self._uninstrumented[name, why] += 1
            self._append_counts_now_and_then()

    def add_launch(
        self,
        kernel: int,
        launch: LaunchInfo,
        data: NDArray[np.uint8] | bytes | memoryview,
        ticket: Ticket | None = None,
    ) -> Outcome:
        """Keep one launch, if the bounds allow.

        Args:
            kernel: As `add_kernel` returned it.
            launch: Facts of the launch.
            data: The whole buffer as read back, `cta_bytes` for each CTA that has room.
            ticket: What `reserve` returned for it, if it was asked.

        Raises:
            CaptureError: ``size-mismatch``; ``write-failed``: nothing of this launch is in the file then.
        """
        with self._lock:
            reason = self._bound_reached(kernel, ticket)
            if reason:
                return self._skip(kernel, reason, ticket)
            ids, rows = _recorded_ctas(self._layouts[kernel], launch, data)
            blob = _deflate(ids, rows, self._room())
            if blob is None:
                return self._skip(kernel, OVER_FILE_BYTES, ticket)
            meta = {
                **asdict(launch),
                **asdict(ticket or self._next(kernel)),
                "kernel": kernel,
                "ctas": len(ids),
                "encoding": kpf.DEFLATE,
            }
            self._append(kpf.LAUNCH, meta, blob)
            self._settle(kernel, ticket)
            self._kept[kernel] += 1
            return Outcome(kept=True)

    def add_lap(self, kernel: int, ticket: Ticket, lap: Lap, keep_free: int) -> bool:
        """Keep a lap of a launch that still runs; False if less than `keep_free` bytes would be left of the file's.

        Raises:
            CaptureError: ``write-failed``.
        """
        with self._lock:
            room = self._room() - keep_free
            blob = zlib.compress(lap.words.astype("<u4").tobytes(), _DEFLATE_LEVEL) if room > 0 else b""
            if len(blob) >= room:
                return False
            meta = {
                "kernel": kernel,
                "launch": ticket.launch,
                "cta": lap.cta,
                "warp": lap.warp,
                "lap": lap.number,
                "words": len(lap.words),
                "encoding": kpf.DEFLATE,
            }
            self._append(kpf.LAP, meta, blob)
            return True

    def close(self) -> None:
        """Write the totals and close. Further calls do nothing."""
        with self._lock:
            if self._fd is None:
                return
            try:
                if self._pid == os.getpid():
                    self._append_skipped()
                    self._append(
                        kpf.END,
                        {"kernels": len(self._layouts), "kept": self._kept.total(), "skipped": self._skipped.total()},
                    )
            finally:
                os.close(self._fd)
                self._fd = None

    def __enter__(self) -> CaptureWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _room(self) -> int:
        return self.bounds.file_bytes - self._bytes - _RESERVED_BYTES

    def _bound_reached(self, kernel: int, ticket: Ticket | None) -> str:
        others = self._kept[kernel] + self._awaited[kernel] - (ticket is not None)
        if others >= self.bounds.launches_per_kernel:
            return OVER_LAUNCHES
        return OVER_FILE_BYTES if self._room() <= 0 else ""

    def _next(self, kernel: int) -> Ticket:
        return Ticket(self._seen.total(), self._seen[kernel])

    def _settle(self, kernel: int, ticket: Ticket | None) -> None:
        """Count a launch that needs no more attention; one with a ticket was counted when it was numbered."""
        counts, change = (self._seen, 1) if ticket is None else (self._awaited, -1)
        counts[kernel] += change

    def _skip(self, kernel: int, reason: str, ticket: Ticket | None) -> Outcome:
        self._settle(kernel, ticket)
        self._skipped[kernel, reason] += 1
        self._append_counts_now_and_then()
        return Outcome(kept=False, reason=reason)

    def _append_counts_now_and_then(self) -> None:
        """Counts must survive a kill, but not cost a chunk per launch: at 1, 2, 4, 8, ..."""
        if (self._skipped.total() + self._uninstrumented.total()).bit_count() == 1:
            self._append_skipped()

    def _append_skipped(self) -> None:
        if not (self._skipped or self._uninstrumented):
            return
        counts = [
            {"kernel": kernel, "reason": reason, "launches": count}
            for (kernel, reason), count in sorted(self._skipped.items())
        ]
        meta: dict[str, Any] = {"skipped": counts}
        if self._uninstrumented:
            meta["uninstrumented"] = [
                {"name": name, "why": why, "launches": count}
                for (name, why), count in sorted(self._uninstrumented.items())
            ]
        self._append(kpf.SKIPPED, meta)

    def _append(self, kind: bytes, meta: dict[str, Any], blob: bytes = b"") -> None:
        self._write(kpf.pack_chunk(kind, self._sequence, meta, blob))
        self._sequence += 1

    def _open(self) -> int:
        fd = None
        try:
            fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(fd, 0)
        except BlockingIOError:
            os.close(fd or 0)
            raise CaptureError(
                "file-busy", where=str(self.path), fix="give each process its own file (TRITON_KPERF_OUT)"
            ) from None
        except OSError as error:
            if fd is not None:
                os.close(fd)
            raise self._failed(error) from None
        return fd

    def _write(self, data: bytes) -> None:
        if self._fd is None:
            raise CaptureError("writer-closed", where=str(self.path), fix="add launches before the capture is closed")
        if self._pid != os.getpid():
            raise CaptureError(
                "wrong-process",
                where=str(self.path),
                found=f"process {os.getpid()}",
                expected=f"process {self._pid}",
                fix="open another file after a fork",
            )
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._fd, view) :]
        except OSError as error:
            # Half a chunk would hide every later one from the reader.
            os.ftruncate(self._fd, self._bytes)
            raise self._failed(error) from None
        self._bytes += len(data)

    def _failed(self, error: OSError) -> CaptureError:
        return CaptureError(
            "write-failed",
            where=str(self.path),
            found=error.strerror or str(error),
            fix="choose another file (TRITON_KPERF_OUT), or make room on the disk",
        )


def _recorded_ctas(
    layout: BufferLayout, launch: LaunchInfo, data: NDArray[np.uint8] | bytes | memoryview
) -> tuple[NDArray[np.uint32], NDArray[np.uint8]]:
    """Linear ids, shape (n,), and bytes, shape (n, cta_bytes), of the CTAs whose header is not all zero."""
    raw = np.frombuffer(data, np.uint8)
    ctas = math.prod(launch.grid) - launch.first_cta if launch.room is None else launch.room
    if raw.nbytes != ctas * layout.cta_bytes:
        raise CaptureError(
            "size-mismatch",
            where=f"kernel {layout.kernel}, grid {launch.grid}",
            found=f"{raw.nbytes} bytes",
            expected=f"{ctas * layout.cta_bytes} bytes ({ctas} CTAs x {layout.cta_bytes})",
            fix="recompile the kernel: its cached layout is from another kperfir version",
        )
    rows = raw.reshape(ctas, layout.cta_bytes)
    headers = rows[:, : record.CTA_HEADER_WORDS * record.WORD_BYTES]
    ids = np.flatnonzero(headers.any(axis=1)).astype(np.uint32)
    return ids + np.uint32(launch.first_cta), rows if len(ids) == ctas else rows[ids]


def _deflate(ids: NDArray[np.uint32], rows: NDArray[np.uint8], limit: int) -> bytes | None:
    """The ids and the rows, deflated; None if that takes more than `limit` bytes."""
    engine = zlib.compressobj(_DEFLATE_LEVEL)
    parts = [engine.compress(ids.astype("<u4").tobytes())]
    size = len(parts[0])
    flat = np.ascontiguousarray(rows).reshape(-1).data
    for begin in range(0, len(flat), _DEFLATE_STEP):
        parts.append(engine.compress(flat[begin : begin + _DEFLATE_STEP]))
        size += len(parts[-1])
        if size > limit:
            return None
    parts.append(engine.flush())
    return b"".join(parts) if size + len(parts[-1]) <= limit else None

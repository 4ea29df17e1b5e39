"""Read a .kpf file: what it holds at once, the buffers when they are asked for.

    capture = Capture.open(path)
    ids, data = capture.launches[0].read()

A file that ends in the middle of a chunk is what a killed process leaves: the chunks before are read and a note says
so. Anything else that is not as written is a `CaptureError`.
"""

from __future__ import annotations

import json
import os
import stat
import weakref
import zlib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kperfir.capture import format as kpf
from kperfir.capture.layout_json import parse_layout
from kperfir.errors import CaptureError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kperfir.capture.layout import BufferLayout

# Deflate cannot shrink further than this, so a size beyond it is a lie.
_MAX_DEFLATE_RATIO = 1032
_MOST_RANGES = 4  # of CTAs that a note names
_FIX_DAMAGED = "capture again; if the file was copied, copy it again in binary mode"


@dataclass(frozen=True, slots=True)
class KernelRecord:
    """A compiled kernel. `facts` are those of its compilation."""

    id: int
    name: str
    layout: BufferLayout
    facts: dict[str, Any]


@dataclass(frozen=True, slots=True)
class LapRecord:
    """A lap of a warp, `number` from 0, that was taken while its launch ran."""

    capture: Capture = field(repr=False, compare=False)
    cta: int
    warp: int
    number: int
    words: int
    blob_offset: int
    blob_bytes: int
    blob_crc: int

    def read(self) -> NDArray[np.uint32]:
        """Its frames; shape (words,).

        Raises:
            CaptureError: ``corrupt-file``.
        """
        where = f"{self.capture.path}, lap {self.number} of warp {self.warp} of CTA {self.cta}"
        blob = self.capture.read_bytes(self.blob_offset, self.blob_bytes)
        if len(blob) != self.blob_bytes or zlib.crc32(blob) != self.blob_crc:
            raise _damaged(where, found="a lap whose CRC differs", expected=f"CRC {self.blob_crc:#010x}")
        return np.frombuffer(_inflate(blob, 4 * self.words, where), "<u4")


@dataclass(frozen=True, slots=True)
class LaunchRecord:
    """One kept launch. `launch` counts all launches of the process, `kernel_launch` those of its kernel."""

    capture: Capture = field(repr=False, compare=False)
    kernel: KernelRecord
    launch: int
    kernel_launch: int
    grid: tuple[int, int, int]
    stream: int
    cycles: int | None
    clock_hz: float | None
    ctas: int
    facts: dict[str, Any]
    blob_offset: int
    blob_bytes: int
    blob_crc: int

    @property
    def where(self) -> str:
        return f"{self.capture.path}, launch {self.launch} of {self.kernel.name}"

    @property
    def laps(self) -> list[LapRecord]:
        """What was taken of its buffer while it ran, in the order of the file."""
        return self.capture.laps.get(self.launch, [])

    def read(self) -> tuple[NDArray[np.uint32], NDArray[np.uint8]]:
        """Linear ids of the CTAs, shape (n,), ascending, and their shares of the buffer, shape (n * cta_bytes,).

        What was taken while the launch ran is not in there (`laps`).

        Raises:
            CaptureError: ``corrupt-file``.
        """
        blob = self.capture.read_bytes(self.blob_offset, self.blob_bytes)
        if len(blob) != self.blob_bytes or zlib.crc32(blob) != self.blob_crc:
            raise _damaged(self.where, found="a buffer whose CRC differs", expected=f"CRC {self.blob_crc:#010x}")
        size = self.ctas * (4 + self.kernel.layout.cta_bytes)
        raw = _inflate(blob, size, self.where)
        ids = np.frombuffer(raw, "<u4", self.ctas)
        total = self.grid[0] * self.grid[1] * self.grid[2]
        if self.ctas and (ids[-1] >= total or np.any(ids[1:] <= ids[:-1])):
            raise _damaged(self.where, found="CTA ids out of order", expected=f"ascending ids below {total}")
        return ids, np.frombuffer(raw, np.uint8, offset=4 * self.ctas)


@dataclass(slots=True, eq=False, weakref_slot=True)
class Capture:
    """An open .kpf file.

    Attributes:
        path: The file.
        format_version: Of the file.
        writer_version: Of the kperfir that wrote it.
        process: The process chunk.
        kernels: In the order of their numbers.
        launches: Those kept, in order.
        laps: What was taken of buffers while launches ran, by launch number; the launch itself may not have got here.
        skipped: Launches not kept, by (kernel, reason).
        uninstrumented: Launches of kernels that could not be instrumented, by (name, why).
        ended: False if the process did not close the file.
        lost_bytes: At the end of the file: part of a chunk.
    """

    path: Path
    format_version: int
    writer_version: str
    process: dict[str, Any] = field(default_factory=dict)
    kernels: list[KernelRecord] = field(default_factory=list)
    launches: list[LaunchRecord] = field(default_factory=list)
    laps: dict[int, list[LapRecord]] = field(default_factory=dict)
    skipped: dict[tuple[int, str], int] = field(default_factory=dict)
    uninstrumented: dict[tuple[str, str], int] = field(default_factory=dict)
    ended: bool = False
    lost_bytes: int = 0
    _fd: int = -1

    @classmethod
    def open(cls, path: Path | str) -> Capture:
        """Open a file and read everything but the buffers.

        Raises:
            CaptureError: ``file-missing``, ``not-a-kpf-file``, ``newer-format``, ``older-format``, ``corrupt-file``.
        """
        path = Path(path)
        fd = _open(path)
        try:
            capture = cls(path, *_check_file_header(path, _pread(fd, 0, kpf.FILE_HEADER_BYTES)), _fd=fd)
            _Scan(capture).run()
        except BaseException:
            os.close(fd)
            raise
        weakref.finalize(capture, os.close, fd)
        return capture

    def read_bytes(self, offset: int, size: int) -> bytes:
        """`size` bytes at `offset`, fewer at the end of the file."""
        return _pread(self._fd, offset, size)

    @property
    def notes(self) -> list[str]:
        """What a reader of any report made from this file has to know."""
        notes = []
        if self.lost_bytes:
            notes.append(f"{self.path.name}: ends inside a chunk; the last {self.lost_bytes} bytes are not used")
        if not self.ended:
            notes.append(f"{self.path.name}: the capturing process did not finish (killed, or still running)")
        at_least = "" if self.ended else "at least "
        skipped: Counter[tuple[str, str]] = Counter()
        for (kernel, reason), count in sorted(self.skipped.items()):
            skipped[self.kernels[kernel].name, reason] += count
        for (name, reason), count in skipped.items():
            bound = self.process.get("bounds", {}).get(reason.replace("-", "_"))
            why = f"{reason}, {bound}" if bound is not None else reason
            launches = "launch" if count == 1 else "launches"
            verb = "was" if count == 1 else "were"
            notes.append(f"{self.path.name}: {at_least}{count} {launches} of {name} {verb} not kept ({why})")
        for (name, why), count in sorted(self.uninstrumented.items()):
            ran = f"{at_least}{count} {'launch' if count == 1 else 'launches'} of {name} ran"
            notes.append(f"{self.path.name}: {ran} without instrumentation ({why})")
        kept = {launch.launch for launch in self.launches}
        if orphans := sum(len(laps) for launch, laps in self.laps.items() if launch not in kept):
            verb = "lap is" if orphans == 1 else "laps are"
            notes.append(f"{self.path.name}: {orphans} {verb} not used, of launches that did not end or were not kept")
        sampled = Counter(filter(None, map(_sampling_note, self.launches)))
        for note, count in sampled.items():
            notes.append(f"{self.path.name}: {count} {'launch' if count == 1 else 'launches'} of {note}")
        return notes


def _inflate(blob: bytes, size: int, where: str) -> bytes:
    """The `size` bytes that were deflated to `blob`."""
    if size > (len(blob) + 64) * _MAX_DEFLATE_RATIO:
        raise _damaged(where, found=f"{len(blob)} deflated bytes", expected=f"{size} bytes in them")
    engine = zlib.decompressobj()
    try:
        raw = engine.decompress(blob, size + 1)
    except zlib.error as error:
        raise _damaged(where, found=str(error), expected="deflated bytes") from None
    if len(raw) != size or not engine.eof:
        raise _damaged(where, found=f"{len(raw)} bytes or more", expected=f"{size} bytes")
    return raw


def _sampling_note(launch: LaunchRecord) -> str:
    """What to know of a launch of which the SIMT device has simulated some CTAs in detail; else an empty text."""
    if "untimed_ctas" not in launch.facts:
        return ""
    ranges = launch.facts["untimed_ctas"]
    if isinstance(ranges[0], int):  # In older captures there is one.
        ranges = [ranges]
    untimed = sum(end - begin for begin, end in ranges)
    names = ", ".join(
        f"{begin} to {end - 1}" if end - begin > 1 else f"{begin}" for begin, end in ranges[:_MOST_RANGES]
    )
    if len(ranges) > _MOST_RANGES:
        names += " and others"
    total = launch.grid[0] * launch.grid[1] * launch.grid[2]
    waves, cycles = launch.facts["untimed_waves"], launch.facts["cycles_per_wave"]
    return (
        f"{launch.kernel.name} sampled: {total - untimed} of {total} CTAs simulated in detail, "
        f"{names} without time and records; the cycles are an estimate, "
        f"with {cycles} for each of the {waves} waves left out"
    )


def _open(path: Path) -> int:
    try:
        # A pipe without a writer must not block here; what it is, is asked next.
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise CaptureError(
                "not-a-kpf-file",
                where=str(path),
                found="a folder, pipe or device",
                expected="a regular file",
                fix="give a file that kperfir wrote",
            )
    except OSError as error:
        raise CaptureError(
            "file-missing", where=str(path), found=error.strerror or str(error), fix="check the name of the file"
        ) from None
    return fd


def _pread(fd: int, offset: int, size: int) -> bytes:
    parts = []
    while size > 0:
        part = os.pread(fd, min(size, 1 << 30), offset)
        if not part:
            break
        parts.append(part)
        offset += len(part)
        size -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _check_file_header(path: Path, data: bytes) -> tuple[int, str]:
    if data[: len(kpf.MAGIC)] != kpf.MAGIC[: len(data)] or not data:
        raise CaptureError(
            "not-a-kpf-file",
            where=str(path),
            found=f"bytes {data[:8].hex(' ')}" if data else "an empty file",
            expected=f"bytes {kpf.MAGIC.hex(' ')}",
            fix="give a file that kperfir wrote",
        )
    if len(data) < kpf.FILE_HEADER_BYTES:
        raise CaptureError(
            "empty-capture",
            where=str(path),
            found=f"{len(data)} bytes",
            expected=f"a header of {kpf.FILE_HEADER_BYTES} bytes and chunks",
            fix="capture again: the process was killed before it wrote anything",
        )
    version, writer, intact = kpf.unpack_file_header(data)
    if not intact:
        raise _damaged(str(path), found="a file header whose CRC differs", expected="the header as written")
    if version > kpf.FORMAT_VERSION:
        raise CaptureError(
            "newer-format",
            where=str(path),
            found=f"format version {version}, written by kperfir {writer}",
            expected=f"format version {kpf.FORMAT_VERSION} or older",
            fix=f"install kperfir {writer} or newer",
        )
    if version < kpf.OLDEST_READABLE_VERSION:
        raise CaptureError(
            "older-format",
            where=str(path),
            found=f"format version {version}, written by kperfir {writer}",
            expected=f"format version {kpf.OLDEST_READABLE_VERSION} or newer",
            fix="read it with the kperfir that wrote it, or capture again",
        )
    return version, writer


class _Scan:
    """One pass over the chunks of a file, without their buffers."""

    def __init__(self, capture: Capture) -> None:
        self.capture = capture
        self.path = str(capture.path)
        self.offset = kpf.FILE_HEADER_BYTES
        self.size = os.fstat(capture._fd).st_size
        self.sequence = 0

    def run(self) -> None:
        while self.offset < self.size:
            header = self.next_header()
            if header is None:
                self.capture.lost_bytes = self.size - self.offset
                break
            self.take(header)
            self.offset += kpf.CHUNK_HEADER_BYTES + header.meta_bytes + header.blob_bytes
            self.sequence += 1
        if self.sequence == 0:
            raise CaptureError(
                "empty-capture",
                where=self.path,
                expected="a process chunk",
                fix="capture again: the process was killed early",
            )

    def next_header(self) -> kpf.ChunkHeader | None:
        """None if the file ends inside the chunk."""
        data = self.capture.read_bytes(self.offset, kpf.CHUNK_HEADER_BYTES)
        if len(data) < kpf.CHUNK_HEADER_BYTES:
            return None
        header = kpf.unpack_chunk_header(data)
        if header is None:
            raise _damaged(self.where, found="a chunk header whose CRC differs", expected="the header as written")
        if header.kind not in kpf.KINDS or header.sequence != self.sequence or header.meta_bytes > kpf.MAX_META_BYTES:
            raise _damaged(
                self.where,
                found=f"chunk {header.sequence} of kind {header.kind!r}",
                expected=f"chunk {self.sequence} of a known kind",
            )
        if (header.kind == kpf.PROCESS) != (self.sequence == 0) or self.capture.ended:
            raise _damaged(self.where, found=f"a chunk of kind {header.kind!r}", expected="process first, end last")
        end = self.offset + kpf.CHUNK_HEADER_BYTES + header.meta_bytes + header.blob_bytes
        return header if end <= self.size else None

    @property
    def where(self) -> str:
        return f"{self.path}, offset {self.offset}"

    def take(self, header: kpf.ChunkHeader) -> None:
        text = self.capture.read_bytes(self.offset + kpf.CHUNK_HEADER_BYTES, header.meta_bytes)
        if zlib.crc32(text) != header.meta_crc:
            raise _damaged(self.where, found="a chunk whose CRC differs", expected=f"CRC {header.meta_crc:#010x}")
        try:
            meta = json.loads(text)
            getattr(self, f"take_{header.kind.decode().strip(chr(0)).lower()}")(meta, header)
        except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
            raise _damaged(
                self.where,
                found=f"{header.kind!r} chunk: {type(error).__name__}: {error}",
                expected="the fields that FORMAT.md lists",
            ) from None

    def take_proc(self, meta: dict[str, Any], header: kpf.ChunkHeader) -> None:
        self.capture.process = {
            **meta,
            "pid": _count(meta.get("pid", 0), 0, 1 << 62),
            "simulated": meta.get("simulated", False) is True,
            "clock_hz": _rate(meta.get("clock_hz")),
            "bounds": dict(meta.get("bounds", {})),
        }

    def take_kern(self, meta: dict[str, Any], header: kpf.ChunkHeader) -> None:
        if meta["kernel"] != len(self.capture.kernels):
            raise ValueError(f"kernel {meta['kernel']} out of order")
        layout = parse_layout(meta["layout"])
        self.capture.kernels.append(KernelRecord(meta["kernel"], layout.kernel, layout, dict(meta["facts"])))

    def take_lnch(self, meta: dict[str, Any], header: kpf.ChunkHeader) -> None:
        if meta["encoding"] != kpf.DEFLATE:
            raise ValueError(f"encoding {meta['encoding']}")
        x, y, z = (_count(extent, 1, 0xFFFFFFFF) for extent in meta["grid"])
        self.capture.launches.append(
            LaunchRecord(
                capture=self.capture,
                kernel=self.capture.kernels[_count(meta["kernel"], 0, len(self.capture.kernels) - 1)],
                launch=_count(meta["launch"], 0, 0x7FFFFFFF),
                kernel_launch=_count(meta["kernel_launch"], 0, 0x7FFFFFFF),
                grid=(x, y, z),
                stream=_count(meta["stream"], -(1 << 63), (1 << 63) - 1),
                cycles=None if meta["cycles"] is None else _count(meta["cycles"], 0, 1 << 62),
                clock_hz=_rate(meta["clock_hz"]),
                ctas=_count(meta["ctas"], 0, min(x * y * z, 0x7FFFFFFF)),
                facts=dict(meta["facts"]),
                blob_offset=self.offset + kpf.CHUNK_HEADER_BYTES + header.meta_bytes,
                blob_bytes=header.blob_bytes,
                blob_crc=header.blob_crc,
            )
        )

    def take_lap(self, meta: dict[str, Any], header: kpf.ChunkHeader) -> None:
        if meta["encoding"] != kpf.DEFLATE:
            raise ValueError(f"encoding {meta['encoding']}")
        layout = self.capture.kernels[_count(meta["kernel"], 0, len(self.capture.kernels) - 1)].layout
        lap = LapRecord(
            capture=self.capture,
            cta=_count(meta["cta"], 0, 0x7FFFFFFF),
            warp=_count(meta["warp"], 0, layout.total_warps - 1),
            number=_count(meta["lap"], 0, 0xFFFFFFFF),
            words=_count(meta["words"], 0, layout.words_per_warp),
            blob_offset=self.offset + kpf.CHUNK_HEADER_BYTES + header.meta_bytes,
            blob_bytes=header.blob_bytes,
            blob_crc=header.blob_crc,
        )
        self.capture.laps.setdefault(_count(meta["launch"], 0, 0x7FFFFFFF), []).append(lap)

    def take_skip(self, meta: dict[str, Any], header: kpf.ChunkHeader) -> None:
        kernels = len(self.capture.kernels)
        self.capture.skipped = {
            (_count(entry["kernel"], 0, kernels - 1), str(entry["reason"])): _count(entry["launches"], 1, 1 << 62)
            for entry in meta["skipped"]
        }
        self.capture.uninstrumented = {
            (str(entry["name"]), str(entry["why"])): _count(entry["launches"], 1, 1 << 62)
            for entry in meta.get("uninstrumented", [])
        }

    def take_end(self, meta: dict[str, Any], header: kpf.ChunkHeader) -> None:
        found = (len(self.capture.kernels), len(self.capture.launches), sum(self.capture.skipped.values()))
        if found != (meta["kernels"], meta["kept"], meta["skipped"]):
            raise ValueError(f"totals {meta}, but the file holds {found}")
        self.capture.ended = True


def _count(value: object, low: int, high: int) -> int:
    if type(value) is not int or not low <= value <= high:
        raise ValueError(f"{value!r}, not an integer from {low} to {high}")
    return value


def _rate(value: object) -> float | None:
    """A clock rate in Hz, which may be unknown."""
    if value is None:
        return None
    if not isinstance(value, int | float) or not 1.0 <= value <= 1e12:
        raise ValueError(f"{value!r}, not a clock rate in Hz")
    return float(value)


def _damaged(where: str, *, found: str, expected: str) -> CaptureError:
    return CaptureError("corrupt-file", where=where, found=found, expected=expected, fix=_FIX_DAMAGED)

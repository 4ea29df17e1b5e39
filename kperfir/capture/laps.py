"""Laps: what a kernel with strategy ``flush`` writes, and how they become one run of words again.

    rows = pack_rows(fields, rows, taken)    # by who writes a launch: what no lap in the file holds
    raw = read_buffer(launch)                # by who reads it: each warp's words, from its first frame to its last

A warp fills two halves of its segment in turn; the host takes one while the other fills. FORMAT.md draws halves, the
rows of a file, and its laps. How a half gets to the host is `runtime.lap_drain`'s business.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from kperfir._native import record

from kperfir.capture.decode import RawBuffer
from kperfir.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from kperfir.capture.reader import LapRecord, LaunchRecord

    Words = NDArray[np.uint32]

STRATEGY = "flush"
# In the header of a segment in a file; on the device the words are those of `record.CONTROL_ENTRY_WORD`.
_CURSOR, _RECORDS, _STOPPED, _TAKEN = range(4)


@dataclass(frozen=True, slots=True)
class Lap:
    """One half of a warp, full.

    Attributes:
        cta: Linear id.
        warp: Its number in the CTA.
        number: Counted from 0, of this warp.
        words: The frames; shape (n,), dtype uint32.
    """

    cta: int
    warp: int
    number: int
    words: Words


@dataclass(frozen=True, slots=True)
class LapShape:
    """How the segments of a CTA's share are divided."""

    warps: int
    words_per_warp: int

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> LapShape | None:
        """Return that of a layout, given as its JSON object; None if its kernel makes no laps."""
        if fields.get("strategy") != STRATEGY:
            return None
        return cls(int(fields["total_warps"]), int(fields["words_per_warp"]))

    @property
    def half_words(self) -> int:
        """Words of a half, its trailer included."""
        return self.words_per_warp // 2

    @property
    def segment_bytes(self) -> int:
        """From one segment to the next."""
        return record.WORD_BYTES * (record.SEGMENT_HEADER_WORDS + self.words_per_warp)

    def segment_offset(self, warp: int) -> int:
        """Byte offset, in a CTA's share, of the segment's header."""
        return record.segment_offset(warp, self.words_per_warp)

    def half_offset(self, warp: int, lap: int) -> int:
        """Byte offset, in a CTA's share, of the half that a lap is written to."""
        words = record.SEGMENT_HEADER_WORDS + lap % 2 * self.half_words
        return self.segment_offset(warp) + record.WORD_BYTES * words


def read_half(half: Words) -> tuple[int, Words]:
    """How many laps of the warp had ended with the one in this half, and its frames."""
    number, size = half[-record.HALF_TRAILER_WORDS :].tolist()
    return number, half[: min(size // record.WORD_BYTES, len(half) - record.HALF_TRAILER_WORDS)]


def pack_rows(fields: Mapping[str, Any], rows: NDArray[np.uint8], taken: Words | None) -> NDArray[np.uint8]:
    """Bring the shares of a launch that is complete into the form of a file.

    Args:
        fields: The layout of its kernel, as a JSON object.
        rows: As the device left them; shape (n, cta_bytes).
        taken: Laps of each warp that the file has already; shape (n, warps). None: none.
    """
    shape = LapShape.of(fields)
    if shape is None:
        return rows
    if taken is None:
        taken = np.zeros((len(rows), shape.warps), np.uint32)
    rows = rows.copy()
    words = rows.view(np.uint32)
    segments = words[:, record.CTA_HEADER_WORDS :].reshape(len(rows), shape.warps, -1)
    segments[:, :, _STOPPED : record.SEGMENT_HEADER_WORDS] = 0
    trailers = segments[:, :, record.SEGMENT_HEADER_WORDS :].reshape(len(rows), shape.warps, 2, -1)
    ended = trailers[:, :, :, -record.HALF_TRAILER_WORDS].max(axis=2)
    is_complete = words[:, 0] == record.CTA_MAGIC
    for row, warp in np.argwhere((ended > 0) & is_complete[:, None]).tolist():
        _pack_segment(shape, segments[row, warp], int(taken[row, warp]), int(ended[row, warp]))
    return rows


def _pack_segment(shape: LapShape, segment: Words, taken: int, ended: int) -> None:
    data = segment[record.SEGMENT_HEADER_WORDS :]
    halves = data.reshape(2, -1)
    cursor = int(segment[_CURSOR]) // record.WORD_BYTES
    pieces = [read_half(halves[lap % 2])[1] for lap in range(max(taken, ended - 2), ended)]
    is_stopped = cursor >= shape.words_per_warp
    if not is_stopped:
        begin = ended % 2 * shape.half_words
        pieces.append(data[begin : max(begin, cursor)])
    rest = np.concatenate([np.zeros(0, np.uint32), *pieces])
    data[:] = 0
    data[: len(rest)] = rest
    segment[_CURSOR] = len(rest) * record.WORD_BYTES
    segment[_STOPPED], segment[_TAKEN] = is_stopped, taken


def read_buffer(launch: LaunchRecord, chosen: NDArray[np.int64] | None = None) -> RawBuffer:
    """Read the buffer of a launch of any strategy, of all CTAs or of these rows of them, laps put together.

    Raises:
        CaptureError: ``corrupt-file``.
    """
    ids, data = launch.read()
    if chosen is not None:
        ids, data = ids[chosen], data.reshape(len(ids), -1)[chosen].reshape(-1)
    layout = launch.kernel.layout
    if layout.strategy != STRATEGY:
        return RawBuffer(ids, data, launch.grid)
    laps: defaultdict[tuple[int, int], dict[int, LapRecord]] = defaultdict(dict)
    for lap in launch.laps:
        laps[lap.cta, lap.warp][lap.number] = lap
    rows = data.view(np.uint32).reshape(len(ids), -1)
    pieces: list[Words] = []
    sizes: list[int] = []
    for cta, row in zip(ids.tolist(), rows, strict=True):
        pieces.append(row[: record.CTA_HEADER_WORDS])
        segments = row[record.CTA_HEADER_WORDS :].reshape(layout.total_warps, -1)
        for warp, segment in enumerate(segments):
            parts = list(_whole_segment(launch, segment, laps[cta, warp], f"CTA {cta}, warp {warp}"))
            sizes.append(sum(map(len, parts)) - record.SEGMENT_HEADER_WORDS)
            pieces += parts
    whole = np.concatenate([np.zeros(0, np.uint32), *pieces]).view(np.uint8)
    return RawBuffer(ids, whole, launch.grid, np.array(sizes, np.uint32))


def _whole_segment(
    launch: LaunchRecord, segment: Words, laps: Mapping[int, LapRecord], where: str
) -> Iterator[Words]:  # fmt: skip
    """Header and data words as a buffer that was large enough would hold them; as large as needed, and not larger."""
    cursor, records, stopped, taken = segment[: record.SEGMENT_HEADER_WORDS].tolist()
    data = segment[record.SEGMENT_HEADER_WORDS :]
    if cursor > 4 * len(data) or stopped > 1 or not laps.keys() >= set(range(min(taken, len(laps) + 1))):
        raise CaptureError(
            "corrupt-file", where=f"{launch.where}, {where}",
            found=f"a rest of {cursor} bytes behind {taken} laps, of which {len(laps)} are in the file",
            expected="all laps, and a rest that fits the segment", fix="capture again",
        )  # fmt: skip
    parts = [laps[number].read() for number in range(taken)]
    parts.append(data[: cursor // record.WORD_BYTES])
    header = np.array([record.WORD_BYTES * sum(map(len, parts)), records, 0, 0], np.uint32)
    yield header
    yield from parts
    if not stopped:  # Then another frame would have had room.
        yield np.zeros(launch.kernel.layout.max_frame_words, np.uint32)

"""Decode the buffer of a launch with the native decoder.

    decoded = decode_buffer(layout, RawBuffer(ids, data, grid))

Owns the conversion of a `BufferLayout` into what lib/Record needs, and of its findings into errors. The replay rules
are lib/Record's.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from kperfir._native import record

from kperfir.capture.layout import EDGES
from kperfir.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Collection

    import numpy as np
    from numpy.typing import NDArray

    from kperfir.capture.layout import BufferLayout

    Table = dict[str, NDArray[Any]]

_LARGE = ("stamps", "spans", "totals")
_KINDS = {"loop": 1, "iteration": 2, "mark": 3}


@dataclass(frozen=True, slots=True)
class DecodedBuffer:
    """Flat tables; each maps a column name to an array.

    Attributes:
        ctas: A row per CTA of the buffer: recorded, started (u8), x, y, z, sm (i32), start_clock, end_clock (i64,
            cycles), start_ns, end_ns (i64).
        tracks: A row per warp of each recorded CTA: cta (row of `ctas`), warp (i32), stamps, spans (how many rows of
            the tables below are its), records, dropped, laps, orphan_ends, first_clock, last_clock (i64).
        stamps: frame, slot (i32), raw (u32), clock (i64, cycles). Empty unless asked for.
        spans: region (i32), depth (i16), parent (row, or -1), iteration, start, end (i64, cycles), complete (u8).
        marks: A row per mark that was passed, with spans or totals: region (i32), span (its row of `spans`, or -1),
            value (u64: its bits; 0 if it carries none).
        sums: A row per region and warp that executed it, where executions are summed up: track (row of `tracks`),
            region (i32), count, least, most (i64), sum, squares (u64), knows_squares (u8: they cannot have wrapped),
            buckets (u32, flat, 32 for each row: by the power of two).
        totals: The spans of each warp added up, a row per region that it executed, in the order of their first
            starts: track (row of `tracks`), region (i32), count, complete, cycles, complete_cycles, start, end (of the
            first, of the last), parent (row, or -1) (i64).
        durations: With totals, per region those of complete spans, in no order that means anything (i64).
    """

    ctas: Table
    tracks: Table
    stamps: Table
    spans: Table
    marks: Table
    sums: Table
    totals: Table
    durations: list[NDArray[np.int64]]


@dataclass(frozen=True, slots=True)
class RawBuffer:
    """A buffer as read back or as stored.

    Attributes:
        ids: Linear ids of the CTAs, shape (n,), dtype uint32.
        data: Their shares, one after the other, shape (n * cta_bytes,), dtype uint8.
        grid: CTAs of the launch in x, y, z.
        warp_words: Data words of each warp of each CTA, where that is not as the layout says; shape (n * warps,).
    """

    ids: NDArray[np.uint32]
    data: NDArray[np.uint8]
    grid: tuple[int, int, int]
    warp_words: NDArray[np.uint32] | None = None


def decode_buffer(
    layout: BufferLayout, raw: RawBuffer, *, want: Collection[str] = ("spans",), where: str = ""
) -> DecodedBuffer:
    """Decode all warps of all CTAs of `raw`. The whole buffer is checked, whichever tables are asked for.

    Args:
        layout: Of the kernel.
        raw: The buffer.
        want: Which of the large tables: ``spans``, ``stamps``, ``totals``.
        where: For messages.

    Raises:
        CaptureError: ``corrupt-buffer``, with CTA, warp and word; ``size-mismatch``.
    """
    result = _decoder(layout).decode(
        raw.data, raw.ids, raw.grid, warp_words=raw.warp_words, **{table: table in want for table in _LARGE}
    )
    if isinstance(result, record.DecodeError):
        raise _error(layout, result, where)
    _number_iterations(layout, result["spans"])
    return DecodedBuffer(**result)


def _number_iterations(layout: BufferLayout, spans: Table) -> None:
    """Turn counts of recorded iterations into numbers of iterations, where some are left out."""
    import numpy as np

    if all(region.is_every for region in layout.regions):
        return
    first, step = np.zeros(len(layout.regions), np.int64), np.ones(len(layout.regions), np.int64)
    for region in layout.regions:
        if region.kind == "iteration":
            first[region.id], step[region.id] = region.first, region.step
        elif region.parent >= 0 and layout.regions[region.parent].kind != "loop":
            first[region.id], step[region.id] = first[region.parent], step[region.parent]
    numbers, of = spans["iteration"], spans["region"]
    spans["iteration"] = np.where(numbers < 0, numbers, first[of] + step[of] * numbers)


@lru_cache(maxsize=64)
def _decoder(layout: BufferLayout) -> record.Decoder:
    native = record.DecoderLayout()
    native.hash = layout.hash
    native.ring = layout.ring
    native.aggregate = layout.aggregate
    native.total_warps = layout.total_warps
    native.words_per_warp = layout.words_per_warp
    native.max_frame_words = layout.max_frame_words
    native.frame_align = layout.frame_align
    native.tag_first = layout.tag_first
    native.set_regions(
        [region.parent for region in layout.regions],
        [_KINDS.get(region.kind, 0) for region in layout.regions],
        [region.value_words for region in layout.regions],
    )
    stamps = [stamp for frame in layout.frames for stamp in frame.stamps]
    events = [event for stamp in stamps for event in stamp]
    native.set_frames(
        list(accumulate((len(frame.stamps) for frame in layout.frames), initial=0)),
        list(accumulate(map(len, stamps), initial=0)),
        [EDGES.index(event.edge) for event in events],
        [event.region for event in events],
    )
    return record.Decoder(native)


def _error(layout: BufferLayout, error: record.DecodeError, where: str) -> CaptureError:
    place = [where or f"kernel {layout.kernel}"]
    if error.cta < 0:
        return CaptureError("size-mismatch", where=place[0], found=error.found, expected=error.expected)
    place.append(f"CTA {error.cta}")
    if error.warp >= 0:
        place.append(f"warp {error.warp}")
    if error.word >= 0:
        place.append(f"word {error.word}")
    return CaptureError(
        "corrupt-buffer",
        where=", ".join(place),
        found=error.found,
        expected=error.expected,
        fix="if the kernel writes out of bounds, correct that; otherwise report a bug of kperfir, with the .kpf file",
    )

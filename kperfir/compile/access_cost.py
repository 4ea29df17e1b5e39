"""What an access of a warp costs the memory that it goes to: wavefronts of shared memory, sectors of global memory.

Pure functions of addresses, in bytes from a beginning of which no more is asked than that it is aligned. Rules of the
hardware, as NVIDIA's profilers count them: 32 banks of 4 bytes, one word of each bank in a wavefront, any number of
lanes at one word; sectors of 32 bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

LANES = 32
BANKS = 32
BANK_BYTES = 4
ROW_BYTES = BANKS * BANK_BYTES
SECTOR_BYTES = 32
# A matrix of ldmatrix and stmatrix: eight rows of 16 bytes.
MATRIX_ROWS = 8
MATRIX_ROW_BYTES = 16


def wavefronts(offsets: Sequence[int], width: int) -> int:
    """Of an access of `width` bytes per lane, aligned; lanes are served in groups that touch 128 bytes at most."""
    together = min(LANES, ROW_BYTES // max(width, BANK_BYTES))
    return sum(
        _degree(offsets[first : first + together], max(width, BANK_BYTES)) for first in range(0, len(offsets), together)
    )


def matrix_wavefronts(rows: Sequence[int]) -> int:
    """Of one matrix, whose rows begin at these bytes."""
    return _degree(rows, MATRIX_ROW_BYTES)


def _degree(offsets: Sequence[int], width: int) -> int:
    """Most distinct places, of those that share their banks."""
    units = {offset // width for offset in offsets}
    places = [unit % (ROW_BYTES // width) for unit in units]
    return max(map(places.count, places))


def ideal_wavefronts(width: int) -> int:
    """Without a conflict."""
    return max(1, LANES * width // ROW_BYTES)


def sectors(ranges: Sequence[tuple[int, int]], multiple: int) -> int | None:
    """Sectors that these bytes (begin, end) lie in; None if that depends on where they begin.

    Args:
        ranges: From a place of which only that is known that it is a multiple of `multiple` bytes.
        multiple: See above.
    """
    counts = {
        len({sector for begin, end in ranges for sector in range((begin + shift) // SECTOR_BYTES,
                                                                  (end + shift - 1) // SECTOR_BYTES + 1)})
        for shift in range(0, SECTOR_BYTES, multiple)
    }  # fmt: skip
    return counts.pop() if len(counts) == 1 else None

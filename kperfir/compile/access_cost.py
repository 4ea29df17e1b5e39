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
LINE_BYTES = 128
# A matrix of ldmatrix and stmatrix: eight rows of 16 bytes.
MATRIX_ROWS = 8
MATRIX_ROW_BYTES = 16


def wavefronts(offsets: Sequence[int], width: int, mask: Sequence[bool] = (True,) * LANES) -> int:
    """Of an access of `width` bytes per lane, aligned; lanes are served in groups that touch 128 bytes at most.

    Args:
        offsets: Of each lane.
        width: See above.
        mask: The lanes that take part.
    """
    together = min(LANES, ROW_BYTES // max(width, BANK_BYTES))
    groups = (range(first, min(first + together, len(offsets))) for first in range(0, len(offsets), together))
    return max(
        1, sum(_degree([offsets[lane] for lane in group if mask[lane]], max(width, BANK_BYTES)) for group in groups)
    )


def matrix_wavefronts(rows: Sequence[int]) -> int:
    """Of one matrix, whose rows begin at these bytes."""
    return _degree(rows, MATRIX_ROW_BYTES)


def _degree(offsets: Sequence[int], width: int) -> int:
    """Most distinct places, of those that share their banks; 0 without any."""
    units = {offset // width for offset in offsets}
    places = [unit % (ROW_BYTES // width) for unit in units]
    return max(map(places.count, places), default=0)


def ideal_wavefronts(width: int, lanes: int = LANES) -> int:
    """Without a conflict."""
    return max(1, -(-lanes * width // ROW_BYTES))


def sectors(ranges: Sequence[tuple[int, int]], multiple: int) -> tuple[int, bool]:
    """Sectors that these bytes (begin, end) lie in at most, and whether that is so wherever they begin.

    Args:
        ranges: From a place of which only that is known that it is a multiple of `multiple` bytes.
        multiple: See above.
    """
    counts = {
        len(units([(begin + shift, end + shift) for begin, end in ranges], SECTOR_BYTES))
        for shift in range(0, SECTOR_BYTES, multiple)
    }
    return max(counts), len(counts) == 1


def units(ranges: Sequence[tuple[int, int]], size: int) -> set[int]:
    """The numbers of the units of `size` bytes that these bytes (begin, end) lie in, if they are counted from one."""
    return {unit for begin, end in ranges for unit in range(begin // size, (end - 1) // size + 1)}

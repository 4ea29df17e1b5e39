# What nanobind's stub generator cannot know: the attributes that C++ sets on an exception.

kperfir._native.simt.Error:
    class Error(RuntimeError):
        """What a program did wrong on the SIMT device."""

        kind: str
        message: str
        kernel: str
        opcode: str
        ptx_line: int
        file: str
        line: int
        cta: int | None
        warp: int | None
        lane: int | None
        address: int | None
        is_global: bool

kperfir._native.record.Decoder.decode:
    \from typing import Any
    \from numpy import uint32, uint8
    \from numpy.typing import NDArray
    def decode(
        self, data: NDArray[uint8], cta_ids: NDArray[uint32], grid: tuple[int, int, int],
        stamps: bool = False, spans: bool = True, totals: bool = False,
        warp_words: NDArray[uint32] | None = None,
    ) -> dict[str, Any] | DecodeError:
        """
        Columns of `ctas`, `tracks`, `stamps`, `spans`, `marks`, `sums` and `totals`, and `durations`, an array per
        region; or a DecodeError.

        `data` holds the shares of the CTAs `cta_ids` (linear), one after the other; `warp_words`, if given, the
        size of each segment, by CTA and warp.
        """

kperfir._native.trace.SliceWriter.__init__:
    \from typing import Any
    def __init__(
        self, rows: dict[str, Any], regions: dict[str, Any], roots: dict[str, Any], sequence: dict[str, Any]
    ) -> None: ...

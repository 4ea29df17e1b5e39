"""Which CTAs of a launch have room for their records, and the address that tells the kernel so.

Owns how much memory a launch records into at most, and Python's side of the code in the address (contracts.md,
section 2; the kernel's side is passes/CtaRecording.cpp).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kperfir._native import record

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kperfir.runtime.device import ProfileBuffer

NO_CTA_CODE = 0


@dataclass(frozen=True, slots=True)
class Room:
    """The CTAs with linear ids `first` up to but without `first` + `ctas` have room, whether they record or not.

    Attributes:
        first: Linear id of the first.
        ctas: How many.
        wanted: How many were to be recorded: with a step, not every one from the first on.
        left_out: How many of these have no room.
        code: What the address of the buffer says of it.
    """

    first: int
    ctas: int
    wanted: int
    left_out: int
    code: int

    @classmethod
    def of(cls, selection: Sequence[int], grid_ctas: int, stride: int, limit: int) -> Room:
        """Find room for the CTAs of a launch.

        Args:
            selection: ``first, last, step`` of the linear ids to record, as in the layout; a `last` of 0 is no end.
            grid_ctas: CTAs of the launch.
            stride: Bytes per CTA.
            limit: Bytes that the launch may record into.
        """
        first, last, step = selection[0], selection[1] or grid_ctas, selection[2]
        ids = range(first, max(min(last, grid_ctas), first))
        fitting, wanted = limit // stride, len(ids[::step])
        if len(ids) <= fitting:
            return cls(first, len(ids), wanted, 0, record.EVERY_CTA_CODE if ids else NO_CTA_CODE)
        if not fitting:
            return cls(first, 0, wanted, wanted, NO_CTA_CODE)
        code = min(fitting.bit_length(), record.EVERY_CTA_CODE)  # The code c is room for 2^(c - 1).
        ctas = 1 << (code - 1)
        return cls(first, ctas, wanted, wanted - len(ids[:ctas:step]), code)


class RecordAddress(int):
    """What a kernel is launched with: where the share of CTA 0 would be, and the code.

    An int, since Triton's launchers ask the driver whose memory the result of a `data_ptr` is: with CTAs left out at
    the beginning that is nobody's.
    """

    memory: ProfileBuffer
    service: Callable[[], object] | None

    @classmethod
    def of(
        cls, memory: ProfileBuffer, room: Room, stride: int, service: Callable[[], object] | None = None
    ) -> RecordAddress:  # fmt: skip
        """Return the address for a buffer of ``room.ctas * stride`` bytes.

        A device on which nothing else runs beside a launch calls `service` now and then.
        """
        address = cls((memory.data_ptr() - room.first * stride) % (1 << 64) | room.code)
        address.memory = memory
        address.service = service
        return address

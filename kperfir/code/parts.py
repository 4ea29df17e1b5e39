"""What of kperfir's own instructions a launch pays once, and what for each record.

    parts = find_parts(program.flow, stamps)  # A Part per instruction; it says something of kperfir's own ones only.

What runs before any record sets recording up, what runs after the last one copies records out; the rest is records.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from kperfir.code.flow import solve_forward

if TYPE_CHECKING:
    from collections.abc import Collection

    from kperfir.code.flow import Flow


class Part(Enum):
    """When in the life of a CTA an instruction runs."""

    SET_UP = "set-up"
    RECORDS = "records"
    COPY_OUT = "copy-out"


def find_parts(flow: Flow, stamps: Collection[int]) -> list[Part]:
    """For each instruction its part: set-up where no path comes to it from a stamp, copy-out where none leads to one.

    Args:
        flow: Of the kernel.
        stamps: Numbers of the instructions that read the clock for a record.
    """
    has_stamp = [any(number in stamps for number in members) for members in flow.blocks]
    before = solve_forward(flow, 0, lambda block, state: state | has_stamp[block])
    after = _followed(flow, has_stamp)
    parts: list[Part] = []
    for members, come, follows in zip(flow.blocks, before, after, strict=True):
        places = [number for number in members if number in stamps]
        for number in members:
            if not come and (not places or number < places[0]) and (places or follows):
                parts.append(Part.SET_UP)
            elif not follows and (not places or number > places[-1]):
                parts.append(Part.COPY_OUT)
            else:
                parts.append(Part.RECORDS)
    return parts


def _followed(flow: Flow, has_stamp: list[bool]) -> list[bool]:
    """For each block, whether some path from its end comes to a stamp."""
    followed = [False] * len(flow.blocks)
    changed = True
    while changed:
        changed = False
        for block in reversed(range(len(flow.blocks))):
            if not followed[block] and any(has_stamp[each] or followed[each] for each in flow.successors[block]):
                followed[block] = changed = True
    return followed

"""Work, wait and idle of roles, on a timeline worked out by hand."""

from __future__ import annotations

import pytest

from kperfir.analysis.roles import role_time
from support.hand_made import Warp, at, hand_made

# CTA of 100 cycles. The producer ends at 60, of which it waits 20; the consumers take all of it and wait 30 and 10.
TIMELINE = hand_made(
    [
        Warp([at("kernel", 0, 60, at("mbarrier_wait", 10, 30))], warp=4, role="producer"),
        Warp([at("kernel", 0, 100, at("mbarrier_wait", 10, 40))], warp=0, role="consumer"),
        Warp([at("kernel", 0, 100, at("mbarrier_wait", 10, 20))], warp=1, role="consumer"),
    ]
)


def test_work_wait_and_idle_add_up_to_what_was_available() -> None:
    table = role_time(TIMELINE.spans).set_index("role")
    producer, consumer = table.loc["producer"], table.loc["consumer"]
    assert producer[["available_cycles", "work_cycles", "wait_cycles", "idle_cycles"]].tolist() == [100, 40, 20, 40]
    assert consumer[["available_cycles", "work_cycles", "wait_cycles", "idle_cycles"]].tolist() == [200, 160, 40, 0]
    assert (producer["warps"], consumer["warps"]) == (1, 2)
    shares = producer[["work_share", "wait_share", "idle_share"]].astype(float).tolist()
    assert shares == pytest.approx([0.4, 0.2, 0.4])

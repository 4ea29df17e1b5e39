"""Advice on layouts: data that change hands between threads through shared memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kperfir.advice.finding import Change, Figure, Finding
from kperfir.advice.loops import inside_loops

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kperfir.advice.case import Case

LEAST_SHARE = 0.03


def convert_layout(case: Case) -> Iterator[Finding]:
    """Layout conversions in a loop that take `LEAST_SHARE` of the time or more.

    share = cycles of the conversions / cycles of all warps. Expected and bound: the share is gone. What waits for a
    conversion waits in it, so its time is all that it costs.
    """
    rows = case.spans[(case.spans["kind"] == "convert_layout").to_numpy() & inside_loops(case.spans)]
    share = rows["duration_cycles"].sum() / case.warp_cycles if len(rows) else 0.0
    if share < LEAST_SHARE:
        return
    yield Finding(
        rule="convert-layout",
        kernel=case.kernel,
        title=f"{share:.0%} of the time goes into layout conversions inside loops",
        places=case.places(rows),
        figures=(Figure("convert_share", share, "share"), Figure("conversions", case.executions(rows), "count")),
        speedup=case.speedup(share),
        bound=case.speedup(share),
        basis="the conversions take no time",
        change=Change(
            "keep one layout in the loop: feed the dot from the layout that the value is made in (Gluon: choose it; "
            "Triton: move what makes the value, such as a cast or transpose, out of the loop or to the load)"
        ),
    )

"""What the walkthroughs share: run a kernel before and after its change, record both, say what the records say.

    python docs/walkthroughs/bubble.py        # writes bubble-before.kpf and bubble-after.kpf, prints what changed

Runs on the simulated device, so a GPU is not needed and the figures are the same each time.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import kperfir

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd


def profile(name: str, launch: Callable[[], None]) -> kperfir.Timeline:
    """Record one run of `launch` as <name>.kpf in the working directory."""
    path = Path(f"{name}.kpf")
    with kperfir.profile(path, device="simt", simt_chip="a100", simt_seed=0, kernels="*", launches=1) as session:
        launch()
    return session.load()


def cycles(timeline: kperfir.Timeline) -> int:
    """How long the launch took."""
    return int(timeline.launches["cycles"].sum())


def show(title: str, timeline: kperfir.Timeline, kinds: tuple[str, ...]) -> None:
    """Print the launch's cycles and, of these kinds of region, the mean duration and the share of the warps' time."""
    print(f"{title}: {cycles(timeline):,} cycles")
    rows: pd.DataFrame = timeline.summary()
    for row in rows[rows["kind"].isin(kinds)].itertuples(index=False):
        print(f"    {row.name:<32} {row.count:>5} x {row.mean_cycles:>7,.0f} cycles, {row.share:>6.1%} of the time")


def conclude(before: kperfir.Timeline, after: kperfir.Timeline) -> None:
    """Print by how much the launch got faster."""
    print(f"{cycles(before) / cycles(after):.2f} times as fast (simulated)")

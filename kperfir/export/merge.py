"""Several processes on one time axis: where each launch lies, and what each process is called.

    merged = merge([load(file) for file in files])
    write_file(merged, Path("job.pftrace"))

A launch starts when the global timer of its device says so. Devices of one machine share a time, as well as their
drivers set it; those of several machines may be any time apart, which is why `align` can put first launches together.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from kperfir.export.drawing import LAUNCH_GAP_NS
from kperfir.timeline import Placement

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kperfir.timeline import Timeline

ALIGN = ("timer", "start")
# Processes of one job that far apart by their timers do not share a time.
_APART_NS = 3600 * 10**9


def merge(timelines: Sequence[Timeline], align: str = "timer") -> list[Timeline]:
    """The same timelines, placed.

    Args:
        timelines: One per process.
        align: ``timer``: launches lie where the global timers say. ``start``: the first launch of each process is put
            at the same time, later ones lie as far behind it as its timer says.
    """
    starts = [_starts(timeline) for timeline in timelines]
    firsts = [min(of_launch.values(), default=0) for of_launch in starts]
    zero = min((first for first, of_launch in zip(firsts, starts, strict=True) if of_launch), default=0)
    placed = []
    for timeline, label, of_launch, first in zip(timelines, labels(timelines), starts, firsts, strict=True):
        base = zero if align == "timer" else first
        # The gap is room for a time that is fitted to a little before its launch's zero.
        start_ns = {launch: start - base + LAUNCH_GAP_NS for launch, start in of_launch.items()}
        placed.append(timeline.placed(Placement(label, start_ns), _notes(align)))
    return placed


def apart_ns(timelines: Sequence[Timeline]) -> int:
    """Time from the first launch of the first process to the first one of the last."""
    firsts = [min(starts.values()) for starts in map(_starts, timelines) if starts]
    return max(firsts, default=0) - min(firsts, default=0)


def far_apart(timelines: Sequence[Timeline]) -> bool:
    """Whether the processes' timers can hardly show one time."""
    return apart_ns(timelines) > _APART_NS


def labels(timelines: Sequence[Timeline]) -> list[str]:
    """What tells the processes apart: rank, else process id; the host too if there are several; a number at last."""
    facts = [timeline.metadata for timeline in timelines]
    hosts = len({of_process.get("host") for of_process in facts}) > 1
    names = [_label(of_process, hosts=hosts) for of_process in facts]
    total, seen = Counter(names), Counter[str]()
    unique = []
    for name in names:
        seen[name] += 1
        unique.append(f"{name} #{seen[name]}" if total[name] > 1 else name)
    return unique


def _label(facts: dict[str, Any], *, hosts: bool) -> str:
    rank, pid = facts.get("rank"), facts.get("pid")
    who = f"rank {rank}" if rank is not None else f"process {pid}" if pid is not None else "process"
    return f"{facts.get('host') or 'unknown host'} {who}" if hosts else who


def _starts(timeline: Timeline) -> dict[int, int]:
    """The timer at each launch's zero; a launch that recorded nothing has none, and goes with the one before it."""
    table = timeline.launches
    known = table["ns_uncertainty"].notna().to_numpy()
    timers = table["start_timer_ns"].to_numpy()
    if not known.any():
        return dict.fromkeys(table["launch"].tolist(), 0)
    last = int(timers[known][0])
    starts = {}
    for launch, is_known, timer in zip(table["launch"].tolist(), known.tolist(), timers.tolist(), strict=True):
        last = timer if is_known else last
        starts[launch] = last
    return starts


def _notes(align: str) -> list[str]:
    if align == "start":
        return ["the first launches of all processes are drawn at one time, whenever they really were"]
    return ["processes are drawn by the global timers of their devices; how far those are apart is not known"]

"""All analyses by name, as functions of a timeline: what `kperfir report --analysis NAME` shows.

docs/analyses.md explains each with its formulae.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pandas as pd

    from kperfir.capture.layout import Region
    from kperfir.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Analysis:
    """An analysis. `run` returns a table whose rows have a ``kernel``."""

    about: str
    run: Callable[[Timeline], pd.DataFrame]


def _regions(timeline: Timeline) -> pd.DataFrame:
    from kperfir.analysis.confidence import region_confidence

    return region_confidence(timeline.spans)


def _roles(timeline: Timeline) -> pd.DataFrame:
    from kperfir.analysis.roles import role_time

    return role_time(timeline.spans)


def _overlap(timeline: Timeline) -> pd.DataFrame:
    from kperfir.analysis.overlap import overlap_matrix

    return overlap_matrix(timeline.spans, timeline.flows)


def _bubbles(timeline: Timeline) -> pd.DataFrame:
    from kperfir.analysis.bubbles import pipeline_bubbles

    return pipeline_bubbles(timeline.spans, timeline.flows)


def _iterations(timeline: Timeline) -> pd.DataFrame:
    from kperfir.analysis.bubbles import bubbles_by_iteration

    return bubbles_by_iteration(timeline.spans)


def _critical_path(timeline: Timeline) -> pd.DataFrame:
    from kperfir.analysis.critical_path import critical_path

    return critical_path(timeline.spans, timeline.flows)


def _path_steps(timeline: Timeline) -> pd.DataFrame:
    from kperfir.analysis.critical_path import critical_steps

    return critical_steps(timeline.spans, timeline.flows)


def _phases(timeline: Timeline) -> pd.DataFrame:
    from kperfir.analysis.phases import phases

    return phases(timeline.spans)


def _waves(timeline: Timeline) -> pd.DataFrame:
    from kperfir.analysis.waves import waves

    records = [launch for capture in timeline.captures for launch in capture.launches]
    held = {number: int(record.facts.get("ctas_per_sm") or 0) for number, record in enumerate(records)}
    sms = min((int(record.capture.process.get("sm_count") or 0) for record in records), default=0)
    return waves(timeline.totals.rows, timeline.launches, sms, held)


def _heat(timeline: Timeline) -> pd.DataFrame:
    from kperfir.analysis.heat import source_heat

    return source_heat(timeline.totals.rows)


def _accesses(timeline: Timeline) -> pd.DataFrame:
    from kperfir.analysis.accesses import access_patterns

    return access_patterns(timeline.spans, timeline.accesses)


def polls_of(timeline: Timeline) -> set[tuple[int, int]]:
    """Launch and region of each region that waits for a flag: see `kperfir.analysis.communication`."""
    records = [launch for capture in timeline.captures for launch in capture.launches]
    return {
        (number, region) for number, record in enumerate(records) for region in _polls(record.kernel.layout.regions)
    }


def _polls(regions: Sequence[Region]) -> Iterator[int]:
    leaves: dict[int, set[str]] = {}
    for region in reversed(regions):
        below = leaves.get(region.id, {region.kind})
        if region.parent >= 0:
            leaves.setdefault(region.parent, set()).update(below)
        spins = region.op == "scf.while" and region.kind == "loop" and below <= _POLLING
        # What computes with what it loads may do more than wait.
        looks = "atomic" in below or ("load" in below and "compute" not in below)
        if region.op == "tt.atomic_poll" or (spins and looks):
            yield region.id


# What a loop that only waits for a flag is made of.
_POLLING = {"atomic", "load", "barrier", "compute", "iteration", "prologue", "epilogue"}


def _communication(timeline: Timeline) -> pd.DataFrame:
    from kperfir.analysis.communication import exposed_communication

    return exposed_communication(timeline.spans, polls_of(timeline))


def slots_of(timeline: Timeline) -> dict[tuple[int, int], int]:
    """By launch and flow, how many buffers go round between the warps, as the compiler says."""
    records = [launch for capture in timeline.captures for launch in capture.launches]
    return {
        (number, flow.id): flow.slots
        for number, record in enumerate(records)
        for flow in record.kernel.layout.flows
        if flow.via == "mbarrier"
    }


def _swp(timeline: Timeline) -> pd.DataFrame:
    from kperfir.analysis.models import swp_model

    return swp_model(timeline.spans, timeline.flows, slots_of(timeline))


def _ws(timeline: Timeline) -> pd.DataFrame:
    from kperfir.analysis.models import ws_model

    return ws_model(timeline.spans, timeline.flows, slots_of(timeline))


ANALYSES: dict[str, Analysis] = {
    "regions": Analysis("duration of each region, its spread and confidence", _regions),
    "roles": Analysis("work, wait and idle time per role of warps", _roles),
    "overlap": Analysis("which kinds of work run at the same time", _overlap),
    "bubbles": Analysis("waits in the iterations of loops, by stage, and what they wait for", _bubbles),
    "iterations": Analysis("duration and waiting of each iteration of each loop", _iterations),
    "critical-path": Analysis("regions on the critical path, and the slack of each", _critical_path),
    "path-steps": Analysis("the critical path step by step", _path_steps),
    "phases": Analysis("prologue, loop filling, steady and draining, epilogue", _phases),
    "waves": Analysis("waves, tail and imbalance of SMs", _waves),
    "accesses": Analysis("bank conflicts and coalescing, predicted from layouts, next to measured time", _accesses),
    "communication": Analysis("what CTAs send to each other, how much of it is hidden behind work", _communication),
    "heat": Analysis("time per source line", _heat),
    "swp": Analysis("software pipelining: the KPerfIR paper's model next to what was seen", _swp),
    "ws": Analysis("warp specialisation: the KPerfIR paper's model next to what was seen", _ws),
}

"""What the rules of the advisor look at: one kernel of a timeline, its launches taken together.

Owns which facts of a capture a rule may use and how cycles of a warp become a speed-up of the launch; rules own what
they make of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from kperfir.advice.finding import Place
from kperfir.advice.loops import LoopView, loop_views
from kperfir.analysis.accesses import access_patterns
from kperfir.analysis.models import swp_model
from kperfir.analysis.occupancy import cta_cycles
from kperfir.analysis.registry import slots_of
from kperfir.analysis.waves import waves
from kperfir.capture.accesses import build_accesses

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kperfir.timeline import Timeline


# Addresses and counters are integers.
_FLOATS = re.compile(r"math\.|arith\.(?:\w+f|sitofp|uitofp|fpto\w+)$|tt\.fp_to_fp|tt\.extern_elementwise")


@dataclass(frozen=True)
class Case:
    """One kernel.

    Attributes:
        kernel: Its name.
        spans: Its rows of `Timeline.spans`, renumbered from 0; ``parent`` counts these rows. Of very many (see
            `Timeline.details`), those of some CTAs.
        totals: Its rows of `Timeline.totals`, of all CTAs; ``parent`` counts these rows.
        flows: Its rows of `Timeline.flows`; ``from_span`` and ``to_span`` count the rows of `spans`.
        launches: Its rows of `Timeline.launches`.
        facts: Of the compilation (num_warps, num_stages, shared_bytes, constants, ...); empty if not known. Shared
            memory is without what holds the records.
        launch_facts: Of its first launch (ctas_per_sm); empty if not known.
        sms: SMs of the device; 0 if not known.
        slots: By launch and flow, buffers that go round between warps.
        predicted: Its rows of `Timeline.accesses`.
        arithmetic: Names of its gaps that begin with arithmetic on data.
    """

    kernel: str
    spans: pd.DataFrame
    totals: pd.DataFrame
    flows: pd.DataFrame
    launches: pd.DataFrame
    facts: dict[str, Any]
    launch_facts: dict[str, Any]
    sms: int = 0
    slots: Mapping[tuple[int, int], int] = field(default_factory=dict)
    predicted: pd.DataFrame = field(default_factory=lambda: build_accesses([]))
    arithmetic: frozenset[str] = frozenset()

    @cached_property
    def ctas(self) -> pd.DataFrame:
        """Those that `spans` are of, as `kperfir.analysis.occupancy.cta_cycles`, with ``cycles``."""
        return _with_cycles(cta_cycles(self.spans))

    @cached_property
    def all_ctas(self) -> pd.DataFrame:
        """The same of all CTAs that recorded."""
        return _with_cycles(cta_cycles(self.totals))

    @property
    def cta_cycles(self) -> float:
        """Mean time of the CTAs that `spans` are of."""
        return float(self.ctas["cycles"].mean())

    @cached_property
    def loops(self) -> tuple[LoopView, ...]:
        """Its loops, by loop and role."""
        return loop_views(self.spans, self.arithmetic)

    @cached_property
    def pipelines(self) -> pd.DataFrame:
        """Loops that wait for asynchronous copies, as `kperfir.analysis.models.swp_model`."""
        return swp_model(self.spans, self.flows, self.slots)

    @cached_property
    def accesses(self) -> pd.DataFrame:
        """Of its launches, as `kperfir.analysis.accesses.access_patterns`."""
        return access_patterns(self.spans, self.predicted)

    @cached_property
    def waves(self) -> pd.Series:
        """Of its longest launch, as `kperfir.analysis.waves`."""
        held = int(self.launch_facts.get("ctas_per_sm") or 0)
        table = waves(self.totals, self.launches, self.sms, dict.fromkeys(self.launches["launch"].tolist(), held))
        ctas = self.all_ctas.groupby("launch")
        longest = ctas["end_cycles"].max() - ctas["start_cycles"].min()
        return table.set_index("launch").loc[longest.idxmax()]

    def constant(self, value: int) -> str:
        """Name of the only constexpr that is this number; empty if none or several are."""
        constants = self.facts.get("constants", {})
        names = [name for name, found in constants.items() if found == value and not isinstance(found, bool)]
        return names[0] if len(names) == 1 else ""

    @property
    def warp_cycles(self) -> float:
        """Time of all warps that `spans` are of: for each, that of its CTA."""
        warps = self.spans.drop_duplicates(["launch", "cta", "warp"]).groupby(["launch", "cta"]).size()
        return float((warps.to_numpy() * self.ctas["cycles"].to_numpy()).sum())

    @cached_property
    def times(self) -> pd.DataFrame:
        """Of each launch that recorded CTAs: ``cycles``, those ``inside`` and whether it is ``whole``.

        Inside are the cycles in which its busiest SM has CTAs. A launch is whole if every CTA recorded; when the others
        ran is not known (a selection, no room, a sampled launch), so all of a launch that is not counts as inside.
        """
        ctas = self.all_ctas.groupby(["launch", "sm"]).agg(start=("start_cycles", "min"), end=("end_cycles", "max"))
        busy = (ctas["end"] - ctas["start"]).groupby(level="launch").max()
        launches = self.launches.set_index("launch").reindex(busy.index)
        whole = launches["ctas_recorded"] >= launches["ctas_total"]
        cycles = launches["cycles"].astype(np.float64)
        return pd.DataFrame({"cycles": cycles, "inside": busy.where(whole, cycles), "whole": whole})

    @property
    def inside_share(self) -> float:
        """Share of the launches' time in which their busiest SM has CTAs: what a faster CTA can make shorter."""
        cycles = float(self.times["cycles"].sum())
        return min(1.0, float(self.times["inside"].sum()) / cycles) if cycles > 0 else 1.0

    def speedup(self, saved_share: float) -> float:
        """Speed-up of the launch if a CTA takes less time by `saved_share` of it: 1 / (1 - inside_share * saved)."""
        return 1 / (1 - self.inside_share * min(max(saved_share, 0.0), 0.99))

    def executions(self, rows: pd.DataFrame) -> int:
        """How often the regions of these spans were executed, in all CTAs."""
        keys = ["launch", "region"]
        regions = pd.MultiIndex.from_frame(rows[keys].drop_duplicates())
        return int(self.totals["count"][pd.MultiIndex.from_frame(self.totals[keys]).isin(regions)].sum())

    def places(self, rows: pd.DataFrame) -> tuple[Place, ...]:
        """The regions of these spans, the costliest first."""
        groups = rows.groupby(["name", "kind"], observed=True, sort=False)
        table = groups.agg(file=("file", "first"), line=("line", "first"), cycles=("duration_cycles", "sum"))
        table = table.reset_index().sort_values("cycles", ascending=False, kind="stable")
        whole = self.warp_cycles
        return tuple(
            Place(str(row.name), str(row.kind), str(row.file), int(row.line), row.cycles / whole if whole else 0.0)
            for row in table.itertuples(index=False)
        )


def _with_cycles(ctas: pd.DataFrame) -> pd.DataFrame:
    return ctas.assign(cycles=ctas["end_cycles"] - ctas["start_cycles"])


def cases(timeline: Timeline, kernels: list[str]) -> Iterator[Case]:
    """A case for each kernel that recorded something."""
    totals = timeline.totals.rows  # Before there are spans, it costs nothing more.
    for kernel in kernels:
        if (totals["kernel"] == kernel).any():
            yield _case(timeline, kernel)


def _of_kernel(table: pd.DataFrame, kernel: str) -> tuple[pd.DataFrame, np.ndarray[Any, Any]]:
    """The rows of a kernel, renumbered from 0 with their parents, and the new number of each row, -1 for others."""
    rows = np.flatnonzero((table["kernel"] == kernel).to_numpy())
    new = np.full(len(table) + 1, -1, np.int64)
    new[rows] = np.arange(len(rows))
    own = table.iloc[rows].reset_index(drop=True)
    own["parent"] = new[own["parent"].to_numpy()]
    return own, new


def _case(timeline: Timeline, kernel: str) -> Case:
    totals, _ = _of_kernel(timeline.totals.rows, kernel)
    spans, new = _of_kernel(timeline.details.spans, kernel)
    launches = timeline.launches[timeline.launches["kernel"] == kernel].reset_index(drop=True)
    flows = timeline.details.flows
    mine = flows[flows["launch"].isin(launches["launch"])].reset_index(drop=True)
    mine = mine.assign(from_span=new[mine["from_span"].to_numpy()], to_span=new[mine["to_span"].to_numpy()])
    record = next(
        (launch for capture in timeline.captures for launch in capture.launches if launch.kernel.name == kernel), None
    )
    facts = dict(record.kernel.facts) if record else {}
    if record and facts.get("shared_bytes"):
        facts["shared_bytes"] = max(0, facts["shared_bytes"] - record.kernel.layout.shared_bytes)
    process = record.capture.process if record else {}
    return Case(
        kernel, spans, totals, mine, launches, facts, dict(record.facts) if record else {},
        int(process.get("sm_count") or 0), slots_of(timeline), timeline.accesses[timeline.accesses["kernel"] == kernel],
        frozenset(region.name for region in record.kernel.layout.regions if _FLOATS.match(region.op))
        if record else frozenset(),
    )  # fmt: skip

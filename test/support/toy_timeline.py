"""Small timelines with everything that an exporter or report can trip over, without a .kpf file.

Nested loops, spans that have no length in whole nanoseconds, ties at boundaries, marks, an incomplete span, a warp that
dropped records, warps of two roles, CTAs that share an SM.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

REGIONS = (
    # name, kind, line
    ("matmul", "kernel", 10),
    ("loop mm.py:14", "loop", 14),
    ("iteration mm.py:14", "iteration", 14),
    ("load mm.py:15", "load", 15),
    ("dot mm.py:16", "dot", 16),
    ("async_wait mm.py:16", "async_wait", 16),
    ("tile", "mark", 17),
    ("store mm.py:20", "store", 20),
)
VALUES = (7, -3, None, 1.5, (1 << 63) + 5, float("inf"))  # What marks carry, in turn.
TYPES = ("u32", "i64", "", "f32", "u64", "f64")
CLOCK_HZ = 1.41e9
CATEGORIES = ("kernel", "role", "name", "kind", "file")
SPAN_DTYPES = {
    **dict.fromkeys(("launch", "cta", "cta_x", "cta_y", "cta_z", "sm", "warp", "region", "line"), "int32"),
    **dict.fromkeys(CATEGORIES, "category"),
    "depth": "int16",
    **dict.fromkeys(("parent", "iteration", "start_cycles", "end_cycles", "duration_cycles"), "int64"),
    **dict.fromkeys(("start_ns", "duration_ns"), "float64"),
    "complete": "bool",
}
SPAN_COLUMNS = (
    "launch", "kernel", "cta", "cta_x", "cta_y", "cta_z", "sm", "warp", "role", "region", "name", "kind", "file",
    "line", "depth", "parent", "iteration", "start_cycles", "end_cycles", "duration_cycles", "start_ns", "duration_ns",
    "complete",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ToyTimeline:
    """What analyses and exporters use of `kperfir.timeline.Timeline`."""

    spans: pd.DataFrame
    tracks: pd.DataFrame
    launches: pd.DataFrame
    metadata: dict[str, object]
    notes: list[str] = field(default_factory=list)
    placement: None = None
    has_only_sums: bool = False

    @property
    def flows(self) -> pd.DataFrame:
        """Arrows from each load to the first wait of each warp of its CTA that ends later; a wait may have several."""
        rows = []
        for _, cta in self.spans.groupby(["launch", "cta"], sort=True):
            waits = cta[cta["kind"] == "async_wait"]
            for load in cta[cta["kind"] == "load"].itertuples() if len(waits) else ():
                later = waits[waits["end_cycles"] >= load.start_cycles].drop_duplicates("warp")
                rows += [(load.launch, load.kind, load.Index, int(wait)) for wait in later.index]
        return pd.DataFrame(rows, columns=["launch", "kind", "from_span", "to_span"])

    @property
    def marks(self) -> pd.DataFrame:
        """As `kperfir.timeline.Timeline.marks`; one mark after the other carries another kind of value."""
        rows = np.flatnonzero(self.spans["kind"] == "mark")
        turn = np.arange(len(rows)) % len(VALUES)
        carried = {name: np.array(each, object)[turn] for name, each in (("value", VALUES), ("value_type", TYPES))}
        columns = self.spans.iloc[rows].rename(columns={"start_cycles": "cycles", "start_ns": "ns"})
        return columns.assign(**carried, span=rows).reset_index(drop=True)


def toy_timeline(*, seed: int = 0, launches: int = 2, ctas: int = 6, sms: int = 2, resident: int = 2) -> ToyTimeline:
    """A capture of `launches` launches of `ctas` CTAs of 2 warps, `resident` CTAs at a time on each of `sms` SMs."""
    rng = random.Random(seed)
    spans: list[dict[str, object]] = []
    tracks: list[dict[str, object]] = []
    for launch in range(launches):
        origin = {sm: 1_000_000 * (sm + 1) + launch * 500_000 for sm in range(sms)}
        free_at = [(origin[sm], sm, slot) for sm in range(sms) for slot in range(resident)]
        for cta in range(ctas):
            free_at.sort(key=lambda slot: slot[0] - origin[slot[1]])
            begin, sm, slot = free_at.pop(0)
            end = begin
            for warp in range(2):
                track = _Track(rng, launch=launch, cta=cta, sm=sm, warp=warp, origin=origin[sm], first_row=len(spans))
                end = max(end, track.fill(begin + warp))
                spans += track.spans
                lost = 3 if (launch, cta, warp) == (0, 1, 1) else 0
                stamps = 2 * len(track.spans)
                tracks.append(
                    {
                        "launch": launch, "cta": cta, "sm": sm, "warp": warp, "role": track.role,
                        "stamps": stamps, "records": stamps + lost, "dropped": lost, "laps": 0,
                    }
                )  # fmt: skip
            free_at.append((end, sm, slot))
    return _assemble(spans, tracks, launches, ctas)


class _Track:
    def __init__(self, rng: random.Random, *, first_row: int, origin: int, **place: int) -> None:
        self.rng = rng
        self.role = ("producer", "consumer")[place["warp"]]
        self.spans: list[dict[str, object]] = []
        self._place = place
        self._origin = origin
        self._first_row = first_row

    def fill(self, start: int) -> int:
        kernel = self._open(0, start, -1, -1)
        now = start + self.rng.choice((0, 3))
        for _ in range(2):
            loop = self._open(1, now, kernel, -1)
            for iteration in range(self.rng.randint(1, 3)):
                body = self._open(2, now, loop, iteration)
                for region in self.rng.choice(((3, 4), (3, 5, 6, 4), (5, 5))):
                    inner = self._open(region, now, body, iteration)
                    now += 0 if region == 6 else self.rng.choice((0, 1, 40, 400))
                    self._close(inner, now)
                self._close(body, now)
            self._close(loop, now)
            now += self.rng.choice((0, 17))
        store = self._open(7, now, kernel, -1)
        now += 30
        self._close(store, now, complete=(self._place["cta"], self._place["warp"]) != (1, 1))
        self._close(kernel, now)
        return now

    def _open(self, region: int, start: int, parent: int, iteration: int) -> int:
        name, kind, line = REGIONS[region]
        depth = 0 if parent < 0 else int(self.spans[parent - self._first_row]["depth"]) + 1
        row = self._first_row + len(self.spans)
        cta = self._place["cta"]
        self.spans.append(
            {
                **self._place, "kernel": "matmul", "cta_x": cta % 3, "cta_y": cta // 3, "cta_z": 0, "role": self.role,
                "region": region, "name": name, "kind": kind, "file": "/src/mm.py", "line": line, "depth": depth,
                "parent": parent, "iteration": iteration, "start_cycles": start,
            }
        )  # fmt: skip
        return row

    def _close(self, row: int, end: int, *, complete: bool = True) -> None:
        span = self.spans[row - self._first_row]
        start = int(span["start_cycles"])
        span.update(
            end_cycles=end,
            duration_cycles=end - start,
            start_ns=(start - self._origin) / CLOCK_HZ * 1e9,
            duration_ns=(end - start) / CLOCK_HZ * 1e9,
            complete=complete,
        )


def _assemble(spans: list[dict[str, object]], tracks: list[dict[str, object]], launches: int, ctas: int) -> ToyTimeline:
    frame = pd.DataFrame(spans, columns=list(SPAN_COLUMNS)).astype(SPAN_DTYPES)
    # The order that Timeline promises; it is not the order of opening where spans have no length.
    order = frame.sort_values(["launch", "cta", "warp", "start_cycles", "depth"], kind="stable").index.to_numpy()
    new_row = np.empty(len(frame) + 1, np.int64)
    new_row[order] = np.arange(len(frame))
    new_row[-1] = -1
    frame = frame.loc[order].reset_index(drop=True)
    frame["parent"] = new_row[frame["parent"].to_numpy()]
    track_frame = pd.DataFrame(tracks).astype({"role": "category"})
    launch_frame = pd.DataFrame(
        {
            "launch": range(launches), "kernel": "matmul", "grid_x": 3, "grid_y": ctas // 3, "grid_z": 1,
            "ctas_total": ctas, "ctas_recorded": ctas, "simulated": True, "chip": "A100", "cycles": 5000,
            "clock_hz": CLOCK_HZ, "ns_uncertainty": 0.5,
            "dropped": [int(track_frame.loc[track_frame["launch"] == n, "dropped"].sum()) for n in range(launches)],
        }
    )  # fmt: skip
    notes = ["simulated: times come from the SIMT device's timing model, not from a GPU"]
    if track_frame["dropped"].any():
        notes.append(f"{track_frame['dropped'].sum()} records dropped")
    metadata: dict[str, object] = {"host": "toy", "pid": 42, "simulated": True}
    return ToyTimeline(frame, track_frame, launch_frame, metadata, notes)


def grid_timeline(*, ctas: int, sms: int, resident: int) -> ToyTimeline:
    """One launch of `ctas` CTAs of one warp, back to back in `resident` places on each of `sms` SMs.

    Each CTA is a kernel span of some hundred cycles with one load in it. Made without loops, so that it may be large.
    """
    place = np.arange(ctas) % (sms * resident)
    cycles = 300 + np.random.default_rng(0).integers(0, 400, ctas)
    order = np.argsort(place, kind="stable")
    ends = np.cumsum(cycles[order])
    first = np.r_[True, np.diff(place[order]) > 0]
    base = np.repeat((ends - cycles[order])[first], np.diff(np.r_[np.flatnonzero(first), ctas]))
    start = np.empty(ctas, np.int64)
    start[order] = ends - cycles[order] - base

    is_load = np.tile([False, True], ctas)
    cta = np.repeat(np.arange(ctas), 2)
    begin = start[cta] + np.where(is_load, 10, 0)
    duration = np.where(is_load, 100, cycles[cta])
    region = np.where(is_load, 3, 0)
    names, kinds, lines = zip(*REGIONS, strict=True)
    spans = pd.DataFrame(
        {
            "launch": 0, "kernel": "matmul", "cta": cta, "cta_x": cta, "cta_y": 0, "cta_z": 0,
            "sm": place[cta] // resident, "warp": 0, "role": "default", "region": region,
            "name": pd.Categorical.from_codes(region, names), "kind": pd.Categorical.from_codes(region, kinds),
            "file": "/src/mm.py", "line": np.array(lines)[region], "depth": is_load,
            "parent": np.where(is_load, np.arange(2 * ctas) - 1, -1), "iteration": -1, "start_cycles": begin,
            "end_cycles": begin + duration, "duration_cycles": duration, "start_ns": begin / CLOCK_HZ * 1e9,
            "duration_ns": duration / CLOCK_HZ * 1e9, "complete": True,
        }
    ).astype(SPAN_DTYPES)  # fmt: skip
    tracks = pd.DataFrame(
        {
            "launch": 0, "cta": np.arange(ctas), "sm": place // resident, "warp": 0, "role": "default",
            "stamps": 4, "records": 4, "dropped": 0, "laps": 0,
        }
    ).astype({"role": "category"})  # fmt: skip
    launches = toy_timeline(launches=1, ctas=3).launches.assign(ctas_total=ctas, ctas_recorded=ctas)
    return ToyTimeline(spans, tracks, launches, {"host": "toy"})

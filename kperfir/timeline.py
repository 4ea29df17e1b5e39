"""What a capture says: when each warp was in which region.

    timeline = kperfir.load("kperf-host-123.kpf")
    timeline.spans        # pandas DataFrame, a row per execution of a region
    timeline.summary()    # a row per region: where the time goes
    timeline.aggregates   # a row per region and warp: count, sum, histogram; all there is with strategy aggregate

Loading reads the table of contents; buffers are decoded when the first table is asked for. Neither Triton nor torch
is imported. What the columns mean is in docs/timeline.md.
"""

from __future__ import annotations

import copy
from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from kperfir.audit.findings import warnings_of
from kperfir.capture import tables
from kperfir.capture.accesses import build_accesses
from kperfir.capture.aggregates import build_aggregates
from kperfir.capture.flows import build_flows
from kperfir.capture.notes import kernel_notes, launch_notes
from kperfir.capture.reader import Capture
from kperfir.capture.sample import choose_ctas
from kperfir.capture.totals import build_totals
from kperfir.errors import UsageError
from kperfir.runtime.clock import Anchors, ClockFit, Slope, better, estimate_slope, fit_clock
from kperfir.source import changed_since

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kperfir.capture.reader import LaunchRecord
    from kperfir.capture.sample import Sample
    from kperfir.capture.tables import DecodedLaunch
    from kperfir.capture.totals import Totals


def load(*paths: Path | str | Iterable[Path | str]) -> Timeline:
    """Open one or more .kpf files as one timeline; launches are numbered in the order of the files.

    A file that is given twice is read once, and a note says so.

    Raises:
        UsageError: ``no-capture``: no path was given.
        CaptureError: A file is absent, foreign, damaged, or of another version.
    """
    files: list[Path] = []
    for path in paths:
        files += [Path(path)] if isinstance(path, str | Path) else map(Path, path)
    if not files:
        raise UsageError("no-capture", found="no path", expected="one or more .kpf files", fix="give a file")
    files, notes = without_repeats(files)
    return Timeline([Capture.open(file) for file in files], notes=notes)


def without_repeats(files: Iterable[Path]) -> tuple[list[Path], list[str]]:
    """Return each file once, however often and by whatever path it is named, and a note on each that was repeated."""
    first: dict[object, Path] = {}
    repeats: Counter[Path] = Counter()
    for file in files:
        try:
            status = file.stat()
            identity: object = (status.st_dev, status.st_ino)
        except OSError:
            identity = file  # The reader says what is wrong with it.
        repeats[first.setdefault(identity, file)] += 1
    notes = [f"{file} was given {times} times; it is counted once" for file, times in repeats.items() if times > 1]
    return list(first.values()), notes


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a timeline lies among others that are drawn with it: a name of its own, and launches on a common axis.

    Attributes:
        label: Name of the process.
        start_ns: Per launch, where its zero lies.
    """

    label: str
    start_ns: dict[int, int]


class Timeline:
    """The launches of one or more captures. All tables are made on first use and must not be changed.

    Attributes:
        captures: The open files.
        placement: Where it is drawn among others; None: by itself.
        sample: Which CTAs it has, if not all; see `details`.
    """

    def __init__(self, captures: list[Capture], *, notes: Iterable[str] = ()) -> None:
        self.captures = captures
        self.placement: Placement | None = None
        self.sample: Sample | None = None
        self._notes_on_files = list(notes)
        self._records: list[LaunchRecord] = [launch for capture in captures for launch in capture.launches]

    def placed(self, placement: Placement, notes: Iterable[str]) -> Timeline:
        """The same launches, drawn where `placement` says; `notes` come on top. What is decoded is shared."""
        other = copy.copy(self)
        other.placement = placement
        other._notes_on_files = [*self._notes_on_files, *notes]
        for made in ("notes", "details"):
            other.__dict__.pop(made, None)
        return other

    @cached_property
    def details(self) -> Timeline:
        """For what needs single spans and shows no single one: this timeline, or some CTAs of one of millions of spans.

        Who shows figures of it says what they are of, where it has a `sample`. Its `launches` are those of all CTAs.
        """
        chosen = choose_ctas(self._decoded)
        if chosen is None:
            return self
        other = Timeline(self.captures, notes=self._notes_on_files)
        other.placement, other.sample = self.placement, chosen
        other.__dict__.update(launches=self.launches, notes=self.notes)
        return other

    @property
    def has_only_sums(self) -> bool:
        """Whether executions of some launch were summed up on the device: then `aggregates` is what there is."""
        return any(record.kernel.layout.aggregate for record in self._records)

    @property
    def spans(self) -> pd.DataFrame:
        """A row per execution of a region, sorted by (launch, cta, warp, start_cycles, depth).

        Raises:
            UsageError: ``needs-records``: executions of a launch were summed up (`has_only_sums`). So do all tables
                and analyses that need single executions.
        """
        self._require_records()
        return self._spans

    @property
    def span_count(self) -> int:
        """How many rows `spans` has, or would have."""
        return sum(int(launch.decoded.tracks["spans"].sum()) for launch in self._decoded)

    @cached_property
    def _spans(self) -> pd.DataFrame:
        """Spans of the launches that have any."""
        self.__dict__["_decoded"] = launches = self._decode("spans")  # Of marks, it alone knows the spans.
        return tables.build_spans(launches)

    def _require_records(self) -> None:
        if not self.has_only_sums:
            return
        kernels = dict.fromkeys(r.kernel.name for r in self._records if r.kernel.layout.aggregate)
        raise UsageError(
            "needs-records", where=f"kernel {', '.join(kernels)}",
            found="sums of executions (strategy aggregate), which say neither when one ran nor in what order",
            expected="records of single executions",
            fix="record with TRITON_KPERF_STRATEGY=saturate or ring; of sums there are Timeline.aggregates, summary() "
            "and kperfir report",
        )  # fmt: skip

    @cached_property
    def aggregates(self) -> pd.DataFrame:
        """A row per launch, CTA, warp and region that the warp executed: count, total, least, most, histogram.

        With strategy aggregate it is what the device counted, else it is computed from the spans that are complete.
        ``bucket_k`` counts executions of 2^k cycles or more and less than 2^(k + 1), ``bucket_0`` those of 0 too.
        ``squares_cycles2``, the sum of squares, and ``std_cycles`` are nan where more than 64 bits may be needed.
        """
        return build_aggregates(
            self._decoded, lambda launch: self._spans.loc[self._spans["launch"].to_numpy() == launch]
        )

    @cached_property
    def totals(self) -> Totals:
        """The executions of each region by each warp, added up: what a report needs of ten million spans, in less time
        and memory than these take.
        """
        self._require_records()
        made_spans = "_spans" in self.__dict__
        return build_totals(self._decode("totals") if made_spans else self._decoded)

    @cached_property
    def tracks(self) -> pd.DataFrame:
        """A row per (launch, cta, warp): stamps decoded, records executed, dropped, laps."""
        return tables.build_tracks(self._decoded)

    @cached_property
    def marks(self) -> pd.DataFrame:
        """A row per mark that a warp passed, with its value: int, float, or None. ``span`` is its row in `spans`.

        ``value_type`` is what the kernel wrote: i32, u32, i64, u64, f32, f64, or empty.
        """
        spans = self.spans
        return tables.build_marks(self._decoded, spans)

    @cached_property
    def mark_values(self) -> pd.DataFrame:
        """``kernel, name, value`` of the marks that carry a value, without `spans`."""
        return tables.build_mark_values(self._decoded)

    @cached_property
    def stamps(self) -> pd.DataFrame:
        """Every stored clock value, raw and extended to 64 bits. Decodes the buffers again: `spans` does without."""
        self._require_records()
        return tables.build_stamps(
            tables.decode_launch(number, record, ("stamps",)) for number, record in enumerate(self._records)
        )

    @cached_property
    def corrected(self) -> pd.DataFrame:
        """A row per row of `spans`: ``duration_cycles`` without what records took, and ``uncertainty_cycles``, by how
        much it may be less or more. See `kperfir.analysis.correction`.
        """
        from kperfir.analysis.correction import MOST_SPANS_OF_FLOWS, Storage, corrected_durations

        layouts = {launch.number: launch.layout for launch in self._decoded}
        storages = {n: Storage.of(layout) for n, layout in layouts.items()}
        flows = self.flows if len(self.spans) <= MOST_SPANS_OF_FLOWS else None
        return corrected_durations(self.spans, self.stamps, storages, flows)

    @cached_property
    def flows(self) -> pd.DataFrame:
        """A row per asynchronous copy, matrix operation or store and the wait that completed it, if both were recorded.

        ``from_span`` and ``to_span`` are rows of `spans`; the work was under way from ``start_cycles``, when its issue
        began, to ``end_cycles`` at the latest, when the wait ended. Of waits in other warps, the first of each role.
        """
        spans, tracks = self.spans, self.tracks
        return build_flows(spans, [launch.layout for launch in self._decoded], tracks[tracks["laps"] > 0])

    @cached_property
    def accesses(self) -> pd.DataFrame:
        """A row per launch and timed access to memory, with what its layout predicts: `kperfir.analysis.accesses`."""
        return build_accesses(self._records)

    @cached_property
    def launches(self) -> pd.DataFrame:
        """A row per launch. ``cycles`` is the device's own count, or the longest CTA's where it gives none."""
        rows = [_launch_row(launch) for launch in self._decoded]
        frame = pd.DataFrame(rows, columns=list(_LAUNCH_DTYPES)).astype(_LAUNCH_DTYPES)
        frame["kernel"] = frame["kernel"].astype("category")
        return frame

    @cached_property
    def metadata(self) -> dict[str, Any]:
        """What the process said of itself and its device; of several captures, what they agree on and ``processes``."""
        first, *others = [capture.process for capture in self.captures]
        agreed = {key: value for key, value in first.items() if all(other.get(key) == value for other in others)}
        agreed["files"] = [str(capture.path) for capture in self.captures]
        if others:
            agreed["processes"] = [capture.process for capture in self.captures]
        return agreed

    @property
    def written(self) -> float:
        """When the first of the captures was last written to, in seconds since the epoch."""
        return min((capture.path.stat().st_mtime for capture in self.captures), default=0.0)

    @cached_property
    def notes(self) -> list[str]:
        """What has to be known to read any figure: drops, bounds, uncertainty. Every report shows them."""
        return list(_notes(self))

    def summary(self) -> pd.DataFrame:
        """A row per region of each kernel, in program order.

        Launches of a kernel that was compiled several times are taken together; a region is the same if its name and
        kind are.

        Columns:
            kernel, region, name, kind, file, line: The region; ``region`` is its id where it was seen first.
            count: Executions, incomplete ones included.
            incomplete: Executions whose start or end was not recorded.
            total_cycles, self_cycles: Time in it, and that time less what its children took. All executions, all warps.
            wait_cycles: The part of the total in which warps did nothing but wait (`kperfir.analysis.wait_time`).
            mean_cycles, p50_cycles, p95_cycles, min_cycles, max_cycles: Of the complete executions; NaN without any.
            share, self_share, wait_share: Of the time of the warps of the recorded CTAs. Each counts from its CTA's
                start to its CTA's end: from the first anchor or stamp of any of its warps to the last stamp. A warp
                that recorded nothing in any CTA of the launch (it is left out, or runs nothing) does not count.
            warps: Warps (of all CTAs) that executed it.
            warp_min_cycles, warp_max_cycles, warp_spread: Over the totals of these warps: least, most, and standard
                deviation divided by mean.

        Of sums (strategy aggregate), ``wait_cycles``, ``wait_share``, ``p50_cycles`` and ``p95_cycles`` are NaN.
        """
        from kperfir.analysis.summary import SUMMARY_COLUMNS, summarise
        from kperfir.analysis.sums import sums_statistics

        if self.has_only_sums:
            return sums_statistics(self.aggregates, self.kernel_cycles)[SUMMARY_COLUMNS]
        return summarise(self.spans, self._span_tracks, self.kernel_cycles)

    def waits(self, by: str = "kernel") -> pd.DataFrame:
        """Time at work and time spent waiting, of each kernel, role of warps, or warp.

        Args:
            by: ``kernel``, ``role`` or ``warp``; the columns are those of `kperfir.analysis.wait_time.wait_statistics`.
        """
        from kperfir.analysis.wait_time import wait_statistics

        return wait_statistics(self.spans, by)

    def to_perfetto(self, path: Path | str) -> None:
        """Write a trace that https://ui.perfetto.dev opens; ``kperfir.export`` has the other formats.

        Raises:
            ExportError: ``write-failed``.
        """
        from kperfir.export import write_file

        write_file([self], Path(path), "pftrace")

    def to_html(self, path: Path | str) -> None:
        """Write the page of ``kperfir report --html``.

        Raises:
            ExportError: ``write-failed``.
        """
        from kperfir.report.html import write_page

        write_page(self, Path(path))

    def _repr_html_(self) -> str:
        from kperfir.report.notebook import overview

        return overview(self)

    @cached_property
    def _decoded(self) -> list[DecodedLaunch]:
        return self._decode("totals")

    def _decode(self, table: str) -> list[DecodedLaunch]:
        rows = self.sample.rows if self.sample else {}
        launches = [
            tables.decode_launch(number, record, (table,), rows.get(number))
            for number, record in enumerate(self._records)
        ]
        if self.sample:
            return [replace(launch, fit=self.sample.fits[launch.number]) for launch in launches]
        return _with_fits(launches)

    @property
    def _span_tracks(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """For every span, the row of its warp in `tracks`."""
        counts = [launch.decoded.tracks["spans"] for launch in self._decoded]
        flat = np.concatenate([*counts, np.empty(0, np.int64)])
        return np.repeat(np.arange(len(flat)), flat)

    @cached_property
    def kernel_cycles(self) -> dict[str, int]:
        """What shares are shares of: per kernel, the time of all warps of its recorded CTAs, idle warps left out."""
        cycles: dict[str, int] = {}
        for launch in self._decoded:
            busy = int(tables.cta_cycles(launch).sum()) * tables.recording_warps(launch)
            name = launch.record.kernel.name
            cycles[name] = cycles.get(name, 0) + busy
        return cycles


_LAUNCH_DTYPES = {
    "launch": "int32",
    "kernel": "object",
    **dict.fromkeys(("grid_x", "grid_y", "grid_z", "ctas_total", "ctas_recorded"), "int64"),
    "simulated": "bool",
    "chip": "object",
    "cycles": "int64",
    **dict.fromkeys(("clock_hz", "ns_uncertainty"), "float64"),
    **dict.fromkeys(("dropped", "start_timer_ns", "stream", "process", "process_launch", "kernel_launch"), "int64"),
}


def _launch_row(launch: DecodedLaunch) -> dict[str, Any]:
    record, fit, ctas = launch.record, launch.fit, launch.decoded.ctas
    process = record.capture.process
    longest = int(tables.cta_cycles(launch).max(initial=0))
    x, y, z = record.grid
    return {
        "launch": launch.number,
        "kernel": record.kernel.name,
        **dict(grid_x=x, grid_y=y, grid_z=z, ctas_total=x * y * z),
        "ctas_recorded": int(ctas["recorded"].sum()),
        "simulated": bool(process.get("simulated", False)),
        "chip": process.get("chip") or process.get("device", ""),
        "cycles": record.cycles if record.cycles is not None else longest,
        "clock_hz": fit.clock_hz if fit else float("nan"),
        "ns_uncertainty": fit.uncertainty_ns if fit else float("nan"),
        "dropped": int(launch.decoded.tracks["dropped"].sum()),
        "start_timer_ns": fit.start_timer_ns if fit else 0,
        "stream": record.stream,
        "process": process.get("pid", -1),
        "process_launch": record.launch,
        "kernel_launch": record.kernel_launch,
    }


def _with_fits(launches: list[DecodedLaunch]) -> list[DecodedLaunch]:
    """Give every launch its time axis. A launch that is too short for a good slope borrows one of its process."""
    anchors = [_anchors(launch) for launch in launches]
    best: dict[int, Slope | None] = {}
    for launch, own in zip(launches, anchors, strict=True):
        process = id(launch.record.capture)
        best[process] = better(best.get(process), estimate_slope(own))
    return [
        tables.DecodedLaunch(launch.number, launch.record, launch.cta_ids, launch.decoded, _fit(launch, own, best))
        for launch, own in zip(launches, anchors, strict=True)
    ]


def _anchors(launch: DecodedLaunch) -> Anchors:
    simulated = launch.record.capture.process.get("simulated")
    return Anchors.of(launch.decoded.ctas, resolution_ns=1 if simulated else None)


def _fit(launch: DecodedLaunch, own: Anchors, best: dict[int, Slope | None]) -> ClockFit | None:
    process = launch.record.capture.process
    hz = launch.record.clock_hz or process.get("clock_hz")
    exact = Slope(1e9 / hz, 0.0) if hz and process.get("simulated") else None
    return fit_clock(own, others=exact or best[id(launch.record.capture)], nominal_hz=hz)


def _notes(timeline: Timeline) -> Iterator[str]:
    if any(capture.process.get("simulated") for capture in timeline.captures):
        yield "simulated: times come from the SIMT device's timing model, not from a GPU"
    yield from timeline._notes_on_files
    for capture in timeline.captures:
        yield from capture.notes
    yield from warnings_of(timeline.captures)
    for file in dict.fromkeys(region.file for launch in timeline._decoded for region in launch.layout.regions):
        if changed := changed_since(file, timeline.written):
            yield f"{file} was changed on {changed}, after the capture: lines that are shown from it may be others"
    yield from kernel_notes(timeline._decoded)
    for launch in timeline._decoded:
        yield from launch_notes(launch)
    known = timeline.launches["ns_uncertainty"].replace(float("inf"), float("nan")).max()
    if known == known:  # not NaN
        yield f"times in ns are fitted to the anchors of each launch, to within {known:.1f} ns"

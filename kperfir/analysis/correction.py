"""Durations without what measuring them took, and how sure that is. Pure functions of a Timeline's tables.

    corrected = corrected_durations(timeline.spans, timeline.stamps, storages)

Between two stamps of a warp lie the store of the first, the clock read of the second and, where another frame begins,
the end of one frame and the begin of the next. That takes a constant number of issue slots (the constant per record of
KPerfIR's trace replay), unless the warp waits for something anyway: then it is hidden, and a wait is the difference of
the two clock reads around it.

A loaded value comes when it comes, whatever is recorded meanwhile. So the gap that waits for it was shortened by what
the records took since the load was issued, and gets it back: the first gap behind a load that is long enough to be a
wait and is of neither a load nor a wait of another kind. Without records the warp would have come there earlier, and
gone on at the same time. Likewise a long wait for asynchronous copies, from the last of them on; one for a bulk copy or
a product, from where that was issued, by whichever warp; and where warps meet, those that wait for the last one go on
when that would have come (`kperfir.analysis.replay`). A result that is there soon, such as a shuffle's, is waited for
by the gap behind, in which the record is hidden.

What is not known is in the uncertainty, gap by gap:

* In all but the shortest gaps the latency of some instruction may have hidden the record.
* From the shortest wait on, a gap may wait for what was asked for before; it is then shorter by what records delayed.
  A tenth of the gap stands for that.
* Where the same gap takes different times in other executions, it competes for a unit with other warps (memory port,
  matrix unit, issue slots), or waits for them. Records change who comes first, so it may have been as different without
  them: by the range that eight of ten of its executions are in.

The first may be wrong in one direction throughout, so those of a span's gaps are added up; so is the second where there
is nothing to compare a gap with. What one warp loses of a unit another wins: the others are added as independent errors
are, by their squares.

Of stamps that are stored several at once (`batch`), the store is in the gap behind the last of them; behind the others
there is a clock read alone.

Only durations are corrected. Starts and ends stay as measured, so nothing is reordered across warps; no gap gets less
than nothing, so neither does any region, nor a flow. What a gap gets back is at most what gaps before it lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from kperfir.analysis.regions import KEYS, outermost_rows
from kperfir.analysis.replay import delays, flow_ends, meetings
from kperfir.analysis.wait_time import WAIT_KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from kperfir.capture.layout import BufferLayout
    from kperfir.timeline import Timeline

    Integers = NDArray[np.int64]
    Causes = tuple[Integers, Integers]

# Cycles. Compared with ghost runs of the timing model in docs/accuracy.md; a GPU's may differ by a few.
RECORD_CYCLES = 5  # A store, its cursor's use, a clock read.
SHORT_GAP_CYCLES = 16
PENDING_RECORD_CYCLES = 2  # Of several stamps that are stored at once, all but the last: a clock read.
SHORT_GAP_UNSURE_CYCLES = 4
TAGGED_RECORD_CYCLES = 7  # Where the frame's tag is made, and stored along.
FRAME_CYCLES = 19  # The tag, the cursor and the count of one frame, and the comparison of the next.
FRAME_UNSURE_CYCLES = 8  # More where it stands between the instructions of a loop's end and begin.
HIDDEN_FRAME_CYCLES = 3  # What is left of that where the warp waits anyway: for a value that it has just loaded.
GLOBAL_FRAME_CYCLES, HIDDEN_GLOBAL_FRAME_CYCLES = 24, 11  # The same where stamps are stored in global memory.
# Of frames that begin with their tag, which the cursor's limit ends: of one's end, and what is left of it.
TAG_FIRST_FRAME_CYCLES, TAG_FIRST_GLOBAL_FRAME_CYCLES = (12, 1), (20, 9)
# Of a kernel of several roles, where the warps that start the others hand on the state of recording, and get it back.
START_ROLES_CYCLES, END_ROLES_CYCLES = 105, 68
LOAD_KINDS = ("load", "atomic")
SHORTEST_WAIT_CYCLES = 44  # A gap from here on may hide what is in it.
# Behind an instruction of these kinds that was issued at once, a gap from here on waits for its result.
RESULT_KINDS, SHORTEST_RESULT_WAIT_CYCLES = ("reduce", "scan", "local_load", "convert_layout"), 28
LONG_FRAME_GAP_CYCLES = 128  # A gap with a frame's end in it, from here on.
# A wait for copies that are under way: a shorter one may be the instruction's own time. A load that takes so long has
# waited for its value itself.
LONG_WAIT_CYCLES = 100
# Executions of a gap that are compared, at least, and which of them its range is of.
LEAST_EXECUTIONS = 4
RANGE = (0.1, 0.9)
# Of such a gap: how much a wait changes when the warp, and those that it shares the SM with, come to it later.
WAIT_SHIFT = 0.1

# A report of more spans than this does without: their stamps would have to be decoded again, and searched.
MOST_SPANS = 1_000_000
# Of more, no flows are looked for: pairs are counted CTA by CTA.
MOST_SPANS_OF_FLOWS = 100_000


@dataclass(frozen=True, slots=True)
class Storage:
    """How stamps are stored: so many words at once, in shared or in global memory, the frame's tag first or last; and
    how many warps start other roles.
    """

    batch: int = 1
    is_global: bool = False
    tag_first: bool = False
    starting_warps: int = 0

    @classmethod
    def of(cls, layout: BufferLayout) -> Storage:
        """That of a kernel."""
        first = layout.roles[0].warps if len(layout.roles) > 1 else 0
        return cls(layout.batch, layout.buffer == "global", layout.tag_first, first)


def corrected_durations(
    spans: pd.DataFrame, stamps: pd.DataFrame, storages: Mapping[int, Storage] = MappingProxyType({}),
    flows: pd.DataFrame | None = None,
) -> pd.DataFrame:  # fmt: skip
    """Correct the duration of every span.

    Args:
        spans: `Timeline.spans`, or rows of it in its order.
        stamps: `Timeline.stamps` of the same captures.
        storages: By launch, how its stamps were stored, where that is not as usual.
        flows: `Timeline.flows`, where waits that follow asynchronous work are to be told.

    Returns:
        A row per span, with its index: ``duration_cycles`` as it would have been without records, not below 0, and
        ``uncertainty_cycles``: how much less or more it may be. A span whose stamps are not among `stamps` is left as
        it is, with an uncertainty of nan.
    """
    measured = spans["duration_cycles"].to_numpy()
    overhead, uncertainty = np.zeros(len(spans), np.int64), np.full(len(spans), np.nan)
    for rows, of_launch in _by_launch(spans, stamps):
        part = spans.iloc[rows]
        tracks = _Keys(of_launch)
        first, last = (_find(part, column, tracks) for column in ("start_cycles", "end_cycles"))
        borders = _Borders.of(part["kind"], first, last)
        clock = of_launch["clock"].to_numpy().astype(np.int64)
        causes = [meetings(part, clock, first, last)]
        if flows is not None:
            causes.append(flow_ends(part, flows, clock, last))
        storage = storages.get(int(of_launch["launch"].iloc[0]), Storage())
        own, unsure, contended = _gaps(of_launch, tracks.stamps, borders, storage, causes)
        known = (first >= 0) & (last >= first)
        sums = [np.concatenate(([0], np.cumsum(gaps))) for gaps in (own, unsure, contended**2)]
        # The gap in front of stamp i is entry i, so those of a span are first + 1 to last.
        totals = [np.where(known, total[last + 1] - total[first + 1], 0) for total in sums]
        overhead[rows] = totals[0]
        uncertainty[rows] = np.where(known, totals[1] + np.rint(np.sqrt(totals[2])), np.nan)
    return pd.DataFrame(
        {"duration_cycles": measured - np.minimum(overhead, measured), "uncertainty_cycles": uncertainty},
        index=spans.index,
    )


def with_corrections(statistics: pd.DataFrame, timeline: Timeline, by: str) -> pd.DataFrame:
    """`region_statistics` of a timeline with ``corrected_cycles`` and ``uncertainty_cycles``: means over executions.

    NaN where nothing is known, and in all rows if there are more than `MOST_SPANS` spans.
    """
    if timeline.totals.rows["count"].sum() > MOST_SPANS:
        return statistics.assign(corrected_cycles=np.nan, uncertainty_cycles=np.nan)
    spans, corrected = timeline.spans, timeline.corrected
    keys = list(KEYS[by])
    known = spans["complete"] & corrected["uncertainty_cycles"].notna() & outermost_rows(spans, by)
    table = spans.loc[known, keys].assign(
        corrected_cycles=corrected["duration_cycles"].astype(float),
        uncertainty_cycles=corrected["uncertainty_cycles"],
    )
    means = table.groupby(keys, observed=True).mean()
    rows = pd.MultiIndex.from_frame(statistics[keys].astype(object))
    means.index = pd.MultiIndex.from_tuples([tuple(key) for key in means.index], names=keys)
    return statistics.assign(**{name: means[name].reindex(rows).to_numpy() for name in means})


def _gaps(
    stamps: pd.DataFrame, track: Integers, borders: _Borders, storage: Storage, causes: Sequence[Causes] = ()
) -> tuple[Integers, Integers, Integers]:
    """Cycles that records took in the gap in front of each stamp (below 0 where it gets some back), how much more or
    less it may be, and by how much contention may have changed it.

    Args:
        stamps: Of one launch.
        track: Which warp of which CTA each is of; equal numbers are adjacent.
        borders: Of regions that say what a gap waits for.
        storage: How they were stored.
        causes: Stamps that came when something else was there, and the stamps that this followed from.
    """
    clock, frame, slot = (stamps[name].to_numpy().astype(np.int64) for name in ("clock", "frame", "slot"))
    gap = np.diff(clock, prepend=clock[:1])
    follows = np.concatenate(([False], track[1:] == track[:-1]))
    same_frame = np.concatenate(([False], (frame[1:] == frame[:-1]) & (slot[1:] == slot[:-1] + 1)))
    may_hide = gap >= SHORTEST_WAIT_CYCLES
    is_stored = (slot + storage.tag_first) % storage.batch == 0  # The stamp before, and those that waited for it.
    in_frame = np.where(is_stored, RECORD_CYCLES, PENDING_RECORD_CYCLES)
    if storage.tag_first:
        in_frame = np.where(is_stored & (slot == 1), TAGGED_RECORD_CYCLES, in_frame)
    hides_frame = may_hide & _behind(borders.loaded, len(gap))
    frame_end, hidden = (FRAME_CYCLES, HIDDEN_FRAME_CYCLES)
    if storage.is_global:
        frame_end, hidden = (GLOBAL_FRAME_CYCLES, HIDDEN_GLOBAL_FRAME_CYCLES)
    if storage.tag_first:
        frame_end, hidden = TAG_FIRST_GLOBAL_FRAME_CYCLES if storage.is_global else TAG_FIRST_FRAME_CYCLES
    own = np.where(same_frame, in_frame, np.where(hides_frame, hidden, frame_end))
    starts = follows & (track % (1 << 6) < storage.starting_warps) & ~same_frame
    own = np.where(starts & ~np.append(False, follows[:-1]), START_ROLES_CYCLES, own)
    own = np.where(starts & ~np.append(follows[1:], False), END_ROLES_CYCLES, own)
    is_open = hides_frame | (gap >= LONG_FRAME_GAP_CYCLES)
    of_frame = np.where(is_open, frame_end - hidden, FRAME_UNSURE_CYCLES)
    of_record = np.where((gap <= SHORT_GAP_CYCLES) | ~is_stored, SHORT_GAP_UNSURE_CYCLES, RECORD_CYCLES)
    unsure = np.where(same_frame, of_record, of_frame)
    shift = np.where(may_hide, (WAIT_SHIFT * gap).astype(np.int64), 0)
    contended, compared = np.zeros(len(gap), np.int64), np.zeros(len(gap), bool)
    contended[follows], compared[follows] = _ranges(gap[follows], _places(frame, slot)[follows])
    # Where other executions show how far it moves, it moves either way.
    contended = np.where(compared, np.maximum(contended, shift), 0)
    unsure = np.where(compared, unsure, np.maximum(unsure, shift))
    cause, own = _causes(np.minimum(own, gap), gap, follows, same_frame, borders)
    for at, source in causes:
        cause[at] = source
    late = delays(cause, np.where(follows, own, 0))
    own = np.minimum(np.diff(late, prepend=0), gap)
    return np.where(follows, own, 0), np.where(follows, np.minimum(unsure, gap), 0), contended


def _causes(
    own: Integers, gap: Integers, follows: NDArray[np.bool_], same_frame: NDArray[np.bool_], borders: _Borders
) -> tuple[Integers, Integers]:
    """What each stamp follows from, the warp's stamp before or where what it waits for was asked for; and what records
    took since, nothing in a wait.
    """
    waits, loads = _behind(borders.waits, len(gap)), _behind(borders.loads, len(gap)) & follows
    copies, copy_waits = (_behind(those, len(gap)) & follows for those in (borders.copies, borders.copy_waits))
    may_hide = gap >= SHORTEST_WAIT_CYCLES
    at_once = _behind(borders.results, len(gap)) & (gap <= SHORT_GAP_CYCLES)
    waits_for_result = np.append(False, at_once[:-1]) & follows & (gap >= SHORTEST_RESULT_WAIT_CYCLES) & same_frame
    own = np.where(waits_for_result & ~may_hide, 0, own)
    own = np.where(waits & may_hide, 0, own)
    cause = np.where(follows, np.arange(len(gap)) - 1, -1)
    for at, since in (
        _waits_for(loads & (gap < LONG_WAIT_CYCLES), may_hide & follows & ~loads & ~waits, follows, since_last=False),
        _waits_for(copies, copy_waits & (gap >= LONG_WAIT_CYCLES), follows, since_last=True),
    ):
        own[at] = np.where(same_frame[at], 0, own[at])
        cause[at] = since
    return cause, own


def _behind(stamps: Integers, count: int) -> NDArray[np.bool_]:
    """Which of `count` gaps come right behind one of `stamps`."""
    mask = np.zeros(count, bool)
    mask[stamps[stamps + 1 < count] + 1] = True
    return mask


def _waits_for(
    issues: NDArray[np.bool_], may_wait: NDArray[np.bool_], follows: NDArray[np.bool_], *, since_last: bool
) -> tuple[Integers, Integers]:
    """Gaps in which a warp waits for what was issued before, and for each the gap in which that was.

    Args:
        issues: Gaps in which something is issued.
        may_wait: Gaps that are a wait if something was issued since the one before.
        follows: Gaps that have one before them, of the same warp.
        since_last: Of all that was issued since then, the last; else the first.
    """
    waits, issued = np.flatnonzero(may_wait), np.flatnonzero(issues)
    warp_begin = np.maximum.accumulate(np.where(follows, 0, np.arange(len(follows))))
    after = np.maximum(np.concatenate(([-1], waits[:-1])), warp_begin[waits])
    first, end = np.searchsorted(issued, after, side="right"), np.searchsorted(issued, waits)
    known = first < end
    return waits[known], issued[(end - 1 if since_last else first)[known]]


def _places(frame: Integers, slot: Integers) -> Integers:
    """Numbers of the gaps in front of each stamp: the same for the same two stamps of the kernel."""
    stamp = frame * (int(slot.max(initial=0)) + 1) + slot
    place: Integers = np.concatenate((stamp[:1], stamp[:-1])) * (int(stamp.max(initial=0)) + 1) + stamp
    return place


def _ranges(gap: Integers, place: Integers) -> tuple[Integers, NDArray[np.bool_]]:
    """For each gap, the range that `RANGE` of those in its place are in, and whether there are enough of them."""
    if not len(gap):
        return gap, gap > 0
    order = np.lexsort((gap, place))
    begins = np.flatnonzero(np.diff(place[order], prepend=place[order[:1]] - 1))
    counts = np.diff(begins, append=len(gap))
    low, high = (gap[order[begins + (share * (counts - 1)).astype(np.int64)]] for share in RANGE)
    ranges, enough = np.zeros(len(gap), np.int64), np.zeros(len(gap), bool)
    ranges[order], enough[order] = (np.repeat(each, counts) for each in (high - low, counts >= LEAST_EXECUTIONS))
    return ranges, enough


@dataclass(frozen=True, slots=True)
class _Borders:
    """Stamps with which accesses that bring values end, and with which waits, loads, asynchronous copies, waits for
    those, and instructions of `RESULT_KINDS` begin.
    """

    loaded: Integers
    waits: Integers
    loads: Integers
    copies: Integers
    copy_waits: Integers
    results: Integers

    @classmethod
    def of(cls, kind: pd.Series, first: Integers, last: Integers) -> _Borders:
        """Those of spans: their kinds, and the stamps with which they begin and end, -1 where there is none."""

        def at(stamps: Integers, *kinds: str) -> Integers:
            those: Integers = stamps[(stamps >= 0) & kind.isin(kinds).to_numpy()]
            return those

        return cls(
            at(last, *LOAD_KINDS), at(first, *WAIT_KINDS), at(first, "load"), at(first, "async_copy"),
            at(first, "async_wait"), at(first, *RESULT_KINDS),
        )  # fmt: skip


class _Keys:
    """Numbers that order the stamps of a launch by track and clock."""

    def __init__(self, stamps: pd.DataFrame) -> None:
        self._low = int(stamps["clock"].min())
        self._range = int(stamps["clock"].max()) - self._low + 1
        self.stamps = self._track(stamps)
        self.keys = self.stamps * self._range + (stamps["clock"].to_numpy() - self._low)

    @staticmethod
    def _track(table: pd.DataFrame) -> Integers:
        track: Integers = table["cta"].to_numpy().astype(np.int64) * (1 << 6) + table["warp"].to_numpy()
        return track

    def of(self, spans: pd.DataFrame, column: str) -> Integers:
        """Keys of the stamps at which spans start or end; -1 where there can be none."""
        clock = spans[column].to_numpy() - self._low
        keys: Integers = self._track(spans) * self._range + clock
        return np.where((clock >= 0) & (clock < self._range), keys, -1)


def _find(spans: pd.DataFrame, column: str, tracks: _Keys) -> Integers:
    """Row among the stamps of the one at which each span starts or ends, or -1."""
    wanted = tracks.of(spans, column)
    place = np.searchsorted(tracks.keys, wanted)
    found = tracks.keys[np.minimum(place, len(tracks.keys) - 1)] == wanted
    return np.where(found, place, -1)


def _by_launch(spans: pd.DataFrame, stamps: pd.DataFrame) -> Iterator[tuple[slice, pd.DataFrame]]:
    """For each launch, its rows of `spans` and its stamps; launches without stamps are left out."""
    of_spans, of_stamps = spans["launch"].to_numpy(), stamps["launch"].to_numpy()
    for launch in np.unique(of_spans):
        begin, end = np.searchsorted(of_stamps, [launch, launch + 1])
        if begin < end:
            rows = slice(*np.searchsorted(of_spans, [launch, launch + 1]))
            yield rows, stamps.iloc[begin:end]

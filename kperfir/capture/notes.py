"""What a reader of a timeline has to know of its launches: which kernels they are of, what their records lack."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kperfir.capture import tables

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kperfir.capture.tables import DecodedLaunch


def kernel_notes(launches: Sequence[DecodedLaunch]) -> Iterator[str]:
    """Which kernels share a name, and what the compiler said, once for each kernel."""
    places: dict[str, dict[str, None]] = {}
    for launch in launches:
        for region in launch.layout.regions[:1]:  # The kernel itself.
            places.setdefault(launch.record.kernel.name, {})[f"{region.file}:{region.line}"] = None
    for name, of_name in places.items():
        if len(of_name) > 1:
            yield f"{name} is the name of {len(of_name)} kernels, which are reported together: {_some(list(of_name))}"
    notes = (f"{launch.record.kernel.name}: {note}" for launch in launches for note in _notes(launch))
    yield from dict.fromkeys(notes)


def _some(places: list[str]) -> str:
    named = 3
    return ", ".join(places[:named]) + (f" and {len(places) - named} more" if len(places) > named else "")


def _notes(launch: DecodedLaunch) -> Iterator[str]:
    if launch.layout.aggregate:
        yield (
            "executions were summed up on the device: there are no single ones, no waits, no flows of asynchronous "
            "work, and no values of marks"
        )
    yield from launch.layout.notes
    if note := launch.record.kernel.facts.get("note"):
        yield str(note)


def launch_notes(launch: DecodedLaunch) -> Iterator[str]:
    """What is not in the records of a launch, and how sure its times are."""
    tracks, ctas = launch.decoded.tracks, launch.decoded.ctas
    where = f"launch {launch.number} of {launch.record.kernel.name}"
    dropped, records = int(tracks["dropped"].sum()), int(tracks["records"].sum())
    if dropped:
        kept = "last" if launch.layout.ring else "first"
        hurt = int(np.count_nonzero(tracks["dropped"]))
        yield (
            f"{where}: {dropped} of {records} records were dropped, in {hurt} of {len(tracks['dropped'])} warps; "
            f"the {kept} ones are kept (raise buffer_bytes, or record fewer regions)"
        )
    orphans = int(tracks["orphan_ends"].sum())
    if orphans:
        yield f"{where}: {orphans} regions ended whose start was overwritten; they are not in the timeline"
    total = launch.record.grid[0] * launch.record.grid[1] * launch.record.grid[2]
    recorded = int(ctas["recorded"].sum())
    if recorded < total:
        without_room = int(launch.record.facts.get("ctas_without_room", 0))
        why = f"; {without_room} had no room (raise TRITON_KPERF_LAUNCH_BYTES)" if without_room else ""
        yield f"{where}: {recorded} of {total} CTAs were recorded{why}"
    warps, running = tables.recording_warps(launch), sum(role.warps for role in launch.layout.roles)
    if 0 < warps < running:
        yield f"{where}: {warps} of {running} warps of a CTA recorded; shares are of their time"
    unfinished = int(np.count_nonzero(ctas["started"] & ~ctas["recorded"].astype(np.bool_)))
    if unfinished:
        yield f"{where}: {unfinished} CTAs started and did not finish recording"
    if int(tables.cta_cycles(launch).max(initial=0)) >= 1 << 32:
        what = "an execution" if launch.layout.aggregate else "a time between two stamps"
        yield f"{where}: a CTA ran for more than 2^32 cycles; {what} of so many would seem shorter by that"
    if launch.fit is not None and launch.fit.uncertainty_ns == float("inf"):
        yield f"{where}: too short for the global timer and the clock rate is not known: 1 ns stands for 1 cycle"

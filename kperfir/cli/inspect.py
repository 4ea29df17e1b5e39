"""`kperfir inspect`: what a .kpf file holds, as it is written, without decoding the buffers."""

from __future__ import annotations

import dataclasses
import json
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kperfir.cli.table import Column, console, count, counted, print_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from kperfir.capture.layout import BufferLayout
    from kperfir.capture.reader import Capture

JSON_VERSION = 1


@click.command("inspect")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--frames", is_flag=True, help="Also show the stamps of each frame.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(file: Path, *, frames: bool, as_json: bool) -> None:
    """Show what a .kpf file holds: chunks, kernels with regions and frames of their layout, launches."""
    from kperfir.capture.reader import Capture

    capture = Capture.open(file)
    contents = describe(capture)
    if as_json:
        click.echo(json.dumps(contents, indent=2))
        return
    out = console()
    _print_file(out, contents)
    for kernel in contents["kernels"]:
        _print_kernel(out, kernel, frames=frames)
    _print_launches(out, contents["launches"])


def describe(capture: Capture) -> dict[str, Any]:
    """Everything but the buffers, JSON-ready."""
    return {
        "kperfir_inspect": JSON_VERSION,
        "file": str(capture.path),
        "file_bytes": capture.path.stat().st_size,
        "format_version": capture.format_version,
        "writer_version": capture.writer_version,
        "ended": capture.ended,
        "notes": capture.notes,
        "process": capture.process,
        "chunks": list(_chunks(capture)),
        "kernels": [
            {"kernel": kernel.id, "name": kernel.name, "facts": kernel.facts, "layout": _layout(kernel.layout)}
            for kernel in capture.kernels
        ],
        "launches": [
            {
                "launch": launch.launch,
                "kernel": launch.kernel.id,
                "name": launch.kernel.name,
                "kernel_launch": launch.kernel_launch,
                "grid": list(launch.grid),
                "stream": launch.stream,
                "ctas_recorded": launch.ctas,
                "cycles": launch.cycles,
                "clock_hz": launch.clock_hz,
                "buffer_bytes": launch.ctas * launch.kernel.layout.cta_bytes,
                "stored_bytes": launch.blob_bytes,
                "laps": len(launch.laps),
                "lap_bytes": sum(lap.blob_bytes for lap in launch.laps),
                "facts": launch.facts,
            }
            for launch in capture.launches
        ],
        "skipped": [
            {"kernel": kernel, "reason": reason, "launches": launches}
            for (kernel, reason), launches in capture.skipped.items()
        ],
    }


def _chunks(capture: Capture) -> Iterator[dict[str, Any]]:
    """The chunks that `Capture.open` has read, and therefore checked."""
    from kperfir.capture import format as kpf

    offset = kpf.FILE_HEADER_BYTES
    end = capture.path.stat().st_size - capture.lost_bytes
    while offset + kpf.CHUNK_HEADER_BYTES <= end:
        header = kpf.unpack_chunk_header(capture.read_bytes(offset, kpf.CHUNK_HEADER_BYTES))
        if header is None:
            return
        kind = header.kind.decode().rstrip("\0")
        yield {"kind": kind, "offset": offset, "meta_bytes": header.meta_bytes, "blob_bytes": header.blob_bytes}
        offset += kpf.CHUNK_HEADER_BYTES + header.meta_bytes + header.blob_bytes


def _layout(layout: BufferLayout) -> dict[str, Any]:
    fields = dataclasses.asdict(layout)
    del fields["text"]
    return fields


def _print_file(out: Console, contents: dict[str, Any]) -> None:
    for note in contents["notes"]:
        out.print(f"note: {note}", style="yellow", markup=False)
    out.print(
        f"{contents['file']}: format {contents['format_version']}, written by kperfir {contents['writer_version']}, "
        f"{counted(contents['file_bytes'], 'byte')}",
        markup=False,
        style="bold",
    )
    for key, value in contents["process"].items():
        text = value if isinstance(value, str) else json.dumps(value)
        out.print(f"  {key}: {text}", markup=False)
    chunks = list(_without_runs_of_laps(contents["chunks"]))
    out.print()
    print_table(
        out,
        [
            Column("chunk", [chunk["kind"] for chunk in chunks], right=False),
            Column("offset", [count(chunk["offset"]) for chunk in chunks]),
            Column("meta bytes", [count(chunk["meta_bytes"]) for chunk in chunks]),
            Column("blob bytes", [count(chunk["blob_bytes"]) for chunk in chunks]),
        ],
    )


def _without_runs_of_laps(chunks: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """`chunks`, with one row for each run of laps: there may be thousands."""
    for kind, run in groupby(chunks, lambda chunk: chunk["kind"]):
        members = list(run)
        if kind != "LAP" or len(members) == 1:
            yield from members
            continue
        sums = {key: sum(chunk[key] for chunk in members) for key in ("meta_bytes", "blob_bytes")}
        yield {"kind": f"LAP x {len(members)}", "offset": members[0]["offset"], **sums}


def _print_kernel(out: Console, kernel: dict[str, Any], *, frames: bool) -> None:
    layout = kernel["layout"]
    roles = ", ".join(f"{role['name']} {role['warps']}" for role in layout["roles"])
    out.print()
    out.print(f"kernel {kernel['kernel']}: {kernel['name']}", style="bold", markup=False)
    out.print(
        f"  {layout['target']}, {layout['strategy']}, {layout['buffer']} buffer, "
        f"{counted(layout['total_warps'], 'warp')} ({roles}), {layout['words_per_warp']} words a warp, "
        f"{layout['cta_bytes']} bytes a CTA, "
        f"layout {layout['hash']:#010x}",
        markup=False,
    )
    for name, value in kernel["facts"].items():
        out.print(f"  {name}: {value if isinstance(value, str) else json.dumps(value)}", markup=False)
    regions = layout["regions"]
    depths = _depths(regions)
    out.print()
    print_table(
        out,
        [
            Column("region", [str(region["id"]) for region in regions]),
            Column("name", ["  " * depths[region["id"]] + region["name"] for region in regions], right=False),
            Column("kind", [region["kind"] for region in regions], right=False, rank=1),
            Column("op", [region["op"] for region in regions], right=False, rank=3),
            Column("source", [_place(region) for region in regions], right=False, rank=2),
        ],
    )
    stamp_count = sum(len(frame["stamps"]) for frame in layout["frames"])
    out.print(f"{counted(len(layout['frames']), 'frame')}, {counted(stamp_count, 'stamp')}")
    if frames:
        stamps = [(frame, slot) for frame in layout["frames"] for slot in range(len(frame["stamps"]))]
        print_table(
            out,
            [
                Column("frame", [str(frame["id"]) for frame, _ in stamps]),
                Column("slot", [str(slot) for _, slot in stamps]),
                Column("events", [_events(regions, frame, slot) for frame, slot in stamps], right=False),
            ],
        )


def _depths(regions: list[dict[str, Any]]) -> dict[int, int]:
    depths = {-1: -1}
    for region in regions:  # A region comes after its parent.
        depths[region["id"]] = depths[region["parent"]] + 1
    return depths


def _place(region: dict[str, Any]) -> str:
    return f"{region['file']}:{region['line']}" if region["line"] > 0 else ""


def _events(regions: list[dict[str, Any]], frame: dict[str, Any], slot: int) -> str:
    return ", ".join(f"{event['edge']} {regions[event['region']]['name']}" for event in frame["stamps"][slot])


def _print_launches(out: Console, launches: list[dict[str, Any]]) -> None:
    if not launches:
        return
    out.print()
    print_table(
        out,
        [
            Column("launch", [str(launch["launch"]) for launch in launches]),
            Column("kernel", [launch["name"] for launch in launches], right=False),
            Column("grid", ["x".join(map(str, launch["grid"])) for launch in launches], right=False),
            Column("CTAs recorded", [count(launch["ctas_recorded"]) for launch in launches], rank=1),
            Column("cycles", [_known(launch["cycles"]) for launch in launches], rank=3),
            Column("buffer bytes", [count(launch["buffer_bytes"]) for launch in launches], rank=2),
            Column("stored bytes", [count(launch["stored_bytes"]) for launch in launches], rank=4),
            Column("laps", [count(launch["laps"]) for launch in launches], rank=4),
        ],
    )


def _known(value: float | None) -> str:
    return "-" if value is None else count(value)

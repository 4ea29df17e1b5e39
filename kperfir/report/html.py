"""The report as one HTML file that opens anywhere, without a network.

    write_page(timeline, Path("report.html"))

This module puts data and the files in page/ together; what is shown and how is theirs. Names and source text come from
users' code: here they are JSON in which no tag can begin, and page/ makes text nodes of them, never markup. A content
security policy names the script and the style by their digests, so that nothing else would run, and nothing is loaded.
"""

from __future__ import annotations

import base64
import hashlib
import json
from importlib import resources
from typing import TYPE_CHECKING, Any

from kperfir.analysis.registry import ANALYSES
from kperfir.errors import ExportError
from kperfir.export.drawing import launch_drawings
from kperfir.report.code import annotated_sources
from kperfir.report.colours import COLOURS
from kperfir.report.model import Request, build, records
from kperfir.report.spans import RegionTable, pack_launch

if TYPE_CHECKING:
    from pathlib import Path

    from kperfir.timeline import Timeline

MOST_SPANS = 2_000_000  # A page with more takes too long to open.
SCRIPTS = (
    "dom.js",
    "data.js",
    "colours.js",
    "layout.js",
    "draw.js",
    "timeline.js",
    "tables.js",
    "source.js",
    "main.js",
)


def write_page(timeline: Timeline, path: Path, kernels: tuple[str, ...] | None = None) -> None:
    """Write the report on `kernels` (None: all) to `path`.

    Raises:
        ExportError: ``write-failed``.
    """
    text = page(timeline, kernels)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ExportError(
            "write-failed",
            what="the report cannot be written",
            where=str(path),
            found=error.strerror or str(error),
            fix="give a file in a folder that exists and can be written to",
        ) from error


def page(timeline: Timeline, kernels: tuple[str, ...] | None = None) -> str:
    """The report as a document."""
    report = build(timeline, Request(kernels=kernels))
    shown = {kernel["kernel"] for kernel in report["kernels"]}
    regions, payloads = RegionTable(), list[str]()
    launches: list[dict[str, Any]] = []
    spans, left_out = 0, 0
    details = timeline.details
    for drawing in launch_drawings(details):
        if str(drawing.launch["kernel"]) not in shown:
            continue
        spans += len(drawing.spans)
        if launches and spans > MOST_SPANS:
            left_out += 1
            continue
        packed = pack_launch(drawing, regions)
        launches.append({"launch": int(drawing.launch["launch"]), **packed.header})
        payloads.append(packed.payload)
    if details.sample:
        report["notes"] = [
            f"the timeline, and which work hides behind which, are of {details.sample.described}; the tables of all "
            "(`kperfir export` writes all of the timeline)",
            *report["notes"],
        ]
    if left_out:
        report["notes"] = [
            *report["notes"],
            f"the timeline has room for {MOST_SPANS:,} spans: {left_out} later launches are in the tables only "
            "(--kernel chooses what is shown; `kperfir export` writes all of it)",
        ]
    data = {
        "report": report,
        "device": _device(timeline),
        "regions": regions.listed,
        "colours": COLOURS,
        "timeline": launches,
        "overlap": _overlap(timeline, shown),
        "waves": records(ANALYSES["waves"].run(timeline)),
        "sources": annotated_sources(timeline, [kernel["kernel"] for kernel in report["kernels"]]),
    }
    return _document(data, payloads)


def _overlap(timeline: Timeline, shown: set[str]) -> list[dict[str, Any]]:
    """For each kernel: ``activities``, their ``cycles`` and ``alone``, and ``shares``, a row per activity."""
    table = ANALYSES["overlap"].run(timeline.details)
    found = []
    for kernel, rows in table[table["kernel"].isin(shown)].groupby("kernel", sort=False):
        names = rows["activity"].tolist()
        found.append(
            {
                "kernel": str(kernel),
                "activities": names,
                "cycles": rows["cycles"].astype(int).tolist(),
                "alone": rows["alone"].tolist(),
                "shares": rows[names].fillna(0.0).to_numpy().tolist(),
            }
        )
    return found


def _device(timeline: Timeline) -> dict[str, Any]:
    wanted = ("host", "device", "chip", "simulated", "versions")
    return {key: timeline.metadata[key] for key in wanted if key in timeline.metadata}


def _document(data: dict[str, Any], payloads: list[str]) -> str:
    files = resources.files("kperfir.report") / "page"

    def text(name: str) -> str:
        return (files / name).read_text(encoding="utf-8")

    script = '"use strict";\n(() => {\n' + "\n".join(text(name) for name in SCRIPTS) + "\n})();\n"
    style = text("style.css")
    policy = f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; base-uri 'none'"
    blocks = [f'<script type="application/json" id="data">{_inert(data)}</script>']
    blocks += [f'<script type="text/plain" id="spans-{i}">{payload}</script>' for i, payload in enumerate(payloads)]
    parts = {"POLICY": policy, "STYLE": style, "DATA": "\n".join(blocks), "SCRIPT": script}
    pieces = text("page.html").split("%%")  # Split, not replaced: data may hold anything.
    return "".join(parts[piece] if number % 2 else piece for number, piece in enumerate(pieces))


def _inert(data: dict[str, Any]) -> str:
    """JSON in which no tag, comment or entity can begin."""
    plain = json.dumps(data, separators=(",", ":"))
    return plain.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

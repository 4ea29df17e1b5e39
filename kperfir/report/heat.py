"""How hot each source line of a kernel is, and the text around it.

Heat is self time: what the warps spent in the regions of a line and not in regions nested inside. Its share is of the
CTAs' time, as in the tables.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kperfir.report.source import SourceReader

if TYPE_CHECKING:
    from kperfir.timeline import Timeline

_AROUND = 3  # Lines of text shown on each side of a line that has heat.


def source_heat(timeline: Timeline, kernels: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each kernel and file: ``kernel, file, missing`` (why there is no text), ``changed`` and ``lines``.

    A line has ``line, text, self_share, wait_share, count, kinds``; one without heat has null for the last four.
    ``changed`` says that the file is newer than a capture, so lines may have moved.
    """
    from kperfir.analysis.regions import kernel_cycles_of, region_statistics

    spans = timeline.spans
    statistics = region_statistics(spans, kernel_cycles_of(timeline.summary()), "line")
    kinds = spans.drop_duplicates(["kernel", "file", "line", "kind"])[["kernel", "file", "line", "kind"]]
    written = min((capture.path.stat().st_mtime for capture in timeline.captures), default=0.0)
    reader = SourceReader()
    found = []
    for kernel in kernels:
        of_kernel = statistics[(statistics["kernel"] == kernel["kernel"]) & (statistics["line"] > 0)]
        kinds_here = kinds[kinds["kernel"] == kernel["kernel"]]
        for file in dict.fromkeys(of_kernel["file"].astype(str)):
            hot = {int(row["line"]): row for row in of_kernel[of_kernel["file"] == file].to_dict("records")}
            at = kinds_here[kinds_here["file"] == file].groupby("line")["kind"]
            names = {int(line): [str(kind) for kind in of_line] for line, of_line in at}
            text, missing = reader.lines(file)
            lines = [_line(number, text, hot.get(number), names) for number in _shown(sorted(hot), text)]
            newer = bool(text) and Path(file).stat().st_mtime > written
            found.append(
                {
                    "kernel": kernel["kernel"],
                    "file": file,
                    "missing": missing,
                    "changed": f"{datetime.fromtimestamp(Path(file).stat().st_mtime):%Y-%m-%d %H:%M}" if newer else "",
                    "lines": lines,
                }
            )
    return found


def _shown(hot: list[int], text: list[str]) -> list[int]:
    """The lines to show: hot ones and those around them that are not empty at an edge; hot ones alone without text."""
    near = {number + step for number in hot for step in range(-_AROUND, _AROUND + 1)}
    shown = {number for number in near if 1 <= number <= len(text)} | set(hot)
    for number in sorted(shown) + sorted(shown, reverse=True):  # From both ends of every stretch.
        edge = number - 1 not in shown or number + 1 not in shown
        if edge and number not in hot and not text[number - 1].strip():
            shown.discard(number)
    return sorted(shown)


def _line(number: int, text: list[str], row: dict[str, Any] | None, kinds: dict[int, list[str]]) -> dict[str, Any]:
    line = {"line": number, "text": text[number - 1] if number <= len(text) else ""}
    if row is None:
        return line | dict.fromkeys(("self_share", "wait_share", "count", "kinds"))
    shares = {key: row[key] for key in ("self_share", "wait_share")}
    return line | shares | {"count": int(row["count"]), "kinds": kinds.get(number, [])}

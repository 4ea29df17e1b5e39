"""The source lines of a kernel with their heat, and the text around them.

What heat is says `kperfir.analysis.heat`; this module finds the text, and what may be wrong with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kperfir.source import SourceReader, changed_since

if TYPE_CHECKING:
    import pandas as pd

    from kperfir.timeline import Timeline

_AROUND = 3  # Lines of text shown on each side of a line that has heat.


def annotated_sources(timeline: Timeline, kernels: list[str]) -> list[dict[str, Any]]:
    """For each kernel and file: ``kernel, file, missing`` (why there is no text), ``changed`` and ``lines``.

    A line has ``line, text, heat, wait, count, kinds``, wait as a share of the kernel's time like heat; a line without
    heat has null for the last four. ``changed`` says when the file was changed, if that was after a capture.
    """
    from kperfir.analysis.heat import source_heat

    heat = source_heat(timeline.totals.rows)
    whole = heat.groupby("kernel")["self_cycles"].transform("sum")
    heat = heat.assign(wait=(heat["wait_cycles"] / whole.where(whole > 0)).fillna(0.0))
    written = timeline.written
    reader = SourceReader()
    return [
        _file(kernel, str(file), rows, reader, written)
        for kernel in kernels
        for file, rows in heat[(heat["kernel"] == kernel) & (heat["line"] > 0)].groupby("file", sort=False)
    ]


def _file(kernel: str, file: str, rows: pd.DataFrame, reader: SourceReader, written: float) -> dict[str, Any]:
    text, missing = reader.lines(file)
    hot = {int(row["line"]): row for row in rows.to_dict("records")}
    return {
        "kernel": kernel,
        "file": file,
        "missing": missing,
        "changed": changed_since(file, written) if text else "",
        "lines": [_line(number, text, hot.get(number)) for number in _shown(sorted(hot), text)],
    }


def _shown(hot: list[int], text: list[str]) -> list[int]:
    """The lines to show: hot ones, and those around them up to an empty line; hot ones alone where there is no text."""
    shown = set(hot)
    for number in hot:
        for direction in (-1, 1):
            for near in range(number + direction, number + direction * (_AROUND + 1), direction):
                if not 1 <= near <= len(text) or not text[near - 1].strip():
                    break
                shown.add(near)
    return sorted(shown)


def _line(number: int, text: list[str], row: dict[str, Any] | None) -> dict[str, Any]:
    line = {"line": number, "text": text[number - 1] if number <= len(text) else ""}
    if row is None:
        return line | dict.fromkeys(("heat", "wait", "count", "kinds"))
    return line | {"heat": row["heat"], "wait": row["wait"], "count": int(row["count"]), "kinds": row["kinds"]}

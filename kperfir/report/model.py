"""What a report says, as JSON-ready data, whether it is printed, dumped or drawn.

    report = build(timeline, Request(by="line"))

docs/user-guide.md lists the fields, report.schema.json describes them to programs. Order is that of the program or of
the figure asked for, never that of a hash, so the same capture gives the same text.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kperfir.source import SourceReader

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pandas as pd

    from kperfir.timeline import Timeline

JSON_VERSION = 1
CAUTION = "times are those of the instrumented kernel: they say where time goes, and are no benchmark of the plain one"

SORTS = {
    "program": [],
    "total": ["total_cycles"],
    "self": ["self_cycles"],
    "mean": ["mean_cycles"],
    "p95": ["p95_cycles"],
    "count": ["count"],
    "spread": ["warp_spread"],
}


@dataclass(frozen=True, slots=True)
class Request:
    """What to report.

    Attributes:
        by, sort: What a row stands for, and the order of rows.
        kernels: Names to show; None: all.
        limit: Rows per kernel at most; None: all.
        findings: Ask the advisor, which takes longer than the rest.
    """

    by: str = "region"
    sort: str = "program"
    kernels: tuple[str, ...] | None = None
    limit: int | None = None
    findings: bool = True


def build(timeline: Timeline, request: Request) -> dict[str, Any]:
    """The report as JSON-ready data."""
    reader = SourceReader()
    names = kernel_names(timeline) if request.kernels is None else request.kernels
    tables = _of_sums(timeline, request) if timeline.has_only_sums else _of_totals(timeline, request, names)
    occupancy, lag, waits, advice = tables.occupancy, tables.lag, tables.waits, tables.advice
    kernels = []
    for name in names:
        rows = tables.statistics[tables.statistics["kernel"] == name]
        rows = rows if timeline.has_only_sums else _with_values(rows, timeline.mark_values, request.by)
        if SORTS[request.sort]:
            rows = rows.sort_values(SORTS[request.sort], ascending=False, kind="stable", na_position="last")
        kernels.append(
            {
                "kernel": name,
                "launches": records(timeline.launches[timeline.launches["kernel"] == name]),
                "sms": records(occupancy[occupancy["kernel"] == name]),
                "waits": {level: _of_kernel(table, name) for level, table in waits.items()},
                "mean_warp_lag_cycles": _known(lag.loc[lag["kernel"] == name, "lag_cycles"].mean()),
                **({"findings": advice(name)} if request.findings else {}),
                "rows_total": len(rows),
                "rows": [_with_source(row, reader) for row in records(rows.head(request.limit or len(rows)))],
            }
        )
    return {
        "kperfir_report": JSON_VERSION,
        "files": timeline.metadata["files"],
        "notes": [*tables.notes, *timeline.notes],
        "only_sums": timeline.has_only_sums,
        "caution": CAUTION,
        "bounds": _bounds(timeline),
        "dropped": int(timeline.launches["dropped"].sum()),
        "by": request.by,
        "sort": request.sort,
        "kernels": kernels,
    }


@dataclass(frozen=True, slots=True)
class _Tables:
    """What a report is made of; `advice` gives the findings about a kernel, `notes` are about those."""

    statistics: pd.DataFrame
    occupancy: pd.DataFrame
    lag: pd.DataFrame
    waits: dict[str, pd.DataFrame]
    advice: Callable[[str], list[dict[str, Any]]]
    notes: Sequence[str] = ()


def _of_totals(timeline: Timeline, request: Request, names: Sequence[str]) -> _Tables:
    from kperfir.advice.advise import advise, sample_note
    from kperfir.analysis.correction import with_corrections
    from kperfir.analysis.occupancy import sm_occupancy
    from kperfir.analysis.regions import totals_statistics
    from kperfir.analysis.wait_time import LEVELS, rolled_up, wait_of_warps
    from kperfir.analysis.warp_lag import warp_lag

    totals = timeline.totals
    statistics = totals_statistics(totals, timeline.kernel_cycles, request.by)
    per_warp = wait_of_warps(totals.rows)
    advice = advise(timeline, names) if request.findings else None
    return _Tables(
        with_corrections(statistics, timeline, request.by),
        sm_occupancy(totals.rows),
        warp_lag(totals.rows),
        {level: rolled_up(per_warp, level) for level in LEVELS},
        lambda kernel: [finding.to_dict() for finding in advice.of_kernel(kernel)] if advice else [],
        sample_note(timeline) if request.findings else (),
    )


def _of_sums(timeline: Timeline, request: Request) -> _Tables:
    """Sums know nothing of when CTAs ran, and nothing that advice could be based on."""
    import pandas as pd

    from kperfir.analysis.sums import sums_statistics
    from kperfir.analysis.wait_time import LEVELS

    statistics = sums_statistics(timeline.aggregates, timeline.kernel_cycles, request.by)
    nothing = pd.DataFrame({"kernel": [], "lag_cycles": []})
    return _Tables(statistics, nothing, nothing, dict.fromkeys(LEVELS, nothing), lambda _: [])


def kernel_names(timeline: Timeline) -> list[str]:
    """The kernels that were launched, each once, in order."""
    return list(dict.fromkeys(timeline.launches["kernel"].astype(str)))


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as plain values; what is not known is null."""
    rows: list[dict[str, Any]] = json.loads(frame.to_json(orient="records", double_precision=15))
    return rows


def _of_kernel(table: pd.DataFrame, kernel: str) -> list[dict[str, Any]]:
    return records(table[table["kernel"] == kernel].drop(columns="kernel"))


def _with_values(rows: pd.DataFrame, marks: pd.DataFrame, by: str) -> pd.DataFrame:
    """`rows` with the least and the largest value of each mark that carries one."""
    if by != "region" or rows.empty or marks.empty:
        return rows
    marks = marks[marks["kernel"] == rows["kernel"].iloc[0]]
    values = marks.groupby("name")["value"].agg([min, max])
    names = rows["name"].astype(str)
    return rows.assign(value_min=names.map(values["min"]), value_max=names.map(values["max"]))


def _bounds(timeline: Timeline) -> list[dict[str, int]]:
    """How much was to be kept, as the captures say; one entry where they agree."""
    bounds: list[dict[str, int]] = []
    for capture in timeline.captures:
        of_capture = capture.process.get("bounds")
        if of_capture and of_capture not in bounds:
            bounds.append(of_capture)
    return bounds


def _known(value: float) -> float | None:
    return None if value != value else float(value)


def _with_source(row: dict[str, Any], reader: SourceReader) -> dict[str, Any]:
    if row.get("line", 0) > 0:
        row["source"] = reader.line(row["file"], row["line"]).strip()
    return row

"""What a notebook shows of a timeline: notes and a table per kernel, as a piece of HTML without scripts.

Names come from users' code; all text is escaped.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from kperfir.report.model import CAUTION, kernel_names

if TYPE_CHECKING:
    from kperfir.timeline import Timeline

_MOST_ROWS = 40
_COLUMNS = ("count", "total", "share", "self", "wait", "mean", "p95")


def overview(timeline: Timeline) -> str:
    """Notes, and for each kernel the regions in program order, the first forty of them."""
    notes = "".join(f"<li>{escape(note)}</li>" for note in [*timeline.notes, CAUTION])
    summary, launches = timeline.summary(), timeline.launches
    executed = timeline.aggregates if timeline.has_only_sums else timeline.spans
    depth = executed.groupby(["kernel", "name", "kind"], observed=True)["depth"].min()
    parts = [f'<div class="kperfir"><ul>{notes}</ul>']
    for kernel in kernel_names(timeline):
        rows = summary[summary["kernel"] == kernel]
        count = int((launches["kernel"] == kernel).sum())
        parts.append(f"<p><b>{escape(kernel)}</b> · {count} launch{'es' if count != 1 else ''}</p><table><thead><tr>")
        parts.append('<th style="text-align:left">region</th>' + "".join(f"<th>{name}</th>" for name in _COLUMNS))
        parts.append("</tr></thead><tbody>")
        for row in rows.head(_MOST_ROWS).to_dict("records"):
            parts.append(_row(row, int(depth.get((kernel, row["name"], row["kind"]), 0))))
        hidden = len(rows) - _MOST_ROWS
        more = f"<p>{hidden} more regions: <code>timeline.summary()</code></p>" if hidden > 0 else ""
        parts.append(f"</tbody></table>{more}")
    return "".join([*parts, "</div>"])


def _row(row: dict[str, Any], depth: int) -> str:
    cells = [
        f"{row['count']:,}", f"{row['total_cycles']:,}", f"{row['share']:.1%}", f"{row['self_share']:.1%}",
        f"{row['wait_share']:.1%}" if row["wait_cycles"] > 0 else "",  # Of sums it is not known.
        _cycles(row["mean_cycles"]), _cycles(row["p95_cycles"]),
    ]  # fmt: skip
    name = f'<td style="text-align:left;padding-left:{depth}em">{escape(str(row["name"]))}</td>'
    return f"<tr>{name}{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _cycles(value: float) -> str:
    return "-" if value != value else f"{round(value):,}"

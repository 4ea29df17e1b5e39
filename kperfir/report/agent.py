"""The report in under 2 kB of text, for a reader that pays by the word.

First what makes figures mean less than they seem to, then the findings with evidence, place, gain and check, then where
the time goes. What does not fit is left out, the least telling first, and counted.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

MOST_BYTES = 2000
_LONGEST = 200  # Characters of one text of a finding.
_NAME = 60
_NOTES = 3
# Notes that the lines above say, or that nobody needs who reads no nanoseconds.
_SAID_ELSEWHERE = ("simulated:", "times in ns")
_NO_ADVICE = "Sums alone were recorded: for advice, record single executions (TRITON_KPERF_STRATEGY=saturate)."


def digest(report: dict[str, Any]) -> str:
    """Text of at most `MOST_BYTES` bytes about a report of `kperfir.report.model.build`, by region."""
    tail_room = 120
    lines = _Lines(MOST_BYTES - tail_room)
    kernels = report["kernels"]
    files = ", ".join(Path(file).name for file in report["files"])
    simulated = any(launch["simulated"] for kernel in kernels for launch in kernel["launches"])
    where = "a simulated GPU's model of time" if simulated else "a GPU"
    recorded = f"recorded on {where}" if kernels else "in which no launch was recorded"
    lines.add(_cut(f"kperfir report of {files}, {recorded}.", _LONGEST))
    lines.add(f"Caution: {report['caution']}.")
    for note in [note for note in report["notes"] if not note.startswith(_SAID_ELSEWHERE)][:_NOTES]:
        lines.add(_cut(f"Caution: {note}.", _LONGEST))
    if report["dropped"]:
        lines.add(f"Caution: {report['dropped']} records were dropped; figures are of what is left.")
    findings = [finding for kernel in kernels for finding in kernel["findings"]]
    findings.sort(key=lambda finding: -(finding["speedup"] or 0.0))
    told = 0
    for number, finding in enumerate(findings, 1):
        if not lines.add_all(_finding(number, finding)):
            break
        told += 1
    if kernels and not findings:
        lines.add(_NO_ADVICE if report["only_sums"] else "No rule of the advisor applies.")
    shown = 0
    for kernel in kernels:
        if not lines.add_all(_kernel(kernel)):
            break
        shown += 1
    left, hidden = len(findings) - told, len(kernels) - shown
    more = f"{_counted(left, 'more finding', 'more findings')}: kperfir advise. " if left else ""
    more += f"{_counted(hidden, 'more kernel', 'more kernels')}. " if hidden else ""
    return "\n".join([*lines.listed, f"{more}All figures: kperfir report --json."]) + "\n"


class _Lines:
    """Lines as long as there is room."""

    def __init__(self, room: int) -> None:
        self.listed: list[str] = []
        self.room = room

    def add(self, line: str) -> bool:
        return self.add_all([line])

    def add_all(self, lines: list[str]) -> bool:
        """Add all of `lines`, or none."""
        size = sum(len(line.encode(errors="replace")) + 1 for line in lines)
        if size > self.room:
            return False
        self.room -= size
        self.listed += lines
        return True


def _finding(number: int, finding: dict[str, Any]) -> list[str]:
    bound = f", at most {finding['bound']:.2f}x" if finding["bound"] is not None else ""
    places = [
        f"{_cut(place['region'], _NAME)} ({_place(place)}) {place['share'] or 0:.1%}" for place in finding["places"][:2]
    ]
    figures = [f"{figure['name']} {_figure(figure)}" for figure in finding["figures"][:5]]
    return [
        f"{number}. {_cut(finding['kernel'], _NAME)}: {_cut(finding['title'], _LONGEST)} [{finding['rule']}]",
        f"   gain: {finding['speedup'] or 1.0:.2f}x expected{bound}",
        f"   where: {'; '.join(places) or 'the kernel'}",
        f"   evidence: {_cut(', '.join(figures), _LONGEST)}",
        f"   change: {_cut(finding['change']['what'], _LONGEST)}",
        f"   verify: {_cut(finding['verify'], _LONGEST)}",
    ]


def _kernel(kernel: dict[str, Any]) -> list[str]:
    (all_warps,) = kernel["waits"]["kernel"] or [None]
    wait = all_warps["wait_cycles"] / all_warps["cycles"] if all_warps and all_warps["cycles"] else 0.0
    waiting = f" warps wait {wait:.1%} of the time;" if all_warps else ""
    launches = kernel["launches"]
    ctas, total = (sum(launch[key] for launch in launches) for key in ("ctas_recorded", "ctas_total"))
    of_all = "" if ctas == total else f" of {total}"
    rows = sorted(kernel["rows"], key=lambda row: -row["self_cycles"])[:4]
    parts = [f"{_cut(row['name'], _NAME)} {row['self_share'] or 0:.1%}" for row in rows]
    return [
        f"{_cut(kernel['kernel'], _NAME)}: {_counted(len(launches), 'launch', 'launches')},"
        f" {_counted(ctas, 'CTA', 'CTAs')}{of_all},{waiting}"
        f" most self time: {', '.join(parts)}"
    ]


def _place(place: dict[str, Any]) -> str:
    return f"{_cut(Path(place['file']).name, _NAME)}:{place['line']}" if place["line"] > 0 else "no source line"


def _figure(figure: dict[str, Any]) -> str:
    value = figure["value"]
    if value is None:
        return "unknown"
    return f"{value:.1%}" if figure["unit"] == "share" else f"{value:,.4g} {figure['unit']}".removesuffix(" count")


def _counted(number: int, noun: str, nouns: str) -> str:
    return f"{number} {noun if number == 1 else nouns}"


def _cut(text: str, most: int) -> str:
    one_line = " ".join(text.split())
    return one_line if len(one_line) <= most else one_line[: most - 1] + "…"

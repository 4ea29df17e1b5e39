"""The time of each warp of a CTA cut into pieces, each in its innermost region, and what had to end before each could.

    pieces = cut(spans of a CTA)
    edges = dependencies(pieces, flows of the CTA)

Four kinds of edges: program order; a wait and the issue of what it waited for (`Timeline.flows`); a barrier and what
each warp did before it; and, where an mbarrier wait has no flow, the last work of another role that ended during the
wait (inferred: arrivals are not recorded).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kperfir.analysis.bubbles import IDLE_CYCLES
from kperfir.analysis.wait_time import WAIT_KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd

    Turn = tuple[str, str, int]


@dataclass(slots=True)
class Piece:
    """A stretch of a warp in one region. `row` is its row of the spans; `before` and `after` number its neighbours."""

    warp: int
    role: str
    row: int
    kind: str
    name: str
    start: int
    end: int
    before: int = -1
    after: int = -1

    @property
    def waited(self) -> bool:
        """Whether it is a wait that did not find what it waited for."""
        return self.kind in WAIT_KINDS and self.end - self.start > IDLE_CYCLES


@dataclass(frozen=True, slots=True)
class Edge:
    """`target` cannot end earlier than `lag` cycles after `source` ended."""

    source: int
    target: int
    lag: int
    via: str


def cut(spans: pd.DataFrame) -> list[Piece]:
    """Pieces of a CTA, those of a warp in order of time; what no region covers is in none.

    Args:
        spans: Rows of one CTA of `Timeline.spans`, with their index.
    """
    pieces: list[Piece] = []
    for warp, own in spans.groupby("warp", sort=True):
        columns = (own.index, own["role"], own["kind"], own["name"], own["start_cycles"], own["end_cycles"])
        first = len(pieces)
        pieces += _of_warp(int(warp), list(zip(*(column.tolist() for column in columns), strict=True)))
        for number in range(first, len(pieces)):
            pieces[number].before = number - 1 if number > first else -1
            pieces[number].after = number + 1 if number + 1 < len(pieces) else -1
    return pieces


def _of_warp(warp: int, rows: list[tuple[int, str, str, str, int, int]]) -> list[Piece]:
    pieces: list[Piece] = []
    open_rows: list[tuple[int, str, str, str, int, int]] = []
    now = 0

    def advance(until: int) -> None:
        nonlocal now
        while open_rows:
            row, role, kind, name, _, end = open_rows[-1]
            stop = min(end, until)
            # A wait is kept even if it takes no time: edges lead to it.
            if stop > now or (kind in WAIT_KINDS and stop == end):
                pieces.append(Piece(warp, role, row, kind, name, min(now, stop), stop))
            now = max(now, stop)
            if end > until:
                return
            open_rows.pop()

    for row in rows:
        advance(row[4])
        now = row[4]
        if row[2] != "mark":
            open_rows.append(row)
    if open_rows:
        advance(max(row[5] for row in open_rows))
    return pieces


def dependencies(pieces: list[Piece], flows: pd.DataFrame) -> list[Edge]:
    """All edges but those of program order.

    Args:
        pieces: As `cut` gives them.
        flows: Rows of the CTA of `Timeline.flows`.
    """
    last_of_row = {piece.row: number for number, piece in enumerate(pieces)}
    edges = list(_flow_edges(pieces, flows, last_of_row))
    edges += _edges_of_peers(pieces, edges)
    caused = {edge.target for edge in edges}
    edges += _barrier_edges(pieces)
    edges += _arrival_edges(pieces, caused)
    return edges


def _flow_edges(pieces: list[Piece], flows: pd.DataFrame, last_of_row: dict[int, int]) -> Iterable[Edge]:
    """The lag of work that was complete before its wait began is not known: it is the least that was seen."""
    pairs = [
        (last_of_row[source], last_of_row[target])
        for source, target in zip(flows["from_span"].tolist(), flows["to_span"].tolist(), strict=True)
        if source in last_of_row and target in last_of_row
    ]
    lags = [max(0, pieces[target].end - pieces[source].end) for source, target in pairs]
    least: dict[str, int] = {}
    for (source, _), lag in zip(pairs, lags, strict=True):
        name = pieces[source].name
        least[name] = min(least.get(name, lag), lag)
    for (source, target), lag in zip(pairs, lags, strict=True):
        waited = pieces[target].waited
        yield Edge(source, target, lag if waited else min(lag, least[pieces[source].name]), pieces[source].kind)


def _edges_of_peers(pieces: list[Piece], edges: list[Edge]) -> list[Edge]:
    """Flows lead to the first warp of a role; its other warps wait for the same in the same turn."""
    meetings, turn_of = _turns(pieces, "mbarrier_wait")
    caused = {edge.target for edge in edges}
    return [
        Edge(edge.source, peer, max(0, pieces[peer].end - pieces[edge.source].end), edge.via)
        for edge in edges
        if edge.target in turn_of
        for peer in meetings[turn_of[edge.target]]
        if peer not in caused
    ]


def _turns(pieces: list[Piece], kind: str) -> tuple[dict[Turn, list[int]], dict[int, Turn]]:
    """Pieces of a kind that warps of a role go through in the same turn, and the turn of each."""
    meetings: dict[Turn, list[int]] = {}
    turn_of: dict[int, Turn] = {}
    seen: dict[tuple[int, str], int] = {}
    for number, piece in enumerate(pieces):
        if piece.kind == kind:
            turn = seen.get((piece.warp, piece.name), 0)
            seen[piece.warp, piece.name] = turn + 1
            turn_of[number] = (piece.role, piece.name, turn)
            meetings.setdefault(turn_of[number], []).append(number)
    return meetings, turn_of


def _barrier_edges(pieces: list[Piece]) -> list[Edge]:
    """From what each warp did before a barrier to the barrier's end in each warp that takes part."""
    meetings, _ = _turns(pieces, "barrier")
    edges = []
    for members in meetings.values():
        last = max(pieces[number].start for number in members)
        lag = max(0, min(pieces[number].end for number in members) - last)
        edges += [
            Edge(pieces[arrived].before, number, lag, "barrier")
            for arrived in members
            for number in members
            if arrived != number and pieces[arrived].before >= 0
        ]
    return edges


def _arrival_edges(pieces: list[Piece], caused: set[int]) -> list[Edge]:
    works = sorted(
        (piece.end, number)
        for number, piece in enumerate(pieces)
        if piece.kind not in WAIT_KINDS and piece.end > piece.start
    )
    edges = []
    place = 0
    for number in sorted(range(len(pieces)), key=lambda number: pieces[number].end):
        piece = pieces[number]
        while place < len(works) and works[place][0] <= piece.end:
            place += 1
        if piece.kind != "mbarrier_wait" or not piece.waited or number in caused:
            continue
        for earlier in range(place - 1, -1, -1):
            end, work = works[earlier]
            if end <= piece.start:
                break
            if pieces[work].role != piece.role:
                edges.append(Edge(work, number, piece.end - end, "arrival"))
                break
    return edges

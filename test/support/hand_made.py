"""Timelines written down by hand, so that the right answer of an analysis can be worked out on paper.

    timeline = hand_made([
        Warp([at("kernel", 0, 100, at("load", 10, 30, line=4, tag="a"), at("async_wait", 40, 60, tag="b"))]),
    ], arrows=[("a", "b")])

A region is called after its kind and line, as the compiler does it. Cycles are those of the SM.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from kperfir.capture.accesses import build_accesses
from kperfir.capture.flows import FLOW_COLUMNS
from support.toy_timeline import SPAN_COLUMNS, SPAN_DTYPES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

CLOCK_HZ = 1e9  # A cycle is a nanosecond.
RECORD_BYTES = 1024  # Of shared memory, for records.


@dataclass(frozen=True)
class Node:
    """An execution of a region and those inside it. `tag` names it for `arrows` and for `row_of`."""

    kind: str
    start: int
    end: int
    children: tuple[Node, ...]
    line: int
    iteration: int
    tag: str
    complete: bool
    label: str


def at(
    kind: str, start: int, end: int, *children: Node, line: int = 1, iteration: int = -1, tag: str = "",
    complete: bool = True, label: str = "",
) -> Node:  # fmt: skip
    """A region from `start` to `end` around `children`."""
    return Node(kind, start, end, children, line, iteration, tag, complete, label)


def loop(start: int, bodies: Sequence[tuple[int, Sequence[Node]]], *, line: int = 2) -> Node:
    """A loop whose iterations follow each other: (length, regions inside, whose cycles count from its start)."""
    iterations, now = [], start
    for number, (length, inside) in enumerate(bodies):
        moved = [_shifted(node, now, number) for node in inside]
        iterations.append(at("iteration", now, now + length, *moved, line=line, iteration=number))
        now += length
    return at("loop", start, now, *iterations, line=line)


def _shifted(node: Node, by: int, iteration: int) -> Node:
    children = tuple(_shifted(child, by, iteration) for child in node.children)
    return Node(
        node.kind, node.start + by, node.end + by, children, node.line, iteration,
        node.tag and f"{node.tag}{iteration}", node.complete, node.label,
    )  # fmt: skip


@dataclass(frozen=True)
class Warp:
    """What one warp did."""

    roots: Sequence[Node]
    cta: int = 0
    warp: int = 0
    sm: int = 0
    role: str = "default"
    launch: int = 0


@dataclass
class HandMade:
    """As much of `kperfir.timeline.Timeline` as analyses and the advisor use."""

    spans: pd.DataFrame
    flows: pd.DataFrame
    launches: pd.DataFrame
    captures: list[Any]
    row_of: dict[str, int]
    metadata: dict[str, Any] = field(default_factory=lambda: {"files": ["hand.kpf"]})
    notes: list[str] = field(default_factory=list)
    accesses: pd.DataFrame = field(default_factory=lambda: build_accesses([]))
    sample: None = None

    @property
    def totals(self) -> SimpleNamespace:
        """Sums of one execution each."""
        done = self.spans["complete"]
        counts = {"count": 1, "complete_count": done, "complete_cycles": self.spans["duration_cycles"] * done}
        return SimpleNamespace(rows=self.spans.assign(**counts))

    @property
    def details(self) -> HandMade:
        return self


def hand_made(
    warps: Sequence[Warp], *, arrows: Sequence[tuple[str, str]] = (), cycles: int = 0, ctas_total: int = 0,
    sm_count: int = 0, facts: dict[str, Any] | None = None, launch_facts: dict[str, Any] | None = None,
    kernel: str = "k", buffers: int = 0, operations: dict[str, str] | None = None,
) -> HandMade:  # fmt: skip
    """A timeline of one kernel.

    Args:
        warps: In any order.
        arrows: Tags of the issue and of the wait that completed it: rows of `flows`.
        cycles: Of the launch; from the first start to the last end if 0.
        ctas_total: CTAs of the grid; as many as recorded if 0.
        sm_count, facts, launch_facts: What the capture says of device, kernel and launch.
        kernel: Its name.
        buffers: That go round between the warps that `arrows` tie.
        operations: The operation that a region begins with, by the region's name.
    """
    ordered = sorted(warps, key=lambda warp: (warp.launch, warp.cta, warp.warp))
    rows: list[dict[str, Any]] = []
    row_of: dict[str, int] = {}
    for warp in ordered:
        for root in warp.roots:
            rows += _rows(root, warp, kernel, -1, 0, len(rows), row_of)
    spans = pd.DataFrame(rows, columns=list(SPAN_COLUMNS))
    regions = {key: number for number, key in enumerate(dict.fromkeys(zip(spans["name"], spans["kind"], strict=True)))}
    spans["region"] = [regions[key] for key in zip(spans["name"], spans["kind"], strict=True)]
    spans = spans.astype(SPAN_DTYPES)
    launches = _launches(spans, kernel, cycles, ctas_total)
    between = [SimpleNamespace(id=0, slots=buffers, via="mbarrier")] if buffers else []
    named = [SimpleNamespace(name=name, op=(operations or {}).get(name, "")) for name, _ in regions]
    layout = SimpleNamespace(flows=between, shared_bytes=RECORD_BYTES, regions=named)
    record = SimpleNamespace(
        kernel=SimpleNamespace(name=kernel, facts=facts or {}, layout=layout),
        facts=launch_facts or {},
        capture=SimpleNamespace(process={"sm_count": sm_count}),
    )  # fmt: skip
    flows = _flows(spans, [(row_of[source], row_of[target]) for source, target in arrows])
    return HandMade(spans, flows, launches, [SimpleNamespace(launches=[record], process={})], row_of)


def _rows(
    node: Node, warp: Warp, kernel: str, parent: int, depth: int, first: int, row_of: dict[str, int]
) -> Iterator[dict[str, Any]]:  # fmt: skip
    if node.tag:
        row_of[node.tag] = first
    yield {
        "launch": warp.launch, "kernel": kernel, "cta": warp.cta, "cta_x": warp.cta, "cta_y": 0, "cta_z": 0,
        "sm": warp.sm, "warp": warp.warp, "role": warp.role, "name": _name(node, kernel),
        "kind": node.kind, "file": "/src/k.py", "line": node.line, "depth": depth, "parent": parent,
        "iteration": node.iteration, "start_cycles": node.start, "end_cycles": node.end,
        "duration_cycles": node.end - node.start, "start_ns": float(node.start),
        "duration_ns": float(node.end - node.start), "complete": node.complete,
    }  # fmt: skip
    next_row = first + 1
    for child in node.children:
        inside = list(_rows(child, warp, kernel, first, depth + 1, next_row, row_of))
        next_row += len(inside)
        yield from inside


def _name(node: Node, kernel: str) -> str:
    return node.label or (kernel if node.kind == "kernel" else f"{node.kind} k.py:{node.line}")


def _launches(spans: pd.DataFrame, kernel: str, cycles: int, ctas_total: int) -> pd.DataFrame:
    groups = spans.groupby("launch")
    recorded = groups["cta"].nunique()
    whole = groups["end_cycles"].max() - groups["start_cycles"].min()
    total = ctas_total or recorded.to_numpy()
    return pd.DataFrame(
        {
            "launch": recorded.index, "kernel": kernel, "grid_x": total, "grid_y": 1, "grid_z": 1,
            "ctas_total": total, "ctas_recorded": recorded.to_numpy(), "simulated": True, "chip": "a100",
            "cycles": cycles or whole.to_numpy(), "clock_hz": CLOCK_HZ, "ns_uncertainty": 0.0, "dropped": 0,
        }
    )  # fmt: skip


def _flows(spans: pd.DataFrame, pairs: list[tuple[int, int]]) -> pd.DataFrame:
    source, target = np.array(pairs, np.int64).reshape(-1, 2).T
    start, end = spans["start_cycles"].to_numpy()[source], spans["end_cycles"].to_numpy()[target]
    columns = {
        "launch": spans["launch"].to_numpy()[source], "flow": 0, "cta": spans["cta"].to_numpy()[source],
        "kind": spans["kind"].astype(object).to_numpy()[source], "from_span": source, "to_span": target,
        "from_warp": spans["warp"].to_numpy()[source], "to_warp": spans["warp"].to_numpy()[target],
        "start_cycles": start, "end_cycles": end, "duration_cycles": end - start,
    }  # fmt: skip
    return pd.DataFrame(columns, columns=list(FLOW_COLUMNS))

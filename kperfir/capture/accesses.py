"""The table of what a kernel's layouts predict of its accesses to memory, from the facts of captures.

Written by kperfir.compile.accesses; what the columns mean is in docs/contracts.md, section 3. What does not have this
form, in a file of another version or of another origin, is left out: predictions are a help, not a record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kperfir.capture.reader import LaunchRecord

VERSION = 1
SPACES = ("shared", "global")
# Of the last: what there could be at most, whatever the addresses; it says nothing of how an access does.
BOUNDS = ("exact", "at most", "worst case")
UNKNOWN = "unknown"
_NUMBERS = ("bytes", "requests", "cost", "ideal", "run_bytes", "lines", "touched", "copies")
ACCESS_COLUMNS = (
    "launch", "kernel", "region", "name", "kind", "file", "line", "place", "op", "space", "instruction", *_NUMBERS,
    "bound", "why",
)  # fmt: skip


def build_accesses(records: Sequence[LaunchRecord]) -> pd.DataFrame:
    """A row per launch and access; `place` counts the accesses of a region."""
    rows = [row for number, record in enumerate(records) for row in _rows(number, record)]
    table = pd.DataFrame(rows, columns=list(ACCESS_COLUMNS))
    return table.astype(dict.fromkeys(_NUMBERS, "float64"))


def _rows(number: int, record: LaunchRecord) -> Iterator[dict[str, Any]]:
    regions = record.kernel.layout.regions
    places: dict[int, int] = {}
    for access in _listed(record.kernel.facts.get("accesses")):
        region = regions[access["region"]] if 0 <= access["region"] < len(regions) else None
        if region is None:
            continue
        place = places[region.id] = places.get(region.id, -1) + 1
        numbers = {name: _number(access.get(name)) for name in _NUMBERS}
        known = access.get("bound") in BOUNDS and numbers["cost"] is not None and (numbers["ideal"] or 0) > 0
        yield {
            "launch": number, "kernel": record.kernel.name, "region": region.id, "name": region.name,
            "kind": region.kind, "file": region.file, "line": region.line, "place": place, "op": str(access.get("op")),
            "space": access["space"], "instruction": str(access.get("instruction", "")),
            **numbers, "copies": numbers["copies"] or 1,
            **({} if known else {"cost": None, "ideal": None}),
            "bound": access["bound"] if known else UNKNOWN, "why": str(access.get("why", "")),
        }  # fmt: skip


def _listed(facts: Any) -> Iterator[dict[str, Any]]:
    listed = facts.get("accesses") if isinstance(facts, dict) and facts.get("version") == VERSION else None
    for access in listed if isinstance(listed, list) else []:
        if isinstance(access, dict) and type(access.get("region")) is int and access.get("space") in SPACES:
            yield access


def _number(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None

"""Write timelines as a profile for pprof (.pprof, gzipped profile.proto), which adds up stacks and draws flame graphs.

A stack is a span and what it is nested in, down to the kernel; its values are how often it ran, the cycles and
nanoseconds that it spent outside of the spans inside it, and those of the cycles that are waiting. Labels name kernel
and role. Times are those of warps, added up over all warps, CTAs and launches.
"""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
import pandas as pd

from kperfir.analysis.self_time import self_cycles
from kperfir.analysis.wait_time import is_wait

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from kperfir.capture.totals import Totals
    from kperfir.timeline import Timeline

# What a sample counts: name and unit; the last is what pprof shows if nothing is asked for.
VALUES = (("executions", "count"), ("cycles", "cycles"), ("wait", "cycles"), ("time", "nanoseconds"))


def write(timelines: Sequence[Timeline], out: BinaryIO) -> None:
    """Write all `timelines` into one profile."""
    profile = _Profile()
    for timeline in timelines:
        for note in timeline.notes:
            profile.comment(note)
        _add_samples(profile, timeline.totals)
    # Without a time in its header the same timeline makes the same file.
    out.write(gzip.compress(profile.serialised(), mtime=0))


def _add_samples(profile: _Profile, totals: Totals) -> None:
    spans = totals.rows  # All executions of a region by a warp are one row: they have the same stack.
    if spans.empty:
        return
    own = self_cycles(spans)
    time = own * spans["launch"].map(totals.ns_per_cycle).to_numpy(np.float64)
    table = pd.DataFrame(
        {
            "path": _paths(spans), "role": spans["role"].to_numpy(), "row": np.arange(len(spans)),
            "executions": spans["count"], "cycles": own, "wait": np.where(is_wait(spans), own, 0), "time": time,
        }
    )  # fmt: skip
    sums = {name: "sum" for name, _ in VALUES}
    groups = table.groupby(["path", "role"], observed=True, sort=True).agg({"row": "first", **sums}).reset_index()
    parents = spans["parent"].to_numpy()
    for group in groups.itertuples(index=False):
        stack, row = [], int(group.row)
        kernel = str(spans["kernel"].iat[row])
        while row >= 0:
            name, file, line = str(spans["name"].iat[row]), str(spans["file"].iat[row]), int(spans["line"].iat[row])
            stack.append(profile.location(name, file, line))
            row = int(parents[row])
        values = [round(getattr(group, name)) for name, _ in VALUES]
        profile.sample(stack, values, {"kernel": kernel, "role": str(group.role)})


def _paths(spans: pd.DataFrame) -> NDArray[np.int64]:
    """A number per span that is the same for spans of one region inside the same regions."""
    own = spans.groupby(["kernel", "name", "kind"], observed=True, sort=False).ngroup().to_numpy()
    parent, depth = spans["parent"].to_numpy(), spans["depth"].to_numpy()
    path = np.zeros(len(spans), np.int64)
    first = 0
    for level in range(int(depth.max()) + 1):
        rows = np.flatnonzero(depth == level)
        above = np.where(parent[rows] >= 0, path[parent[rows]], -1)
        codes, unique = pd.MultiIndex.from_arrays([above, own[rows]]).factorize()
        path[rows] = codes + first
        first += len(unique)
    return path


class _Profile:
    """The messages of profile.proto; numbers are those of its fields."""

    def __init__(self) -> None:
        self._strings = {"": 0}
        self._locations: dict[tuple[str, str, int], int] = {}
        self._body = bytearray()
        for name, unit in VALUES:
            self._body += _message(1, _int(1, self._string(name)) + _int(2, self._string(unit)))
        self._body += _int(14, self._string(VALUES[-1][0]))

    def sample(self, stack: list[int], values: list[int], labels: dict[str, str]) -> None:
        """Add one; the innermost location comes first."""
        pairs = ((self._string(key), self._string(text)) for key, text in labels.items())
        body = _packed(1, stack) + _packed(2, values)
        body += b"".join(_message(3, _int(1, key) + _int(2, text)) for key, text in pairs)
        self._body += _message(2, body)

    def location(self, name: str, file: str, line: int) -> int:
        """The id of a region, as a location in a function of its own."""
        key = (name, file, line)
        if key not in self._locations:
            number = self._locations[key] = len(self._locations) + 1
            function = _int(1, number) + _int(2, self._string(name)) + _int(3, self._string(name))
            self._body += _message(5, function + _int(4, self._string(file)) + _int(5, line))
            self._body += _message(4, _int(1, number) + _message(4, _int(1, number) + _int(2, line)))
        return self._locations[key]

    def comment(self, text: str) -> None:
        self._body += _int(13, self._string(text))

    def serialised(self) -> bytes:
        # The name of a file need not be UTF-8; the strings of a profile have to be.
        strings = (_message(6, text.encode(errors="replace")) for text in self._strings)
        return bytes(self._body) + b"".join(strings)

    def _string(self, text: str) -> int:
        return self._strings.setdefault(text, len(self._strings))


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


def _int(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _message(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _packed(field: int, values: Iterable[int]) -> bytes:
    return _message(field, b"".join(map(_varint, values)))

"""Frames and stamps, as the dialect ``kperf_gpu`` has them: to read in a kernel that records, and to choose in another.

    for frame in passes.parse_kernel(compiled.asm["ttgir"]).frames:
        print(frame.id, [stamp.events for stamp in frame.stamps])

    def ask(kernel):
        fetch = kernel.new_frames.region("fetch", kind="load")
        for load in kernel.select(kind="load"):
            kernel.new_frames.frame().stamp(fetch.start, before=load).stamp(fetch.end, after=load)

Owns how these operations look as plain data, and the requests that ``kperf-insert-frames`` understands. What a stamp
and a frame mean is in docs/contracts.md, section 1.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import quote

from kperfir.config import KINDS
from kperfir.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kperfir.passes.view import Operation, Value

CARRIED = ("i32", "i64", "f32", "f64")
_FRAME_TYPE = re.compile(r"!kperf_gpu\.frame<(\d+), (\d+)(?:, (\d+))?>")
_EVENT = re.compile(r"#kperf_gpu\.event<(\w+) (\d+)>")
_INTEGER = re.compile(r"-?\d+")


@dataclass(frozen=True, slots=True)
class Event:
    """What a stamp says of a region: `edge` is ``start``, ``end`` or ``mark``; `region` its id in the layout."""

    edge: str
    region: int


@dataclass(frozen=True, slots=True)
class Stamp:
    """A ``kperf_gpu.stamp``: one clock word for all `events`."""

    slot: int
    events: tuple[Event, ...]
    operation: Operation


@dataclass(frozen=True, slots=True)
class StoredValue:
    """A ``kperf_gpu.store_value``: what a mark carries, from word `word` behind the slots on."""

    word: int
    value: Value
    operation: Operation


@dataclass(frozen=True, slots=True)
class Frame:
    """A ``kperf_gpu.open_frame`` and all that uses it.

    Attributes:
        id, slots, value_words: As its type says.
        opened, closed: The operations that begin and end it.
        stamps, values: In the order of the text.
    """

    id: int
    slots: int
    value_words: int
    opened: Operation
    closed: Operation | None
    stamps: tuple[Stamp, ...]
    values: tuple[StoredValue, ...]


def read_frames(operations: Sequence[Operation]) -> tuple[Frame, ...]:
    """The frames among `operations`, which are those of one kernel."""
    users: dict[str, list[Operation]] = {}
    for op in operations:
        if op.name.startswith("kperf_gpu.") and op.operands:
            users.setdefault(op.operands[0].name, []).append(op)
    opened = (op for op in operations if op.name == "kperf_gpu.open_frame")
    return tuple(_frame(op, users.get(op.result.name, [])) for op in opened)


def _frame(opened: Operation, users: list[Operation]) -> Frame:
    shape = _FRAME_TYPE.search(opened.result.type)
    number, slots, words = (int(text or 0) for text in shape.groups()) if shape else (-1, 0, 0)
    stamps = tuple(
        Stamp(
            _integer(op.attributes["slot"]),
            tuple(Event(edge, int(region)) for edge, region in _EVENT.findall(op.attributes["events"])),
            op,
        )
        for op in users
        if op.name == "kperf_gpu.stamp"
    )
    values = tuple(
        StoredValue(_integer(op.attributes["word"]), op.operands[1], op)
        for op in users
        if op.name == "kperf_gpu.store_value"
    )
    closed = next((op for op in users if op.name == "kperf_gpu.close_frame"), None)
    return Frame(number, slots, words, opened, closed, stamps, values)


def _integer(text: str) -> int:
    found = _INTEGER.search(text)
    return int(found[0]) if found else -1


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event for `NewFrame.stamp`; `text` is how ``kperf-insert-frames`` spells it."""

    text: str


@dataclass(frozen=True, slots=True)
class NewRegion:
    """A region that stamps are about. `number` is how events name it; what lies around it follows from the stamps."""

    number: int
    name: str
    kind: str

    @property
    def start(self) -> NewEvent:
        """Its begin; of an iteration, also the end of the one before."""
        return self._edge("start", self.kind != "mark")

    @property
    def end(self) -> NewEvent:
        """Its end."""
        return self._edge("end", self.kind not in ("mark", "iteration"))

    def mark(self, value: Value | None = None) -> NewEvent:
        """That a warp passes it, with `value` if that is given."""
        if value is not None and not value.can_be_carried:
            raise _bad(self.name, f"a value of type {value.type}", f"one of {', '.join(CARRIED)}")
        event = self._edge("mark", self.kind == "mark")
        return NewEvent(f"{event.text}@{value.name}") if value else event

    def _edge(self, edge: str, has: bool) -> NewEvent:  # noqa: FBT001
        if not has:
            raise _bad(self.name, f"{edge} of a region of kind {self.kind}", "an edge that such a region has")
        return NewEvent(f"{edge}.{self.number}")


@dataclass(frozen=True, slots=True)
class NewFrame:
    """Stamps that are kept together; all stand in one block, in the order in which they are added."""

    stamps: list[str] = field(default_factory=list)
    _places: list[Operation] = field(default_factory=list)

    def stamp(self, *events: NewEvent, before: Operation | None = None, after: Operation | None = None) -> NewFrame:
        """Add a stamp that stands for `events`, and return the frame.

        Raises:
            UsageError: ``bad-frame``: no event, two of one region, not exactly one of `before` and `after`, or not
                behind the last stamp.
        """
        at = before or after
        regions = {event.text.partition("@")[0].partition(".")[2] for event in events}
        if at is None or (before is not None and after is not None) or not events or len(regions) < len(events):
            expected = "at least one event, of a region of its own, and one of before= and after="
            raise _bad("a stamp", f"{len(events)} events of {len(regions)} regions", expected)
        last = self._places[-1] if self._places else at
        if last.parent is not at.parent or at.index < last.index:
            raise _bad("a stamp", f"{at.name} at {at.file}:{at.line}", f"an operation behind {last.name}, in its block")
        side = "before" if before is not None else "after"
        self._places.append(at)
        self.stamps.append(f"{at.index}:{side}:{'+'.join(event.text for event in events)}")
        return self


class FrameBuilder:
    """The frames that a callback chooses for a kernel. Frames of all others are the compiler's choice."""

    def __init__(self) -> None:
        self._regions: list[NewRegion] = []
        self._frames: list[NewFrame] = []

    def __bool__(self) -> bool:
        return bool(self._frames)

    def region(self, name: str, *, kind: str = "user") -> NewRegion:
        """A region for stamps to be about.

        Raises:
            UsageError: ``bad-frame``: no name, or no such kind.
        """
        if not name or kind not in KINDS:
            raise _bad(name or "a region without a name", f"kind {kind}", "a name, and a kind of docs/contracts.md")
        self._regions.append(NewRegion(len(self._regions), name, kind))
        return self._regions[-1]

    def frame(self) -> NewFrame:
        """A frame without stamps; add at least one."""
        frame = NewFrame()
        self._frames.append(frame)
        return frame

    def __str__(self) -> str:
        """The pass that makes them.

        Raises:
            UsageError: ``bad-frame``: a frame without a stamp.
        """
        if not all(frame.stamps for frame in self._frames):
            raise _bad("a frame", "no stamp", "at least one")
        regions = "|".join(f"{new.kind}:{quote(new.name, safe='')}" for new in self._regions)
        frames = "|".join(";".join(frame.stamps) for frame in self._frames)
        return f"kperf-insert-frames{{regions={regions} frames={frames}}}"


def _bad(where: str, found: str, expected: str) -> UsageError:
    return UsageError("bad-frame", what="a frame cannot be made", where=where, found=found, expected=expected)

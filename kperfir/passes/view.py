"""What a callback sees of a kernel, and what it may ask for.

Owns the reading of ``kperf-list-operations`` and the requests that ``kperf-insert-at`` understands. Nothing here holds
on to Triton's IR: operations are plain data, their numbers name them.
"""

from __future__ import annotations

import fnmatch
import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from kperfir.config import KINDS
from kperfir.errors import UsageError
from kperfir.passes.frames import CARRIED, Frame, FrameBuilder, read_frames

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Value:
    """A value of the kernel. `type` is its MLIR type as text, empty where it is not known.

    `name` says which one it is, as ``kperf-insert-at`` spells it; empty for one that cannot be named.
    """

    name: str
    type: str = ""

    @property
    def can_be_carried(self) -> bool:
        """Whether a mark can have it; of a value whose type is not known, the compiler says so later."""
        return self.name != "" and self.type in ("", *CARRIED)


@dataclass(frozen=True, eq=False)
class Operation:
    """An operation of the kernel.

    Attributes:
        index: Its number, in the order of the text; outer operations come before inner ones.
        name: Such as ``tt.load``.
        kind: What kperfir would call a region around it, such as ``load``; empty if it would make none.
        file, line, column: Where it comes from in the source.
        loop_depth: Loops around it.
        partition: ``default``, or ``partition0`` and so on of a warp-specialised kernel.
        attributes: Each as MLIR prints it.
        operands, results: Its values.
        parent: The operation around it, None at the top.
    """

    index: int
    name: str
    kind: str
    file: str
    line: int
    column: int
    loop_depth: int
    partition: str
    attributes: dict[str, str]
    operands: tuple[Value, ...]
    results: tuple[Value, ...]
    parent: Operation | None = field(repr=False)

    @property
    def result(self) -> Value:
        """Its first result."""
        return self.results[0]

    @property
    def loop(self) -> Operation | None:
        """The innermost loop around it."""
        above = self.parent
        while above is not None and above.name not in ("scf.for", "scf.while"):
            above = above.parent
        return above

    @property
    def variable(self) -> Value:
        """The loop variable of an ``scf.for``.

        Raises:
            UsageError: ``no-loop-variable``: it is no such loop.
        """
        if self.name != "scf.for":
            raise UsageError(
                "no-loop-variable",
                what="only an scf.for has a loop variable",
                where=f"{self.name} at {self.file}:{self.line}",
                fix="select(name='scf.for')",
            )
        return Value(f"argument:{self.index}:0")


@dataclass(frozen=True, slots=True)
class Requests:
    """What a callback asked for: options of ``kperf-insert-at``, or the pass `frames`, which is the text of another."""

    regions: tuple[str, ...]
    marks: tuple[str, ...]
    frames: str = ""

    def __bool__(self) -> bool:
        return bool(self.regions or self.marks or self.frames)

    def __str__(self) -> str:
        if self.frames:
            return self.frames
        return f"kperf-insert-at{{regions={'|'.join(self.regions)} marks={'|'.join(self.marks)}}}"


class Kernel:
    """One kernel in TTGIR, for a callback.

    Attributes:
        name: Name of the kernel.
        operations: All operations of its body, in the order of the text.
        new_frames: Regions and marks to be recorded with frames that are chosen.
    """

    def __init__(self, name: str, listed: str) -> None:
        self.name = name
        self.operations: list[Operation] = []
        for index, entry in enumerate(json.loads(listed)):
            self.operations.append(self._operation(index, entry))
        self._regions: list[str] = []
        self._marks: list[str] = []
        self.new_frames = FrameBuilder()

    def _operation(self, index: int, entry: dict[str, Any]) -> Operation:
        results = tuple(Value(f"result:{index}:{n}", kind) for n, kind in enumerate(entry["results"]))
        return Operation(
            index=index,
            parent=self.operations[entry["parent"]] if entry["parent"] >= 0 else None,
            operands=tuple(self._operand(name) for name in entry["operands"]),
            results=results,
            **{
                key: entry[key]
                for key in ("name", "kind", "file", "line", "column", "loop_depth", "partition", "attributes")
            },
        )

    def _operand(self, name: str) -> Value:
        kind, _, rest = name.partition(":")
        if kind != "result":
            return Value(name)
        index, number = map(int, rest.split(":"))
        return self.operations[index].results[number] if index < len(self.operations) else Value(name)

    def select(
        self,
        name: str = "*",
        *,
        kind: str = "*",
        attribute: str = "",
        loop_depth: int | None = None,
        partition: str = "*",
        line: int | range | None = None,
    ) -> list[Operation]:
        """The operations for which all that is given holds, in the order of the text.

        Args:
            name: Shell pattern of the operation's name, such as ``tt.*load``.
            kind: Shell pattern of its kind, such as ``load``; ``?*`` takes all that have one.
            attribute: Name of an attribute that it has, or ``name=value`` with the value as MLIR prints it.
            loop_depth: Number of loops around it.
            partition: Shell pattern of its partition.
            line: Its source line, or a range of lines.
        """
        wanted, _, text = attribute.partition("=")
        lines = range(line, line + 1) if isinstance(line, int) else line
        return [
            op
            for op in self.operations
            if fnmatch.fnmatchcase(op.name, name)
            and fnmatch.fnmatchcase(op.kind, kind)
            and fnmatch.fnmatchcase(op.partition, partition)
            and (not wanted or wanted in op.attributes)
            and (not text or op.attributes[wanted] == text)
            and (loop_depth is None or op.loop_depth == loop_depth)
            and (lines is None or op.line in lines)
        ]

    def walk(self) -> Iterator[Operation]:
        """All operations, outer ones before inner ones."""
        return iter(self.operations)

    @cached_property
    def frames(self) -> tuple[Frame, ...]:
        """The frames that it has already."""
        return read_frames(self.operations)

    @cached_property
    def parameters(self) -> _Parameters:
        """The kernel's parameters: ``kernel.parameters[1]``."""
        return _Parameters()

    def region(self, name: str, first: Operation, last: Operation | None = None, *, kind: str = "user") -> None:
        """Record a region from `first` to `last`, or around `first` alone. Of regions around the same, the first
        asked for is the outermost.

        Raises:
            UsageError: ``bad-region``: no such kind, an empty name, or operations of different blocks.
        """
        last = last or first
        in_order = first.parent is last.parent and first.index <= last.index
        if not name or kind not in KINDS or kind == "mark" or not in_order:
            raise UsageError(
                "bad-region",
                what="a region cannot be recorded",
                where=f"{name or 'a region without a name'}, around {first.name} at {first.file}:{first.line}",
                found=f"kind {kind}, up to {last.name} at {last.file}:{last.line}",
                expected="a name, a kind of docs/contracts.md, and two operations of one block in their order",
            )
        self._regions.append(f"{first.index}:{last.index}:{kind}:{quote(name, safe='')}")

    def mark(
        self, name: str, *, before: Operation | None = None, after: Operation | None = None, value: Value | None = None
    ) -> None:
        """Record an event before or after an operation, with `value` if that is given.

        Raises:
            UsageError: ``bad-mark``: not exactly one of `before` and `after`, or `value` cannot be carried.
        """
        at = before or after
        carried = value is None or value.can_be_carried
        if not name or at is None or (before is not None and after is not None) or not carried:
            raise UsageError(
                "bad-mark",
                what="a mark cannot be recorded",
                where=name or "a mark without a name",
                found=f"value {value.name or 'without a name'} of type {value.type or '?'}" if value else "no value",
                expected=f"a name, one of before= and after=, and a value of type {', '.join(CARRIED)}",
            )
        side = "before" if before is not None else "after"
        text = f"{at.index}:{side}:{quote(name, safe='')}"
        self._marks.append(f"{text}:{value.name}" if value else text)

    def requests(self) -> Requests:
        """What was asked for so far.

        Raises:
            UsageError: ``frames-and-regions``: one callback asked for both.
        """
        if self.new_frames and (self._regions or self._marks):
            raise UsageError(
                "frames-and-regions",
                what="a callback asks for frames, or for regions and marks, whose frames the compiler chooses",
                where=f"kernel {self.name}",
                found=f"{len(self._regions)} regions and {len(self._marks)} marks besides frames",
                fix="use two callbacks, or make stamps for those regions too",
            )
        frames = str(self.new_frames) if self.new_frames else ""
        return Requests(tuple(self._regions), tuple(self._marks), frames)


class _Parameters:
    def __getitem__(self, index: int) -> Value:
        return Value(f"parameter:{index}")

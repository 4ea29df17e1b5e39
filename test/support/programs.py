"""Small structured programs, the layout a compiler would give them, and their execution: truth for the decoder's tests.

    plan = plan_program([Role("default", 4, [Region("kernel", [Loop([Region("load", [Work()])])])])])
    layout = plan.layout(strategy="ring", words_per_warp=64)
    run = run_cta(plan, layout, rng)          # run.data: the bytes; run.warps[w].spans: what really happened

Programs run on `ReferenceWarp`, so what they leave is what docs/contracts.md, section 1, says. Truth is kept aside
while they run.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kperfir._native import record

from kperfir.capture.layout import BufferLayout
from kperfir.capture.layout_json import parse_layout, seal_layout
from kperfir.capture.reference import CtaHeader, ReferenceWarp, encode_cta
from kperfir.capture.reference_sums import BLOCK_WORDS, SummingWarp

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

SOURCE = "/src/kernel.py"
VALUE_WORDS = {"": 0, "i32": 1, "u32": 1, "f32": 1, "i64": 2, "u64": 2, "f64": 2}


# Programs -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Work:
    """Instructions that are not measured: separates stamps. Takes `low` to `high` cycles."""

    low: int = 1
    high: int = 50


@dataclass(frozen=True)
class Region:
    kind: str
    body: Sequence[Node]
    line: int = 0


@dataclass(frozen=True)
class Mark:
    """A mark; `value`: the type of what it carries, empty for nothing."""

    line: int = 0
    value: str = ""


@dataclass(frozen=True)
class Loop:
    """A loop; `trips`: how often, chosen per execution.

    `before` runs once more than `body`, as the condition of a while does. `selected`: number of the first iteration
    that is recorded, and how far it is to the next one; no `Return` may be inside.
    """

    body: Sequence[Node]
    trips: Sequence[int] = (0, 1, 2, 3, 7)
    before: Sequence[Node] = ()
    iterations: bool = True
    line: int = 0
    selected: tuple[int, int] = (0, 1)


@dataclass(frozen=True)
class If:
    then: Sequence[Node]
    otherwise: Sequence[Node] = ()


@dataclass(frozen=True)
class Return:
    """Leave the kernel: ends every open region on the way."""


Node = Work | Region | Mark | Loop | If | Return


@dataclass(frozen=True)
class Role:
    name: str
    warps: int
    body: Sequence[Node]


# Planned code: what the compiler would emit ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Stamp:
    events: list[tuple[str, int]]


@dataclass(frozen=True)
class FrameCode:
    id: int
    items: list[Stamp | Work]


@dataclass(frozen=True)
class LoopCode:
    trips: Sequence[int]
    before: list[Any]
    body: list[Any]
    selected: tuple[int, int] = (0, 1)


@dataclass(frozen=True)
class IfCode:
    then: list[Any]
    otherwise: list[Any]


class ReturnCode:
    pass


@dataclass
class Plan:
    """Regions and frames of a program, and its code per role."""

    kernel: str
    roles: list[tuple[str, int, list[Any]]] = field(default_factory=list)
    regions: list[dict[str, Any]] = field(default_factory=list)
    frames: list[list[list[tuple[str, int]]]] = field(default_factory=list)

    def max_frame_words(self, align: int = 1) -> int:
        """Words of the largest frame, each padded to a multiple of `align`."""
        sizes = (len(frame) + self.value_words(frame) + 1 for frame in self.frames)
        return -(-max(sizes, default=1) // align) * align

    def value_words(self, frame: list[list[tuple[str, int]]]) -> int:
        """Words that the marks of a frame carry."""
        return sum(VALUE_WORDS[self.regions[region].get("value", "")] for stamp in frame for _, region in stamp)

    def layout(
        self,
        *,
        strategy: str,
        words_per_warp: int,
        target: str = "cuda:80",
        frame_align: int = 1,
        tag_first: bool | None = None,
    ) -> BufferLayout:
        """Unless `tag_first` says otherwise, tags are where the compiler has them with that strategy."""
        warps = sum(count for _, count, _ in self.roles)
        roles, first = [], 0
        for name, count, _ in self.roles:
            roles.append({"name": name, "first_warp": first, "warps": count})
            first += count
        words = max(words_per_warp, self.max_frame_words(frame_align))
        if strategy == "aggregate":
            words = BLOCK_WORDS * len(self.regions)
        fields: dict[str, Any] = {
            "version": self.version(frame_align),
            "kernel": self.kernel,
            "target": target,
            "warp_size": 32,
            "strategy": strategy,
            "buffer": "shared",
            "total_warps": warps,
            "roles": roles,
            "words_per_warp": words,
            "max_frame_words": self.max_frame_words(frame_align),
            "cta_bytes": record.cta_bytes(warps, words),
            "regions": self.regions,
            "frames": [{"id": i, "stamps": [[list(e) for e in s] for s in f]} for i, f in enumerate(self.frames)],
        }
        if frame_align != 1:
            fields |= {"frame_align": frame_align}
        if strategy == "aggregate":
            fields["version"] = 5
        if strategy == "saturate" if tag_first is None else tag_first:
            fields |= {"version": 7, "tag": "first", "batch": frame_align}
        if strategy == "flush":
            fields |= {"version": 8, "buffer": "global"}
        return parse_layout(seal_layout(fields))

    def version(self, frame_align: int) -> int:
        """The oldest one that has what the program needs."""
        if any(edge == "gap" for frame in self.frames for stamp in frame for edge, _ in stamp):
            return 6
        if frame_align != 1:
            return 4
        return 3 if any("step" in region for region in self.regions) else 2

    def warp_code(self, warp: int) -> list[Any]:
        for _, count, code in self.roles:
            if warp < count:
                return code
            warp -= count
        raise IndexError(warp)


def plan_program(roles: Sequence[Role], kernel: str = "kernel", gaps: Callable[[], bool] = lambda: False) -> Plan:
    """Assign region ids, stamps and frames in program order. The kernel region of every role is the same one.

    `gaps` is asked of each stamp inside a region whether a gap begins with it.
    """
    plan = Plan(kernel)
    for role in roles:
        code = _lower(plan, role.body, [])
        plan.roles.append((role.name, role.warps, _group(plan, code)))
    for events in (events for frame in plan.frames for events in frame):
        edge, region = events[-1]
        around = region if edge == "start" else plan.regions[region]["parent"]
        if around >= 0 and gaps():
            events.append(("gap", _add_region(plan, "compute", around, 0)))
    return plan


def _add_region(plan: Plan, kind: str, parent: int, line: int, value: str = "") -> int:
    region = len(plan.regions)
    if kind == "kernel" and region > 0:
        return 0
    line = line or region + 1
    base = plan.kernel if kind == "kernel" else f"{kind} {SOURCE.rsplit('/', 1)[1]}:{line}"
    same = sum(r["name"].split("#")[0] == base for r in plan.regions)
    name = f"{base}#{same + 1}" if same else base
    op = {"kernel": "tt.func", "loop": "scf.for", "iteration": "scf.for"}.get(kind, f"tt.{kind}")
    plan.regions.append(
        {
            "id": region,
            "parent": parent,
            "kind": kind,
            "name": name,
            "op": op,
            "file": SOURCE,
            "line": line,
            "column": 4,
        }
        | ({"value": value} if value else {})
    )
    return region


def _lower(plan: Plan, body: Sequence[Node], open_regions: list[int]) -> list[Any]:
    """Edges as single-event stamps, control flow as nested code."""
    code: list[Any] = []
    parent = open_regions[-1] if open_regions else -1
    for node in body:
        if isinstance(node, Work):
            code.append(node)
        elif isinstance(node, Mark):
            code.append(Stamp([("mark", _add_region(plan, "mark", parent, node.line, node.value))]))
        elif isinstance(node, Region):
            region = _add_region(plan, node.kind, parent, node.line)
            code.append(Stamp([("start", region)]))
            code += _lower(plan, node.body, [*open_regions, region])
            code.append(Stamp([("end", region)]))
        elif isinstance(node, Loop):
            code += _lower_loop(plan, node, open_regions)
        elif isinstance(node, If):
            sides = [_lower(plan, side, open_regions) for side in (node.then, node.otherwise)]
            code.append(IfCode(*sides))
        else:
            kinds = [plan.regions[r]["kind"] for r in open_regions]
            ends = [r for r, kind in zip(open_regions, kinds, strict=True) if kind != "iteration"]
            code += [Stamp([("end", r)]) for r in reversed(ends)]
            code.append(ReturnCode())
            break  # What follows is unreachable.
    return code


def _lower_loop(plan: Plan, node: Loop, open_regions: list[int]) -> list[Any]:
    parent = open_regions[-1] if open_regions else -1
    loop = _add_region(plan, "loop", parent, node.line)
    before = _lower(plan, node.before, [*open_regions, loop])
    inner, start = [*open_regions, loop], []
    if node.iterations:
        iteration = _add_region(plan, "iteration", loop, node.line)
        inner, start = [*inner, iteration], [Stamp([("start", iteration)])]
    body = start + _lower(plan, node.body, inner)
    if node.iterations and node.selected != (0, 1):
        plan.regions[iteration] |= {"first": node.selected[0], "last": 0, "step": node.selected[1]}
        body.append(Stamp([("end", iteration)]))
    return [Stamp([("start", loop)]), LoopCode(node.trips, before, body, node.selected), Stamp([("end", loop)])]


def _has_stamps(item: Any) -> bool:
    if isinstance(item, LoopCode):
        return any(map(_has_stamps, item.before + item.body))
    if isinstance(item, IfCode):
        return any(map(_has_stamps, item.then + item.otherwise))
    return isinstance(item, Stamp | ReturnCode)


def _group(plan: Plan, code: list[Any]) -> list[Any]:
    """Merge adjacent edges into one stamp, and stamps without control flow between them into one frame."""
    out: list[Any] = []
    run: list[Any] = []

    def flush() -> None:
        while run and not isinstance(run[0], Stamp):
            out.append(run.pop(0))
        stamps = [item for item in run if isinstance(item, Stamp)]
        if stamps:
            out.append(FrameCode(len(plan.frames), list(run)))
            plan.frames.append([stamp.events for stamp in stamps])
        run.clear()

    for item in code:
        if isinstance(item, Stamp) and run and isinstance(run[-1], Stamp):
            run[-1] = Stamp(run[-1].events + item.events)
        elif isinstance(item, Stamp | Work) or not _has_stamps(item):
            run.append(item)
        else:
            flush()
            if isinstance(item, LoopCode):
                item = LoopCode(item.trips, _group(plan, item.before), _group(plan, item.body), item.selected)
            elif isinstance(item, IfCode):
                item = IfCode(_group(plan, item.then), _group(plan, item.otherwise))
            out.append(item)
    flush()
    return out


# Execution ------------------------------------------------------------------------------------------------------------


@dataclass
class TrueSpan:
    region: int
    depth: int
    parent: int
    iteration: int
    start: int
    end: int = -1
    first_stamp: int = 0  # Index, among all stamps of the warp, of the one that starts it.
    last_stamp: int = -1


class Leave(Exception):
    """A Return was executed."""


class WarpRun:
    """One warp: executes code, fills a `ReferenceWarp`, keeps the truth."""

    def __init__(self, plan: Plan, warp: ReferenceWarp | SummingWarp, rng: random.Random, clock: int) -> None:
        self.plan = plan
        self.warp = warp
        self.rng = rng
        self.clock = clock
        self.stamps: list[tuple[int, int, int]] = []  # (frame, slot, 64-bit clock)
        self.spans: list[TrueSpan] = []
        self.marks: list[tuple[int, int]] = []  # (index of its span, bits of its value)
        self._open: list[int] = []
        self._iteration: list[int] = []  # Of the loops being executed.
        self._in_gap = False
        self._left_out = 0  # How many of these are in an iteration that is not recorded.

    def run(self, code: list[Any]) -> None:
        with contextlib.suppress(Leave):
            self._run(code)
        if self._open:
            raise AssertionError("the program leaves regions open")

    def _run(self, code: list[Any]) -> None:
        for item in code:
            if isinstance(item, FrameCode):
                self._frame(item)
            elif isinstance(item, LoopCode):
                self._loop(item)
            elif isinstance(item, IfCode):
                self._run(self.rng.choice((item.then, item.otherwise)))
            elif isinstance(item, Work):
                self.clock += self.rng.randint(item.low, item.high)
            elif isinstance(item, ReturnCode):
                raise Leave

    def _loop(self, loop: LoopCode) -> None:
        self._iteration.append(-1)
        self._run(loop.before)
        first, step = loop.selected
        for index in range(self.rng.choice(loop.trips)):
            self._iteration[-1] = index
            is_left_out = index < first or (index - first) % step != 0
            self._left_out += is_left_out
            self._run(loop.body)
            self._left_out -= is_left_out
            self._run(loop.before)
        self._iteration.pop()

    def _frame(self, frame: FrameCode) -> None:
        if self._left_out:
            self.clock += len(frame.items)
            return
        clocks: list[int] = []
        words: list[int] = []  # Of the values of marks.
        for item in frame.items:
            if isinstance(item, Stamp):
                self.clock += self.rng.randint(1, 4)
                self.stamps.append((frame.id, len(clocks), self.clock))
                clocks.append(self.clock)
                for edge, region in item.events:
                    self._event(edge, region)
                    if edge == "mark":
                        words += self._mark(region)
            elif isinstance(item, Work):
                self.clock += self.rng.randint(item.low, item.high)
            else:
                self._run([item])
        self.warp.frame(frame.id, clocks, words)

    def _mark(self, region: int) -> list[int]:
        count = VALUE_WORDS[self.plan.regions[region].get("value", "")]
        # What looks like a tag must not be taken for one.
        words = [self.rng.choice((self.rng.getrandbits(32), 0x4B500000)) for _ in range(count)]
        self.marks.append((len(self.spans) - 1, sum(word << 32 * index for index, word in enumerate(words))))
        return words

    def _event(self, edge: str, region: int) -> None:
        regions = self.plan.regions
        if self._in_gap:
            self._close()
        self._in_gap = edge == "gap"
        loop = region if edge == "end" else regions[region]["parent"]
        if self._open:  # An iteration ends where its loop does anything but run its body.
            top = self.spans[self._open[-1]].region
            if regions[top]["kind"] == "iteration" and regions[top]["parent"] == loop:
                self._close()
        if edge == "end":
            if self.spans[self._open[-1]].region != region:
                raise AssertionError("the program is not balanced")
            self._close()
            return
        kind = regions[region]["kind"]
        iteration = -1
        if kind == "iteration":
            iteration = self._iteration[-1]
        elif self._open and regions[self.spans[self._open[-1]].region]["kind"] != "loop":
            iteration = self.spans[self._open[-1]].iteration
        parent = self._open[-1] if self._open else -1
        self.spans.append(
            TrueSpan(region, len(self._open), parent, iteration, self.clock, first_stamp=len(self.stamps) - 1)
        )
        self._open.append(len(self.spans) - 1)
        if edge == "mark":
            self._close()

    def _close(self) -> None:
        span = self.spans[self._open.pop()]
        span.end = self.clock
        span.last_stamp = len(self.stamps) - 1


@dataclass(frozen=True)
class CtaSetting:
    """Where and when a CTA runs. Warps start up to `skew` cycles before or after `start_clock`."""

    ctaid: tuple[int, int, int] = (0, 0, 0)
    sm: int = 0
    start_clock: int = 0
    clock_hz: float = 1.41e9
    start_ns: int = 1_000_000
    skew: int = 0


@dataclass(frozen=True)
class CtaRun:
    data: bytes
    header: CtaHeader
    warps: list[WarpRun]


def run_cta(plan: Plan, layout: BufferLayout, rng: random.Random, setting: CtaSetting | None = None) -> CtaRun:
    """Execute all warps of one CTA."""
    setting = setting or CtaSetting()
    runs = []
    for index in range(layout.total_warps):
        stale = [rng.getrandbits(32) for _ in range(layout.words_per_warp)] if layout.ring else None
        start = max(0, setting.start_clock + rng.randint(-setting.skew, setting.skew))
        warp = SummingWarp(layout) if layout.aggregate else ReferenceWarp(layout, stale=stale)
        run = WarpRun(plan, warp, rng, start)
        run.run(plan.warp_code(index))
        runs.append(run)
    end = max([setting.start_clock, *(run.clock for run in runs)]) + 3
    header = CtaHeader(
        ctaid=setting.ctaid,
        sm=setting.sm,
        start_clock=setting.start_clock,
        start_ns=setting.start_ns,
        end_clock=end,
        end_ns=setting.start_ns + int((end - setting.start_clock) * 1e9 / setting.clock_hz),
    )
    return CtaRun(encode_cta(layout, header, [run.warp for run in runs]), header, runs)

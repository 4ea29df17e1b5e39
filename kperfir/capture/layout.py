"""What the compiler says about a profile buffer: regions, frames and sizes.

`layout_json` reads it; the bytes of the buffer belong to lib/Record/RecordLayout.h.
"""

from __future__ import annotations

from dataclasses import dataclass

from kperfir._native import record

# Warps that only fill up a warp group run no role.
IDLE = "idle"
# A gap starts a region that the next event ends, whichever that is.
EDGES = ("start", "end", "mark", "gap")
# What a mark may carry, and how many words of its frame that takes.
VALUE_WORDS = {"i32": 1, "u32": 1, "f32": 1, "i64": 2, "u64": 2, "f64": 2}


@dataclass(frozen=True, slots=True)
class Role:
    """A contiguous range of warps that run the same part of the kernel."""

    name: str
    first_warp: int
    warps: int


@dataclass(frozen=True, slots=True)
class Region:
    """A stretch of the program that is measured; `parent` is the region around it in the source, or -1.

    `value` is the type of what a mark carries, one of `VALUE_WORDS`, or empty. Of an iteration, those numbered `first`,
    `first` + `step` and so on, less than `last` (0: any), are recorded.
    """

    id: int
    parent: int
    kind: str
    name: str
    op: str
    file: str
    line: int
    column: int
    value: str = ""
    first: int = 0
    last: int = 0
    step: int = 1

    @property
    def value_words(self) -> int:
        return VALUE_WORDS.get(self.value, 0)

    @property
    def is_every(self) -> bool:
        """Whether none of its executions is left out on purpose."""
        return (self.first, self.last, self.step) == (0, 0, 1)


@dataclass(frozen=True, slots=True)
class Event:
    """What a stamp means for one region. `edge` is one of `EDGES`."""

    edge: str
    region: int


@dataclass(frozen=True, slots=True)
class Frame:
    """A run of stamps that are written together; `stamps[slot]` are the events of the stamp in that slot.

    Behind the stamps lie the values of its marks, in their order: `value_words` words. The size is a multiple of
    `align` words. Its tag is its first word or its last one.
    """

    id: int
    stamps: tuple[tuple[Event, ...], ...]
    value_words: int = 0
    align: int = 1

    @property
    def words(self) -> int:
        """Size in the buffer: the stamps, the values, padding and the tag."""
        return -(-(len(self.stamps) + self.value_words + 1) // self.align) * self.align


@dataclass(frozen=True, slots=True)
class Flow:
    """Asynchronous work that completes in order of issue, and who waits for it.

    Attributes:
        via: ``commit_group`` or ``mbarrier``.
        slots: Barriers of an array that are used in turn.
        scope: Innermost region around the barrier, or -1; what is in one iteration is counted in it alone.
        issue: Regions that issue, each with how many groups it closes, or how much it issues, per execution.
        wait: Regions that wait, each with how many groups it leaves outstanding, or how many waits it holds.
    """

    id: int
    via: str
    slots: int
    scope: int
    issue: tuple[tuple[int, int], ...]
    wait: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class BufferLayout:
    """The layout of one compiled kernel. `text` is the JSON it was parsed from, byte for byte."""

    text: str
    version: int
    hash: int
    kernel: str
    target: str
    warp_size: int
    strategy: str
    buffer: str
    total_warps: int
    roles: tuple[Role, ...]
    words_per_warp: int
    max_frame_words: int
    cta_bytes: int
    regions: tuple[Region, ...]
    frames: tuple[Frame, ...]
    notes: tuple[str, ...] = ()
    flows: tuple[Flow, ...] = ()
    frame_align: int = 1
    tag_first: bool = False
    batch: int = 1

    @property
    def ring(self) -> bool:
        return self.strategy == "ring"

    @property
    def aggregate(self) -> bool:
        """Whether executions were summed up on the device, and none recorded."""
        return self.strategy == "aggregate"

    @property
    def shared_bytes(self) -> int:
        """What records take of a CTA's shared memory; a few bytes more where they go elsewhere do not count."""
        return record.shared_bytes(self.total_warps, self.words_per_warp) if self.buffer == "shared" else 0

    @property
    def role_names(self) -> list[str]:
        """Names of `roles`, and at the end `IDLE` for warps that have none."""
        return [*(role.name for role in self.roles), IDLE]

    def role_of_warp(self) -> list[int]:
        """Index into `role_names` for every warp; length `total_warps`."""
        roles = [len(self.roles)] * self.total_warps
        for index, role in enumerate(self.roles):
            roles[role.first_warp : role.first_warp + role.warps] = [index] * role.warps
        return roles

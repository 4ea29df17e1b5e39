"""What is done where records make a thread keep more on its stack than the kernel without them does.

Registers that do not suffice are spilled there, and what a kernel waits for then is not what it waits for without
records. So it is compiled again, by one rung of `LADDER` after another, until nothing is added; where nothing helps,
by the one that adds least. What the user chose to record stays.

Owns the order of rungs, and what is said of them. How a kernel is compiled by one is `compilation`'s.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from kperfir.code.residency import occupancy
from kperfir.compile.metadata import LAYOUT_KEY, NOTE_KEY
from kperfir.compile.pipeline import Pipelines, plan_pipelines
from kperfir.compile.plain_kernel import Footprint
from kperfir.config import Options

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Rung:
    """One way to compile a kernel so that its records need fewer registers.

    Attributes:
        settings: Fields of `Options` that differ.
        loses_records: Fewer records are made.
        holds_ctas: ptxas is told how many CTAs shall share an SM: as many as without records. It takes what registers
            there are then, where it would rather spill to make room for more CTAs.
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    loses_records: bool = False
    holds_ctas: bool = False


# Where values go to and come from: without what keeps operands in registers around a matrix instruction.
TRANSFERS = (
    "minimal", "between", "iteration", "load", "store", "async_copy", "async_wait", "tma", "mbarrier_wait",
    "wgmma_wait", "atomic",
)  # fmt: skip

# From what costs the user nothing to what costs most. Each is a run of ptxas, so there are few: benchmarks/run.py
# spills says which of them helps which kernel of the tests.
LADDER = (
    Rung(holds_ctas=True),
    Rung({"batch": 2}),
    Rung({"batch": 1}),
    Rung({"batch": 1, "buffer": "global"}),
    Rung({"batch": 1, "buffer": "global", "budget": 8}, loses_records=True),
    Rung({"batch": 1, "regions": TRANSFERS}, loses_records=True),
    Rung({"batch": 1, "regions": ("sync",)}, loses_records=True),
    Rung({"batch": 1, "buffer": "global", "regions": ("minimal",)}, loses_records=True),
)

# Settings that choose records; where the user made a choice, none of them is left out.
_CHOICES = ("regions", "budget")
_DEFAULTS = {setting.name: setting.default for setting in dataclasses.fields(Options)}
# Where a thread has so many, there are no more for it.
_MOST_REGISTERS = 254
_SIZE = re.compile(r"^\.(?:reqntid|maxntid)\b.*$", re.MULTILINE)
_IS_BOUNDED = re.compile(r"^\.(?:maxnreg|minnctapersm)\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Step:
    """A rung, as the settings in force leave it."""

    rung: Rung
    pipelines: Pipelines


@dataclass(frozen=True, slots=True)
class Build:
    """A kernel with records: what each stage has made of it, and Triton's metadata."""

    products: dict[str, Any]
    metadata: dict[str, Any]

    @property
    def layout(self) -> dict[str, Any]:
        """That of its profile buffer."""
        layout: dict[str, Any] = json.loads(self.metadata[LAYOUT_KEY])
        return layout

    @property
    def stack_bytes(self) -> int:
        """Of a thread; 0 where that is not known."""
        footprint = Footprint.of(self.products)
        return footprint.stack_bytes if footprint else 0


class Workshop(Protocol):
    """Compiles one kernel. Nothing of it raises: where that fails, there is no answer."""

    def plain_footprint(self) -> Footprint | None:
        """What the kernel takes without records."""

    def build(self, step: Step) -> Build | None:
        """Compile by `step`; None also if that gives what was there before."""

    def assemble(self, build: Build, ptx: str) -> Build | None:
        """`build` with other assembly for the same code."""


def plan_ladder(options: Options) -> tuple[Step, ...]:
    """The rungs that are left where the user has set `options`: what is not as by default is as the user wants it."""
    has_choice = any(getattr(options, name) != _DEFAULTS[name] for name in _CHOICES)
    # Sums are read again: from global memory, that takes longer than a spill.
    fixed = {"buffer"} if options.strategy == "aggregate" else set()
    fixed |= {name for name, default in _DEFAULTS.items() if getattr(options, name) != default}
    steps = []
    for rung in LADDER:
        free = {name: value for name, value in rung.settings.items() if name not in fixed}
        if (free or rung.holds_ctas) and not (rung.loses_records and has_choice):
            steps.append(Step(rung, plan_pipelines(dataclasses.replace(options, **free))))
    return tuple(steps)


def without_spills(first: Build, ladder: tuple[Step, ...], workshop: Workshop) -> Build:
    """Return `first`, or a build of the same kernel whose records add less to a thread's stack, with a note."""
    plain = workshop.plain_footprint() if first.stack_bytes else None
    if plain is None or first.stack_bytes <= plain.stack_bytes:
        return first
    best, rung = first, None
    for step in ladder:
        build = _holding_ctas(first, plain, workshop) if step.rung.holds_ctas else workshop.build(step)
        if build is not None and build.stack_bytes < best.stack_bytes:
            best, rung = build, step.rung
        if best.stack_bytes <= plain.stack_bytes:
            break
    note = _describe(first, best, rung, plain)
    return Build(best.products, best.metadata | {NOTE_KEY: note})


def _holding_ctas(build: Build, plain: Footprint, workshop: Workshop) -> Build | None:
    """`build`, whose assembly says how many CTAs share an SM without records; None where that would not help."""
    layout, ptx = build.layout, str(build.products["ptx"])
    threads = int(layout["total_warps"]) * int(layout["warp_size"])
    arch, shared_bytes = int(layout["target"].rpartition(":")[2]), int(build.metadata["shared"])
    ctas, _ = occupancy(arch, threads=threads, registers=plain.registers, shared_bytes=shared_bytes)
    footprint = Footprint.of(build.products)
    has_all = footprint is None or footprint.registers >= _MOST_REGISTERS
    if not ctas or has_all or _IS_BOUNDED.search(ptx):
        return None
    return workshop.assemble(build, _SIZE.sub(rf"\g<0>\n.minnctapersm {ctas}", ptx, count=1))


def _describe(first: Build, best: Build, rung: Rung | None, plain: Footprint) -> str:
    """What a reader has to know: what was done, why, and what is left."""
    added, left = (build.stack_bytes - plain.stack_bytes for build in (first, best))
    more = f"a thread would keep {added} bytes more on its stack than without records"
    if rung is None:
        return f"with its records {more.replace('would keep', 'keeps')}: registers are spilled, which takes time"
    done = []
    if missing := _missing(first, best):
        done.append(f"records of {missing} were left out")
    if first.layout["buffer"] != best.layout["buffer"]:
        done.append(f"records are held in {best.layout['buffer']} memory")
    at_once = best.layout.get("batch", 1)
    if first.layout.get("batch", 1) > at_once:
        done.append(f"records are stored {'one at a time' if at_once == 1 else f'{at_once} at a time'}")
    if rung.holds_ctas:
        done.append("ptxas was told to fit as many CTAs on an SM as without records, and no more")
    rest = f"; {left} bytes are left" if left > 0 else ""
    return f"{', and '.join(done)}: otherwise {more}{rest}"


def _missing(first: Build, best: Build) -> str:
    """Kinds of regions of which there are fewer, with how many."""
    before, after = (Counter(region["kind"] for region in build.layout["regions"]) for build in (first, best))
    return ", ".join(f"{kind} ({count})" for kind, count in sorted((before - after).items()))

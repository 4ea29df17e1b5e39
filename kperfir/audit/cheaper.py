"""What takes no more than a kernel does without records, where the settings in force do: found by compiling it.

Owns what is tried, from what keeps all records to what keeps hardly any. Nothing is recommended that was not compiled.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from kperfir.capture.layout_json import parse_layout
from kperfir.config import PREFIX, Options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kperfir.audit.builds import Build
    from kperfir.audit.resources import Footprint
    from kperfir.capture.layout import BufferLayout

_BUDGETS = (8, 4)
_REGIONS = ("memory", "mma", "sync", "minimal", "kernel")
_FEWEST = ("minimal", "kernel")  # Fewer than anything else that may have been asked for.
_DEFAULT = "auto"


class Compile(Protocol):
    """Compiles the kernel again; raises if that fails."""

    def __call__(self, options: Options | None, /, maxnreg: int = 0) -> Build:
        """With records as `options` say, or as it is; with at most `maxnreg` registers per thread, if that is not 0."""


@dataclass(frozen=True, slots=True)
class Cheaper:
    """Settings with which the kernel takes no more than without records.

    Attributes:
        setting: Environment variables and their values, and options of the launch.
        footprint: What it takes then.
        note: What the compiler had to do about registers for that.
    """

    setting: str
    footprint: Footprint
    note: str = ""


@dataclass(frozen=True, slots=True)
class Excess:
    """A kernel whose records take too much.

    Attributes:
        before: What it takes without records.
        options: What is recorded.
        layout: What came of that.
        step: Registers with which as many CTAs would fit as without records; 0 where registers cost none.
    """

    before: Footprint
    options: Options
    layout: BufferLayout
    step: int


def find_cheaper(excess: Excess, compile: Compile, measure: Callable[[Build], Footprint]) -> Cheaper | None:
    """The first of what is tried that takes no more than the kernel without records."""

    def attempt(setting: str, changes: dict[str, Any], maxnreg: int) -> tuple[Cheaper, bool] | None:
        """What it takes, and whether all records are there."""
        try:
            build = compile(dataclasses.replace(excess.options, **changes), maxnreg=maxnreg)
            footprint, layout = measure(build), parse_layout(build.layout)
        except Exception:  # A setting with which it does not compile is not the one to recommend.
            return None
        if footprint.is_worse_than(excess.before):
            return None
        return Cheaper(setting, footprint, build.note), len(layout.regions) == len(excess.layout.regions)

    bounded = f"maxnreg={excess.step} (an option of the launch)"
    # Registers are bound: ptxas makes do with fewer, or the compiler leaves records out until it can.
    kept = attempt(bounded, {}, excess.step) if excess.step else None
    if kept and kept[1]:
        return kept[0]
    for setting, changes in _changes(excess.options, excess.layout):
        if found := attempt(setting, changes, 0):
            return found[0]
    if kept or not excess.step:
        return kept[0] if kept else None
    both = (
        attempt(f"{bounded}, {_variable('regions', kinds)}", {"regions": (kinds,)}, excess.step) for kinds in _FEWEST
    )
    return next((found[0] for found in both if found), None)


def _changes(options: Options, layout: BufferLayout) -> Iterator[tuple[str, dict[str, Any]]]:
    """Settings that ask for less than `options` do: what was chosen already is no advice, nor is more of it."""
    if options.batch > 1:
        yield _variable("batch", 1), {"batch": 1}
    if layout.buffer == "shared" and not layout.aggregate:
        yield _variable("buffer", "global"), {"buffer": "global"}
    for count in _BUDGETS:
        if not options.budget or count < options.budget:
            yield _variable("budget", count), {"budget": count}
    now = options.regions[0] if len(options.regions) == 1 else ""
    fewer = _REGIONS if now == _DEFAULT else _FEWEST[_FEWEST.index(now) + 1 :] if now in _FEWEST else _FEWEST
    for kinds in fewer:
        yield _variable("regions", kinds), {"regions": (kinds,)}


def _variable(name: str, value: object) -> str:
    return f"{PREFIX}_{name.upper()}={value}"

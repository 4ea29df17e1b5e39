"""Which rung of kperfir/compile/spills.py helps which kernel of the tests: what its order follows from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from unittest import mock

from kernels.cases import CASES
from kperfir.code.cubin import stack_bytes
from kperfir.compile import spills
from sections.audit import TARGETS
from sections.corpus import silence
from sections.table import table
from support.compiling import attempt, instrumentation

if TYPE_CHECKING:
    from kernels.registry import Case
    from kperfir.compile.spills import Rung


def run() -> tuple[str, int]:
    """A row per kernel whose records would add to its stack; the status is 1 if more than _LEFT are left of one."""
    rows, worst = [], 0
    for target, arch in TARGETS.items():
        for name, case in CASES.items():
            if arch in case.archs and (row := measure(case, target)):
                rows.append([target, name, *row])
                worst = max(worst, min(row[1:]) - row[0])
    text = "## Kernels that are short of registers\n\n"
    text += "Bytes that a thread keeps on its stack: without records, with all of them, and by each rung alone.\n"
    text += "The first that is not above the plain kernel's is what a kernel gets.\n\n"
    columns = ("target", "kernel", "without records", "all records", *map(spell, spills.LADDER))
    return text + table(columns, rows), int(worst > _LEFT)


# What the worst kernel is left with, in bytes.
_LEFT = 16


def measure(case: Case, target: str) -> list[int]:
    """Bytes of stack without records, with all, and by each rung; empty if records add nothing."""
    with silence():
        full = _stack(case, target, ())
        plain = attempt(case, target).compiled
        if not full or plain is None or full <= _bytes(plain):
            return []
        return [_bytes(plain), full, *(_stack(case, target, (rung,)) for rung in spills.LADDER)]


def spell(rung: Rung) -> str:
    """What a rung changes."""
    if rung.holds_ctas:
        return "CTAs held"
    return "; ".join(f"{name} {_text(value)}" for name, value in rung.settings.items())


def _text(value: object) -> str:
    if value == spills.TRANSFERS:
        return "of transfers"
    return ",".join(value) if isinstance(value, tuple) else str(value)


def _stack(case: Case, target: str, ladder: tuple[Rung, ...]) -> int:
    """With records, where these rungs are all there are; 0 if it has none."""
    with mock.patch.object(spills, "LADDER", ladder), instrumentation():
        done = attempt(case, target)
    return _bytes(done.compiled) if done.layout else 0


def _bytes(compiled: Any) -> int:
    return stack_bytes(bytes(compiled.asm["cubin"])) or 0

"""The audit of every kernel of the tests, on every NVIDIA target: docs/audit.md."""

from __future__ import annotations

import contextlib
import dataclasses
from collections import Counter
from typing import TYPE_CHECKING, Any

from kernels.cases import CASES
from kperfir.audit.builds import build_of, compile_with
from kperfir.audit.findings import describe
from kperfir.audit.kernel import audit_kernel
from kperfir.audit.verdicts import FAILED
from kperfir.config import resolve
from kperfir.errors import CompileError
from sections.corpus import silence
from sections.table import table
from support.compiling import attempt, instrumentation

if TYPE_CHECKING:
    from kernels.registry import Case
    from kperfir.audit.builds import Build
    from kperfir.config import Options

TARGETS = {"sm_80": 80, "sm_90": 90, "sm_100": 100}


def run() -> tuple[str, int]:
    """Audit all; the status is 1 if one that compiles cannot be audited, or records were lost."""
    audits = {(target, name): audit for target in TARGETS for name, audit in audit_all(target).items()}
    parts = ["## Regions\n", regions(audits), "\n## Regions that do not hold what they are named after\n"]
    parts += [failures(audits), "\n## Registers, stack and occupancy\n", footprints(audits)]
    lost = any(region["verdict"] == "lost" for audit in audits.values() for region in audit["code"]["regions"])
    return "\n".join(parts), int(lost)


def audit_all(target: str) -> dict[str, dict[str, Any]]:
    """Audits by the name of the case; kernels that run without records, or that Triton cannot compile, are left out."""
    audits = {}
    for name, case in CASES.items():
        if TARGETS[target] not in case.archs:
            continue
        with silence(), contextlib.suppress(CompileError):
            with instrumentation():
                instrumented = attempt(case, target)
            if instrumented.compiled is not None:
                build = build_of(instrumented.compiled, instrumented=True)
                audits[name] = audit_kernel(build, compiler(case, target), resolve({})).as_json()
    return audits


def compiler(case: Case, target: str) -> Any:
    """Compiles a case again with other options, or a bound of registers."""

    def compile(options: Options | None, /, maxnreg: int = 0) -> Build:
        bounded = dataclasses.replace(case, options={**case.options, "maxnreg": maxnreg}) if maxnreg else case
        return compile_with(options, lambda: attempt(bounded, target).compiled)

    return compile


def regions(audits: dict[tuple[str, str], dict[str, Any]]) -> str:
    """A row per target."""
    rows = []
    for target in TARGETS:
        mine = [audit for (where, _), audit in audits.items() if where == target]
        found = [region for audit in mine for region in audit["code"]["regions"]]
        verdicts = Counter(region["verdict"] for region in found)
        arithmetic = sum(region["arithmetic"] for region in found if region["kind"] not in _CONTAINERS)
        moved = sum(region["arithmetic_left"] for region in found if region["kind"] not in _CONTAINERS)
        rows.append([
            target, len(mine), len(found), *(verdicts[name] for name in ("ok", "moved", "empty", "lost", "removed")),
            sum(region["anchors"] for region in found if region["kind"] not in _CONTAINERS),
            f"{moved / arithmetic:.1%}" if arithmetic else "",
            sum(audit["code"]["records"] for audit in mine), sum(region["copies"] > 1 for region in found),
        ])  # fmt: skip
    columns = (
        "target", "kernels", "regions", "ok", "moved", "empty", "lost", "removed", "anchors of leaf regions",
        "arithmetic that left its leaf region", "records in machine code", "regions duplicated by ptxas",
    )  # fmt: skip
    return table(columns, rows)


_CONTAINERS = ("kernel", "loop", "iteration", "prologue", "epilogue", "user")


def failures(audits: dict[tuple[str, str], dict[str, Any]]) -> str:
    """A row per region that failed."""
    rows = [
        [target, name, region["verdict"], describe(region)]
        for (target, name), audit in audits.items()
        for region in audit["code"]["regions"]
        if region["verdict"] in FAILED
    ]
    return table(("target", "kernel", "verdict", "what happened"), rows) if rows else "None.\n"


def footprints(audits: dict[tuple[str, str], dict[str, Any]]) -> str:
    """A row per kernel whose records cost occupancy or stack, and a summary of the others."""
    rows, changes = [], []
    for (target, name), audit in audits.items():
        before, after, cheaper = audit["before"], audit["after"], audit["cheaper"]
        changes.append(after["registers"] - before["registers"])
        worse = after["ctas_per_sm"] < before["ctas_per_sm"] or any(
            after[key] > before[key] for key in ("stack_bytes", "stack_accesses")
        )
        if worse:
            rows.append([
                target, name, *(f"{before[key]} → {after[key]}" for key in ("ctas_per_sm", "registers", "stack_bytes")),
                f"{before['stack_accesses']} → {after['stack_accesses']}", after["limiter"],
                audit["step"] or "", cheaper["setting"] if cheaper else "none of those tried",
                cheaper["note"] if cheaper else "",
            ])  # fmt: skip
    changes.sort()
    text = f"{len(audits) - len(rows)} of {len(audits)} kernels keep their occupancy and add nothing to the stack. "
    text += f"Registers per thread change by {changes[len(changes) // 2]:+d} at the median, "
    text += f"from {changes[0]:+d} to {changes[-1]:+d}. The others:\n\n"
    columns = (
        "target", "kernel", "CTAs per SM", "registers", "stack bytes", "stack accesses", "limited by",
        "registers at that step", "cheaper setting that avoids it", "with that",
    )  # fmt: skip
    notes = [[target, name, audit["note"]] for (target, name), audit in audits.items() if audit["note"]]
    said = "\nWhat was done where records would have taken registers to the stack (kperfir/compile/spills.py):\n\n"
    return text + table(columns, rows) + said + table(("target", "kernel", "note"), notes)

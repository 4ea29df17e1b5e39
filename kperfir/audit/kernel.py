"""The audit of one kernel: its regions, what it takes before and after, and a cheaper setting if that is too much.

audit = audit_kernel(instrumented, compile)
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kperfir.audit.builds import Build, disassemble, resource_usage
from kperfir.audit.regions import Code, CodeAudit, audit_code
from kperfir.audit.resources import Footprint, footprint
from kperfir.capture.layout_json import parse_layout
from kperfir.code.ptx import parse_ptx
from kperfir.code.sass import parse_sass
from kperfir.config import PREFIX, Options, resolve
from kperfir.errors import CompileError

if TYPE_CHECKING:
    from collections.abc import Callable

    from kperfir.code.sass import MachineProgram

    # Compiles the kernel again with these options, or as it is; raises if that fails.
    Compile = Callable[[Options | None], Build]

# What is tried where records cost too much, from the most telling to the least.
_CHEAPER: tuple[dict[str, Any], ...] = (
    {"buffer": "global"}, {"budget": 8}, {"budget": 4}, {"regions": ("memory",)}, {"regions": ("mma",)},
    {"regions": ("minimal",)}, {"regions": ("kernel",)},
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cheaper:
    """A setting that avoids what the one in force costs, as environment variables, and what the kernel then takes."""

    setting: str
    footprint: Footprint


@dataclass(frozen=True, slots=True)
class KernelAudit:
    """`before` is the kernel without records, `after` with them; `cheaper`, if that is worse, what would help.

    `note` is what was done about registers when it was compiled (kperfir/compile/spills.py).
    """

    kernel: str
    target: str
    layout_hash: int
    code: CodeAudit
    before: Footprint
    after: Footprint
    cheaper: Cheaper | None
    note: str = ""

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return dataclasses.asdict(self)


def audit_kernel(instrumented: Build, compile: Compile, options: Options | None = None) -> KernelAudit:
    """Audit a kernel that was compiled with records.

    Args:
        instrumented: The code that is audited.
        compile: Makes its other variants.
        options: What cheaper settings are derived from; default: those of the environment.

    Raises:
        CompileError: ``unmarked-code``: another version of kperfir compiled it, whose records cannot be told.
        ValueError: If the code is not as Triton and ptxas write it.
        Exception: Whatever `compile` raises for the plain kernel.
    """
    layout = parse_layout(instrumented.layout)
    sass, ptx = _machine_code(instrumented), parse_ptx(instrumented.ptx, instrumented.kernel)
    if any(frame.stamps for frame in layout.frames) and not any(each.stamp for each in ptx.instructions):
        raise CompileError(
            "unmarked-code", what="the code does not say which of its instructions are records",
            where=f"kernel {instrumented.kernel}", found="no line of its PTX marked as a stamp",
            expected="code that this kperfir compiled", fix="capture it again: another version compiled what is cached",
        )  # fmt: skip
    code = audit_code(Code(ptx, sass), layout)
    plain = compile(None)
    before, after = _footprint(plain, _machine_code(plain)), _footprint(instrumented, sass)
    cheaper = None
    if after.is_worse_than(before):
        cheaper = _find_cheaper(before, compile, options or resolve())
    return KernelAudit(
        instrumented.kernel, layout.target, layout.hash, code, before, after, cheaper, instrumented.note
    )  # fmt: skip


def _find_cheaper(before: Footprint, compile: Compile, options: Options) -> Cheaper | None:
    for changes in _CHEAPER:
        try:
            build = compile(dataclasses.replace(options, **changes))
            after = _footprint(build, _machine_code(build))
        except Exception:  # A setting with which it does not compile is not the one to recommend.
            continue
        if not after.is_worse_than(before):
            return Cheaper(
                ", ".join(f"{PREFIX}_{name.upper()}={_spell(value)}" for name, value in changes.items()), after
            )
    return None


def _spell(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _machine_code(build: Build) -> MachineProgram:
    return parse_sass(disassemble(build.cubin), build.kernel)


def _footprint(build: Build, sass: MachineProgram) -> Footprint:
    usage = resource_usage(build.cubin, build.kernel)
    return footprint(usage, sass, arch=build.arch, threads=build.threads, shared_bytes=build.shared_bytes)

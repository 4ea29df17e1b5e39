"""The audit of one kernel: its regions, what it takes before and after, and a cheaper setting if that is too much.

audit = audit_kernel(instrumented, compile)
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kperfir.audit.builds import Build, disassemble, resource_usage
from kperfir.audit.cheaper import Cheaper, Excess, find_cheaper
from kperfir.audit.regions import Code, CodeAudit, audit_code
from kperfir.audit.resources import Footprint, footprint
from kperfir.capture.layout_json import parse_layout
from kperfir.code.ptx import parse_ptx
from kperfir.code.residency import most_registers
from kperfir.code.sass import parse_sass
from kperfir.config import resolve
from kperfir.errors import CompileError

if TYPE_CHECKING:
    from kperfir.audit.cheaper import Compile
    from kperfir.code.sass import MachineProgram
    from kperfir.config import Options


@dataclass(frozen=True, slots=True)
class KernelAudit:
    """`before` is the kernel without records, `after` with them; `cheaper`, if that is worse, what would help.

    Attributes:
        note: What was done about registers when it was compiled (kperfir/compile/spills.py).
        step: Registers with which as many CTAs would fit as without records; 0 where registers cost none.
    """

    kernel: str
    target: str
    layout_hash: int
    code: CodeAudit
    before: Footprint
    after: Footprint
    cheaper: Cheaper | None
    note: str = ""
    step: int = 0

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
    step = 0
    if after.ctas_per_sm < before.ctas_per_sm and after.limiter == "registers":
        step = most_registers(threads=instrumented.threads, ctas=before.ctas_per_sm)
    cheaper = None
    if after.is_worse_than(before):
        excess = Excess(before, options or resolve(), layout, step)
        cheaper = find_cheaper(excess, compile, lambda build: _footprint(build, _machine_code(build)))
    return KernelAudit(
        instrumented.kernel, layout.target, layout.hash, code, before, after, cheaper, instrumented.note, step
    )  # fmt: skip


def _machine_code(build: Build) -> MachineProgram:
    return parse_sass(disassemble(build.cubin), build.kernel)


def _footprint(build: Build, sass: MachineProgram) -> Footprint:
    usage = resource_usage(build.cubin, build.kernel)
    return footprint(usage, sass, arch=build.arch, threads=build.threads, shared_bytes=build.shared_bytes)

"""`kperfir audit`: check in the machine code that records stayed around what they measure, and what they cost."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kperfir.cli.captures import matching_kernels
from kperfir.cli.table import Column, console, counted, print_table
from kperfir.compile.attempt import explain, hold_output
from kperfir.errors import CompileError, KPerfError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kperfir.capture.reader import KernelRecord

JSON_VERSION = 1


@click.command("audit")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--kernel", "pattern", metavar="GLOB", default="*", help="Only kernels whose name matches.")
@click.option(
    "--target", "targets", metavar="SM", multiple=True, type=click.Choice(["sm_80", "sm_90", "sm_100"]),
    help="Compile for this target instead, with the settings of the environment; may be repeated.",
)  # fmt: skip
@click.option("--no-store", is_flag=True, help="Keep no findings beside FILE for `kperfir report`.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(file: Path, pattern: str, targets: tuple[str, ...], *, no_store: bool, as_json: bool) -> int:
    """Check the machine code of the kernels of a capture.

    Needs Triton and its cache, as they were when FILE was captured. For each region: did the instructions that it
    measures stay between its clock reads, did others come in, were records lost. For each kernel: registers, stack,
    shared memory and occupancy without and with records, and a cheaper setting where records cost occupancy. What is
    found is kept in FILE.audit.json, from where `kperfir report` warns.
    """
    from kperfir.audit.findings import write_findings
    from kperfir.capture.reader import Capture
    from kperfir.cli.main import FAILED, OK

    capture = Capture.open(file)
    chosen = matching_kernels([kernel.name for kernel in capture.kernels], pattern)
    kernels = [kernel for kernel in capture.kernels if kernel.name in chosen]
    audits, failures = _audit_all(kernels, targets, capture.process.get("settings"))
    if as_json:
        click.echo(json.dumps({"kperfir_audit": JSON_VERSION, "kernels": audits, "failures": failures}, indent=2))
    else:
        _print(audits, failures)
    if audits and not targets and not no_store:
        try:
            write_findings(file, audits)
        except OSError as error:
            click.echo(f"kperfir: the findings are not kept beside the capture: {error}", err=True)
    return FAILED if failures and not audits else OK


def _audit_all(
    kernels: Sequence[KernelRecord], targets: Sequence[str], settings: Any
) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
    """Audits as JSON-ready data, and why others could not be made."""
    audits, failures = [], []
    for kernel in kernels:
        for target in targets or ("",):
            with hold_output() as output:  # Where ptxas fails, Triton prints all of the PTX.
                try:
                    audits.append(_audit(kernel, target, settings))
                    continue
                except KPerfError as error:
                    reason = str(error)
                except Exception as error:  # Whatever Triton raises about one kernel, the others are audited.
                    reason = explain(error, output.read())
                output.dropped = True
            failures.append({"kernel": kernel.name, "target": target, "reason": reason})
    return audits, failures


def _audit(kernel: KernelRecord, target: str, settings: Any) -> dict[str, Any]:
    try:
        from kperfir.audit.builds import CachedKernel
        from kperfir.audit.kernel import audit_kernel
        from kperfir.config import resolve

        cached = CachedKernel(kernel.name, kernel.facts)
    except ImportError as error:
        raise CompileError(
            "no-triton", what="an audit compiles kernels, which needs Triton", where="kperfir audit",
            found=str(error), fix="audit where the capture was made",
        ) from None  # fmt: skip
    arch = int(target.removeprefix("sm_") or 0)
    # What the capture was made with; for another target, what the environment says comes first.
    captured = {str(name): str(value) for name, value in settings.items()} if isinstance(settings, dict) else None
    options = resolve(captured if captured is None or not arch else captured | os.environ)
    build = cached.compile(options, arch) if arch else cached.captured(kernel.layout.text)
    audit = audit_kernel(build, lambda chosen, /, maxnreg=0: cached.compile(chosen, arch, maxnreg), options)
    return {**audit.as_json(), "compiled": kernel.facts.get("hash", "")}


def _print(audits: list[dict[str, Any]], failures: list[dict[str, str]]) -> None:
    from rich.text import Text

    from kperfir.audit.findings import describe
    from kperfir.audit.resources import Footprint
    from kperfir.audit.verdicts import FAILED

    out = console()
    if not audits and not failures:
        out.print("the capture has no kernel")
    for audit in audits:
        code = audit["code"]
        failed = [region for region in code["regions"] if region["verdict"] in FAILED]
        out.print(Text(f"{audit['kernel']} · {audit['target']}", style="bold"))
        ends = f"{code['set_up_instructions']:,} to set up, {code['copy_out_instructions']:,} to copy out"
        out.print(
            f"{counted(code['instructions'], 'machine instruction')}, {code['own_instructions']:,} of them for "
            f"{counted(code['records'], 'record')} ({ends}); {len(code['regions']) - len(failed)} of "
            f"{counted(len(code['regions']), 'region')} hold what they are named after"
        )
        print_table(out, _footprints(audit))
        if audit["note"]:
            out.print(Text(audit["note"]), soft_wrap=True)
        if audit["step"]:
            fewer = f"{audit['before']['ctas_per_sm']} to {audit['after']['ctas_per_sm']} CTAs per SM"
            out.print(Text(f"more than {audit['step']} registers per thread take occupancy from {fewer}"))
        if cheaper := audit["cheaper"]:
            text = f"cheaper: {cheaper['setting']}: takes no more than without records"
            out.print(Text(f"{text} ({cheaper['note']})" if cheaper["note"] else text, style="yellow"))
        elif Footprint(**audit["after"]).is_worse_than(Footprint(**audit["before"])):
            out.print(Text("cheaper: none of what was tried takes no more than without records", style="yellow"))
        out.print()
        print_table(out, _regions(code["regions"]))
        for region in failed:
            out.print(Text(describe(region), style="yellow"), soft_wrap=True)
        out.print()
    for failure in failures:
        out.print(Text(f"{failure['kernel']} {failure['target']}: not audited: {failure['reason']}"), soft_wrap=True)


def _footprints(audit: dict[str, Any]) -> list[Column]:
    rows = [audit["before"], audit["after"], *([audit["cheaper"]["footprint"]] if audit["cheaper"] else [])]
    names = ["without records", "with records", "cheaper"][: len(rows)]
    figures = {
        "registers": "registers", "stack bytes": "stack_bytes", "stack accesses": "stack_accesses",
        "shared bytes": "shared_bytes", "CTAs per SM": "ctas_per_sm", "instructions": "instructions",
    }  # fmt: skip
    return [
        Column("", names, right=False),
        *(Column(title, [f"{row[key]:,}" for row in rows]) for title, key in figures.items()),
        Column("limited by", [row["limiter"] for row in rows], right=False),
    ]


def _regions(regions: list[dict[str, Any]]) -> list[Column]:
    def cells(key: str) -> list[str]:
        return [f"{region[key]:,}" if region[key] else "" for region in regions]

    return [
        Column("region", [region["name"] for region in regions], right=False),
        Column("verdict", [region["verdict"] for region in regions], right=False),
        Column("anchors", [f"{region['anchors']:,}" for region in regions]),
        Column("left", [str(len(region["left"])) if region["left"] else "" for region in regions]),
        Column("entered", [str(len(region["entered"])) if region["entered"] else "" for region in regions]),
        Column("arithmetic", cells("arithmetic"), rank=1),
        Column("left", cells("arithmetic_left"), rank=2),
        Column("entered", cells("arithmetic_entered"), rank=3),
        Column("copies", [f"{region['copies']:g}" if region["copies"] > 1 else "" for region in regions], rank=4),
    ]

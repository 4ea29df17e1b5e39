"""`kperfir opt`: run compiler passes on IR files. `compile.opt` does the work."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("opt")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "--pass",
    "passes",
    multiple=True,
    metavar="PASS{OPTION=VALUE ...}",
    help="Pass to run, with its options in braces; a comma-separated pipeline; may be repeated.",
)
@click.option("--split-input-file", is_flag=True, help="Parts between '// -----' lines are modules of their own.")
@click.option("--verify-diagnostics", is_flag=True, help="Check diagnostics against '// expected-error' comments.")
@click.option("--locations", is_flag=True, help="Print source locations.")
@click.option("--print-after-all", is_flag=True, help="Print the module to stderr after each pass.")
@click.option("--timing", is_flag=True, help="Print to stderr how long each pass took.")
def command(file: Path, passes: tuple[str, ...], **flags: bool) -> int:
    """Run compiler passes on a .ttgir or .mlir FILE and print the result.

    docs/passes.md lists the passes. Without --pass the file is parsed, verified and printed.
    """
    from kperfir.compile.opt import OptOptions, run_opt

    return run_opt(OptOptions(file, passes=",".join(passes), **flags))

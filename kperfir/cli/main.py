"""The `kperfir` command: finds the verb, runs it, turns what happens into an exit code.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 done but records were dropped, 4 slower (`kperfir compare`). Data go to
stdout, talk goes to stderr.
"""

from __future__ import annotations

import importlib
import io
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kperfir._activate import deactivate
from kperfir.errors import KPerfError

if TYPE_CHECKING:
    from collections.abc import Sequence

OK = 0
FAILED = 1
INCOMPLETE = 3
SLOWER = 4

# Verb to one line of help: so that neither help nor a verb imports the others.
VERBS = {
    "report": "Show where the time goes, per region and source line.",
    "compare": "Show which regions changed between two captures.",
    "advise": "Say what to change in a kernel, and what it should gain.",
    "whatif": "Run a script with a change to its kernels, and see what it gains.",
    "export": "Write a capture for Perfetto, Chrome, or as a table.",
    "merge": "Write captures of several processes on one time axis.",
    "view": "Open a trace or a capture in Perfetto's own UI, offline.",
    "inspect": "Show what a .kpf file holds.",
    "audit": "Check in machine code that records stayed around what they measure.",
    "run": "Run a script with its Triton kernels profiled.",
    "bundle": "Compile kernels here, to run where there is a GPU and no compiler.",
    "demo": "Profile two kernels on the simulated device and show the result.",
    "doctor": "Check that kperfir works on this machine.",
    "opt": "Run compiler passes on IR files.",
    "version": "Show the version.",
}


class _Verbs(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        module = importlib.import_module(f"kperfir.cli.{cmd_name}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl(list(VERBS.items()))


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="kperfir", message="kperfir %(version)s")
def kperfir() -> None:
    """Timelines from inside Triton kernels.

    `TRITON_KPERF=1 python script.py`, or `kperfir run script.py`, writes a .kpf file; `kperfir report` and `kperfir
    export` read it, on any machine. Exit codes: 0 done, 1 failed, 2 wrong usage, 3 done but records were dropped, 4
    slower (`kperfir compare`).
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code. Errors are printed, never raised."""
    for name in ("stdout", "stderr"):  # Whoever started us may have closed them.
        if getattr(sys, name) is None:
            # Like Python's own streams it does not own its descriptor, so nobody is warned at exit that it is open.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            setattr(sys, name, os.fdopen(nowhere, "w", encoding="utf-8", closefd=False))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # Bars and dots are not worth an error where they cannot be shown.
    if arguments is None:
        # This process is the tool. With variables that are exported for programs it would have a session of its own,
        # beside that of `kperfir run`, and Triton would compile for the simulated device in `kperfir audit`.
        deactivate()
    streams = sys.stdout, sys.stderr
    try:
        result = kperfir.main(args=arguments, prog_name="kperfir", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        return FAILED
    except KPerfError as error:
        click.echo(f"kperfir: {error}", err=True)
        return error.exit_code
    except ImportError as error:
        if not (error.name or "").startswith("kperfir._native"):
            raise
        click.echo(f"kperfir: {_native_missing(error)}", err=True)
        return FAILED
    except BrokenPipeError:
        _let_go_of_stdout()
        return OK  # Whoever reads has read enough, as in `kperfir report x.kpf | head`.
    except SystemExit:
        # What click makes of the same, where it comes before all is written: streams that are silent, and an exit.
        if sys.stdout is streams[0]:
            raise
        sys.stdout, sys.stderr = streams
        _let_go_of_stdout()
        return OK
    except OSError as error:
        if error.filename is not None:
            raise
        # A fault of a file names it; without a name it is stdout's, such as a full disk.
        _let_go_of_stdout()
        click.echo(f"kperfir: {_stdout_failed(error)}", err=True)
        return FAILED
    return result if isinstance(result, int) else OK


def _native_missing(error: ImportError) -> KPerfError:
    return KPerfError(
        "native-missing",
        where=str(Path(__file__).parent.parent),
        found=str(error),
        fix="install the wheel (`make`), and start `kperfir`: in a checkout, `python -m kperfir` finds the source",
    )


def _stdout_failed(error: OSError) -> KPerfError:
    return KPerfError(
        "write-failed",
        what="the output cannot be written",
        where="stdout",
        found=error.strerror or str(error),
        fix="make room on the disk, or send the output elsewhere",
    )


def _let_go_of_stdout() -> None:
    """Keep Python from failing again when it flushes at exit."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
    os.close(devnull)

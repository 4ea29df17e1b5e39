"""`kperfir demo`: profile two kernels on the simulated device and show the result."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("demo")
@click.option(
    "-o",
    "--out",
    "folder",
    type=click.Path(path_type=Path, file_okay=False, exists=True, writable=True),
    default=Path(),
    help="Folder for demo.kpf and demo.pftrace; default: the working directory.",
)
def command(folder: Path) -> int:
    """Profile a matmul and a flash attention on the simulated device, and show the result.

    Needs neither a GPU nor torch. Times are simulated.
    """
    from kperfir.demo import main

    return main(folder)

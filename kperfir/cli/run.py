"""`kperfir run`: run a script with its Triton kernels profiled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kperfir.cli.captures import require_other_file


@click.command("run", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("-o", "--out", type=click.Path(path_type=Path), metavar="OUT.kpf", help="File to write, or its folder.")
@click.option("--kernels", metavar="GLOB,...", help="Kernels to record.")
@click.option("--regions", metavar="KIND,...", help="What to record inside a kernel.")
@click.option("--iterations", metavar="FIRST:LAST:STEP", help="Iterations of each loop to record.")
@click.option("--device", metavar="NAME", help="auto, simt, cuda or hip.")
@click.option("--launches", type=int, metavar="N", help="Launches kept per kernel.")
@click.option("--cuda-as-cpu", is_flag=True, help="Let a script that asks torch for CUDA run on the simulated device.")
@click.argument("script", nargs=-1, required=True, metavar="SCRIPT [ARGS]...", type=click.UNPROCESSED)
def command(script: tuple[str, ...], *, cuda_as_cpu: bool, **settings: Any) -> int:
    """Run a script with its Triton kernels profiled.

    SCRIPT is a file, or -m and a module; ARGS go to it. Settings not given here come from the environment
    (TRITON_KPERF_*). The exit code is the script's.
    """
    from kperfir.config import resolve
    from kperfir.runtime.run import run_script

    if isinstance(settings.get("out"), Path):
        require_other_file(settings["out"], [Path(script[0])])
    options = resolve(active=True, **settings)
    return run_script(list(script), options, cuda_as_cpu=cuda_as_cpu)

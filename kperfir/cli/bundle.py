"""`kperfir bundle`: kernels and their launches in a folder, to run where there is a GPU and no compiler."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


@click.group("bundle")
def command() -> None:
    """Compile kernels here, run them where there is a GPU and no compiler."""


@command.command("create", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("-o", "--out", type=click.Path(path_type=Path), required=True, metavar="FOLDER", help="The bundle.")
@click.option("--targets", default="sm_80,sm_90,sm_100", show_default=True, metavar="sm_NN,...", help="To compile for.")
@click.option("--kernels", metavar="GLOB,...", help="Kernels to put in.")
@click.option("--regions", metavar="KIND,...", help="What to record inside a kernel.")
@click.option("--launches", type=int, default=1, show_default=True, metavar="N", help="Launches per kernel.")
@click.option(
    "--bytes", "limit_bytes", type=int, default=256 << 20, show_default=True, help="Most memory of all launches."
)
@click.option("--chip", metavar="NAME", help="The simulated chip that the script runs on.")
@click.option("--proton", is_flag=True, help="Compile each kernel with Proton's records too.")
@click.option("--cuda-as-cpu", is_flag=True, help="Let a script that asks torch for CUDA run on the simulated device.")
@click.argument("script", nargs=-1, required=True, metavar="SCRIPT [ARGS]...", type=click.UNPROCESSED)
def create(
    script: tuple[str, ...], out: Path, *, targets: str, limit_bytes: int, chip: str | None, cuda_as_cpu: bool,
    proton: bool,
    **settings: Any,
) -> int:  # fmt: skip
    """Run SCRIPT on the simulated device; put what it launches into FOLDER, compiled with and without records."""
    from kperfir.bundle.create import Request, create_bundle, describe
    from kperfir.config import resolve

    options = resolve(active=True, device="simt", simt_chip=chip, **settings)
    request = Request(_targets(targets), options, limit_bytes, cuda_as_cpu, proton)
    bundle = create_bundle(list(script), out, request)
    click.echo(describe(bundle))
    click.echo(f"next, where the GPU is: python {out}/run.pyz {out}", err=True)
    return 0


@command.command("run", context_settings={"ignore_unknown_options": True}, add_help_option=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def run(arguments: tuple[str, ...]) -> int:
    """Run a bundle, check and time its kernels, and make a .kpf of what was recorded."""
    from kperfir.bundle.__main__ import main

    return main(arguments)


@command.command("collect")
@click.argument("folder", type=click.Path(path_type=Path))
def collect(folder: Path) -> int:
    """Make a .kpf file of what the last run of the bundle in FOLDER recorded."""
    from kperfir.bundle.collect import collect as collect_results

    path = collect_results(folder)
    click.echo(f"next: kperfir report {path}", err=True)
    return 0


@command.command("answer")
@click.argument("folder", type=click.Path(path_type=Path))
def answer(folder: Path) -> int:
    """Say what the last run of the bundle in FOLDER shows, next to what the SIMT device predicts.

    Results, ends, slowdown, what a record costs, how clocks fit, and measured over predicted times of regions, as
    Markdown. The first time it runs the bundle on the simulated device (FOLDER/predicted).
    """
    from kperfir.bundle.answers import answer as find_answers
    from kperfir.bundle.answers import describe

    click.echo(describe(find_answers(folder)), nl=False)
    return 0


def _targets(text: str) -> tuple[int, ...]:
    from kperfir.errors import UsageError

    found = []
    for word in text.split(","):
        number = word.strip().removeprefix("sm_")
        if not number.isdecimal():
            raise UsageError(
                "bad-option", where="--targets", found=word, expected="names such as sm_90, with commas between",
                fix="--targets sm_80,sm_90",
            )  # fmt: skip
        found.append(int(number))
    return tuple(found)

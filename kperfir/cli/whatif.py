"""`kperfir whatif`: run a script with a change to its kernels, and see what it gains."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from kperfir.cli.captures import exit_code
from kperfir.cli.table import console, percent
from kperfir.errors import CaptureError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kperfir.advice.whatif import Outcome

JSON_VERSION = 1


@click.command("whatif", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option(
    "--set", "changes", multiple=True, metavar="NAME=VALUE", help="Launch option or constexpr; may be repeated."
)
@click.option("--kernel", "pattern", metavar="GLOB", default="*", help="Only kernels whose name matches.")
@click.option("-o", "--out", type=click.Path(path_type=Path), metavar="FOLDER", help="Keep the three captures here.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--cuda-as-cpu", is_flag=True, help="Let a script that asks torch for CUDA run on the simulated device.")
@click.argument("script", nargs=-1, required=True, metavar="SCRIPT [ARGS]...", type=click.UNPROCESSED)
def command(
    script: tuple[str, ...],
    changes: tuple[str, ...],
    pattern: str,
    out: Path | None,
    *,
    as_json: bool,
    cuda_as_cpu: bool,
) -> int:
    """Run SCRIPT as it is and with a change to its kernels; say what was gained and what the advisor expected.

    Without --set, the change of the finding that promises most is tried. The script runs three times. What it computes
    is not compared.
    """
    from kperfir.advice.whatif import Request, what_if
    from kperfir.runtime.run import check_script

    check_script(list(script), "kperfir whatif")
    request = Request(list(script), dict(map(_setting, changes)), pattern, cuda_as_cpu)
    if out:
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CaptureError(
                "write-failed", where=str(out), found=error.strerror or str(error), expected="a folder for captures",
                fix="name another one (-o)",
            ) from None  # fmt: skip
        outcomes = what_if(request, out)
    else:
        with tempfile.TemporaryDirectory(prefix="kperfir-whatif-") as folder:
            outcomes = what_if(request, Path(folder))
    if as_json:
        click.echo(json.dumps({"kperfir_whatif": JSON_VERSION, "outcomes": [o.to_dict() for o in outcomes]}, indent=2))
    else:
        for outcome in outcomes:
            _print(outcome)
    return exit_code(outcomes[0].dropped)


def _setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise UsageError(
            "bad-option", where="--set", found=text, expected="NAME=VALUE", fix="for example --set num_stages=3"
        )
    try:
        return name, json.loads(value.lower() if value in ("True", "False") else value)
    except json.JSONDecodeError:
        return name, value


def _print(outcome: Outcome) -> None:
    out = console()
    for line in _lines(outcome):
        out.print(Text(line), soft_wrap=True)


def _lines(outcome: Outcome) -> Iterator[str]:
    yield f"{outcome.kernel} with {', '.join(f'{name}={value}' for name, value in outcome.settings.items())}"
    achieved = "an unknown gain, as cycles are missing" if outcome.achieved is None else f"{outcome.achieved:.2f}x"
    yield f"  achieved {achieved}: {outcome.before_cycles:,} cycles before, {outcome.after_cycles:,} after"
    if outcome.expected is None:
        yield "  the advisor expected nothing of this change"
        return
    expected = f"  expected {outcome.expected:.2f}x, at most {outcome.bound:.2f}x ({outcome.rule})"
    if outcome.error is not None:
        expected += f": {percent(abs(outcome.error))} too {'high' if outcome.error > 0 else 'low'}"
    yield expected

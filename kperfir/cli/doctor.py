"""`kperfir doctor`: does kperfir work on this machine, and if not, what to do about it."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
import warnings
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kperfir.errors import KPerfError

if TYPE_CHECKING:
    from collections.abc import Callable

JSON_VERSION = 1
OLDEST_PYTHON = (3, 11)
_CHILD_SECONDS = 300


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found. `status`: ok, warning (kperfir works, but perhaps not as wanted), failed."""

    status: str
    detail: str
    fix: str = ""


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(*, as_json: bool) -> int:
    """Check that kperfir works on this machine.

    Loads the compiler plugin and runs a kernel on the simulated device, each in a process of its own. Exit code 1 if a
    check failed.
    """
    findings: dict[str, Finding] = {}
    for name, check in CHECKS.items():
        findings[name] = _run(check)
        if not as_json:
            _print(name, findings[name])
    if as_json:
        checks = [{"check": name, **asdict(finding)} for name, finding in findings.items()]
        click.echo(json.dumps({"kperfir_doctor": JSON_VERSION, "checks": checks}, indent=2))
    return int(any(finding.status == "failed" for finding in findings.values()))


def check_python() -> Finding:
    """Python and platform are ones that the wheel is made for."""
    found = f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    if sys.version_info < OLDEST_PYTHON:
        return Finding("failed", found, f"use Python {'.'.join(map(str, OLDEST_PYTHON))} or newer")
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        return Finding("failed", found, "capture on x86_64 Linux; reports and exports need no Triton")
    return Finding("ok", found)


def check_triton() -> Finding:
    """Triton is there, in the version that the plugin was built for."""
    from kperfir.compile.abi import audited_triton

    wanted = audited_triton().triton_version
    try:
        found = version("triton")
    except PackageNotFoundError:
        return Finding("failed", "not installed", f"pip install triton=={wanted}")
    if found != wanted:
        return Finding("failed", f"{found}; the plugin is for {wanted}", f"pip install triton=={wanted}")
    return Finding("ok", found)


def check_libtriton() -> Finding:
    """The libtriton.so is a build that the plugin was audited against."""
    from kperfir.compile.abi import check_libtriton as recognise

    build = recognise()
    return Finding("ok", f"audited build {build.build_id[:12]} ({build.wheel})")


def check_plugin() -> Finding:
    """The plugin loads. In a child: a plugin that does not fit would take this process down."""
    from kperfir.compile.plugin import plugin_path

    path = plugin_path()
    _child("-c", "from kperfir.compile.plugin import load_plugin; load_plugin()")
    return Finding("ok", f"{path.name} loads into Triton")


def check_native() -> Finding:
    """The native module is there, with decoder and SIMT device."""
    try:
        from kperfir._native import record, simt
    except ImportError as error:
        return Finding("failed", str(error), "install the wheel of kperfir, or run `make`")
    return Finding("ok", f"{record.__name__}, {simt.__name__}")


def check_activation() -> Finding:
    """`TRITON_KPERF=1` reaches a Python that imports nothing of ours."""
    active = _child("-c", "import sys; print('kperfir._activate' in sys.modules)", TRITON_KPERF="1").strip()
    if active != "True":
        return Finding(
            "warning",
            "TRITON_KPERF=1 has no effect: kperfir_activate.pth is not in site-packages",
            "install the wheel of kperfir; `kperfir run` and kperfir.profile() work without",
        )
    return Finding("ok", "TRITON_KPERF=1 takes effect at interpreter start")


def check_environment() -> Finding:
    """The variables TRITON_KPERF* are known and have values that can be used."""
    from kperfir.config import PREFIX, resolve

    names = sorted(name for name in os.environ if name.startswith(PREFIX))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        resolve()
    if caught:
        return Finding("warning", "; ".join(str(warning.message) for warning in caught), "correct or unset them")
    if os.environ.get("TRITON_INTERPRET", "0") not in ("", "0"):
        return Finding("warning", "TRITON_INTERPRET is set: kernels are not compiled", "unset it to profile them")
    return Finding("ok", ", ".join(f"{name}={os.environ[name]}" for name in names) or "nothing set")


def check_simt() -> Finding:
    """A kernel, compiled with instrumentation, runs on the SIMT device and its timeline decodes."""
    from kperfir.timeline import load

    with tempfile.TemporaryDirectory() as folder:
        capture = Path(folder) / "probe.kpf"
        _child("-m", "kperfir.cli.probe", str(capture), TRITON_CACHE_DIR=folder)
        timeline = load(capture)
        spans, cycles = timeline.span_count, timeline.launches["cycles"].tolist()
    if not spans or not cycles:
        detail = "; ".join(["the kernel ran, but its timeline is empty", *timeline.notes])
        return Finding("failed", detail, "report this as a bug, with this output")
    return Finding("ok", f"a kernel ran in {cycles[0]} simulated cycles; {spans} spans decoded")


CHECKS: dict[str, Callable[[], Finding]] = {
    "python": check_python,
    "triton": check_triton,
    "libtriton": check_libtriton,
    "native module": check_native,
    "plugin": check_plugin,
    "activation": check_activation,
    "environment": check_environment,
    "simt device": check_simt,
}


class _ChildFailed(Exception):
    """A child process did not end well; the message is the last of what it said."""


def _child(*arguments: str, **environment: str) -> str:
    """Run Python on `arguments` without our own settings, and return what it prints."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("TRITON_KPERF")}
    try:
        done = subprocess.run(
            [sys.executable, "-P", *arguments],  # -P: not what lies in the working directory.
            env={**inherited, **environment},
            capture_output=True,
            text=True,
            timeout=_CHILD_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise _ChildFailed(f"no answer within {_CHILD_SECONDS} s") from None
    if done.returncode:
        told = done.stderr.rstrip().splitlines()
        # The exception and its message, without the traceback.
        last = max((number for number, line in enumerate(told) if not line.startswith(" ")), default=0)
        ending = f"killed by signal {-done.returncode}" if done.returncode < 0 else f"exit code {done.returncode}"
        raise _ChildFailed("\n".join([ending, *told[last:]]))
    return done.stdout


def _run(check: Callable[[], Finding]) -> Finding:
    try:
        return check()
    except KPerfError as error:
        facts = [f"{name} {value}" for name in ("where", "found", "expected") if (value := getattr(error, name))]
        return Finding("failed", "; ".join([error.what, *facts]), error.fix)
    except (_ChildFailed, ImportError) as error:
        return Finding("failed", str(error), "if the checks above are ok, report this as a bug, with this output")


def _print(name: str, finding: Finding) -> None:
    colour = {"ok": "green", "warning": "yellow", "failed": "red"}[finding.status]
    plain = "NO_COLOR" in os.environ
    status = f"{finding.status:<8}" if plain else click.style(f"{finding.status:<8}", fg=colour)
    detail = finding.detail.replace("\n", "\n" + " " * 24)
    click.echo(f"{status}{name:<16}{detail}")
    if finding.fix:
        click.echo(f"{'':24}fix: {finding.fix}")

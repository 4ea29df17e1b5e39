"""Run passes on an IR file and print the result: the implementation of `kperfir opt`.

    run_opt(OptOptions(Path("x.mlir"), passes="kperf-insert-regions,kperf-assign-frames"))

With `verify_diagnostics`, comments in the file say what must be reported, as with mlir-opt:

    // expected-error@+1 {{part of the message}}
    kperf.record end "never started"
"""

from __future__ import annotations

import contextlib
import re
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kperfir.compile.attempt import hold_output
from kperfir.compile.custom_passes import run_passes
from kperfir.compile.pipeline import parse_pipeline
from kperfir.compile.plugin import load_plugin
from kperfir.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

SPLIT_MARKER = "// -----"

_EXPECTED = re.compile(r"expected-(error|warning|remark|note)(?:@([+-]\d+|above|below))?\s*\{\{(.*?)\}\}")
_LOCATION = re.compile(r'^loc\("([^"]*)":(\d+):(\d+)\):', re.M)  # How Triton prints what the parser reports.
_REPORTED = re.compile(
    r"^(?P<file>[^\n:]*):(?P<line>\d+):\d+: (?P<severity>error|warning|remark|note): (?P<text>.*)$", re.M
)
# What Triton adds to every failure, besides the whole module.
_NOISE = ("Failures have been detected", "Pipeline failed while executing")


@dataclass(frozen=True, slots=True)
class OptOptions:
    """What to do with a file.

    Attributes:
        file: A .ttgir or .mlir file.
        passes: Pass pipeline (see `pipeline`); empty to parse and print.
        split_input_file: Treat each part between ``// -----`` lines as a module of its own.
        verify_diagnostics: Check what is reported against the file's comments, and print nothing else.
        locations: Print source locations.
        print_after_all: Print the module to stderr after each pass.
        timing: Print to stderr how long each pass took.
    """

    file: Path
    passes: str = ""
    split_input_file: bool = False
    verify_diagnostics: bool = False
    locations: bool = False
    print_after_all: bool = False
    timing: bool = False


@dataclass(frozen=True, slots=True)
class _Diagnostic:
    severity: str
    line: int
    text: str


def run_opt(options: OptOptions) -> int:
    """Run the passes; modules go to stdout, diagnostics to stderr.

    Returns:
        0, or 1 if a module could not be parsed, a pass failed, or diagnostics are not the expected ones.

    Raises:
        UsageError: If the file cannot be read or the pipeline makes no sense.
        PluginError: If the plugin cannot be loaded.
    """
    load_plugin()
    try:
        text = options.file.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(
            "file-missing",
            what="an IR file cannot be read",
            where=str(options.file),
            found=error.strerror or str(error),
        ) from None
    failures = 0
    for number, part in enumerate(_split(text, options)):
        said: list[str] = []
        printed, module = _run_part(part, options, said)
        sys.stderr.writelines(said)
        if options.verify_diagnostics:
            failures += _verify(part, printed, options.file)
            continue
        if module is None:
            failures += 1
            printed = "\n".join(match[0] for match in _reported(printed)) + "\n"
        sys.stderr.write(printed)
        if module is None:
            continue
        if number:
            print(SPLIT_MARKER)
        print(module)
    return int(failures > 0)


def _split(text: str, options: OptOptions) -> Iterator[str]:
    """The parts of a file, each behind as many empty lines as put it at its own line number."""
    if not options.split_input_file:
        yield text
        return
    line = 0
    for part in re.split(rf"^{SPLIT_MARKER}.*$", text, flags=re.M):
        yield "\n" * line + part
        line += part.count("\n")


def _run_part(text: str, options: OptOptions, said: list[str]) -> tuple[str, str | None]:
    """What was reported, and the module, unless something failed; `said` gets what passes did."""
    from triton._C.libtriton import amd, ir, nvidia

    context = ir.context()
    ir.load_dialects(context)
    nvidia.load_dialects(context)
    amd.load_dialects(context)
    result: str | None = None
    with tempfile.TemporaryDirectory(prefix="kperfir-") as folder, hold_output() as output:
        output.dropped = True
        path = Path(folder) / options.file.name  # Its name shows in the names of regions.
        path.write_text(text, encoding="utf-8")
        with contextlib.suppress(RuntimeError):  # The diagnostics say more.
            result = _run_passes(path, context, options, said)
        printed = output.read().replace(str(path), str(options.file))
    printed = _LOCATION.sub(r"\1:\2:\3:", printed)
    if result is None and not printed:
        printed = f"{options.file}:1:1: error: failed without a diagnostic\n"
    return printed, result


def _run_passes(path: Path, context: Any, options: OptOptions, said: list[str]) -> str:
    from triton._C.libtriton import ir

    module = ir.parse_mlir_module(str(path), context)
    module.context = context
    _run_one_by_one(module, options, said)
    return _print(module, options)


def _run_one_by_one(module: Any, options: OptOptions, said: list[str]) -> None:
    """Run each pass by itself, verify what it made, and say what it did. The time is without the verifier."""
    for call in parse_pipeline(options.passes):
        start = time.perf_counter()
        run_passes(module, str(call))
        milliseconds = 1e3 * (time.perf_counter() - start)
        if not module.verify():
            raise RuntimeError(f"{call} left a module that is not valid")
        if options.print_after_all:
            said.append(f"// after {call}\n{_print(module, options)}\n")
        if options.timing:
            said.append(f"// {milliseconds:9.3f} ms  {call}\n")


def _print(module: Any, options: OptOptions) -> str:
    text: str = module.str() if options.locations else module.str_nodebug()
    return text


def _reported(printed: str) -> list[re.Match[str]]:
    return [match for match in _REPORTED.finditer(printed) if not match["text"].startswith(_NOISE)]


def _verify(text: str, printed: str, file: Path) -> int:
    """Compare what was reported with what comments expect; returns the number of differences."""
    reported = [_Diagnostic(match["severity"], int(match["line"]), match["text"]) for match in _reported(printed)]
    problems: list[str] = []
    for expected in _expectations(text):
        found = next((d for d in reported if _matches(d, expected)), None)
        if found is None:
            problems.append(f"{file}:{expected.line}: expected {expected.severity} was not reported: {expected.text}")
        else:
            reported.remove(found)
    problems += [f"{file}:{d.line}: unexpected {d.severity}: {d.text}" for d in reported]
    for problem in problems:
        print(problem, file=sys.stderr)
    return len(problems)


def _matches(reported: _Diagnostic, expected: _Diagnostic) -> bool:
    return reported.severity == expected.severity and reported.line == expected.line and expected.text in reported.text


def _expectations(text: str) -> Iterator[_Diagnostic]:
    for number, line in enumerate(text.splitlines(), start=1):
        for severity, where, message in _EXPECTED.findall(line):
            offset = {"": 0, "above": -1, "below": 1}.get(where)
            yield _Diagnostic(severity, number + (int(where) if offset is None else offset), message)

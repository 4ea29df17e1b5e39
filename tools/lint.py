"""Run the linters over the whole project and report every failure, not just the first.

    python tools/lint.py        # ruff, mypy, clang-format, the fast part of clang-tidy
    python tools/lint.py --all  # the whole of clang-tidy, on the C++ tests too
    python tools/lint.py --fix  # let ruff and clang-format rewrite what they can

clang-tidy needs the compile commands of the wheel's build; a file that passed is not
checked again until it, a header that it includes or the configuration changes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
BUILD = ROOT / "build" / "wheel"
COMMANDS = ROOT / "build" / "clang-tidy"
PASSED = COMMANDS / "passed"
SOURCE_FOLDERS = ("lib", "passes", "python")
CPP_FOLDERS = (*SOURCE_FOLDERS, "test")
# The part of .clang-tidy that needs no path-sensitive analysis: seconds per file.
FAST_CHECKS = "-*,bugprone-use-after-move,bugprone-dangling-handle,bugprone-infinite-loop,\
bugprone-sizeof-expression,bugprone-string-constructor,bugprone-suspicious-memset-usage,\
misc-unused-using-decls,misc-definitions-in-headers,modernize-use-override,\
performance-for-range-copy,performance-unnecessary-value-param,readability-container-size-empty,\
llvm-namespace-comment"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one linter ended."""

    name: str
    failed: bool
    seconds: float


def run(name: str, *command: str | Path) -> Outcome:
    started = time.monotonic()
    result = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=False)
    if result.returncode:
        print(f"--- {name} ---\n{result.stdout}{result.stderr}", flush=True)
    return Outcome(name, bool(result.returncode), time.monotonic() - started)


def cpp_files(*suffixes: str, folders: tuple[str, ...] = CPP_FOLDERS) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in suffixes)


def included_headers() -> dict[Path, set[Path]]:
    """The headers of this project, generated ones too, that the build saw each source include."""
    command = [BIN / "ninja", "-C", BUILD, "-t", "deps"]
    listing = subprocess.run(command, text=True, capture_output=True, check=True).stdout
    headers: dict[Path, set[Path]] = {}
    for entry in listing.split("\n\n"):
        files = [Path(os.path.normpath(BUILD / line.strip())) for line in entry.splitlines()[1:]]
        ours = {file for file in files if file.is_relative_to(ROOT) and not file.is_relative_to(ROOT / ".deps")}
        for source in (file for file in ours if file.suffix == ".cpp"):
            headers.setdefault(source, set()).update(ours - {source})
    return headers


def tidy_keys(sources: list[Path], checks: str) -> dict[Path, str]:
    """A hash per source of all that its findings depend on."""
    included, all_headers = included_headers(), set(cpp_files(".h", ".td"))
    keys = {}
    for source in sources:
        digest = hashlib.sha256(checks.encode() + (ROOT / ".clang-tidy").read_bytes())
        for file in [source, *sorted(included.get(source, all_headers))]:
            digest.update(file.read_bytes() if file.exists() else b"")
        keys[source] = digest.hexdigest()
    return keys


def tidy_one(source: Path, checks: str) -> subprocess.CompletedProcess[str]:
    command = [BIN / "clang-tidy", "-p", COMMANDS, "--quiet", "--warnings-as-errors=*"]
    if checks:
        command.append(f"--checks={checks}")
    return subprocess.run([*command, source], cwd=ROOT, text=True, capture_output=True, check=False)


def write_commands() -> set[Path]:
    """Give clang-tidy one command per source, where the build has one per host instruction set."""
    entries = json.loads((BUILD / "compile_commands.json").read_text())
    first = {entry["file"]: entry for entry in reversed(entries)}
    COMMANDS.mkdir(parents=True, exist_ok=True)
    (COMMANDS / "compile_commands.json").write_text(json.dumps(list(first.values())))
    return {Path(file) for file in first}


def clang_tidy(checks: str, folders: tuple[str, ...]) -> Outcome:
    """Check every source in `folders` that the build compiles; `checks` empty means all of .clang-tidy."""
    started = time.monotonic()
    compiled = write_commands()
    sources = [source for source in cpp_files(".cpp", folders=folders) if source in compiled]
    keys = tidy_keys(sources, checks)
    PASSED.mkdir(parents=True, exist_ok=True)
    pending = [source for source, key in keys.items() if not (PASSED / key).exists()]
    failed = False
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda source: tidy_one(source, checks), pending)
        for source, result in zip(pending, results, strict=True):
            if result.returncode:
                failed = True
                print(f"--- clang-tidy {source.relative_to(ROOT)} ---\n{result.stdout}", flush=True)
            else:
                (PASSED / keys[source]).touch()
    name = f"clang-tidy ({len(pending)} of {len(keys)} files)"
    return Outcome(name, failed, time.monotonic() - started)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--all", action="store_true", help="the whole of clang-tidy")
    parser.add_argument("--fix", action="store_true", help="rewrite what can be rewritten, check nothing")
    options = parser.parse_args()
    return report(fixes() if options.fix else checks(options.all))


def fixes() -> list[Outcome]:
    return [
        run("ruff check", BIN / "ruff", "check", "--no-cache", "--fix"),
        run("ruff format", BIN / "ruff", "format", "--no-cache"),
        run("clang-format", BIN / "clang-format", "-i", *cpp_files(".cpp", ".h")),
    ]


def checks(everything: bool) -> list[Outcome]:  # noqa: FBT001 - the command line's own switch.
    outcomes = [
        run("ruff check", BIN / "ruff", "check", "--no-cache"),
        run("ruff format", BIN / "ruff", "format", "--check", "--no-cache"),
        run("mypy --strict", BIN / "mypy", "--cache-dir", ROOT / "build" / "mypy"),
        run("clang-format", BIN / "clang-format", "--dry-run", "-Werror", *cpp_files(".cpp", ".h")),
    ]
    outcomes.append(clang_tidy("", CPP_FOLDERS) if everything else clang_tidy(FAST_CHECKS, SOURCE_FOLDERS))
    return outcomes


def report(outcomes: list[Outcome]) -> int:
    for outcome in outcomes:
        state = "FAILED" if outcome.failed else "ok"
        print(f"{outcome.name:32} {state:6} {outcome.seconds:6.1f} s", flush=True)
    return int(any(outcome.failed for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())

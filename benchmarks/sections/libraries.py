"""Every kernel that operations of real libraries launch: instrumented, compiled for other targets, run, compared.

An outcome is kept in build/corpus until what it depends on changes, so that a run that was stopped goes on.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import json
import os
import subprocess
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sections.table import table

if TYPE_CHECKING:
    from collections.abc import Iterator

# Modules of test/libraries, and the distributions that they call.
LIBRARIES = {"liger": "liger-kernel", "fla": "fla-core"}
OPERATION_SECONDS = 1800
TARGETS = ("sm_90", "sm_100")
KEPT = Path(__file__).resolve().parents[2] / "build" / "corpus"

Outcome = dict[str, Any]


def run() -> tuple[str, int]:
    """Check all operations; the status is 1 if kperfir loses, changes or cannot instrument one of their kernels."""
    parts, status = [], 0
    for library, distribution in LIBRARIES.items():
        names = [operation.name for operation in importlib.import_module(f"libraries.{library}").OPERATIONS]
        key = fingerprint(library, distribution)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            checked = pool.map(lambda name, of=library, key=key: checked_once(of, name, key), names)
            outcomes = dict(zip(names, checked, strict=True))
        parts.append(f"## {distribution} {importlib.metadata.version(distribution)}\n\n{describe(outcomes)}")
        status |= int(any(faults(outcome) for outcome in outcomes.values()))
    return "\n".join(parts), status


def fingerprint(library: str, distribution: str) -> str:
    """Return a digest of all that an outcome depends on: the installed packages, and how operations are called."""
    digest = hashlib.sha256()
    for package in ("kperfir", "triton", "torch", distribution):
        found = importlib.metadata.distribution(package)
        digest.update(f"{package} {found.version} {found.read_text('RECORD') if package == 'kperfir' else ''}".encode())
    operations = Path(str(importlib.import_module(f"libraries.{library}").__file__))
    for source in (operations, *(operations.with_name(f"{name}.py") for name in ("operation", "check"))):
        digest.update(source.read_bytes())
    return digest.hexdigest()


def checked_once(library: str, name: str, key: str) -> Outcome:
    """Check an operation, or return what came of it before."""
    file = KEPT / library / f"{name}.json"
    if file.exists():
        kept = json.loads(file.read_text())
        if kept["key"] == key:
            return dict(kept["outcome"])
    outcome = check(library, name)
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_suffix(".part")
    unfinished.write_text(json.dumps({"key": key, "outcome": outcome}))
    unfinished.replace(file)
    return outcome


def check(library: str, name: str) -> Outcome:
    """Check one operation in a process of its own, whose death is an outcome too."""
    command = [sys.executable, "-P", "-m", "libraries.check", library, name, "--assemble"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path.endswith("test"))}
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=OPERATION_SECONDS
        )
    except subprocess.TimeoutExpired:
        return {"error": "", "died": f"took more than {OPERATION_SECONDS} s", "differing": [], "kernels": {}}
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [""]
        return {"error": "", "died": f"exit status {done.returncode}: {lines[-1]}", "differing": [], "kernels": {}}
    outcome: Outcome = json.loads(done.stdout.splitlines()[-1])
    return outcome


def faults(outcome: Outcome) -> list[str]:
    """Say what is wrong with kperfir in an outcome; that plain Triton cannot run an operation is no fault."""
    found = [outcome["died"]] if outcome.get("died") else []
    if outcome["error"].startswith("DeviceError"):  # The device is ours.
        found.append(outcome["error"])
    if outcome["differing"]:
        found.append(f"results {outcome['differing']} differ")
    for name, kernel in outcome["kernels"].items():
        found += [f"{name}: {fault}" for fault in kernel_faults(kernel)]
    return found


def kernel_faults(kernel: dict[str, Any]) -> Iterator[str]:
    if kernel["fallback"]:
        yield f"fallback on sm_80: {kernel['fallback']}"
    for target, problem in kernel["compiled"].items():
        if problem:
            yield f"{target}: {problem}"
    if kernel["unbalanced"]:
        yield f"{kernel['unbalanced']} regions without an end"
    if not kernel["launches"]:
        yield "compiled, but none of its launches is in the capture"


def describe(outcomes: dict[str, Outcome]) -> str:
    """Two tables: operations, and the totals over their kernels."""
    rows = []
    for name, outcome in outcomes.items():
        kernels = outcome["kernels"].values()
        if outcome["error"] and not faults(outcome):
            result = f"does not run in plain Triton either: {outcome['error']}"
        else:
            result = "; ".join(faults(outcome)) or (
                "as plain, but for the order of atomics" if outcome["unstable"] else "as plain"
            )
        counts = (sum(kernel[key] for kernel in kernels) for key in ("launches", "records", "dropped"))
        rows.append([name, len(kernels), *counts, " ".join(result.replace("|", "/").split())[:300]])
    totals: dict[str, list[bool]] = defaultdict(list)
    for outcome in outcomes.values():
        for kernel in outcome["kernels"].values():
            totals["instrumented for sm_80, run, decoded"].append(not kernel["fallback"] and kernel["launches"] > 0)
            totals["all regions balanced"].append(not kernel["unbalanced"])
            for target in TARGETS:
                totals[f"instrumented and assembled for {target}"].append(kernel["compiled"].get(target) == "")
    summary = table(("kernels", "yes", "of"), [[what, sum(all_), len(all_)] for what, all_ in totals.items()])
    heading = ("operation", "kernels", "launches", "records", "records dropped, buffer full", "results and faults")
    return f"{summary}\n{table(heading, rows)}"

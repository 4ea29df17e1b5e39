"""Findings of an audit, kept in a file beside the capture, so that `kperfir report` can warn where there is no Triton.

``out.kpf`` has its findings in ``out.kpf.audit.json``. They belong to a kernel by the hashes of its layout and of its
compilation: findings on a kernel that was compiled otherwise since are not used.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from kperfir.audit.verdicts import FAILED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from kperfir.capture.reader import Capture

VERSION = 1
SUFFIX = ".audit.json"
_NAMED = 3  # Instructions that a warning names.


def findings_path(capture: Path) -> Path:
    """The file beside `capture`."""
    return capture.with_name(capture.name + SUFFIX)


def write_findings(capture: Path, kernels: Iterable[dict[str, Any]]) -> Path:
    """Keep the audits of kernels of a capture, beside those of its others that are there.

    Args:
        capture: The file.
        kernels: `KernelAudit.as_json`, with ``compiled``: the hash of the compilation, of the capture's facts.

    Raises:
        OSError: If the file cannot be written.
    """
    path = findings_path(capture)
    kept = {_key_of(audit): audit for audit in [*read_findings(capture), *kernels]}
    text = json.dumps({"kperfir_audit": VERSION, "kernels": list(kept.values())}, indent=1)
    path.write_text(text + "\n", encoding="utf-8")
    return path


def read_findings(capture: Path) -> list[dict[str, Any]]:
    """The audits that are kept beside a capture; none if there are none, or not as this version writes them."""
    try:
        found = json.loads(findings_path(capture).read_text(encoding="utf-8"))
        audits = found["kernels"] if found["kperfir_audit"] == VERSION else []
        for audit in audits:
            _key_of(audit)
            for region in audit["code"]["regions"]:
                if region["verdict"] in FAILED:
                    describe(region)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return []
    return list(audits)


def warnings_of(captures: Iterable[Capture]) -> Iterator[str]:
    """A line for each region whose times are not those of what it is named after."""
    for capture in captures:
        audits = {_key_of(audit): audit for audit in read_findings(capture.path)}
        for kernel in capture.kernels:
            audit = audits.get((kernel.layout.hash, kernel.facts.get("hash", "")))
            for region in audit["code"]["regions"] if audit else ():
                if region["verdict"] in FAILED:
                    yield f"{kernel.name}: {describe(region)}; see `kperfir audit`"


def _key_of(audit: dict[str, Any]) -> tuple[int, str]:
    return int(audit["layout_hash"]), str(audit["compiled"])


def describe(region: dict[str, Any]) -> str:
    """One line on a region that failed."""
    return f"region {region['name']} {FAILED[region['verdict']]}{_instructions(region)}"


def _instructions(region: dict[str, Any]) -> str:
    parts = []
    for key, verb in (("left", "left it"), ("entered", "came in")):
        words = [_opcode(move["instruction"]) for move in region[key]]
        if words:
            more = f" and {len(words) - _NAMED} more" if len(words) > _NAMED else ""
            parts.append(f"{', '.join(words[:_NAMED])}{more} {verb}")
    return f": {'; '.join(parts)}" if parts else ""


def _opcode(instruction: str) -> str:
    words = instruction.split(" ")
    return words[1] if words[0].startswith("@") and len(words) > 1 else words[0]

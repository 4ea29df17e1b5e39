"""Findings of an audit, kept in a file beside the capture, so that `kperfir report` can warn where there is no Triton.

``out.kpf`` has its findings in ``out.kpf.audit.json``. They belong to a kernel by the hash of its layout: findings on a
kernel that was compiled otherwise since are not used.
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
    """Keep the audits of a capture's kernels.

    Raises:
        OSError: If the file cannot be written.
    """
    path = findings_path(capture)
    text = json.dumps({"kperfir_audit": VERSION, "kernels": list(kernels)}, indent=1)
    path.write_text(text + "\n", encoding="utf-8")
    return path


def read_findings(capture: Path) -> list[dict[str, Any]]:
    """The audits that are kept beside a capture; none if there are none, or not as this version writes them."""
    try:
        found = json.loads(findings_path(capture).read_text(encoding="utf-8"))
        return list(found["kernels"]) if found["kperfir_audit"] == VERSION else []
    except (OSError, ValueError, KeyError, TypeError):
        return []


def warnings_of(captures: Iterable[Capture]) -> Iterator[str]:
    """A line for each region whose times are not those of what it is named after."""
    for capture in captures:
        audits = {audit.get("layout_hash"): audit for audit in read_findings(capture.path)}
        for kernel in capture.kernels:
            audit = audits.get(kernel.layout.hash)
            for region in audit["code"]["regions"] if audit else ():
                if region["verdict"] in FAILED:
                    yield f"{kernel.name}: {describe(region)}; see `kperfir audit`"


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

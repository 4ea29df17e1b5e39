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
    kept = {_key_of(audit): audit for audit in [*read_findings(capture)[0], *kernels]}
    text = json.dumps({"kperfir_audit": VERSION, "kernels": list(kept.values())}, indent=1)
    path.write_text(text + "\n", encoding="utf-8")
    return path


def read_findings(capture: Path) -> tuple[list[dict[str, Any]], str]:
    """The audits that are kept beside a capture, and why they cannot be used where there are some and they cannot."""
    path = findings_path(capture)
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if found["kperfir_audit"] != VERSION:
            return [], f"they are of version {found['kperfir_audit']!r}, and this kperfir reads {VERSION}"
        audits = found["kernels"]
        for audit in audits:
            _key_of(audit)
            for region in audit["code"]["regions"]:
                if region["verdict"] in FAILED:
                    describe(region)
    except FileNotFoundError:
        return [], ""
    except OSError as error:
        return [], error.strerror or str(error)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        return [], f"the file is damaged: {type(error).__name__}: {error}"
    return list(audits), ""


def warnings_of(captures: Iterable[Capture]) -> Iterator[str]:
    """A line for each region whose times are not those of what it is named after, and for findings of no use."""
    for capture in captures:
        found, why_not = read_findings(capture.path)
        if why_not:
            path = findings_path(capture.path)
            yield f"{path.name}: the findings of the audit are not used: {why_not} (`kperfir audit` writes it again)"
        audits = {_key_of(audit): audit for audit in found}
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

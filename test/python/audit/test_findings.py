"""Findings beside a capture: of all its kernels, of the code that ran, and never in the way of a report."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kperfir.audit.findings import findings_path, read_findings, warnings_of, write_findings


def audit(layout_hash: int, compiled: str, verdict: str = "moved") -> dict[str, Any]:
    region = {
        "name": "load k.py:3",
        "verdict": verdict,
        "left": [{"instruction": "@!P0 LDG.E R4, [R2]"}],
        "entered": [],
    }
    return {"layout_hash": layout_hash, "compiled": compiled, "code": {"regions": [region]}}


def capture(path: Path, *kernels: tuple[str, int, str]) -> Any:
    made = [SimpleNamespace(name=n, layout=SimpleNamespace(hash=h), facts={"hash": c}) for n, h, c in kernels]
    return SimpleNamespace(path=path, kernels=made)


def test_findings_of_one_kernel_leave_those_of_another(tmp_path: Path) -> None:
    path = tmp_path / "x.kpf"
    write_findings(path, [audit(1, "a")])
    write_findings(path, [audit(2, "b")])
    write_findings(path, [audit(2, "b", "ok")])
    assert [(one["layout_hash"], one["code"]["regions"][0]["verdict"]) for one in read_findings(path)[0]] == [
        (1, "moved"),
        (2, "ok"),
    ]


def test_warning_is_of_the_code_that_ran(tmp_path: Path) -> None:
    path = tmp_path / "x.kpf"
    write_findings(path, [audit(1, "two stages", "ok"), audit(1, "three stages")])
    assert list(warnings_of([capture(path, ("k", 1, "two stages"), ("k", 1, "compiled since"))])) == []
    (warning,) = warnings_of([capture(path, ("k", 1, "three stages"))])
    assert "k: region load k.py:3 does not hold what it is named after" in warning
    assert "LDG.E left it" in warning


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "nonsense",
        '{"kperfir_audit": 1}',
        '{"kperfir_audit": 1, "kernels": [1]}',
        '{"kperfir_audit": 1, "kernels": 3}',
        '{"kperfir_audit": 2, "kernels": []}',
        json.dumps({"kperfir_audit": 1, "kernels": [{"layout_hash": 1, "compiled": "a"}]}),
        json.dumps({"kperfir_audit": 1, "kernels": [audit(1, "a") | {"code": {"regions": [{"verdict": "moved"}]}}]}),
        json.dumps({"kperfir_audit": 1, "kernels": [audit(1, "a") | {"code": {"regions": [{"verdict": []}]}}]}),
        '{"kperfir_audit": 1, "kernels": ' + "[" * 100_000 + "]" * 100_000 + "}",
    ],
)
def test_file_that_is_not_as_it_should_be_is_not_used_and_that_is_said(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.kpf"
    findings_path(path).write_text(text)
    assert read_findings(path)[0] == []
    (note,) = warnings_of([capture(path, ("k", 1, "a"))])
    assert note.startswith("x.kpf.audit.json: the findings of the audit are not used: ")
    assert ("version 2" if '": 2' in text else "damaged") in note


def test_no_file_is_no_fault(tmp_path: Path) -> None:
    assert list(warnings_of([capture(tmp_path / "x.kpf", ("k", 1, "a"))])) == []

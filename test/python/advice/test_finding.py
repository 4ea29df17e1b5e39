"""The form of findings, from Python, as JSON and on the command line."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pytest

from kperfir.advice.finding import ADVICE_VERSION, Advice, Change, Figure, Finding, Place
from kperfir.advice.registry import RULES

FIELDS = ["rule", "kernel", "title", "places", "figures", "speedup", "bound", "basis", "change", "verify"]


def finding(rule: str = "r", kernel: str = "k", speedup: float = 1.5, bound: float = 2.0) -> Finding:
    place = Place("load k.py:4", "load", "/src/k.py", 4, 0.25)
    figures = (Figure("wait_share", 0.25, "share"),)
    change = Change("raise num_stages", {"num_stages": 4})
    return Finding(rule, kernel, "loads are late", (place,), figures, speedup, bound, "formula", change)


def test_finding_as_json_has_its_fields_in_order() -> None:
    data = json.loads(json.dumps(finding().to_dict()))
    assert list(data) == FIELDS
    assert data["places"] == [{"region": "load k.py:4", "kind": "load", "file": "/src/k.py", "line": 4, "share": 0.25}]
    assert data["figures"] == [{"name": "wait_share", "value": 0.25, "unit": "share"}]
    assert data["change"] == {"what": "raise num_stages", "settings": {"num_stages": 4}}
    assert data["verify"] == "kperfir whatif --set num_stages=4 SCRIPT"


def test_change_of_the_source_is_verified_by_comparing_captures() -> None:
    found = dataclasses.replace(finding(), change=Change("swizzle"))
    assert found.to_dict()["verify"] == found.verify == "kperfir compare before.kpf after.kpf"


def test_numbers_of_numpy_are_plain_in_json() -> None:
    figures = (Figure("ctas", np.int64(3), "count"), Figure("share", np.float64("nan"), "share"))
    data = dataclasses.replace(finding(speedup=np.float64(1.5)), figures=figures).to_dict()
    assert json.dumps([data["speedup"], *(figure["value"] for figure in data["figures"])]) == "[1.5, 3, null]"


def test_numbers_that_json_lacks_are_null() -> None:
    assert finding(bound=math.inf).to_dict()["bound"] is None


def test_advice_as_json_groups_by_kernel() -> None:
    advice = Advice(("a.kpf",), ("simulated",), 3, ("k", "quiet"), (finding(),))
    data = advice.to_dict()
    assert data["kperfir_advice"] == ADVICE_VERSION
    assert {key: data[key] for key in ("files", "notes", "dropped")} == {
        "files": ["a.kpf"], "notes": ["simulated"], "dropped": 3
    }  # fmt: skip
    assert [(kernel["kernel"], len(kernel["findings"])) for kernel in data["kernels"]] == [("k", 1), ("quiet", 0)]


def test_figure_is_found_by_name() -> None:
    assert finding().figure("wait_share") == 0.25
    with pytest.raises(KeyError):
        finding().figure("nothing")


def test_every_rule_is_named_after_its_findings_and_tested() -> None:
    tests = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    for rule in RULES:
        assert tests.count(f'"{rule}"') >= 2, f"{rule} needs a test in which it applies and one in which it does not"

"""`kperfir report --json` is what its schema says, and the same each time; `--for-agent` fits in 2 kB."""

from __future__ import annotations

import json
import os
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator

import kperfir
from kperfir.advice.finding import Change, Figure, Finding, Place
from kperfir.cli.main import main
from kperfir.report.agent import MOST_BYTES, digest
from kperfir.report.html import page
from kperfir.report.model import CAUTION, JSON_VERSION, SORTS, Request, build
from support.synthetic import CaptureShape, write_matmul_capture

if TYPE_CHECKING:
    from conftest import RunPython

ADVISE_RULES = "kperfir.advice.advise.RULES"
SCHEMA = json.loads((resources.files("kperfir.report") / "report.schema.json").read_text())


def a_finding(number: int = 0, words: str = "") -> Finding:
    return Finding(
        rule=f"rule-{number}",
        kernel="matmul_kernel",
        title=f"Fault {number} {words}",
        places=(Place("dot kernel.py:24", "dot", "/src/kernel.py", 24, 0.25),),
        figures=(
            Figure("share", 0.25, "share"),
            Figure("cycles", 1234.0, "cycles"),
            Figure("x", float("nan"), "count"),
        ),
        speedup=1.5 + number / 100,
        bound=float("inf"),
        basis="1 / (1 - share)",
        change=Change(f"Change {number} {words}", {"num_stages": 4, f"BK{words}": number}),
    )


@pytest.fixture
def findings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ADVISE_RULES, {"test": lambda case: [a_finding(0), a_finding(1)]})


def strict(schema: Any) -> Any:
    """`schema` without room for fields that it does not name."""
    if isinstance(schema, dict):
        closed = {key: strict(value) for key, value in schema.items()}
        return closed | ({"additionalProperties": False} if "properties" in schema else {})
    return [strict(item) for item in schema] if isinstance(schema, list) else schema


def test_schema_is_one_and_of_this_version() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["properties"]["kperfir_report"] == {"const": JSON_VERSION}
    assert SCHEMA["properties"]["sort"]["enum"] == list(SORTS)


@pytest.mark.parametrize(
    "shape",
    [
        CaptureShape(launches=2, specialised=True),
        CaptureShape(words_per_warp=40),
        CaptureShape(launches=0),
        CaptureShape(simulated=False, strategy="ring", words_per_warp=64),
    ],
    ids=["whole", "dropped", "empty", "ring"],
)
def test_report_is_what_the_schema_says_and_no_more(tmp_path: Path, shape: CaptureShape) -> None:
    capture = tmp_path / "x.kpf"
    write_matmul_capture(capture, shape)
    timeline = kperfir.load(capture)
    for by in ("region", "line", "kind"):
        report = json.loads(json.dumps(build(timeline, Request(by=by, sort="self"))))
        assert [error.message for error in Draft202012Validator(strict(SCHEMA)).iter_errors(report)] == []
        assert bool(report["kernels"]) == bool(shape.launches)
        assert all(kernel["findings"] for kernel in report["kernels"])


def test_report_of_sums_is_what_the_schema_says_and_no_more(tmp_path: Path) -> None:
    capture = tmp_path / "x.kpf"
    write_matmul_capture(capture, CaptureShape(strategy="aggregate", specialised=True))
    timeline = kperfir.load(capture)
    for by in ("region", "line", "kind"):
        report = json.loads(json.dumps(build(timeline, Request(by=by, sort="p95"))))
        assert [error.message for error in Draft202012Validator(strict(SCHEMA)).iter_errors(report)] == []
        assert report["only_sums"] is True
        assert all(sum(row["histogram"]) == row["count"] > 0 for row in report["kernels"][0]["rows"])


def test_schema_refuses_what_is_not_a_report(tmp_path: Path) -> None:
    capture = tmp_path / "x.kpf"
    write_matmul_capture(capture)
    report = build(kperfir.load(capture), Request())
    report["kernels"][0]["rows"][0]["count"] = "many"
    del report["kernels"][0]["launches"][0]["cycles"]
    messages = " ".join(error.message for error in Draft202012Validator(SCHEMA).iter_errors(report))
    assert "'many' is not of type 'integer'" in messages
    assert "'cycles' is a required property" in messages


def test_json_is_the_same_whatever_the_hash_seed(tmp_path: Path, run_python: RunPython) -> None:
    capture = tmp_path / "x.kpf"
    write_matmul_capture(capture, CaptureShape(launches=2, specialised=True))
    texts = {run_python("-m", "kperfir", "report", capture, "--json", PYTHONHASHSEED=seed).stdout for seed in "12"}
    assert len(texts) == 1
    assert json.loads(texts.pop())["kperfir_report"] == JSON_VERSION


@pytest.mark.usefixtures("findings")
def test_page_says_the_findings_first(tmp_path: Path) -> None:
    capture = tmp_path / "x.kpf"
    write_matmul_capture(capture)
    text = page(kperfir.load(capture))
    assert '"title":"Fault 1 "' in text
    assert text.index('id="findings"') < text.index('id="timeline"')


@pytest.mark.usefixtures("findings")
def test_digest_says_all_that_is_asked_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capture = tmp_path / "x.kpf"
    write_matmul_capture(capture)
    assert main(["report", str(capture), "--for-agent"]) == 0
    text = capsys.readouterr().out
    assert CAUTION in text
    assert text.index("Fault 1") < text.index("Fault 0")
    for part in (
        "gain: 1.51x expected", "dot kernel.py:24 (kernel.py:24) 25.0%", "share 25.0%, cycles 1,234 cycles, x unknown",
        "change: Change 1", "verify: kperfir whatif --set num_stages=4 --set BK=1 SCRIPT",
        "matmul_kernel: 1 launch,", "simulated",
    ):  # fmt: skip
        assert part in text
    assert len(text.encode()) <= MOST_BYTES


@pytest.mark.parametrize("words", ["", "längere Wörter " * 40], ids=["short", "long"])
def test_digest_fits_however_much_there_is_to_say(tmp_path: Path, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ADVISE_RULES, {"test": lambda case: [a_finding(number, words) for number in range(30)]})
    capture = tmp_path / "x.kpf"
    write_matmul_capture(capture, CaptureShape(words_per_warp=40))
    report = build(kperfir.load(capture), Request())
    text = digest(report)
    assert len(text.encode()) <= MOST_BYTES
    told = text.count("verify: ")
    assert told >= 1
    assert f"{30 - told} more findings" in text
    assert "records were dropped" in text


def test_digest_of_a_file_whose_name_is_not_utf8(tmp_path: Path) -> None:
    capture = Path(os.fsdecode(os.fsencode(tmp_path) + b"/x\xff.kpf"))
    write_matmul_capture(capture)
    assert len(digest(build(kperfir.load(capture), Request())).encode(errors="replace")) <= MOST_BYTES


def test_two_forms_at_once_are_refused(tmp_path: Path) -> None:
    assert main(["report", str(tmp_path / "x.kpf"), "--json", "--for-agent"]) == 2


def test_digest_says_what_is_not_there(tmp_path: Path) -> None:
    capture = tmp_path / "x.kpf"
    write_matmul_capture(capture)
    report = build(kperfir.load(capture), Request())
    (kernel,) = report["kernels"]
    for launch in kernel["launches"]:
        launch["ctas_total"] = 1000
    note = "launch 0 of matmul_kernel: 8 of 1000 CTAs were recorded"
    text = digest(report | {"notes": ["simulated: x", note], "kernels": [kernel] * 40})
    assert f"Caution: {note}." in text
    assert "CTAs of 1000" in text
    assert f"{40 - text.count('warps wait')} more kernels" in text
    assert "no launch was recorded" in digest(report | {"kernels": []})

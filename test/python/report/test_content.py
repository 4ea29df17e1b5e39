"""What is on the page, whatever the capture holds: hostile names, missing or changed sources, very long times."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import kperfir
from kperfir.advice.case import Case
from kperfir.advice.finding import Change, Figure, Finding, Place
from kperfir.cli.main import main
from kperfir.report.html import page
from kperfir.source import SourceReader
from support.page import Opened
from support.programs import Loop, Plan, Region, Role, Work, plan_program
from support.synthetic import CaptureShape, matmul_plan, write_capture, write_matmul_capture

Open = Callable[..., Opened]
HOSTILE = "</script><script>window.taken = 1</script><img src=x onerror='window.taken = 2'><!-- %%DATA%% &lt;"


def _page_of(plan: Plan, folder: Path, shape: CaptureShape | None = None) -> Path:
    capture, out = folder / "x.kpf", folder / "x.html"
    write_capture(capture, plan, shape or CaptureShape())
    assert main(["report", str(capture), "--html", str(out)]) == 0
    return out


def _with_file(plan: Plan, file: Path | str) -> Plan:
    for region in plan.regions:
        region["file"] = str(file)
    return plan


def _hostile_finding(case: Case) -> list[Finding]:
    place = Place(HOSTILE, "dot", "/nowhere", 1, 0.5)
    figures, change = (Figure(HOSTILE, 1.0, "cycles"),), Change(HOSTILE, {HOSTILE: 1})
    return [Finding("x", case.kernel, f"Fault: {HOSTILE}", (place,), figures, 2.0, 3.0, HOSTILE, change)]


def test_names_and_source_of_others_are_text(open_page: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kperfir.advice.advise.RULES", {"test": _hostile_finding})
    source = tmp_path / "kernel.py"
    source.write_text("".join(f"line {number} {HOSTILE}\n" for number in range(1, 40)))
    os.utime(source, (0, 0))
    plan = _with_file(matmul_plan(CaptureShape()), source)
    plan.kernel = HOSTILE
    for region in plan.regions:
        region["name"] = f"{region['name']} {HOSTILE}"
    plan.roles = [(HOSTILE, warps, code) for _, warps, code in plan.roles]
    out = _page_of(plan, tmp_path)
    opened = open_page(out)
    opened.press("]", "ArrowDown", "ArrowDown")
    assert HOSTILE in opened.page.inner_text("#details b")
    assert opened.details()["role"] == HOSTILE
    assert f"Fault: {HOSTILE}" in opened.page.inner_text("#findings h3")
    assert opened.page.inner_text("#findings").count(HOSTILE) == 7
    assert "2.00 times as fast is expected, 3.00 times at most" in opened.page.inner_text("#findings")
    assert HOSTILE in opened.page.inner_text("#source")
    assert HOSTILE in opened.page.inner_text("#summary")
    assert opened.js("window.taken") is None
    assert opened.page.locator("img").count() == 0
    assert out.read_text().count("<script") == 3


def test_nothing_else_can_run_or_be_loaded(tmp_path: Path) -> None:
    text = _page_of(matmul_plan(CaptureShape()), tmp_path).read_text()
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    assert "default-src 'none'" in policy[1]
    assert "unsafe" not in policy[1]
    assert re.findall(r"(?:https?:)?//\w[\w.]*/", re.sub(r"<script.*?</script>", "", text, flags=re.S)) == []
    assert re.findall(r"\b(?:src|href)=", re.sub(r"<script.*?</script>", "", text, flags=re.S)) == []


def test_page_of_the_same_capture_is_the_same(tmp_path: Path) -> None:
    capture = tmp_path / "x.kpf"
    write_matmul_capture(capture, CaptureShape(launches=2))
    assert page(kperfir.load(capture)) == page(kperfir.load(capture))


def test_missing_source_is_said_and_heat_is_shown_all_the_same(open_page: Open, tmp_path: Path) -> None:
    opened = open_page(_page_of(_with_file(matmul_plan(CaptureShape()), "/nowhere/kernel.py"), tmp_path))
    text = opened.page.inner_text("#source")
    assert "No source text: not on this machine" in text
    assert "(dot)" in text


def test_source_that_is_newer_than_the_capture_is_said(open_page: Open, tmp_path: Path) -> None:
    source = tmp_path / "kernel.py"
    source.write_text("x = 1\n" * 40)
    out = _page_of(_with_file(matmul_plan(CaptureShape()), source), tmp_path)
    os.utime(tmp_path / "x.kpf", (1, 1))
    assert main(["report", str(tmp_path / "x.kpf"), "--html", str(out)]) == 0
    assert "after the capture: lines may have moved" in open_page(out).page.inner_text("#source")


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("secret.txt", b"secret", "not a Python file"),
        ("gone.py", None, "not on this machine"),
        ("wrong.py", b"# coding: no-such-coding\n", "cannot be read"),
        ("binary.py", b"\xff\xfe\x00", "cannot be read"),
        ("large.py", b"#" * ((4 << 20) + 1), "larger than 4 MiB"),
    ],
)
def test_source_that_cannot_be_read_has_a_reason(tmp_path: Path, name: str, content: bytes | None, reason: str) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    lines, why = SourceReader().lines(str(path))
    assert lines == []
    assert why.startswith(reason)


def test_times_past_32_bits_are_drawn_where_they_are(open_page: Open, tmp_path: Path) -> None:
    """Ten iterations of a second each."""
    loop = Loop([Region("dot", [Work(1_400_000_000, 1_400_000_001)], line=24)], trips=(10,))
    plan = plan_program([Role("default", 1, [Region("kernel", [loop], line=10)])])
    out = _page_of(plan, tmp_path, CaptureShape(ctas=1))
    opened = open_page(out)
    opened.press("]", "ArrowDown", "ArrowDown", "ArrowDown", *["]"] * 9)
    spans = kperfir.load(tmp_path / "x.kpf").spans
    last = spans[spans["kind"] == "iteration"].iloc[9]
    assert last["start_ns"] > 1 << 32
    assert opened.details()["iteration"] == "9"
    assert opened.details()["from"] == f"{last['start_ns'] / 1e6:.2f} ms"
    assert len(opened.pixels()) > 5


def test_capture_without_a_launch_makes_a_page(open_page: Open, tmp_path: Path) -> None:
    write_matmul_capture(tmp_path / "x.kpf", CaptureShape(launches=0))
    assert main(["report", str(tmp_path / "x.kpf"), "--html", str(tmp_path / "x.html")]) == 0
    opened = open_page(tmp_path / "x.html")
    assert "No launch was recorded" in opened.page.inner_text("#summary")
    assert not opened.page.is_visible("#timeline")


def test_page_that_cannot_be_written_is_one_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_matmul_capture(tmp_path / "x.kpf")
    assert main(["report", str(tmp_path / "x.kpf"), "--html", str(tmp_path / "no" / "x.html")]) == 1
    assert "the report cannot be written" in capsys.readouterr().err


def test_spans_past_the_limit_are_left_out_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    capture = tmp_path / "x.kpf"
    write_matmul_capture(capture, CaptureShape(launches=3))
    monkeypatch.setattr("kperfir.report.html.MOST_SPANS", 10)
    text = page(kperfir.load(capture))
    assert "2 later launches are in the tables only" in text
    assert 'id="spans-1"' not in text

"""The page of `kperfir report --html` in a real browser: it draws, zooms, selects, links, and asks for nothing.

`open_page` checks for each test that there was no message on the console, no error, and no request but the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

import kperfir
from kperfir.analysis.registry import ANALYSES
from kperfir.cli.main import main
from support.page import Opened
from support.synthetic import CaptureShape, write_matmul_capture

Open = Callable[..., Opened]


def test_page_draws_tables_and_timeline(opened: Opened) -> None:
    assert opened.page.title() == "matmul_kernel - kperfir report"
    assert "simulated" in opened.page.inner_text("header")
    assert opened.page.inner_text("#notes").count("simulated: times come from") == 1
    assert len(opened.pixels()) > 20
    assert len(opened.pixels("overview")) > 2


def test_table_has_the_rows_of_the_report(opened: Opened, capture: Path) -> None:
    rows = opened.table("#summary tr[data-region]")
    summary = kperfir.load(capture).summary()
    assert [row[0] for row in rows] == summary["name"].astype(str).tolist()
    assert [row[1] for row in rows] == [f"{count:,}" for count in summary["count"]]
    opened.page.click("#summary th button:text('count')")
    counts = [row[1] for row in opened.table("#summary tr[data-region]")]
    assert counts == [f"{count:,}" for count in sorted(summary["count"], reverse=True)]
    opened.page.click("#summary th button:text('count')")  # Again: in the order of the program.
    assert [row[0] for row in opened.table("#summary tr[data-region]")] == summary["name"].astype(str).tolist()


def test_overlap_heat_and_waves_are_those_of_the_analyses(opened: Opened, capture: Path) -> None:
    timeline = kperfir.load(capture)
    overlap = ANALYSES["overlap"].run(timeline)
    shown = opened.table("#overlap tbody tr")
    assert [row[0] for row in shown] == overlap["activity"].tolist()
    assert [row[1] for row in shown] == [f"{cycles:,}" for cycles in overlap["cycles"]]
    row, column = 0, overlap["activity"].tolist().index("dot")
    assert shown[row][3 + column] == f"{100 * overlap['dot'].iloc[row]:.1f} %"
    waves = ANALYSES["waves"].run(timeline)
    assert opened.page.inner_text("#occupancy").count(f"{waves['waves'].iloc[0]:.2f} waves") == 2
    heat = ANALYSES["heat"].run(timeline).set_index("line")["heat"]
    lines = opened.page.locator(".code .row:not(.dim) span:first-child").all_inner_texts()
    assert lines == [f"{100 * heat[line]:.1f} %" for line in sorted(heat.index)]


def test_spans_on_the_page_are_those_of_the_timeline(opened: Opened, capture: Path) -> None:
    """Walked with the keys through one warp: name, cycles and iteration of each."""
    opened.press("]", "ArrowDown")
    spans = kperfir.load(capture).spans
    first = spans[(spans["launch"] == 0) & (spans["cta"] == 0) & (spans["warp"] == 0)]
    level = first[first["depth"] == 1]
    opened.press("ArrowDown")
    for number, (name, cycles) in enumerate(zip(level["name"], level["duration_cycles"], strict=True)):
        if number:
            opened.press("]")
        assert opened.page.inner_text("#details b") == name
        assert opened.details().get("cycles") == f"{cycles:,}"
    opened.press("ArrowUp")
    assert opened.page.inner_text("#details b") == "matmul_kernel"
    opened.press("ArrowUp")
    assert opened.page.inner_text("#details b") == "CTA 0"
    assert opened.details()["role"] == "default"


def test_zoom_and_move_by_keys_buttons_and_wheel(opened: Opened) -> None:

    def shown() -> tuple[float, float]:
        text = opened.page.inner_text("#window")
        scale = {"ns": 1, "µs": 1000}
        low, high = re.findall(r"([\d.,]+) (ns|µs)", text)[:2]
        return float(low[0].replace(",", "")) * scale[low[1]], float(high[0].replace(",", "")) * scale[high[1]]

    low, high = shown()
    assert low == 0
    opened.press("+")
    assert shown() == pytest.approx((high / 4, high * 3 / 4), rel=0.01)
    opened.press("ArrowRight")
    assert shown() == pytest.approx((high * 3 / 8, high * 7 / 8), rel=0.01)
    opened.page.click("[data-act=fit]")
    opened.settle()
    assert shown() == (0, high)
    opened.press("]", "ArrowDown", "ArrowDown", "]", "Enter")
    low, end = shown()
    assert 0 < end - low < high / 2
    opened.press("0")
    opened.page.hover("#canvas", position={"x": 600, "y": 100})
    opened.page.keyboard.down("Control")
    opened.page.mouse.wheel(0, -400)
    opened.page.keyboard.up("Control")
    expect(opened.page.locator("#window")).not_to_have_text(re.compile("^0 ns"))
    low, end = shown()
    assert end - low < high / 2


def test_click_selects_and_leads_to_the_source_line(opened: Opened) -> None:
    opened.page.click("#canvas", position={"x": 500, "y": 22 + 2 * 15 + 7})  # Below CTA and kernel: the loop.
    opened.settle()
    assert opened.page.inner_text("#details b") == "loop kernel.py:20"
    opened.page.click("#details a")
    chosen = opened.page.locator(".code .row.chosen")
    assert chosen.count() == 1
    assert "20" in chosen.inner_text()
    assert opened.js("location.hash").endswith("-20")


def test_region_of_the_table_makes_the_others_faint(opened: Opened) -> None:
    before = opened.pixels()
    opened.page.click("#summary td.name button:text('dot kernel.py:24')")
    opened.settle()
    assert opened.page.locator("tr.chosen").count() == 1
    assert opened.pixels() != before
    opened.press("Escape")
    assert opened.page.locator("tr.chosen").count() == 0
    assert opened.pixels() == before


def test_flows_lead_from_issue_to_wait(open_page: Open, real_capture: Path) -> None:
    page = real_capture.with_suffix(".html")
    assert main(["report", str(real_capture), "--html", str(page)]) == 0
    opened = open_page(page)
    timeline = kperfir.load(real_capture)
    spans = timeline.spans
    flows = timeline.flows
    flow = flows[(flows["from_warp"] == 0) & (flows["cta"] == 0)].iloc[0]
    issue, wait = spans.iloc[int(flow["from_span"])], spans.iloc[int(flow["to_span"])]
    row = int(flow["from_span"])
    before = int((spans["parent"].iloc[:row] == issue["parent"]).sum())
    # CTA, kernel, prologue, what is first in it, and on to its first copy.
    opened.press("]", "ArrowDown", "ArrowDown", "ArrowDown", *["]"] * before)
    assert opened.page.inner_text("#details b") == issue["name"]
    opened.page.click("#details button")
    assert opened.page.inner_text("#details b") == wait["name"]
    assert opened.details()["cycles"] == f"{wait['duration_cycles']:,}"


def test_other_launch_is_shown(open_page: Open, report: Path) -> None:
    opened = open_page(report)
    first = opened.page.inner_text("#window")
    opened.page.select_option("#launch", "1")
    expect(opened.page.locator("#window")).not_to_have_text(first)
    opened.press("]")
    assert opened.page.inner_text("#details b") == "CTA 0"


def test_dark_and_light_follow_the_system_and_the_button(open_page: Open, report: Path) -> None:
    def back(opened: Opened) -> int:
        return sum(map(int, re.findall(r"\d+", opened.js("getComputedStyle(document.body).backgroundColor"))))

    light, dark = open_page(report), open_page(report, scheme="dark")
    assert back(dark) < 150 < 600 < back(light)
    assert light.pixels() != dark.pixels()
    dark.page.click("#theme")
    dark.settle()
    assert back(dark) == back(light)
    assert dark.pixels() == light.pixels()


def test_dropped_records_are_said_first(open_page: Open, tmp_path: Path) -> None:
    capture, page = tmp_path / "lossy.kpf", tmp_path / "lossy.html"
    write_matmul_capture(capture, CaptureShape(words_per_warp=40))
    assert main(["report", str(capture), "--html", str(page)]) == 3
    opened = open_page(page)
    assert opened.page.inner_text("#notes li >> nth=0").startswith("incomplete: ")
    assert "partial" in opened.page.inner_text("#summary thead")


def test_page_of_a_launch_that_recorded_some_ctas_says_what_is_not_known(open_page: Open, tmp_path: Path) -> None:
    capture, page = tmp_path / "some.kpf", tmp_path / "some.html"
    write_matmul_capture(capture, CaptureShape(left_out=2))
    assert main(["report", str(capture), "--html", str(page)]) == 0
    opened = open_page(page)
    assert "not known how busy the SMs were" in opened.page.inner_text("#occupancy")
    assert opened.page.locator("#summary tbody tr").count() > 0


def test_many_spans_in_one_pixel_are_drawn_and_can_be_zoomed_into(open_page: Open, tmp_path: Path) -> None:
    capture, page = tmp_path / "many.kpf", tmp_path / "many.html"
    write_matmul_capture(capture, CaptureShape(ctas=2, warps=2, iterations=1000, sms=1, words_per_warp=1 << 15))
    assert main(["report", str(capture), "--html", str(page)]) == 0
    opened = open_page(page)
    assert len(opened.pixels()) > 20
    opened.press("]", "ArrowDown", "ArrowDown", "]", "]", "ArrowDown", *["]"] * 12)
    assert opened.details()["iteration"] == "12"
    opened.press("Enter")
    assert opened.page.inner_text("#window").endswith("ns)")
    assert len(opened.pixels()) > 20

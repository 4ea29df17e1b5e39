"""The page of `kperfir report --html`: how soon its timeline is drawn, and how long a frame takes, in Chromium."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from playwright.sync_api import sync_playwright

from kperfir import load
from kperfir.report.html import write_page
from sections.table import table
from support.synthetic import CaptureShape, write_matmul_capture

if TYPE_CHECKING:
    from playwright.sync_api import Browser

CHROMIUM = Path(__file__).resolve().parents[2] / ".deps" / "chromium" / "chromium"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
SPANS = (100_000, 1_000_000)
ITERATIONS, WARPS = 100, 4
OPENED = 5
# From all of the launch into it, through what is in no pixel alone to single spans, and back.
KEYS = ("+",) * 12 + ("ArrowRight",) * 4 + ("-",) * 12


def write_capture(path: Path, spans: int) -> None:
    """A capture of about so many spans, on the SMs of an A100."""
    of_cta = WARPS * (6 * ITERATIONS + 8)
    shape = CaptureShape(ctas=spans // of_cta, warps=WARPS, iterations=ITERATIONS, sms=108, words_per_warp=4096)
    write_matmul_capture(path, shape)


def open_page(browser: Browser, page_file: Path) -> tuple[float, list[float]]:
    """Milliseconds from the start of the navigation to the first draw, and of each frame that keys asked for."""
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.goto(page_file.as_uri())
    page.wait_for_selector("html[data-ready]", timeout=60_000)
    first = float(page.evaluate("document.documentElement.dataset.firstDrawMs"))
    page.focus("#tracks")
    frames = []
    for key in KEYS:
        page.keyboard.press(key)
        page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        frames.append(float(page.evaluate("document.getElementById('tracks').dataset.drawMs")))
    page.close()
    return first, frames


def run() -> tuple[str, int]:
    """Write a page per size and open it several times."""
    rows = []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        for spans in SPANS:
            capture, page_file = Path(folder) / "x.kpf", Path(folder) / "x.html"
            write_capture(capture, spans)
            timeline = load(capture)
            started = time.perf_counter()
            write_page(timeline, page_file)
            seconds = time.perf_counter() - started
            opened = [open_page(browser, page_file) for _ in range(OPENED)]
            frames = [frame for _, of_page in opened for frame in of_page]
            firsts = [first for first, _ in opened]
            rows.append(
                [
                    f"{len(timeline.spans):,}", f"{page_file.stat().st_size / 1e6:.1f} MB", f"{seconds:.1f} s",
                    f"{statistics.median(firsts):.0f} ms ({min(firsts):.0f} to {max(firsts):.0f})",
                    f"{statistics.median(frames):.1f} ms", f"{max(frames):.1f} ms",
                ]
            )  # fmt: skip
        browser.close()
    titles = ["spans", "page", "written in", "first draw", "frame, median", "frame, longest"]
    about = (
        f"A synthetic matmul, written by `kperfir report --html` and opened {OPENED} times in headless Chromium "
        "without a GPU. First draw: from the start of the navigation, the start of the renderer included, until "
        f"timeline and tables are there. Frames: {len(KEYS)} steps of zooming and moving."
    )
    return f"## Report page\n\n{about}\n\n{table(titles, rows)}", 0

"""Reports opened in Debian's Chromium, and what the page asked of the network or complained of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from kperfir.cli.main import main
from support.page import Opened
from support.synthetic import CaptureShape, write_matmul_capture

ROOT = Path(__file__).resolve().parents[3]
CHROMIUM = ROOT / ".deps" / "chromium" / "chromium"
# As root in a container there is no sandbox; without the others it asks for its own updates.
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if not CHROMIUM.exists():
        pytest.fail(f"{CHROMIUM} is missing; run `make .deps/chromium/VERSION`")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[..., Opened]]:
    """Open a file; at the end nothing may have been complained of or asked for."""
    pages: list[Opened] = []

    def open_file(path: Path, scheme: str = "light") -> Opened:
        pages.append(_open(browser, path, scheme))
        return pages[-1]

    yield open_file
    for page in pages:
        _check(page)
        page.page.close()


@pytest.fixture(scope="session")
def shared_page(browser: Browser, report: Path) -> Opened:
    """The page of `report`, opened once for all tests that leave it as they found it."""
    return _open(browser, report)


@pytest.fixture
def opened(shared_page: Opened) -> Iterator[Opened]:
    """The page of `report` as it is when it has just been opened."""
    shared_page.js("scrollTo(0, 0)")
    shared_page.press("Escape", "0")
    yield shared_page
    _check(shared_page)


def _open(browser: Browser, path: Path, scheme: str = "light") -> Opened:
    page = browser.new_page(viewport={"width": 1200, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
    result = Opened(page)
    page.on("console", lambda message: result.complaints.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: result.complaints.append(str(error)))
    page.on("request", lambda request: result.requests.append(request.url))
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready]")
    return result


def _check(opened: Opened) -> None:
    assert opened.complaints == []
    assert len(opened.requests) == 1
    assert opened.requests[0].startswith("file:")


@pytest.fixture(scope="session")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two launches, two roles, marks, flows."""
    path = tmp_path_factory.mktemp("report") / "whole.kpf"
    write_matmul_capture(path, CaptureShape(launches=2, specialised=True))
    return path


@pytest.fixture(scope="session")
def report(capture: Path) -> Path:
    path = capture.with_suffix(".html")
    assert main(["report", str(capture), "--html", str(path)]) == 0
    return path


@pytest.fixture(scope="session")
def real_capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pipelined matmul that ran on the SIMT device."""
    import kperfir
    from kperfir.demo import run_matmul

    path = tmp_path_factory.mktemp("report") / "matmul.kpf"
    with kperfir.profile(path, device="simt"):
        run_matmul((64, 64, 128))
    return path

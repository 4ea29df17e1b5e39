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
    opened: list[Opened] = []

    def open_file(path: Path, scheme: str = "light") -> Opened:
        page = browser.new_page(viewport={"width": 1200, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
        result = Opened(page)
        page.on("console", lambda message: result.complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: result.complaints.append(str(error)))
        page.on("request", lambda request: result.requests.append(request.url))
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready]")
        opened.append(result)
        return result

    yield open_file
    for result in opened:
        assert result.complaints == []
        assert [url for url in result.requests if not url.startswith("file:")] == []
        assert len(result.requests) == 1
        result.page.close()


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

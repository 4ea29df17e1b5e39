"""Make the pictures of docs/walkthroughs.md: run each walkthrough, open its report in Chromium, photograph a section.

python tools/walkthrough_pictures.py            # all; or the names of some
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser, sync_playwright

from kperfir.cli.main import main as kperfir

ROOT = Path(__file__).resolve().parent.parent
CHROMIUM = ROOT / ".deps" / "chromium" / "chromium"
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")
SIZE = {"width": 1100, "height": 760}


@dataclass(frozen=True, slots=True)
class Picture:
    """Which capture, which section of its page, and what to press in the timeline first."""

    capture: str
    section: str
    keys: tuple[str, ...] = ()


INTO_LOOP = ("]", "ArrowDown", "ArrowDown", "]", "ArrowDown")
PICTURES = {
    "slow_load": Picture("slow_load-before", "#source"),
    "bubble": Picture("bubble-before", "#timeline", (*INTO_LOOP, "]", "Enter", "-", "-")),
    "imbalance": Picture("imbalance-before", "#occupancy"),
    "bank_conflict": Picture("bank_conflict-before", "#timeline", ("]", "ArrowDown")),
    "hashed_weights": Picture("hashed_weights-element", "#timeline", ("]", *["ArrowDown"] * 3, "]", "Enter", "-")),
    "regression": Picture("regression-new", "#timeline", (*INTO_LOOP, "]", "Enter", "-", "-")),
}


def photograph(browser: Browser, name: str, folder: Path) -> None:
    """Run walkthrough `name` in `folder` and write its picture."""
    picture = PICTURES[name]
    script = ROOT / "docs" / "walkthroughs" / f"{name}.py"
    environment = os.environ | {"TRITON_DEFAULT_FP_FUSION": "1"}
    subprocess.run([sys.executable, script], cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
    file = folder / f"{picture.capture}.html"
    kperfir(["report", str(folder / f"{picture.capture}.kpf"), "--html", str(file)])
    page = browser.new_page(viewport=SIZE, color_scheme="light")  # type: ignore[arg-type]
    page.goto(file.as_uri())
    page.wait_for_selector("html[data-ready]")
    page.focus("#tracks")
    for key in picture.keys:
        page.keyboard.press(key)
    # By script: the page's policy lets no other style in.
    page.evaluate("document.querySelector('header').style.display = 'none'")
    page.evaluate("document.activeElement.blur(); document.getElementById('tracks').style.height = '330px'")
    # Where a checkout lies is nobody's business.
    page.evaluate(
        "for (const h of document.querySelectorAll('#source h3')) h.textContent = h.textContent.replace(/\\/.*\\//, '')"
    )
    page.wait_for_timeout(300)
    out = ROOT / "docs" / "img" / f"walkthrough-{name}.png"
    page.locator(picture.section).screenshot(path=out)
    page.close()
    print(f"{out}: {out.stat().st_size // 1024} kB")


def main(names: list[str]) -> int:
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        for name in names or PICTURES:
            photograph(browser, name, Path(folder))
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

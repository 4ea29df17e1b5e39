"""A page in a browser, as a test uses it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Page

# Of a copy, so that the page's own canvas is not read back, which the browser would warn of.
_COLOURS = """(() => {
  const from = document.getElementById("ID"), to = document.createElement("canvas");
  [to.width, to.height] = [from.width, from.height];
  const context = to.getContext("2d", { willReadFrequently: true });
  context.drawImage(from, 0, 0);
  const bytes = context.getImageData(0, 0, to.width, to.height).data, found = new Set();
  for (let i = 0; i < bytes.length; i += 4) found.add(bytes[i] << 16 | bytes[i + 1] << 8 | bytes[i + 2]);
  return [...found];
})()"""


@dataclass
class Opened:
    """A page that has been opened; `complaints` and `requests` grow as it is used."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def js(self, expression: str) -> Any:
        return self.page.evaluate(expression)

    def press(self, *keys: str) -> None:
        """Press keys in the timeline and wait until it is drawn."""
        self.page.focus("#tracks")
        for key in keys:
            self.page.keyboard.press(key)
        self.settle()

    def settle(self) -> None:
        self.js("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def details(self) -> dict[str, str]:
        """What is said of the selected span."""
        names, values = ([*self.page.locator(f"#details {tag}").all_inner_texts()] for tag in ("dt", "dd"))
        return dict(zip(names, values, strict=True))

    def table(self, rows: str) -> list[list[str]]:
        """The cells of the rows that a selector finds."""
        cells: list[list[str]] = self.js(
            f"Array.from(document.querySelectorAll('{rows}'), (row) => Array.from(row.cells, (c) => c.textContent))"
        )
        return cells

    def pixels(self, canvas: str = "canvas") -> set[tuple[int, int, int]]:
        """The colours on a canvas."""
        colours = self.js(_COLOURS.replace("ID", canvas))
        return {(colour >> 16, colour >> 8 & 255, colour & 255) for colour in colours}

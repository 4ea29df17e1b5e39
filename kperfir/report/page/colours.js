// A colour per kind of work, from kperfir/report/colours.py; greys of what only holds other regions go with the theme.

const GREYS = { cta: 0.1, kernel: 0.16, loop: 0.24, iteration: 0.32, prologue: 0.4, epilogue: 0.4 };

function isDark() {
  const asked = document.documentElement.dataset.theme;
  return asked ? asked === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function colourOf(kind) {
  if (kind in GREYS) {
    const level = Math.round(2.55 * (isDark() ? 18 + 70 * GREYS[kind] : 96 - 60 * GREYS[kind]));
    return `#${[level - 4, level, level + 6].map((part) => Math.min(part, 255).toString(16).padStart(2, "0")).join("")}`;
  }
  if (kind === "mark" && isDark()) return "#f2f2f2";
  return data.colours[kind] ?? "#8a8f98";
}

/** Black or white, whichever can be read on `colour`, which is #rrggbb. */
function inkOn(colour) {
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  return 0.299 * red + 0.587 * green + 0.114 * blue > 140 ? "#111111" : "#ffffff";
}

function swatch(kind) {
  const square = make("span", { class: "swatch" });
  square.dataset.kind = kind;
  square.style.background = colourOf(kind);
  return square;
}

function repaintSwatches() {
  for (const square of document.querySelectorAll(".swatch")) square.style.background = colourOf(square.dataset.kind);
}

/** What the canvas takes from the style sheet, and the colours of regions and of text on them. */
function palette() {
  const style = getComputedStyle(document.documentElement);
  const names = ["back", "panel", "text", "dim", "line", "accent"];
  const colours = Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  const regions = data.regions.map((region) => colourOf(region.kind));
  return { ...colours, regions, ink: regions.map(inkOn) };
}

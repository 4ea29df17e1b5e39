// A colour per kind of work: waits warm, memory blue, matrix units green, what only holds other regions grey.

const HUES = {
  load: 205, store: 230, async_copy: 190, tma: 180, local_load: 215, local_store: 240, atomic: 255,
  async_wait: 8, mbarrier_wait: 18, wgmma_wait: 28, barrier: 350,
  dot: 140, wgmma: 150, tcgen05: 125, reduce: 285, scan: 300, convert_layout: 265,
  user: 48, mark: 320, call: 60, compute: 90,
};
const GREYS = { cta: 0.1, kernel: 0.16, loop: 0.24, iteration: 0.32, prologue: 0.4, epilogue: 0.4 };

function isDark() {
  const asked = document.documentElement.dataset.theme;
  return asked ? asked === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function colourOf(kind) {
  if (kind in GREYS) {
    const lightness = isDark() ? 18 + 70 * GREYS[kind] : 96 - 60 * GREYS[kind];
    return `hsl(215 12% ${lightness}%)`;
  }
  return `hsl(${HUES[kind] ?? 90} ${isDark() ? "55% 52%" : "60% 62%"})`;
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

/** What the canvas takes from the style sheet. */
function palette() {
  const style = getComputedStyle(document.documentElement);
  const names = ["back", "panel", "text", "dim", "line", "accent"];
  const colours = Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  return { ...colours, regions: data.regions.map((region) => colourOf(region.kind)), onSpan: isDark() ? "#fff" : "#111" };
}

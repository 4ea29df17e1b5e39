// Puts the page together. Tables come before the timeline is drawn, so that nothing is pushed down later.

function showNavigation() {
  const sections = Array.from(document.querySelectorAll("section[data-title]")).filter((section) => !section.hidden);
  document.querySelector("nav").append(
    ...sections.map((section) => make("a", { href: `#${section.id}` }, section.dataset.title)));
}

function listenToTheme() {
  const themes = ["auto", "light", "dark"];
  $("theme").addEventListener("click", () => {
    const now = document.documentElement.dataset.theme ?? "auto";
    const next = themes[(themes.indexOf(now) + 1) % themes.length];
    if (next === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = next;
    $("theme").textContent = `Theme: ${next}`;
    repaint();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
}

function repaint() {
  repaintSwatches();
  timeline.repaint();
}

function fillLaunches() {
  const names = new Map();
  for (const kernel of data.report.kernels) for (const launch of kernel.launches) names.set(launch.launch, kernel.kernel);
  $("launch").append(...data.timeline.map(({ launch, duration_ns: ns }, index) =>
    make("option", { value: index }, `${launch}: ${names.get(launch)} (${duration(ns)})`)));
}

async function main() {
  showSubject();
  listenToTheme();
  fillLaunches();
  $("timeline").hidden = !data.timeline.length;
  if (data.timeline.length) timeline.unpack(0); // Goes on while the tables are made.
  showFindings();
  showNotes();
  showSummary();
  showOverlap();
  showSource();
  showOccupancy();
  showNavigation();
  if (data.timeline.length) {
    listenToTimeline();
    await timeline.show(0);
    document.documentElement.dataset.firstDrawMs = performance.now().toFixed(1);
  }
  document.documentElement.dataset.ready = "yes";
}

main();

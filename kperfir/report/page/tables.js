// Findings, notes and tables: what the report says in words and figures.

function showSubject() {
  const { kernels, files } = data.report;
  const device = data.device.chip || data.device.device || "";
  const names = kernels.map((kernel) => kernel.kernel).join(", ");
  $("subject").replaceChildren(`${names || "no launch"} · ${files.map(baseName).join(", ")} · ${device} `);
  if (data.device.simulated) $("subject").append(make("span", { class: "badge" }, "simulated"));
  document.title = `${names || "kperfir"} - kperfir report`;
}

function showFindings() {
  const findings = data.report.kernels.flatMap((kernel) => kernel.findings);
  if (findings.length) $("findings").append(...findings.map(findingBox));
  else $("findings").append(make("p", { class: "dim" }, "No rule of the advisor applies to what was recorded."));
}

function findingBox(finding) {
  const places = finding.places.map((place) =>
    make("li", {}, `${place.region}, ${percent(place.share)} of the time `,
      place.line > 0 ? sourceLink({ kernel: finding.kernel, ...place }) : ""));
  const gain = `${times(finding.speedup)} as fast is expected, ${times(finding.bound)} at most`;
  return make("article", { class: "finding" },
    make("h3", {}, `${finding.kernel}: ${finding.title}`),
    make("p", {}, make("b", {}, gain), make("span", { class: "dim" }, ` (${finding.basis})`)),
    make("p", {}, make("b", {}, "Change: "), finding.change.what),
    make("ul", {}, ...places),
    make("p", { class: "dim" }, `Seen: ${finding.figures.map(figureText).join(", ")}.`),
    make("p", { class: "dim" }, `Check: ${finding.verify}`));
}

function times(factor) {
  return factor === null ? "any number of times" : `${factor.toFixed(2)} times`;
}

function figureText({ name, value, unit }) {
  const words = name.replaceAll("_", " ");
  if (unit === "share") return `${words} ${percent(value)}`;
  if (value === null) return `${words} unknown`;
  return `${words} ${Number(value.toPrecision(4)).toLocaleString("en-US")}${unit === "count" || words.endsWith(unit) ? "" : ` ${unit}`}`;
}

function showOverlap() {
  const section = $("overlap");
  const matrices = data.overlap.filter(({ activities }) => activities.length > 1);
  section.hidden = !matrices.length;
  section.append(make("p", { class: "dim" },
    "The part of the time of the row’s work in which the column’s was under way too, in any warp of the CTA. In flight: from the " +
    "issue of asynchronous work to the end of the wait for it. Alone: nothing else was done meanwhile."));
  for (const { kernel, activities, cycles, alone, shares } of matrices) {
    const head = ["", "cycles", "alone", ...activities].map((title, i) => make("th", { class: i ? "" : "name", scope: "col" }, title));
    const rows = activities.map((activity, i) => make("tr", {},
      make("td", { class: "name" }, swatch(activity.replace(" in flight", "")), activity),
      make("td", {}, whole(cycles[i])), make("td", {}, percent(alone[i])),
      ...shares[i].map((share, j) => overlapCell(share, [activity, activities[j]], i === j))));
    section.append(make("h3", {}, kernel), make("div", { class: "scroll" },
      make("table", { class: "matrix" }, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows))));
  }
}

function overlapCell(share, [row, column], same) {
  const cell = make("td", { title: `${percent(share)} of the time of ${row}, ${column} was under way` }, same ? "" : percent(share));
  if (!same) cell.style.background = `color-mix(in srgb, var(--accent) ${(45 * share).toFixed(1)}%, transparent)`;
  return cell;
}

function showNotes() {
  const { notes, dropped, bounds } = data.report;
  const all = [];
  if (dropped) all.push(`incomplete: ${plural(dropped, "record")} ${dropped === 1 ? "was" : "were"} dropped`);
  all.push(...notes, data.report.caution);
  for (const bound of bounds) {
    const [launches, mib] = [plural(bound.launches_per_kernel, "launch", "launches"), bound.file_bytes / 2 ** 20];
    all.push(`bounds of the capture: at most ${launches} of each kernel, ${Number(mib.toPrecision(4))} MiB a file`);
  }
  $("notes").append(make("ul", { class: "notes" }, ...all.map((note) => make("li", {}, note))));
}

const COLUMNS = [
  ["region", "name", (row) => row.region],
  ["count", "count", (row) => whole(row.count)],
  ["total", "total_cycles", (row) => whole(row.total_cycles)],
  ["share", "share", (row) => percent(row.share)],
  ["self", "self_share", (row) => percent(row.self_share)],
  ["", "", (row) => shareBar(row.self_share)],
  ["wait", "wait_share", (row) => (row.wait_cycles ? percent(row.wait_share) : "")],
  ["mean", "mean_cycles", (row) => whole(row.mean_cycles)],
  ["p50", "p50_cycles", (row) => whole(row.p50_cycles)],
  ["p95", "p95_cycles", (row) => whole(row.p95_cycles)],
  ["corrected", "corrected_cycles", correctedText],
  ["spread", "warp_spread", (row) => percent(row.warp_spread)],
  ["partial", "incomplete", (row) => (row.incomplete ? whole(row.incomplete) : "")],
  ["source", "", (row) => (row.line > 0 ? sourceLink(row) : "")],
];

/** The mean without what records took, and how much less or more it may be. */
function correctedText(row) {
  if (row.corrected_cycles == null) return "";
  return `${whole(row.corrected_cycles)} ± ${whole(row.uncertainty_cycles)}`;
}

function showSummary() {
  const section = $("summary");
  section.append(make("p", { class: "dim" },
    "Cycles of a warp, over all warps, CTAs and launches. Share: of the CTAs’ time. Self: without what is nested inside. " +
    "Corrected: the mean without what recording took. " +
    "A region’s name makes the others faint in the timeline; a column’s title sorts."));
  if (!data.report.kernels.length) section.append(make("p", {}, "No launch was recorded."));
  for (const kernel of data.report.kernels) {
    section.append(make("h3", {}, kernel.kernel), make("p", { class: "dim" }, describeLaunches(kernel)));
    section.append(make("div", { class: "scroll" }, regionTable(kernel)));
    if (kernel.waits.kernel.some((row) => row.wait_cycles)) section.append(waitTable(kernel));
  }
}

function describeLaunches({ launches, mean_warp_lag_cycles: lag }) {
  const sum = (key) => launches.reduce((total, launch) => total + launch[key], 0);
  const [recorded, total] = [sum("ctas_recorded"), sum("ctas_total")];
  const parts = [
    plural(launches.length, "launch", "launches"),
    recorded === total ? plural(total, "CTA") : `${whole(recorded)} of ${plural(total, "CTA")} recorded`,
  ];
  if (lag) parts.push(`last warp of a CTA ${whole(lag)} cycles behind the first`);
  const uncertain = Math.max(...launches.map((launch) => launch.ns_uncertainty ?? 0));
  if (uncertain) parts.push(`nanoseconds ± ${Number(uncertain.toPrecision(3))}`);
  return parts.join(" · ");
}

function regionTable(kernel) {
  const body = make("tbody");
  let sorted = "";
  const fill = (key) => {
    const rows = [...kernel.rows];
    sorted = sorted === key ? "" : key; // Again: back to the order of the program.
    if (sorted) rows.sort((a, b) => (key === "name" ? a.name.localeCompare(b.name) : (b[key] ?? -1) - (a[key] ?? -1)));
    body.replaceChildren(...rows.map((row) => regionRow(kernel, row, !sorted)));
    markChosen(timeline.state.region);
  };
  const needs = { partial: (row) => row.incomplete, corrected: (row) => row.corrected_cycles != null };
  const used = COLUMNS.filter(([title]) => !(title in needs) || kernel.rows.some(needs[title]));
  const head = used.map(([title, key]) => make("th", { class: title === "region" ? "name" : "", scope: "col" },
    key ? make("button", { type: "button", onclick: () => fill(key) }, title) : title));
  fill("");
  return make("table", {}, make("thead", {}, make("tr", {}, ...head)), body);

  function regionRow(of, row, nested) {
    const number = data.regions.findIndex(
      (region) => region.kernel === of.kernel && region.name === row.name && region.kind === row.kind);
    const name = make("button", { type: "button", onclick: () => timeline.choose(number) }, row.name);
    const cell = make("td", { class: "name" }, swatch(row.kind), name);
    if (nested) cell.style.paddingLeft = `${10 + 16 * row.depth}px`;
    const cells = used.slice(1).map(([, , spell]) => make("td", {}, spell(row)));
    const element = make("tr", {}, cell, ...cells);
    element.dataset.region = number;
    return element;
  }
}

function markChosen(region) {
  for (const row of document.querySelectorAll("tr[data-region]")) {
    row.classList.toggle("chosen", Number(row.dataset.region) === region && region >= 0);
  }
}

function shareBar(share) {
  const bar = make("i");
  bar.style.width = `${Math.min(100 * (share ?? 0), 100)}%`;
  return make("span", { class: "share" }, bar);
}

function waitTable({ waits }) {
  const kinds = ["async_wait", "barrier", "mbarrier_wait", "wgmma_wait"];
  const roles = waits.role.length > 1 ? waits.role : [];
  const rows = [...waits.kernel, ...roles];
  const used = kinds.filter((kind) => rows.some((row) => row[`${kind}_cycles`]));
  const part = (row, key) => percent(row.cycles ? row[key] / row.cycles : 0);
  const head = ["work and wait", "total", "work", "wait", ...used].map((title, i) =>
    make("th", { class: i ? "" : "name", scope: "col" }, title));
  const body = rows.map((row) => make("tr", {},
    make("td", { class: "name" }, row.role ?? "all warps"), make("td", {}, whole(row.cycles)),
    ...["work_cycles", "wait_cycles", ...used.map((kind) => `${kind}_cycles`)].map((key) => make("td", {}, part(row, key)))));
  return make("div", { class: "scroll" }, make("table", {}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...body)));
}

function showOccupancy() {
  const section = $("occupancy");
  section.append(make("p", { class: "dim" },
    "A column per SM, as high as the part of the launch’s longest SM in which a CTA was there. CTAs that were not recorded are not seen."));
  for (const kernel of data.report.kernels) {
    for (const launch of kernel.launches) {
      const sms = kernel.sms.filter((sm) => sm.launch === launch.launch);
      if (!sms.length) continue;
      const most = Math.max(...sms.map((sm) => sm.cycles), 1);
      const mean = sms.reduce((sum, sm) => sum + sm.mean_resident, 0) / sms.length;
      const bars = sms.map((sm) => smBar(sm, most));
      const label = `${plural(sms.length, "SM")} with a CTA, ${mean.toFixed(2)} CTAs on one at a time${describeWaves(launch.launch)}`;
      section.append(make("h3", {}, `${kernel.kernel}, launch ${launch.launch}`), make("p", { class: "dim" }, label),
        make("div", { class: "sms", role: "img", "aria-label": label }, ...bars));
    }
  }
}

function describeWaves(launch) {
  const found = data.waves.find((row) => row.launch === launch);
  if (!found) return "";
  // Where not all CTAs recorded, what depends on the others is null.
  const size = found.waves === null ? "" :
    `; of ${plural(found.sms, "SM")}, with room for ${plural(found.ctas_per_sm, "CTA")} each: ${found.waves.toFixed(2)} waves`;
  const use = found.sm_busy === null ? "; not all CTAs recorded, so it is not known how busy the SMs were" :
    `${size ? "," : ";"} ${percent(found.sm_busy)} of all SMs’ time busy, busiest SM ${found.imbalance.toFixed(2)} times the mean, ` +
    `${percent(found.tail_share)} idle behind an SM’s last CTA`;
  return size + use;
}

function smBar(sm, most) {
  const fill = make("b");
  fill.style.height = `${(100 * sm.busy_share * sm.cycles) / most}%`;
  const text = `SM ${sm.sm}: ${plural(sm.ctas, "CTA")} in ${whole(sm.cycles)} cycles, busy ${percent(sm.busy_share)}, ` +
    `${sm.mean_resident.toFixed(2)} at a time, at most ${sm.max_resident}`;
  return make("i", { title: text }, fill);
}

// Source lines with their heat, and links to them.

function lineId(kernel, file, line) {
  const number = data.sources.findIndex((source) => source.kernel === kernel && source.file === file);
  return number < 0 ? "" : `line-${number}-${line}`;
}

/** A link to the line of a region of the report. */
function sourceLink({ kernel, file, line }) {
  const text = `${baseName(file)}:${line}`;
  const id = lineId(kernel, file, line);
  return id ? make("a", { href: `#${id}`, title: file, onclick: () => markLine(id) }, text) : text;
}

function markLine(id) {
  for (const row of document.querySelectorAll(".code .chosen")) row.classList.remove("chosen");
  $(id)?.classList.add("chosen");
}

function showSource() {
  const section = $("source");
  section.append(make("p", { class: "dim" },
    "Heat is self time: what the warps spent in the regions of a line, without regions nested inside, as a share of the kernel’s time."));
  data.sources.forEach((source, number) => {
    section.append(make("h3", {}, `${source.kernel} · ${source.file}`));
    if (source.missing) section.append(make("p", { class: "badge" }, `No source text: ${source.missing}. Lines and figures are as recorded.`));
    if (source.changed) {
      section.append(make("p", { class: "badge" }, `The file was changed on ${source.changed}, after the capture: lines may have moved.`));
    }
    const most = Math.max(...source.lines.map((line) => line.heat ?? 0), 1e-9);
    const rows = [make("div", { class: "row dim" }, make("span", {}, "heat"), make("span", {}, "wait"), make("span", {}, "line"), make("code", {}))];
    source.lines.forEach((line, i) => {
      const before = source.lines[i - 1];
      if (before && line.line > before.line + 1) rows.push(make("div", { class: "gap" }, "⋯"));
      rows.push(sourceRow(number, line, most));
    });
    section.append(make("div", { class: "code" }, ...rows));
  });
}

function sourceRow(number, line, most) {
  const hot = line.heat !== null;
  const text = line.text || (hot ? `(${line.kinds})` : "");
  const row = make("div", { class: "row", id: `line-${number}-${line.line}` },
    make("span", {}, hot ? percent(line.heat) : ""),
    make("span", {}, line.wait ? percent(line.wait) : ""),
    make("span", {}, line.line), make("code", {}, text || " "));
  if (hot) {
    row.title = `${line.kinds}: ${plural(line.count, "execution")}`;
    row.style.background = `rgba(var(--heat), ${(0.5 * line.heat) / most})`;
  }
  return row;
}

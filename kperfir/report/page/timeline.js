// The timeline as a thing to use: which launch, what is in view, what is chosen; pointer and keys.

const timeline = {
  state: { launch: null, heights: null, window: null, scroll: 0, row: -1, region: -1, flows: [], activity: [] },
  unpacked: new Map(),
  colours: null,
  waiting: false,

  /** The promise of launch `index`, unpacked. */
  unpack(index) {
    if (!this.unpacked.has(index)) this.unpacked.set(index, unpackLaunch(index));
    return this.unpacked.get(index);
  },

  /** Show launch `index`; the promise ends when it has been drawn. */
  async show(index) {
    const launch = await this.unpack(index);
    Object.assign(this.state, {
      launch,
      heights: new LaneHeights(launch),
      window: new TimeWindow(launch.durationNs),
      activity: activityOf(launch, 400),
      row: -1,
      flows: [],
    });
    $("launch").value = String(index);
    $("height").style.height = `${this.state.heights.total}px`;
    $("tracks").scrollTop = 0;
    this.resize();
    this.draw();
    showLegend(launch);
  },

  resize() {
    const scale = devicePixelRatio || 1;
    const tracks = $("tracks");
    const width = tracks.clientWidth;
    for (const [canvas, height] of [[$("canvas"), tracks.clientHeight], [$("overview"), 40]]) {
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(height * scale);
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
    }
    // The canvas stays in place while the element below it scrolls, so it must not add to the height.
    $("height").style.marginTop = `${-tracks.clientHeight + AXIS}px`;
    if (this.state.window) this.state.window.pixels = Math.max(width - GUTTER, 1);
  },

  /** Draw before the next frame, once however often it is asked for. */
  redraw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.draw();
    });
  },

  draw() {
    if (!this.state.launch) return;
    const begin = performance.now();
    this.colours ??= palette();
    this.state.scroll = $("tracks").scrollTop;
    drawTimeline($("canvas"), this.state, this.colours);
    drawOverview($("overview"), this.state, this.colours);
    const { start, end } = this.state.window;
    $("tracks").dataset.drawMs = (performance.now() - begin).toFixed(1); // For benchmarks.
    $("window").textContent = `${duration(start)} to ${duration(end)} (${duration(end - start)})`;
  },

  repaint() {
    this.colours = null;
    this.redraw();
  },

  select(row) {
    const { launch } = this.state;
    this.state.row = row;
    this.state.flows = row < 0 ? [] : launch.flows.filter(([from, to]) => from === row || to === row);
    showDetails(launch, row, this.state.flows);
    if (row >= 0) this.reveal(row);
    this.redraw();
  },

  /** Move as far as it takes to have `row` in view. */
  reveal(row) {
    const { launch, window: times, heights } = this.state;
    const [start, end] = [launch.columns.start[row], launch.endOf(row)];
    if (end < times.start || start > times.end) times.move((start + end) / 2 - (times.start + times.end) / 2);
    const { lane, depth } = launch.layerOf(row);
    const tracks = $("tracks");
    const top = heights.tops[lane] + depth * ROW;
    const room = tracks.clientHeight - AXIS - ROW;
    if (top < tracks.scrollTop) tracks.scrollTop = top;
    else if (top > tracks.scrollTop + room) tracks.scrollTop = top - room;
  },

  zoomTo(row) {
    if (row < 0) return;
    const { launch, window: times } = this.state;
    const [start, end] = [launch.columns.start[row], launch.endOf(row)];
    const around = Math.max((end - start) * 0.2, 10);
    times.set(start - around, end + around);
    this.redraw();
  },

  /** Make all spans but those of `region` faint; again, or -1, shows all. */
  choose(region) {
    this.state.region = this.state.region === region ? -1 : region;
    markChosen(this.state.region);
    this.redraw();
  },

  /** The row at a point of the canvas, or -1. */
  rowAt(x, y) {
    const { launch, heights, window: times, scroll } = this.state;
    const height = y - AXIS + scroll;
    if (x < GUTTER || y < AXIS || height >= heights.total) return -1;
    const lane = heights.laneAt(height);
    const layer = launch.lanes[lane].layers[Math.floor((height - heights.tops[lane]) / ROW)];
    if (!layer) return -1;
    const slack = 2 / times.pixelsPerNs; // A span of no width can be hit, too.
    const time = times.timeAt(x - GUTTER);
    let row = launch.firstEndingAfter(layer, time);
    if (row >= layer.end || launch.columns.start[row] > time) {
      const near = [row - 1, row].filter((at) => at >= layer.first && at < layer.end);
      const away = (at) => Math.max(launch.columns.start[at] - time, time - launch.endOf(at));
      row = near.sort((a, b) => away(a) - away(b)).find((at) => away(at) <= slack) ?? -1;
    }
    return row;
  },

  step(direction) {
    const { launch, row } = this.state;
    if (row < 0) {
      const lane = this.state.heights.laneAt(this.state.scroll);
      const first = launch.lanes[lane]?.layers[0]?.first;
      return first === undefined ? undefined : this.select(first);
    }
    const layer = launch.layerOf(row);
    const next = row + direction;
    if (next >= layer.first && next < layer.end) this.select(next);
    return undefined;
  },

  /** What a key does; false if it does nothing. */
  key(key) {
    const { state } = this;
    const { window: times, launch, row } = state;
    const quarter = times.length / 4;
    const acts = {
      "+": () => times.zoom(2), "=": () => times.zoom(2), w: () => times.zoom(2),
      "-": () => times.zoom(0.5), s: () => times.zoom(0.5),
      ArrowLeft: () => times.move(-quarter), a: () => times.move(-quarter),
      ArrowRight: () => times.move(quarter), d: () => times.move(quarter),
      0: () => times.fit(), Home: () => times.fit(),
      Enter: () => this.zoomTo(row),
      "[": () => this.step(-1), "]": () => this.step(1),
      ArrowUp: () => row >= 0 && launch.parentOf(row) >= 0 && this.select(launch.parentOf(row)),
      ArrowDown: () => row >= 0 && launch.childOf(row) >= 0 && this.select(launch.childOf(row)),
      Escape: () => { this.select(-1); if (state.region >= 0) this.choose(state.region); },
    };
    if (!Object.hasOwn(acts, key) || !launch) return false;
    if (row < 0 && (key === "ArrowUp" || key === "ArrowDown")) return false; // They scroll.
    acts[key]();
    this.redraw();
    return true;
  },
};

function listenToTimeline() {
  const [canvas, tracks, overview] = [$("canvas"), $("tracks"), $("overview")];
  tracks.addEventListener("scroll", () => timeline.redraw());
  tracks.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (timeline.key(event.key)) event.preventDefault();
  });
  tracks.addEventListener("wheel", (event) => {
    const times = timeline.state.window;
    if (!times || !(event.ctrlKey || event.shiftKey || event.deltaX)) return;
    event.preventDefault();
    if (event.ctrlKey) times.zoom(Math.exp(-event.deltaY / 200), event.offsetX - GUTTER);
    else times.move(((event.deltaX || event.deltaY) / times.pixels) * times.length);
    timeline.redraw();
  }, { passive: false });
  listenToDrag(canvas, (event, from) => {
    const times = timeline.state.window;
    times.move(-(event.offsetX - from.x) / times.pixelsPerNs);
    from.x = event.offsetX;
    timeline.redraw();
  }, (event) => timeline.select(timeline.rowAt(event.offsetX, event.offsetY)));
  listenToDrag(overview, (event, from) => {
    const times = timeline.state.window;
    const [low, high] = [from.start, event.offsetX].sort((a, b) => a - b);
    const timeOf = (x) => ((x - GUTTER) / times.pixels) * times.span;
    times.set(timeOf(low), timeOf(high));
    timeline.redraw();
  }, () => {});
  for (const button of document.querySelectorAll("[data-act]")) {
    const key = { in: "+", out: "-", fit: "0", selection: "Enter" }[button.dataset.act];
    button.addEventListener("click", () => timeline.key(key));
  }
  $("launch").addEventListener("change", (event) => timeline.show(Number(event.target.value)));
  new ResizeObserver(() => { timeline.resize(); timeline.redraw(); }).observe(tracks);
}

/** `drag(event, from)` while the pointer is held and has moved, `click(event)` if it never did. */
function listenToDrag(element, drag, click) {
  let from = null;
  element.addEventListener("pointerdown", (event) => {
    if (event.button === 0) from = { x: event.offsetX, start: event.offsetX, moved: false };
  });
  element.addEventListener("pointermove", (event) => {
    if (!from || !timeline.state.launch) return;
    if (!from.moved && Math.abs(event.offsetX - from.start) < 4) return;
    if (!from.moved) element.setPointerCapture(event.pointerId);
    from.moved = true;
    element.classList.add("moving");
    drag(event, from);
  });
  element.addEventListener("pointerup", (event) => {
    if (from && !from.moved && timeline.state.launch) click(event);
    from = null;
    element.classList.remove("moving");
  });
  element.addEventListener("pointercancel", () => { from = null; });
}

/** What a span is called. */
function spanName(launch, row) {
  const region = launch.columns.region[row];
  return region === 0 ? `CTA ${launch.columns.iteration[row]}` : data.regions[region].name;
}

function showLegend(launch) {
  const kinds = new Set(Array.from(new Set(launch.columns.region), (region) => data.regions[region].kind));
  $("legend").replaceChildren(...Array.from(kinds, (kind) => make("span", {}, swatch(kind), kind)));
}

function showDetails(launch, row, flows) {
  const details = $("details");
  if (row < 0) return details.replaceChildren("Nothing is selected.");
  const { start, cycles, iteration, flags } = launch.columns;
  const number = launch.columns.region[row];
  const region = data.regions[number];
  const { sm, slot, warp, role } = launch.lanes[launch.layerOf(row).lane];
  const facts = [["from", duration(start[row])], ["takes", duration(launch.columns.duration[row])]];
  if (number) facts.push(["cycles", whole(cycles[row])]);
  if (number && iteration[row] >= 0) facts.push(["iteration", iteration[row]]);
  if (launch.values.has(row)) facts.push(["value", launch.values.get(row)]);
  facts.push(["CTA", ctaOf(launch, row)], ["SM", sm], ["slot", slot], ["warp", warp], ["role", role]);
  if (flags[row] & INCOMPLETE) facts.push(["note", "its end is not among the records; it lasted at least so long"]);
  for (const [from, to] of flows) {
    const other = from === row ? to : from;
    const go = make("button", { type: "button", onclick: () => timeline.select(other) }, spanName(launch, other));
    facts.push([from === row ? "waited for in" : "issued in", go]);
  }
  const title = make("div", {}, swatch(region.kind), make("b", {}, spanName(launch, row)), " ");
  if (region.line > 0) title.append(sourceLink(region));
  const list = make("dl", {}, ...facts.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));
  return details.replaceChildren(title, list);
}

/** The CTA that `row` is of: the outermost row around it says. */
function ctaOf(launch, row) {
  const layer = launch.lanes[launch.layerOf(row).lane].layers[0];
  const after = launch.firstStarting(layer, launch.columns.start[row] + 1);
  let at = after - 1;
  while (at > layer.first && launch.endOf(at) < launch.endOf(row)) at--;
  return launch.columns.iteration[at];
}

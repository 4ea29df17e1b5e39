// Draws a timeline on its canvas. Work is bounded by pixels, not by spans: what is narrower than a pixel is drawn
// together, in the colour of what most of a sample of it is, as strongly as it fills the pixel.

const NARROW = 1.5;
const SAMPLE = 8;
const FAINTEST = 0.25;

/** Draw what is in view. `state`: launch, heights, window, scroll, row (selected, or -1), region (chosen, or -1). */
function drawTimeline(canvas, state, colours) {
  const { launch, heights, window: times } = state;
  const scale = devicePixelRatio || 1;
  const [width, height] = [canvas.width / scale, canvas.height / scale];
  const context = canvas.getContext("2d", { alpha: false });
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.fillStyle = colours.back;
  context.fillRect(0, 0, width, height);
  context.font = "11px system-ui, 'DejaVu Sans', sans-serif";
  context.textBaseline = "middle";

  const marks = ticks(times);
  context.fillStyle = colours.line;
  for (const time of marks) context.fillRect(Math.round(GUTTER + times.xOf(time)), AXIS, 1, height);
  context.save();
  context.beginPath();
  context.rect(GUTTER, AXIS, width - GUTTER, height - AXIS);
  context.clip();
  const firstLane = launch.lanes.length ? heights.laneAt(state.scroll) : 0;
  let lane = firstLane;
  for (; lane < launch.lanes.length && topOf(state, lane) < height; lane++) {
    for (const layer of launch.lanes[lane].layers) {
      if (layer) drawLayer(context, state, layer, topOf(state, lane) + layer.depth * ROW, colours);
    }
  }
  drawFlows(context, state, colours);
  drawSelection(context, state, colours);
  context.restore();
  for (let named = firstLane; named < lane; named++) drawName(context, state, named, colours);
  drawAxis(context, marks, times, width, colours);
}

function topOf(state, lane) {
  return AXIS + state.heights.tops[lane] - state.scroll;
}

function drawLayer(context, state, layer, top, colours) {
  const { launch, window: times } = state;
  const { start, duration, region, flags } = launch.columns;
  const perNs = times.pixelsPerNs;
  for (let row = launch.firstEndingAfter(layer, times.start - 1); row < layer.end && start[row] <= times.end; ) {
    const x = GUTTER + times.xOf(start[row]);
    const width = duration[row] * perNs;
    let [next, left, wide, strength, shown] = [row + 1, x, width, 1, region[row]];
    if (flags[row] & INSTANT) {
      wide = 2;
    } else if (width < NARROW) {
      left = Math.floor(x);
      wide = 1;
      next = launch.firstStarting(layer, times.timeAt(left + 1 - GUTTER), row + 1);
      if (next - 1 > row && duration[next - 1] * perNs >= NARROW) next--; // That one is drawn by itself.
      const busy = launch.busyBefore[next] - launch.busyBefore[row];
      strength = Math.min(Math.max(busy * perNs, FAINTEST), 1);
      shown = mostOf(launch.columns, row, next, state.region);
    }
    if (state.region >= 0 && shown !== state.region) strength *= 0.18;
    context.globalAlpha = strength;
    context.fillStyle = colours.regions[shown];
    context.fillRect(left, top, Math.max(wide - (wide > 4 ? 1 : 0), 1), ROW - 1);
    if (flags[row] & INCOMPLETE && width > 6) drawTorn(context, left + wide, top, colours);
    if (width > 34) drawLabel(context, state, row, [left, top, wide], colours);
    row = next;
  }
  context.globalAlpha = 1;
}

/** The region that most of the time of rows `from .. end - 1` is in, by a sample; `wanted` if it is among them. */
function mostOf({ region, duration }, from, end, wanted) {
  const step = Math.max(1, (end - from) / SAMPLE);
  const sums = new Map();
  let best = region[from];
  for (let at = from; at < end; at += step) {
    const row = Math.floor(at);
    if (region[row] === wanted) return wanted;
    const sum = (sums.get(region[row]) ?? 0) + duration[row];
    sums.set(region[row], sum);
    if (sum > (sums.get(best) ?? 0)) best = region[row];
  }
  return best;
}

/** The end of a span that is not known. */
function drawTorn(context, right, top, colours) {
  context.fillStyle = colours.back;
  for (let y = 0; y < ROW - 1; y += 4) context.fillRect(right - 3, top + y, 3, 2);
}

function drawLabel(context, state, row, [left, top, width], colours) {
  const from = Math.max(left, GUTTER);
  const room = Math.floor((left + width - from - 6) / 6.1);
  if (room < 3) return;
  const name = spanName(state.launch, row);
  context.fillStyle = colours.ink[state.launch.columns.region[row]];
  context.fillText(name.length > room ? `${name.slice(0, room - 1)}…` : name, from + 3, top + ROW / 2);
}

function drawSelection(context, state, colours) {
  if (state.row < 0) return;
  const box = boxOf(state, state.row);
  context.strokeStyle = colours.text;
  context.lineWidth = 2;
  context.strokeRect(box.left - 1, box.top - 1, Math.max(box.width, 2) + 1, ROW + 1);
}

/** Arrows of asynchronous work into and out of the selected span. */
function drawFlows(context, state, colours) {
  if (state.row < 0) return;
  context.strokeStyle = colours.accent;
  context.lineWidth = 1.5;
  for (const [from, to] of state.flows) {
    const [issue, wait] = [boxOf(state, from), boxOf(state, to)];
    const [x, y] = [wait.left + wait.width, wait.top + ROW / 2];
    context.beginPath();
    context.moveTo(issue.left, issue.top + ROW / 2);
    context.bezierCurveTo(issue.left + 30, issue.top + ROW / 2, x - 30, y, x, y);
    context.moveTo(x - 5, y - 4);
    context.lineTo(x, y);
    context.lineTo(x - 5, y + 4);
    context.stroke();
  }
}

function boxOf(state, row) {
  const { launch, window: times } = state;
  const layer = launch.layerOf(row);
  return {
    left: GUTTER + times.xOf(launch.columns.start[row]),
    width: launch.columns.duration[row] * times.pixelsPerNs,
    top: topOf(state, layer.lane) + layer.depth * ROW,
  };
}

function drawName(context, state, lane, colours) {
  const { sm, slot, warp, role } = state.launch.lanes[lane];
  const top = topOf(state, lane);
  context.fillStyle = colours.back;
  context.fillRect(0, top, GUTTER - 4, ROW + 1);
  context.fillStyle = colours.text;
  const name = `SM ${sm}${slot ? `.${slot}` : ""} · warp ${warp}`;
  context.fillText(role === "default" ? name : `${name} · ${role}`.slice(0, 28), 8, top + ROW / 2);
}

function drawAxis(context, marks, times, width, colours) {
  context.fillStyle = colours.panel;
  context.fillRect(0, 0, width, AXIS);
  context.fillStyle = colours.dim;
  context.fillText("from the launch's start", 8, AXIS / 2);
  for (const time of marks) context.fillText(duration(time), GUTTER + times.xOf(time) + 3, AXIS / 2);
}

/** How many warps of the launch are at work, over all of it, and the part that is in view. */
function drawOverview(canvas, state, colours) {
  const scale = devicePixelRatio || 1;
  const [width, height] = [canvas.width / scale, canvas.height / scale];
  const context = canvas.getContext("2d", { alpha: false });
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.fillStyle = colours.panel;
  context.fillRect(0, 0, width, height);
  context.fillStyle = colours.dim;
  const room = width - GUTTER;
  state.activity.forEach((share, i) => {
    const wide = room / state.activity.length;
    context.fillRect(GUTTER + i * wide, height - share * (height - 4), wide + 0.5, share * (height - 4));
  });
  context.fillStyle = colours.text;
  context.font = "11px system-ui, 'DejaVu Sans', sans-serif";
  context.fillText("warps at work", 8, height / 2 + 4);
  const { span, start, end } = state.window;
  context.strokeStyle = colours.accent;
  context.lineWidth = 2;
  context.strokeRect(GUTTER + (start / span) * room + 1, 1, Math.max(((end - start) / span) * room - 2, 2), height - 2);
}

/** Share of the lanes that a CTA is in, for each of `parts` equal parts of the launch. */
function activityOf(launch, parts) {
  const sums = new Float64Array(parts);
  const { start } = launch.columns;
  const length = launch.durationNs / parts;
  for (const { layers } of launch.lanes) {
    const layer = layers[0];
    for (let row = layer ? layer.first : 0; layer && row < layer.end; row++) {
      const end = Math.min(launch.endOf(row), launch.durationNs);
      const last = Math.min(Math.floor(end / length), parts - 1);
      for (let part = Math.floor(start[row] / length); part <= last; part++) {
        sums[part] += Math.min(end, (part + 1) * length) - Math.max(start[row], part * length);
      }
    }
  }
  return sums.map((sum) => sum / (length * Math.max(launch.lanes.length, 1)));
}

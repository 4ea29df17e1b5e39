// The data of the page: JSON, and per launch the columns that kperfir/report/spans.py packed.

const data = JSON.parse($("data").textContent);

/** Unpack the spans of launch `index` of the timeline. Done once, when it is first shown. */
async function unpackLaunch(index) {
  const header = data.timeline[index];
  const bytes = await inflate($(`spans-${index}`).textContent);
  const columns = {};
  let offset = 0;
  for (const [name, type] of header.columns) {
    columns[name] = readColumn(bytes, offset, header.rows, type);
    offset += header.rows * columns[name].BYTES_PER_ELEMENT;
  }
  if (header.deltas) for (let row = 1; row < header.rows; row++) columns.start[row] += columns.start[row - 1];
  return new Launch(header, columns);
}

async function inflate(base64) {
  const text = atob(base64);
  const packed = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) packed[i] = text.charCodeAt(i);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

const ARRAYS = { "<u4": Uint32Array, "<i4": Int32Array, "<f8": Float64Array, "|u1": Uint8Array };

/** A typed array of `rows` values; in `bytes` come the lowest bytes of all of them, then the next ones. */
function readColumn(bytes, offset, rows, type) {
  const values = new ARRAYS[type](rows);
  const size = values.BYTES_PER_ELEMENT;
  const target = new Uint8Array(values.buffer);
  for (let byte = 0; byte < size; byte++) {
    const from = offset + byte * rows;
    for (let row = 0; row < rows; row++) target[row * size + byte] = bytes[from + row];
  }
  return values;
}

const INCOMPLETE = 1;
const INSTANT = 2;

/** The spans of one launch. A layer is a lane at one depth: rows `first` to `first + count - 1`, in order of time. */
class Launch {
  constructor(header, columns) {
    this.columns = columns;
    this.rows = header.rows;
    this.durationNs = Math.max(header.duration_ns, 1);
    this.lanes = header.lanes.map(([sm, slot, warp, role]) => ({ sm, slot, warp, role, layers: [] }));
    this.values = new Map(header.values);
    this.flows = header.flows;
    for (const [lane, depth, first, count] of header.layers) {
      this.lanes[lane].layers[depth] = { lane, depth, first, end: first + count };
    }
    this.layers = header.layers.map(([lane, depth]) => this.lanes[lane].layers[depth]);
    this.busyBefore = runningSum(columns.duration);
  }

  endOf(row) {
    return this.columns.start[row] + this.columns.duration[row];
  }

  /** First row of `layer`, from `from` on, that starts at `time` or later. */
  firstStarting(layer, time, from = layer.first) {
    return lowerBound(from, layer.end, (row) => this.columns.start[row] < time);
  }

  /** First row of `layer` that ends after `time`. */
  firstEndingAfter(layer, time) {
    return lowerBound(layer.first, layer.end, (row) => this.endOf(row) <= time);
  }

  layerOf(row) {
    const number = lowerBound(0, this.layers.length, (i) => this.layers[i].end <= row);
    return this.layers[number];
  }

  /** The row around `row`, or -1. */
  parentOf(row) {
    const layer = this.layerOf(row);
    const above = this.lanes[layer.lane].layers[layer.depth - 1];
    if (!above) return -1;
    // Of those that begin no later the last; a child of no length may lie where two rows meet.
    let at = this.firstStarting(above, this.columns.start[row] + 1) - 1;
    while (at > above.first && this.endOf(at) < this.endOf(row)) at--;
    return at >= above.first ? at : -1;
  }

  /** The first row inside `row`, or -1. */
  childOf(row) {
    const layer = this.layerOf(row);
    const below = this.lanes[layer.lane].layers[layer.depth + 1];
    if (!below) return -1;
    const at = this.firstStarting(below, this.columns.start[row]);
    return at < below.end && this.endOf(at) <= this.endOf(row) ? at : -1;
  }
}

/** `sums[i]` is the sum of the first `i` values. */
function runningSum(values) {
  const sums = new Float64Array(values.length + 1);
  for (let i = 0; i < values.length; i++) sums[i + 1] = sums[i] + values[i];
  return sums;
}

/** First of `from .. end - 1` for which `below` is false. */
function lowerBound(from, end, below) {
  while (from < end) {
    const middle = (from + end) >>> 1;
    if (below(middle)) from = middle + 1;
    else end = middle;
  }
  return from;
}

// Where things lie: which lane is at which height, which time at which pixel.

const GUTTER = 178; // Names of lanes.
const AXIS = 22;
const ROW = 15;
const LANE_GAP = 7;

/** Heights of a launch's lanes, from the top of the first. */
class LaneHeights {
  constructor(launch) {
    this.tops = new Float64Array(launch.lanes.length + 1);
    launch.lanes.forEach((lane, i) => {
      this.tops[i + 1] = this.tops[i] + lane.layers.length * ROW + LANE_GAP;
    });
  }

  get total() {
    return this.tops[this.tops.length - 1];
  }

  /** The lane at height `y`. */
  laneAt(y) {
    return Math.min(lowerBound(1, this.tops.length, (i) => this.tops[i] <= y) - 1, this.tops.length - 2);
  }
}

/** The times in view, and their pixels. All of `span` is the launch. */
class TimeWindow {
  constructor(span) {
    this.span = span;
    this.pixels = 1;
    this.fit();
  }

  fit() {
    this.set(0, this.span);
  }

  get length() {
    return this.end - this.start;
  }

  get pixelsPerNs() {
    return this.pixels / this.length;
  }

  xOf(time) {
    return (time - this.start) * this.pixelsPerNs;
  }

  timeAt(x) {
    return this.start + x / this.pixelsPerNs;
  }

  /** Show `start` to `end`, as far as they lie in the launch and are apart. */
  set(start, end) {
    const length = Math.min(Math.max(end - start, Math.min(8, this.span)), this.span);
    this.start = Math.min(Math.max(start, 0), this.span - length);
    this.end = this.start + length;
  }

  move(ns) {
    this.set(this.start + ns, this.end + ns);
  }

  /** Zoom by `factor` (above 1: in), with the time at pixel `x` staying where it is. */
  zoom(factor, x = this.pixels / 2) {
    const [time, length] = [this.timeAt(x), this.length / factor];
    const start = time - (length * x) / this.pixels;
    this.set(start, start + length);
  }
}

/** Round times in view, about `apart` pixels from each other. */
function ticks(window, apart = 110) {
  const rough = (window.length * apart) / window.pixels;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(1, [1, 2, 5, 10].find((factor) => factor * power >= rough) * power);
  const times = [];
  for (let time = Math.ceil(window.start / step) * step; time <= window.end; time += step) times.push(time);
  return times;
}

// Elements and text. Everything that comes from a capture becomes a text node or a property here, never markup.

const $ = (id) => document.getElementById(id);

/** An element with properties (`class`, `title`, `onclick`, ...) and children; strings become text. */
function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value);
  }
  element.append(...children.map(nodeOf));
  return element;
}

function nodeOf(child) {
  return child instanceof Node ? child : String(child);
}

function whole(value) {
  return value === null || value === undefined ? "–" : Math.round(value).toLocaleString("en-US");
}

function percent(share) {
  return share === null || share === undefined ? "–" : `${(100 * share).toFixed(1)} %`;
}

/** A time in the unit that suits it. */
function duration(ns) {
  const size = Math.abs(ns);
  if (size < 1e4) return `${Number(ns.toFixed(0)).toLocaleString("en-US")} ns`;
  if (size < 1e7) return `${(ns / 1e3).toFixed(2)} µs`;
  if (size < 1e10) return `${(ns / 1e6).toFixed(2)} ms`;
  return `${(ns / 1e9).toFixed(2)} s`;
}

/** The last part of a path. */
function baseName(path) {
  return path.slice(path.lastIndexOf("/") + 1);
}

function plural(number, noun, many = `${noun}s`) {
  return `${whole(number)} ${number === 1 ? noun : many}`;
}

"use strict";
// The data of the page, and small tools for all parts: elements, numbers, arrays.

const page = JSON.parse(document.getElementById("data").textContent);
const SVG = "http://www.w3.org/2000/svg";

// An element with attributes and children. Text stays text: nothing is parsed as HTML.
function element(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function drawn(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.filter((each) => each !== null && each !== undefined));
  return node;
}

// A section with a heading, under an anchor that the menu links to.
function section(id, title, about, ...children) {
  return element("section", { id }, element("h2", {}, title),
    about ? element("p", { class: "about" }, about) : null, ...children);
}

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

function count(number) {
  return number === null || number === undefined ? "" : whole.format(number);
}

function percent(part) {
  return part === null || part === undefined ? "" : `${(100 * part).toFixed(1)} %`;
}

function duration(seconds) {
  if (seconds === null || seconds === undefined) return "";
  if (seconds === 0) return "0 s";
  for (const [scale, unit] of [[1, "s"], [1e-3, "ms"], [1e-6, "µs"]]) {
    if (seconds >= scale) return `${(seconds / scale).toPrecision(4)} ${unit}`;
  }
  return `${(seconds * 1e9).toPrecision(4)} ns`;
}

function bytes(number) {
  if (number === null || number === undefined) return "";
  if (number < 10000) return `${count(number)} B`;
  if (number < 1e7) return `${(number / 1024).toFixed(1)} KiB`;
  return `${(number / 1048576).toFixed(1)} MiB`;
}

// A short form for axes: 1200000 is 1.2M.
function short(number) {
  for (const [scale, unit] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (Math.abs(number) >= scale) return `${+(number / scale).toPrecision(4)}${unit}`;
  }
  return `${+number.toPrecision(3)}`;
}

async function inflate(text) {
  const raw = Uint8Array.from(atob(text), (each) => each.charCodeAt(0));
  const stream = new Blob([raw]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// The numbers of an array that report/encoding.py encoded.
async function decodeArray(encoded) {
  const raw = await inflate(encoded.data);
  const { kind, count: length } = encoded;
  if (kind === "u8") return raw;
  if (kind === "f64") return new Float64Array(raw.buffer, 0, length);
  const numbers = kind === "d32" ? new Float64Array(length) : new Int32Array(length);
  let sum = 0;
  for (let i = 0; i < length; i++) {
    const value = raw[i] | raw[length + i] << 8 | raw[2 * length + i] << 16
      | raw[3 * length + i] << 24;
    if (kind === "d32") sum += value;
    numbers[i] = kind === "d32" ? sum : value;
  }
  return numbers;
}

// The value of a colour of the style sheet, in the theme that is shown.
function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

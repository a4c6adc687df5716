"use strict";
// Bars, legends and the roofline.

function swatch(name) {
  return element("span", { class: "swatch", style: `background: var(--${name})` });
}

function legend(...entries) {
  return element("div", { class: "legend" }, ...entries.map(([name, text, striped]) =>
    element("span", {}, element("span", { class: `swatch${striped ? " stripes" : ""}`,
      style: `background-color: var(--${name})` }), text)));
}

// A bar of parts: [colour, amount, text, striped].
function stackedBar(parts, total) {
  return element("div", { class: "bar", role: "img",
    "aria-label": parts.map(([, amount, text]) => `${text} ${percent(amount / total)}`).join(", ") },
    ...parts.filter(([, amount]) => amount > 0).map(([name, amount, text, striped]) =>
      element("span", { class: striped ? "stripes" : "", title: `${text}: ${count(amount)}`,
        style: `width: ${100 * amount / total}%; background-color: var(--${name})` })));
}

// Multiply-adds per byte and per cycle of each layer, under what the bus and the array allow.
function rooflineChart(run, choose) {
  const { macs_per_cycle: peak, bytes_per_cycle: rate } = run.roofline;
  const points = run.layers.map((layer, i) => ({ layer, i }))
    .filter(({ layer }) => layer.macs && layer.bytes && layer.cycles)
    .map(({ layer, i }) => ({ layer, i, x: layer.macs / layer.bytes,
      y: layer.macs / layer.cycles }));
  if (!points.length) return null;
  const ridge = peak / rate;
  const [width, height, left, bottom] = [860, 380, 64, 44];
  const xs = [...points.map((each) => each.x), ridge];
  const low = 10 ** Math.floor(Math.log10(Math.min(...xs) / 1.2));
  const high = 10 ** Math.ceil(Math.log10(Math.max(...xs) * 1.2));
  const floor = 10 ** Math.floor(Math.log10(Math.min(...points.map((each) => each.y), peak) / 1.2));
  const top = peak * 2;
  const x = (value) => left + (width - left - 16) * Math.log(value / low) / Math.log(high / low);
  const y = (value) => 12 + (height - bottom - 12) * Math.log(top / value) / Math.log(top / floor);
  const grid = [];
  for (let value = low; value <= high; value *= 10) {
    grid.push(drawn("line", { class: "grid", x1: x(value), x2: x(value), y1: 12,
      y2: height - bottom }), drawn("text", { class: "axis", x: x(value), y: height - bottom + 16,
      "text-anchor": "middle" }, short(value)));
  }
  for (let value = floor; value <= top; value *= 10) {
    grid.push(drawn("line", { class: "grid", x1: left, x2: width - 16, y1: y(value), y2: y(value) }),
      drawn("text", { class: "axis", x: left - 6, y: y(value) + 4, "text-anchor": "end" },
        short(value)));
  }
  const corner = Math.max(low, floor / rate);
  const slope = Math.sqrt(corner * ridge);        // the middle of the roof's left half
  const roof = drawn("path", { fill: "none", stroke: "var(--text)", "stroke-width": 2,
    d: `M${x(corner)},${y(corner * rate)} L${x(ridge)},${y(peak)} L${x(high)},${y(peak)}` });
  return drawn("svg", { viewBox: `0 0 ${width} ${height}`, width: "100%", role: "img",
    "aria-label": "Roofline: multiply-adds per cycle over multiply-adds per byte" },
    ...grid, roof,
    drawn("text", { class: "quiet", x: width - 20, y: y(peak) - 14, "text-anchor": "end" },
      `${count(peak)} multiply-adds a cycle`),
    drawn("text", { class: "quiet", x: x(slope) - 8, y: y(slope * rate) - 8, "text-anchor": "end" },
      `${rate} bytes a cycle`),
    drawn("text", { class: "axis", x: (width + left) / 2, y: height - 6, "text-anchor": "middle" },
      "multiply-adds per byte moved"),
    drawn("text", { class: "axis", x: 14, y: height / 2, "text-anchor": "middle",
      transform: `rotate(-90 14 ${height / 2})` }, "multiply-adds per cycle"),
    ...points.map((each) => mark(each, x(each.x), y(each.y), choose)));
}

// A point of the roofline; its shape tells what limits the layer, as its colour does.
function mark({ layer, i }, x, y, choose) {
  const shapes = { macs: `M${x - 5},${y} a5,5 0 1,0 10,0 a5,5 0 1,0 -10,0`,
    memory: `M${x - 5},${y - 5} h10 v10 h-10 z`, alu: `M${x},${y - 6} l6,11 h-12 z` };
  return drawn("path", { d: shapes[layer.limit] ?? shapes.macs, class: "point", "data-layer": i,
    fill: layer.limit ? `var(--limit-${layer.limit})` : "var(--other)", stroke: "var(--back)",
    onclick: () => choose(i) },
    drawn("title", {}, `${layer.title}: ${count(layer.cycles)} cycles, `
      + `${percent(layer.efficiency)} of its bound`));
}

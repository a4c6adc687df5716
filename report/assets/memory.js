"use strict";
// Memory: where tensors lie in DRAM and when, how full scratchpads are, and who causes the traffic.

const MAP_HEIGHT = 64;

function planSection(run) {
  const tensors = run.plans.flatMap((plan) => plan.tensors);
  if (!tensors.length) return null;
  const most = (name) => run.plans.reduce((largest, plan) => Math.max(largest, plan[name]), 0);
  return section("plan", "Memory plan", "Activations between layers, in DRAM: a box for each tensor, "
    + "from its first byte stored to its last byte loaded, at its place in the arena of its program. "
    + `${count(most("peak"))} bytes at most, ${count(most("total"))} without reuse.`,
    planChart(tensors, Math.max(most("peak"), 1), run.timeline.cycles));
}

function planChart(tensors, top, cycles) {
  const [width, height, left, bottom] = [1100, 240, 70, 26];
  const x = (time) => left + (width - left - 6) * time / Math.max(cycles, 1);
  const y = (place) => 6 + (height - bottom - 6) * (1 - place / top);
  const palette = ["load", "bus", "alu", "store", "cpu", "gemm"];
  const ticks = [0, 0.25, 0.5, 0.75, 1];
  return drawn("svg", { viewBox: `0 0 ${width} ${height}`, width: "100%", role: "img",
    "aria-label": "Tensors in memory over time" },
    ...ticks.flatMap((each) => [
      drawn("line", { class: "grid", x1: left, x2: width - 6, y1: y(each * top),
        y2: y(each * top) }),
      drawn("text", { class: "axis", x: left - 6, y: y(each * top) + 4, "text-anchor": "end" },
        bytes(each * top)),
      drawn("text", { class: "axis", x: x(each * cycles), y: height - 8,
        "text-anchor": each === 1 ? "end" : "middle" }, short(each * cycles))]),
    ...tensors.map((each, i) => drawn("rect", { x: x(each.first),
      width: Math.max(1, x(each.last) - x(each.first)), y: y(each.offset + each.bytes),
      height: Math.max(1, y(each.offset) - y(each.offset + each.bytes)), "fill-opacity": 0.75,
      fill: `var(--${palette[i % palette.length]})`, stroke: "var(--back)" },
      drawn("title", {}, `${each.name}: ${count(each.bytes)} bytes at ${count(each.offset)}, `
        + `cycles ${count(each.first)} to ${count(each.last)}`))));
}

async function scratchpadSection(run) {
  if (!run.timeline.programs.length) return null;
  if (!run.scratchpads.length) {
    return section("scratchpads", "Scratchpads", "The program is too long for maps of scratchpads.");
  }
  const maps = [];
  for (const each of run.scratchpads) maps.push({ ...each, map: await decodeArray(each.map) });
  return section("scratchpads", "Scratchpads", "Which part of each scratchpad holds data that is still "
    + "to be read, over the time of the inference (left to right), by address (bottom to top) in 64 "
    + "parts.", ...maps.map((each) => scratchpadMap(each)));
}

function scratchpadMap(pad) {
  const live = pad.map.reduce((sum, each) => sum + each, 0) / 255 / pad.map.length;
  const peak = peakOf(pad);
  const canvas = element("canvas", { class: "map", width: pad.bins, height: pad.parts, role: "img",
    style: `height: ${MAP_HEIGHT}px`,
    "aria-label": `${pad.name}: ${percent(live)} in use on average, ${percent(peak)} at most` });
  canvas.redraw = () => paintMap(canvas, pad);
  return element("div", { class: "pad" }, element("div", { class: "reason" },
    `${pad.name}: ${bytes(pad.bytes)}, ${count(pad.tiles)} tiles; ${percent(live)} in use on average, `
    + `${percent(peak)} at most`), canvas);
}

function peakOf(pad) {
  let most = 0;
  for (let bin = 0; bin < pad.bins; bin++) {
    let sum = 0;
    for (let part = 0; part < pad.parts; part++) sum += pad.map[part * pad.bins + bin];
    most = Math.max(most, sum);
  }
  return most / 255 / pad.parts;
}

function paintMap(canvas, pad) {
  const context = canvas.getContext("2d");
  const image = context.createImageData(pad.bins, pad.parts);
  const mix = [colour("panel"), colour(PAD_COLOURS[pad.name] ?? "load")].map(rgb);
  for (let part = 0; part < pad.parts; part++) {
    for (let bin = 0; bin < pad.bins; bin++) {
      const value = pad.map[part * pad.bins + bin] / 255;
      const at = 4 * ((pad.parts - 1 - part) * pad.bins + bin);
      for (let i = 0; i < 3; i++) image.data[at + i] = mix[0][i] + value * (mix[1][i] - mix[0][i]);
      image.data[at + 3] = 255;
    }
  }
  context.putImageData(image, 0, 0);
}

// Who fills a scratchpad gives it its colour.
const PAD_COLOURS = { uop: "cpu", inp: "load", wgt: "load", acc: "gemm", out: "alu" };

function rgb(text) {
  return [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));
}

function trafficSection(run) {
  const rows = run.tensors.filter((each) => each.read + each.written);
  if (!rows.length) return null;
  const most = rows.reduce((largest, each) => Math.max(largest, each.read + each.written), 0);
  const total = rows.reduce((sum, each) => sum + each.read + each.written, 0);
  return section("traffic", "Traffic by tensor", `${count(total)} bytes to and from DRAM; instructions `
    + "are not counted.", legend(["load", "read"], ["store", "written"]),
    element("div", { class: "scroll" }, element("table", { id: "traffic-table" },
      element("thead", {}, element("tr", {}, ...["tensor", "kind", "read", "written", ""].map(
        (each, i) => element("th", { class: i === 2 || i === 3 ? "number" : "" }, each)))),
      element("tbody", {}, ...rows.map((each) => element("tr", {},
        element("td", { class: "name" }, each.name), element("td", {}, each.kind),
        element("td", { class: "number" }, count(each.read)),
        element("td", { class: "number" }, count(each.written)),
        element("td", { style: "width: 34%" }, stackedBar([["load", each.read, "read"],
          ["store", each.written, "written"]], most))))))));
}

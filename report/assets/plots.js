"use strict";
// Plots over two axes: dots, lines, steps and bands, with what is under the pointer in words.

const PLOT = { width: 860, height: 420, left: 84, right: 16, top: 14, bottom: 46, reach: 26 };
const MOST_TICKS = 6;
// Shapes differ as colours do.
const LOOKS = [["accelerator", "disc"], ["gemm", "square"], ["alu", "triangle"],
  ["store", "diamond"], ["bus", "disc"], ["cpu", "square"]];
const SHAPES = {
  disc: (x, y, r) => `M${x - r},${y} a${r},${r} 0 1,0 ${2 * r},0 a${r},${r} 0 1,0 ${-2 * r},0`,
  square: (x, y, r) => `M${x - r},${y - r} h${2 * r} v${2 * r} h${-2 * r} z`,
  triangle: (x, y, r) => `M${x},${y - 1.2 * r} l${1.2 * r},${2.1 * r} h${-2.4 * r} z`,
  diamond: (x, y, r) => `M${x},${y - 1.5 * r} l${1.5 * r},${1.5 * r} l${-1.5 * r},${1.5 * r} `
    + `l${-1.5 * r},${-1.5 * r} z`,
};

// An axis: values to places, and its ticks. It is logarithmic where that is asked for and possible.
function axis(values, log, from, to) {
  let [low, high] = [Math.min(...values), Math.max(...values)];
  const isLog = log && low > 0;
  if (isLog) {
    const room = high > low ? (high / low) ** 0.04 : 2;
    [low, high] = [low / room, high * room];
  } else {
    const room = (high - low) * 0.04 || Math.abs(high) * 0.1 || 1;
    [low, high] = [low - room, high + room];
  }
  const scale = isLog ? Math.log : (value) => value;
  const place = (value) => from + (to - from) * (scale(value) - scale(low))
    / (scale(high) - scale(low));
  return { place, ticks: ticksBetween(low, high, isLog) };
}

function ticksBetween(low, high, isLog) {
  if (isLog) {
    const powers = [];
    for (let i = Math.floor(Math.log10(low)); i <= Math.log10(high); i++) powers.push(10 ** i);
    const inside = (each) => low <= each && each <= high;
    const fine = powers.flatMap((each) => [each, 2 * each, 5 * each]).filter(inside);
    if (fine.length > 2 * MOST_TICKS) {
      return powers.filter((each, i) => inside(each) && i % Math.ceil(powers.length / MOST_TICKS) === 0);
    }
    if (fine.length > 2) return fine;
  }
  const rough = (high - low) / MOST_TICKS;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough * 0.999);
  const ticks = [];
  for (let i = Math.ceil(low / step); i * step <= high; i++) ticks.push(i * step);
  return ticks;
}

// A plot of { x: { name, log }, y, series: [{ name, kind, points: [{ x, y, top, label }], look }],
// level }. `choose` is called with a series and a point that is clicked.
function plotChart({ x, y, series, level }, label, choose) {
  const all = series.flatMap((each) => each.points);
  if (!all.length) return element("p", { class: "about" }, "There is nothing to plot.");
  const { width, height, left, right, top, bottom } = PLOT;
  const across = axis(all.map((each) => each.x), x.log, left, width - right);
  const up = axis([...all.flatMap((each) => [each.y, each.top ?? each.y]),
    ...(has(level) ? [level] : [])], y.log, height - bottom, top);
  const drawing = drawn("svg", { viewBox: `0 0 ${width} ${height}`, width: "100%", role: "img",
    "aria-label": label }, ...axesOf(across, up, x, y),
    has(level) ? drawn("line", { x1: left, x2: width - right, y1: up.place(level),
      y2: up.place(level), stroke: "var(--text)", "stroke-dasharray": "5 4" }) : null,
    ...series.map((each, i) => seriesOf(each, LOOKS[i % LOOKS.length], across, up)));
  const tip = element("div", { class: "tip", role: "status" });
  const nearest = (event) => nearestPoint(series, across, up, drawing, event);
  drawing.addEventListener("pointermove", (event) => showTip(tip, drawing, nearest(event)));
  drawing.addEventListener("pointerleave", () => showTip(tip, drawing, null));
  if (choose) {
    drawing.addEventListener("click", (event) => {
      const found = nearest(event);
      if (found) choose(found.point);
    });
  }
  return element("div", {}, element("div", { class: "chart" }, drawing, tip), plotLegend(series));
}

function axesOf(across, up, x, y) {
  const { width, height, left, right, top, bottom } = PLOT;
  return [...across.ticks.flatMap((tick) => [
    drawn("line", { class: "grid", x1: across.place(tick), x2: across.place(tick), y1: top,
      y2: height - bottom }),
    drawn("text", { class: "axis", x: across.place(tick), y: height - bottom + 16,
      "text-anchor": "middle" }, short(tick))]),
  ...up.ticks.flatMap((tick) => [
    drawn("line", { class: "grid", x1: left, x2: width - right, y1: up.place(tick),
      y2: up.place(tick) }),
    drawn("text", { class: "axis", x: left - 6, y: up.place(tick) + 4, "text-anchor": "end" },
      short(tick))]),
  drawn("text", { class: "axis", x: (width + left) / 2, y: height - 8, "text-anchor": "middle" },
    x.name),
  drawn("text", { class: "axis", x: 16, y: height / 2, "text-anchor": "middle",
    transform: `rotate(-90 16 ${height / 2})` }, y.name)];
}

function seriesOf({ kind, points, look, size }, standard, across, up) {
  const [name, shape] = look ?? standard;
  const places = points.map((each) => [across.place(each.x), up.place(each.y)]);
  const line = (pairs) => pairs.map(([a, b]) => `${a.toFixed(1)},${b.toFixed(1)}`).join(" L");
  if (kind === "band") {
    const tops = points.map((each) => [across.place(each.x), up.place(each.top)]).reverse();
    return drawn("path", { d: `M${line([...places, ...tops])} z`, fill: `var(--${name})`,
      opacity: 0.25 });
  }
  if (kind === "line" || kind === "steps") {
    const corners = kind === "line" ? places : places.flatMap(([a, b], i) =>
      i ? [[a, places[i - 1][1]], [a, b]] : [[a, b]]);
    return drawn("path", { d: `M${line(corners)}`, fill: "none", stroke: `var(--${name})`,
      "stroke-width": 2 });
  }
  if (shape === "dot") {              // thousands of them are one element
    return drawn("path", { d: places.map(([a, b]) => `M${a.toFixed(1)},${b.toFixed(1)}h0`).join(""),
      stroke: `var(--${name})`, "stroke-width": 4, "stroke-linecap": "round" });
  }
  return drawn("g", {}, ...points.map((each, i) => drawn("path", {
    d: SHAPES[shape](...places[i], size ?? 5), class: "point", fill: `var(--${name})`,
    stroke: "var(--back)", "data-point": each.id })));
}

// What has a label and lies nearest to the pointer.
function nearestPoint(series, across, up, drawing, event) {
  const box = drawing.getBoundingClientRect();
  const scale = PLOT.width / box.width;
  const [x, y] = [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
  let found = null;
  let least = PLOT.reach;
  for (const each of series) {
    for (const point of each.points.filter((one) => one.label)) {
      const far = Math.hypot(across.place(point.x) - x, up.place(point.y) - y) - (each.nearer ?? 0);
      if (far < least) [least, found] = [far, { point, x: across.place(point.x) / scale,
        y: up.place(point.y) / scale }];
    }
  }
  return found;
}

function showTip(tip, drawing, found) {
  tip.classList.toggle("shown", found !== null);
  if (!found) return;
  tip.textContent = found.point.label;
  const room = drawing.getBoundingClientRect().width;
  tip.style.left = `${Math.min(found.x + 12, room - tip.offsetWidth)}px`;
  tip.style.top = `${found.y + 14}px`;
}

function plotLegend(series) {
  return element("div", { class: "legend" }, ...series.map(({ name, kind, look }, i) => {
    const [colour, shape] = look ?? LOOKS[i % LOOKS.length];
    const mark = kind === "band" ? { d: "M0,2 h14 v10 h-14 z", opacity: 0.25 }
      : kind === "line" || kind === "steps" ? { d: "M0,6 h14 v2 h-14 z" }
      : { d: (SHAPES[shape] ?? SHAPES.disc)(7, 7, shape === "dot" ? 2 : 4.5) };
    return element("span", {}, drawn("svg", { width: 14, height: 14, "aria-hidden": "true" },
      drawn("path", { ...mark, fill: `var(--${colour})` })), ` ${name}`);
  }));
}

// Plots that only some sources have.
function plotSection(plot, number) {
  return section(`plot-${number}`, plot.title, plot.about,
    plotChart(plot, `${plot.title}: ${plot.y.name} over ${plot.x.name}`));
}

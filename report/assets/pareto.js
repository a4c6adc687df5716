"use strict";
// A search of configurations: points over two axes that people choose, and a configuration each.

const AXES = { latency: "cycles", lut: "LUTs", register: "registers", dsp: "multipliers",
  bram: "block RAMs" };
const POINTS = [["predicted", "predicted", ["other", "dot"]],
  ["exact", "simulated", ["accelerator", "square"]],
  ["front", "on the front", ["gemm", "disc"]], ["baseline", "baseline", ["alu", "diamond"]]];

function paretoSection(pareto) {
  const points = pareto.points.map((each, id) => ({ ...each, id,
    milliseconds: each.latency / pareto.mhz / 1000, label: labelOf(each, pareto) }));
  const front = points.filter((each) => each.kind === "front");
  const state = { x: pareto.objectives.find((each) => each !== "latency") ?? "lut", y: "latency",
    chosen: front[0] ?? null };
  const place = element("div", { tabindex: 0, id: "pareto-plot", onkeydown: move,
    "aria-label": "points of the front; arrow keys choose one" });
  const details = element("div", { class: "details", id: "pareto-point", "aria-live": "polite" });
  const table = frontTable(front, pareto, choose);
  function draw() {
    place.replaceChildren(plotChart(plotOf(points, state), "Configurations: "
      + `${AXES[state.y]} over ${AXES[state.x]}`, choose));
    choose(state.chosen);
  }
  function choose(point) {
    state.chosen = point;
    if (!point) return;
    details.replaceChildren(...detailsOf(point, points.find((each) => each.kind === "baseline"),
      pareto));
    document.querySelectorAll("#pareto .chosen").forEach((each) => each.classList.remove("chosen"));
    for (const each of [place, table]) {
      each.querySelectorAll(`[data-point="${point.id}"]`).forEach((one) =>
        one.classList.add("chosen"));
    }
  }
  function move(event) {
    const order = [...front].sort((one, two) => one[state.x] - two[state.x]);
    const at = order.indexOf(state.chosen);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: order.length - 1 }[event.key];
    if (to === undefined || !order.length) return;
    event.preventDefault();
    choose(order[Math.max(0, Math.min(order.length - 1, to))]);
  }
  report.pareto = state;
  const found = section("pareto", "Pareto front", aboutText(pareto), axisChoices(pareto, state, draw),
    place, details, element("h3", {}, "The front"), table, rejectedTable(pareto));
  draw();
  choose(state.chosen);
  return found;
}

function aboutText(pareto) {
  const wanted = pareto.objectives.map((each) => AXES[each]).join(", ");
  return `${count(pareto.trials)} trials for ${pareto.board} at ${pareto.mhz} MHz: `
    + `${count(pareto.fit)} configurations fit, and the best were compiled and simulated `
    + `exactly. On the front is what no other one beats in ${wanted}; the line joins those of them `
    + "that none beats in the two axes shown. Areas are predicted. Arrow keys walk along the front."
    + (pareto.left_out ? ` ${count(pareto.left_out)} predicted ones are not drawn.` : "");
}

function labelOf(point, pareto) {
  const area = pareto.kinds.map((kind) => `${count(point[kind])} ${AXES[kind]}`).join(", ");
  return `${point.name}: ${count(point.latency)} cycles, ${area}`;
}

function plotOf(points, { x, y }) {
  const at = (each) => ({ ...each, x: each[x], y: each[y] });
  const series = POINTS.map(([kind, name, look]) => ({ name, kind: "dots", look,
    nearer: kind === "predicted" ? 0 : 8,      // what lies on top is what is pointed at
    points: points.filter((each) => each.kind === kind).map(at) }));
  const best = [];
  for (const each of [...series[2].points].sort((one, two) => one.x - two.x || one.y - two.y)) {
    if (!best.length || each.y < best.at(-1).y) best.push({ ...each, label: "" });
  }
  return { x: { name: AXES[x], log: true }, y: { name: AXES[y], log: true },
    series: [series[0], { name: "front", kind: "steps", look: ["gemm", ""], points: best },
      ...series.slice(1)].filter((each) => each.points.length) };
}

function axisChoices(pareto, state, draw) {
  const choice = (name) => element("label", {}, `${name === "x" ? "across" : "up"}: `,
    element("select", { id: `pareto-${name}`, onchange: (event) => {
      state[name] = event.target.value;
      draw();
    } }, ...["latency", ...pareto.kinds].map((each) => element("option", { value: each,
      selected: each === state[name] ? "" : null },
      AXES[each] + (pareto.objectives.includes(each) ? "" : ", not an objective")))));
  return element("div", { class: "tools" }, choice("x"), choice("y"));
}

const SIMULATED = { front: "on the front, simulated exactly", exact: "simulated exactly",
  predicted: "predicted, not simulated", baseline: "the baseline, simulated exactly" };

// A point in full; where there is a baseline, how it differs.
function detailsOf(point, baseline, pareto) {
  const factor = (kind) => baseline && baseline !== point && baseline[kind]
    ? ` (${(point[kind] / baseline[kind]).toFixed(3)}× the baseline)` : "";
  const facts = ["latency", ...pareto.kinds].map((kind) =>
    `${count(point[kind])} ${AXES[kind]}${factor(kind)}`);
  const fields = pareto.fields.map((name, i) => {
    const differs = baseline && baseline.config[i] !== point.config[i];
    const text = `${name} = ${point.config[i]}${differs ? ` (${baseline.config[i]})` : ""}`;
    return element(differs ? "b" : "span", { class: "setting" }, text);
  });
  return [element("div", {}, element("b", {}, point.name), `: ${SIMULATED[point.kind]}`),
    element("div", {}, `${facts.join("; ")}; ${duration(point.milliseconds / 1000)}`),
    element("div", { class: "settings" }, ...fields,
      baseline && baseline !== point ? "In brackets: the baseline's." : "")];
}

function frontTable(front, pareto, choose) {
  const columns = [["point", "name", null, false], ["cycles", "latency", count, true],
    ["ms", "milliseconds", (each) => each.toFixed(3), true],
    ...pareto.kinds.map((kind) => [AXES[kind], kind, count, true])];
  return sortableTable("front-table", columns, front, (point) => element("tr", {
    "data-point": point.id, onclick: () => choose(point) },
    ...columns.map(([, field, write, isNumber]) => element("td", { class: isNumber ? "number"
      : "name" }, write ? write(point[field]) : point[field]))));
}

function rejectedTable(pareto) {
  if (!pareto.rejected.length) return null;
  return element("div", {}, element("h3", {}, "Rejected"), element("div", { class: "scroll" },
    element("table", { id: "rejected" }, element("thead", {}, element("tr", {},
      ...["reason", "trials", "for example"].map((each) => element("th", {}, each)))),
    element("tbody", {}, ...pareto.rejected.map(([reason, times, example]) => element("tr", {},
      element("td", {}, reason), element("td", { class: "number" }, count(times)),
      element("td", { class: "name" }, example)))))));
}

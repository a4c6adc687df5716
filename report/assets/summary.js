"use strict";
// What a run comes to, in figures; of several runs, side by side.

const LIMITS = { macs: "the MAC array", memory: "memory", alu: "the ALU" };

// Rows of the comparison: what, its value in a run's totals, and how to write it.
const FIGURES = [
  ["cycles of the accelerator", (run) => run.totals.cycles, count, true],
  ["bound", (run) => run.totals.bound, count],
  ["efficiency (bound / cycles)", (run) => run.totals.accelerator_efficiency, percent],
  ["utilization of the MAC array", (run) => run.totals.accelerator_utilization, percent],
  ["time of the accelerator", (run) => run.totals.accelerator_seconds, duration, true],
  ["time of the CPU, hand-overs included",
    (run) => run.totals.cpu_seconds + run.totals.repack_seconds, duration, true],
  ["time from end to end", (run) => run.totals.end_to_end_seconds, duration, true],
  ["multiply-adds", (run) => run.totals.macs, count],
  ["nodes on the CPU", (run) => run.totals.cpu_nodes, count],
  ["bytes to and from DRAM", (run) => run.totals.bytes, count, true],
  ["instructions", (run) => run.totals.instructions, count, true],
  ["most memory for activations", (run) => run.totals.peak_memory, bytes, true],
  ["weights and micro-ops", (run) => run.totals.constant_bytes, bytes, true],
];

function summarySection(run) {
  const { totals } = run;
  const limits = Object.entries(run.limits).sort((one, two) => two[1] - one[1]);
  const all = limits.reduce((sum, [, cycles]) => sum + cycles, 0);
  const limit = all ? `${percent(limits[0][1] / all)} of the bound is set by `
    + `${LIMITS[limits[0][0]]}` : "no bound is known";
  const card = (value, text, name) =>
    element("div", { class: "card", "data-figure": name }, element("b", {}, value),
      element("span", {}, text));
  return section("summary", "Summary", null, element("div", { class: "cards" },
    card(count(totals.cycles), "cycles of the accelerator", "cycles"),
    card(duration(totals.accelerator_seconds), `at ${run.clock}`, "accelerator_seconds"),
    card(duration(totals.end_to_end_seconds), "from end to end, with the CPU",
      "end_to_end_seconds"),
    card(percent(totals.accelerator_utilization) || "–", "utilization of the MAC array",
      "accelerator_utilization"),
    card(totals.bound ? percent(totals.accelerator_efficiency) : "–",
      totals.bound ? `of the bound, ${count(totals.bound)} cycles; ${limit}` : limit,
      "accelerator_efficiency"),
    card(`${totals.cpu_nodes} of ${totals.nodes}`, "nodes run on the CPU", "cpu_nodes"),
    card(bytes(totals.bytes), "moved to and from DRAM", "bytes"),
    card(count(totals.instructions), "instructions", "instructions")),
    element("p", { class: "about" }, `The CPU's times: ${run.cpu_source}.`),
    run.reasons.length ? element("div", {}, element("h3", {}, "On the CPU, by reason"),
      element("ul", {}, ...run.reasons.map((each) => element("li", {}, each)))) : null,
    enginesTable(run));
}

// Where the cycles of each engine went.
function enginesTable(run) {
  const cycles = run.totals.cycles;
  if (!run.engines.length) return null;
  const parts = (each) => {
    const tokens = Object.values(each.tokens).reduce((sum, more) => sum + more, 0);
    return [[each.engine, each.working, "working", false], ["bus", each.memory, "memory", true],
      ["other", tokens, "tokens", false], ["other", each.queue, "queue", true]];
  };
  const row = (each) => {
    const found = parts(each);
    return element("tr", {}, element("td", {}, swatch(each.engine), each.engine.toUpperCase()),
      element("td", { class: "number" }, count(each.instructions)),
      ...found.map(([, amount]) => element("td", { class: "number" }, percent(amount / cycles))),
      element("td", { class: "number" }, percent(each.idle / cycles)),
      element("td", { style: "width: 36%" }, stackedBar(found, cycles)));
  };
  const heads = ["engine", "instructions", "working", "memory", "tokens", "queue", "done", ""];
  return element("div", {}, element("h3", {}, "Where the cycles of each engine went"),
    element("p", { class: "about" }, "Working; begun, but waiting for DRAM (striped orange); at rest "
      + "until a token came (grey) or with nothing in its queue (striped grey); done for good."),
    element("div", { class: "scroll wide" }, element("table", { id: "engines" },
      element("thead", {}, element("tr", {}, ...heads.map((each, i) =>
        element("th", { class: i && i < 7 ? "number" : "" }, each)))),
      element("tbody", {}, ...run.engines.map(row)))));
}

function comparisonSection(runs) {
  const [first] = runs;
  const ratio = (value, base) => base && value !== base ? ` (${(value / base).toFixed(3)}×)` : "";
  const rows = FIGURES.filter(([, of]) => runs.some((run) => of(run))).map(([name, of, write, compare]) =>
    element("tr", {}, element("th", {}, name), ...runs.map((run) =>
      element("td", { class: "number" }, write(of(run)),
        compare && run !== first ? ratio(of(run), of(first)) : ""))));
  const differing = Object.keys(first.config).filter((name) =>
    runs.some((run) => run.config[name] !== first.config[name]));
  const configs = differing.map((name) => element("tr", {}, element("th", {}, name),
    ...runs.map((run) => element("td", { class: "number" }, `${run.config[name]}`))));
  return section("comparison", "Comparison", "Factors are relative to the first run.",
    element("div", { class: "scroll wide" }, element("table", {},
      element("thead", {}, element("tr", {}, element("th", {}, ""), ...runs.map((run) =>
        element("th", { class: "number" }, run.name)))),
      element("tbody", {}, ...rows, ...configs))), cyclesChart(runs), layerComparison(runs));
}

// A bar for each run, of where the time from end to end goes.
function cyclesChart(runs) {
  const total = Math.max(...runs.map((run) => run.totals.end_to_end_seconds || 0));
  if (!total) return null;
  return element("div", {}, element("h3", {}, "Time from end to end"),
    ...runs.map((run) => element("div", {}, element("div", { class: "reason" },
      `${run.name}: ${duration(run.totals.end_to_end_seconds)}`), stackedBar([
      ["accelerator", run.totals.accelerator_seconds * 1e9, "accelerator, ns"],
      ["cpu", run.totals.cpu_seconds * 1e9, "CPU, ns"],
      ["other", run.totals.repack_seconds * 1e9, "hand-overs, ns"]], total * 1e9))),
    legend(["accelerator", "accelerator"], ["cpu", "CPU"], ["other", "hand-overs"]));
}

// Cycles of layers that have the same name in all runs.
function layerComparison(runs) {
  const cycles = runs.map((run) => new Map(run.layers.filter((each) => each.cycles !== null)
    .map((each) => [each.title, each.cycles])));
  const common = [...cycles[0].keys()].filter((name) => cycles.every((each) => each.has(name)));
  if (common.length < 2) return null;
  return element("div", {}, element("h3", {}, "Cycles of layers that all runs have"),
    element("div", { class: "scroll" }, element("table", { id: "layer-comparison" },
      element("thead", {}, element("tr", {}, element("th", {}, "layer"), ...runs.map((run) =>
        element("th", { class: "number" }, run.name)))),
      element("tbody", {}, ...common.map((name) => element("tr", {},
        element("td", { class: "name" }, name), ...cycles.map((each, i) =>
          element("td", { class: "number" }, count(each.get(name)), i ? ` (${
            (each.get(name) / cycles[0].get(name)).toFixed(2)}×)` : ""))))))));
}

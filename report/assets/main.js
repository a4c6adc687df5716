"use strict";
// Puts the page together, and keeps its parts in step.

const report = { timelines: [], run: 0, ready: false };     // for tests, too

function applyTheme(name) {
  const dark = name === "dark"
    || (name === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.classList.toggle("dark", dark);
  report.theme = name;
  repaint();
}

function repaint() {
  report.timelines.forEach((each) => each.redraw());
  document.querySelectorAll("canvas.map").forEach((each) => each.redraw());
}

// Mark a layer wherever it is shown, and show its time.
function chooseLayer(index) {
  document.querySelectorAll(".chosen").forEach((each) => each.classList.remove("chosen"));
  document.querySelectorAll(`#run [data-layer="${index}"]`).forEach((each) =>
    each.classList.add("chosen"));
  const row = document.querySelector(`#layer-table tr[data-layer="${index}"]`);
  row?.scrollIntoView({ block: "nearest" });
  const timeline = report.timelines[report.run];
  for (const program of timeline.events.programs) {
    let time = program.base;
    for (const layer of program.layers) {
      if (layer.layers.includes(index)) timeline.show(time, time + Math.max(layer.cycles, 1));
      time += layer.cycles;
    }
  }
}

function header() {
  const themes = ["auto", "light", "dark"];
  const button = element("button", { id: "theme", onclick: () => {
    applyTheme(themes[(themes.indexOf(report.theme) + 1) % 3]);
    button.textContent = `theme: ${report.theme}`;
  } }, "theme: auto");
  const choice = page.runs.length > 1 ? element("select", { id: "choose-run", "aria-label": "run",
    onchange: (event) => showRun(Number(event.target.value)) },
    ...page.runs.map((run, i) => element("option", { value: i }, run.name))) : null;
  return element("header", {}, element("h1", {}, page.title), choice, button);
}

// The parts of the page that are about one run.
async function showRun(number) {
  report.run = number;
  const run = page.runs[number];
  const roofline = rooflineChart(run, chooseLayer);
  const parts = [summarySection(run), networkSection(run, chooseLayer), layersSection(run),
    roofline ? section("roofline", "Roofline", "Below the slope, memory is the limit; below the flat "
      + "part, the MAC array. A mark for each layer: ● limited by the MAC array, ■ by memory, ▲ by "
      + "the ALU.", roofline) : null,
    planSection(run), await scratchpadSection(run), trafficSection(run)].filter(Boolean);
  const place = document.getElementById("run");
  place.replaceChildren(...(page.runs.length > 1 ? [element("h2", { class: "run-name" }, run.name)]
    : []), ...parts);
  repaint();
}

async function timelineSection() {
  const parts = [];
  for (const run of page.runs) {
    const timeline = new Timeline(await Events.of(run.timeline), run.name);
    report.timelines.push(timeline);
    if (page.runs.length > 1) parts.push(element("h3", {}, run.name));
    parts.push(timeline.element());
  }
  if (report.timelines.length > 1) {
    report.timelines.forEach((each) => { each.linked = report.timelines; });
    report.timelines[0].showAll();
  }
  return section("timeline", "Timeline", "One inference in cycles of the accelerator's clock. Zoomed out, "
    + "the height is the part of the time in which an engine is busy; zoomed in, there is a box for "
    + "each instruction. On the bus, bytes of a transfer are spread over the time in which it is the "
    + "oldest of its engine.", ...parts);
}

// Tables that only some sources have.
function extraSection(table, number) {
  return section(`table-${number}`, table.title, table.about, element("div", { class: "scroll" },
    element("table", {}, element("thead", {}, element("tr", {},
      ...[...table.columns, ...(table.bars.length ? [""] : [])].map((each) =>
        element("th", {}, each)))),
    element("tbody", {}, ...table.rows.map((row, i) => element("tr", {},
      ...row.map((each, j) => element("td", { class: j ? "" : "name" }, each)),
      table.bars.length ? element("td", { style: "width: 34%" },
        stackedBar([["accelerator", table.bars[i], row[0]]], 1)) : null))))));
}

function footer() {
  const origin = page.runs.map((run) => `${run.name}: ${run.provenance.model ?? run.model}`
    + `${run.provenance.sha256 ? `, sha256 ${run.provenance.sha256}` : ""}`);
  const [first] = page.runs;
  return element("footer", {}, `microtron ${page.version}. `, first ? `${origin.join("; ")}. `
    + `Configuration: ${Object.entries(first.config).map(([name, value]) =>
      `${name}=${value}`).join(" ")}` : "");
}

async function start() {
  const main = document.getElementById("page");
  const timeline = page.runs.length ? await timelineSection() : null;
  const several = page.runs.length > 1;
  const place = element("div", { id: "run" });
  main.replaceChildren(header(), element("nav", { "aria-label": "sections" }),
    ...(several ? [comparisonSection(page.runs), timeline] : []), place,
    ...(page.pareto ? [paretoSection(page.pareto)] : []), ...page.plots.map(plotSection),
    ...page.tables.map(extraSection), footer());
  if (page.runs.length) await showRun(0);
  if (page.runs.length === 1) document.getElementById("summary").after(timeline);
  main.querySelector("nav").append(...[...main.querySelectorAll("section")].map((each) =>
    element("a", { href: `#${each.id}` }, each.querySelector("h2").textContent)));
  document.addEventListener("layer", (event) => chooseLayer(event.detail));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
    applyTheme(report.theme));
  addEventListener("beforeprint", () => {         // paper is light
    document.documentElement.classList.remove("dark");
    repaint();
  });
  addEventListener("afterprint", () => applyTheme(report.theme));
  applyTheme("auto");
  report.ready = true;
}

start().catch((error) => {
  const old = typeof DecompressionStream === "undefined";
  document.getElementById("page").replaceChildren(element("p", { class: "error" }, old
    ? "This browser is too old to read the report: it lacks DecompressionStream."
    : `The report cannot be shown: ${error.message}`));
  throw error;
});

"use strict";
// The table of layers, sorted by any column.

// Columns: heading, field, how to write it, whether it is a number.
const COLUMNS = [
  ["#", "number", count, true], ["layer", "title", null, false],
  ["result", "shape", null, false], ["on", "where", null, false], ["MACs", "macs", (each) => each ? count(each) : "", true],
  ["bound", "bound", count, true], ["limited by", "limit", null, false],
  ["cycles", "cycles", count, true], ["efficiency", "efficiency", percent, true],
  ["utilization", "utilization", percent, true], ["bytes", "bytes", count, true],
  ["time", "seconds", duration, true],
];

function layersSection(run) {
  const rows = run.layers.map((layer, index) => ({ ...layer, index })).filter((each) => each.shown)
    .map((each, number) => ({ ...each, number }));
  return section("layers", "Layers", "Layers overlap: one has the cycles from the end of those before "
    + "it to its own end. ↓: runs together with a later layer, which has the cycles or the time of "
    + "both. Efficiency is bound / cycles. Headings sort.",
    sortableTable("layer-table", COLUMNS, rows, layerRow));
}

function layerRow(layer) {
  const cells = COLUMNS.map(([, field, write, isNumber]) => {
    let text = write ? write(layer[field]) : layer[field];
    if (field === "cycles" && layer.with_next) text = "↓";
    if (field === "seconds" && (layer.with_next || layer.inside)) text = "↓";
    const extra = field === "title" ? element("div", { class: "reason" },
      [layer.operator, layer.reason, layer.note].filter(Boolean).join("; ")) : null;
    if (field === "where" && text === "accelerator") text = "acc";
    const mark = field === "where" ? swatch(layer.where === "cpu" ? "cpu" : "accelerator")
      : field === "limit" && text ? swatch(`limit-${text}`) : null;
    return element("td", { class: isNumber ? "number" : field === "title" ? "name" : "" },
      mark, `${text ?? ""}`, extra);
  });
  return element("tr", { "data-layer": layer.index, onclick: () =>
    document.dispatchEvent(new CustomEvent("layer", { detail: layer.index })) }, ...cells);
}

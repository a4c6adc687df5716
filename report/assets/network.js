"use strict";
// The network as a drawing. Report/network_layout.py says where nodes lie, in columns and rows.

const NODE = { width: 186, height: 40, right: 34, below: 22 };

function networkSection(run, choose) {
  const { nodes, edges } = run.network;
  if (!nodes.length) return null;
  const x = (node) => 12 + node.x * (NODE.width + NODE.right);
  const y = (node) => 12 + node.y * (NODE.height + NODE.below);
  const width = Math.max(...nodes.map(x)) + NODE.width + 12;
  const height = Math.max(...nodes.map(y)) + NODE.height + 12;
  const path = ([from, to]) => {
    const [one, two] = [nodes[from], nodes[to]];
    const [x0, y0] = [x(one) + NODE.width / 2, y(one) + NODE.height];
    const [x1, y1] = [x(two) + NODE.width / 2, y(two)];
    if (one.x === two.x && two.y - one.y > 1) {     // past the nodes between: along their sides
      const side = x(one) + NODE.width;
      const [top, end] = [y0 - NODE.height / 2, y1 + NODE.height / 2];
      return `M${side},${top} C${side + 26},${top + 16} ${side + 26},${end - 16} ${side},${end}`;
    }
    if (y1 > y0) {
      const half = (y1 - y0) / 2;
      return `M${x0},${y0} C${x0},${y0 + half} ${x1},${y1 - half} ${x1},${y1}`;
    }
    // To the next column: out of the side of one node, into the side of the other.
    const [a, b] = [x(one) + NODE.width, y(one) + NODE.height / 2];
    const [c, d] = [x(two), y(two) + NODE.height / 2];
    return `M${a},${b} C${a + 24},${b} ${c - 24},${d} ${c},${d}`;
  };
  const drawing = drawn("svg", { width, height, viewBox: `0 0 ${width} ${height}`,
    role: "group", "aria-label": "The network: nodes on the accelerator and on the CPU" },
    drawn("defs", {}, drawn("marker", { id: "arrowhead", viewBox: "0 0 8 8", refX: 7, refY: 4,
      markerWidth: 7, markerHeight: 7, orient: "auto" },
      drawn("path", { d: "M0,0 L8,4 L0,8 z", fill: "var(--other)" }))),
    ...edges.map((each) => drawn("path", { class: "edge", d: path(each),
      "marker-end": "url(#arrowhead)" })),
    ...nodes.map((node) => nodeGroup(run, node, x(node), y(node), choose)));
  return section("network", "Network", "A node on the CPU has a dashed border and shows the reason. "
    + "Choose a node to find its row in the table of layers.",
    legend(["accelerator", "accelerator"], ["cpu", "CPU", true], ["other", "inputs and outputs"]),
    element("div", { class: "scroll wide" }, drawing));
}

function nodeGroup(run, node, x, y, choose) {
  const layer = node.layer === null ? null : run.layers[node.layer];
  const name = { accelerator: "accelerator", cpu: "cpu" }[node.where] ?? "other";
  const about = node.where === "cpu" ? node.text
    : layer ? `${layer.with_next ? "with the next" : `${count(layer.cycles)} cycles`}` : node.text;
  const act = () => layer && choose(node.layer);
  return drawn("g", { class: "node", tabindex: layer ? 0 : null, "data-where": node.where,
    "data-layer": node.layer, onclick: act, onkeydown: (event) => {
      if (event.key === "Enter") act();
    } },
    drawn("title", {}, [`${node.what} ${node.title}`, node.text, layer?.note].filter(Boolean)
      .join("\n")),
    drawn("rect", { x, y, width: NODE.width, height: NODE.height, rx: 6, fill: "var(--panel)",
      stroke: `var(--${name})`, "stroke-width": 1.5,
      "stroke-dasharray": node.where === "cpu" ? "5 3" : null }),
    drawn("rect", { x, y, width: 6, height: NODE.height, fill: `var(--${name})`, rx: 2 }),
    drawn("text", { x: x + 13, y: y + 16 }, cut(`${node.what} ${node.title}`, 25)),
    drawn("text", { x: x + 13, y: y + 32, class: "quiet" }, cut(about, 29)));
}

function cut(text, most) {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

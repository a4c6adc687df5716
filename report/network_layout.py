"""The network as a drawing: nodes in layers from top to bottom, in columns from left to right."""

from __future__ import annotations

from collections.abc import Mapping

from ..base.checked_values import PlainData
from ..compiler.network.network import Where
from ..runtime.models.compiled_model import NodeReport
from ..runtime.reports.layers import Inspection

ROWS = 14                   # layers in a column of the drawing
SWEEPS = 4                  # over all layers, to untangle edges
SHOWN = (Where.ACCELERATOR, Where.CPU)


def network_data(found: Inspection) -> PlainData:
    """Nodes with their places, and edges between them. Inputs and outputs are nodes too; what is
    part of another node, or only another name for it, is not."""
    model = found.model
    nodes: dict[str, PlainData] = {}
    for name, type_ in model.inputs.items():
        nodes[f"in:{name}"] = {"title": name, "what": "input", "where": "edge",
                               "text": str(type_), "layer": None}
    for index, cost in enumerate(found.layers):
        if cost.node.where in SHOWN:
            nodes[cost.node.name] = {
                "title": cost.node.title, "what": cost.node.operator,
                "where": cost.node.where.value, "text": cost.node.reason, "layer": index}
    for name, type_ in model.outputs.items():
        nodes[f"out:{name}"] = {"title": name, "what": "output", "where": "edge",
                                "text": str(type_), "layer": None}
    edges = _edges(found, nodes)
    places = lay_out(list(nodes), edges)
    numbers = {name: number for number, name in enumerate(nodes)}
    return {"nodes": [{**each, "x": places[name][0], "y": places[name][1]}
                      for name, each in nodes.items()],
            "edges": [[numbers[source], numbers[target]] for source, target in edges]}


def _edges(found: Inspection, nodes: Mapping[str, object]) -> list[tuple[str, str]]:
    """From shown node to shown node, through those that are not shown."""
    reports = {each.name: each for each in found.model.nodes}
    sources = {name: f"in:{name}" for name in found.model.inputs}
    for each in found.model.nodes:          # in an order in which inputs come first
        sources[each.name] = _find_drawn_node(each, sources, nodes)
    edges: dict[tuple[str, str], None] = {}
    for each in found.model.nodes:
        target = sources[each.name]
        whole = reports.get(each.reason) if each.where == Where.FUSED else None
        if whole is not None and whole.name in nodes:
            target = whole.name
        if target not in nodes:
            continue
        for name in each.inputs:
            source = sources.get(name, "")
            if source in nodes and source != target and each.where != Where.VIEW:
                edges[source, target] = None
    for name in found.model.outputs:
        source = sources.get(name, "")
        if source in nodes:
            edges[source, f"out:{name}"] = None
    order = {name: number for number, name in enumerate(nodes)}
    return [edge for edge in edges if order[edge[0]] < order[edge[1]]]


def _find_drawn_node(node: NodeReport, sources: Mapping[str, str],
                     nodes: Mapping[str, object]) -> str:
    """The node of the drawing that a tensor comes from."""
    if node.name in nodes:
        return node.name
    if node.where == Where.FUSED and node.reason in nodes:
        return node.reason
    return next((sources[each] for each in node.inputs if each in sources), "")


def lay_out(nodes: list[str], edges: list[tuple[str, str]]) -> dict[str, tuple[float, float]]:
    """Columns and rows, as real numbers. Each node is one layer below the lowest of its sources;
    inside a layer nodes lie near those that they are connected with."""
    depth = dict.fromkeys(nodes, 0)
    above: dict[str, list[str]] = {name: [] for name in nodes}
    below: dict[str, list[str]] = {name: [] for name in nodes}
    for source, target in edges:
        above[target].append(source)
        below[source].append(target)
    for name in nodes:                      # sources come first
        depth[name] = max((depth[each] + 1 for each in above[name]), default=0)
    layers: list[list[str]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for name in nodes:
        layers[depth[name]].append(name)
    place = {name: float(index) for layer in layers for index, name in enumerate(layer)}
    for sweep in range(SWEEPS):
        near = above if sweep % 2 == 0 else below
        for layer in layers if sweep % 2 == 0 else layers[::-1]:
            wanted = {name: sum(place[each] for each in near[name]) / len(near[name])
                      if near[name] else place[name] for name in layer}
            layer.sort(key=lambda name: wanted[name])
            place |= {name: float(index) for index, name in enumerate(layer)}
    return _fold(layers)


def _fold(layers: list[list[str]]) -> dict[str, tuple[float, float]]:
    """Layers in columns of `ROWS`, each as wide as its widest layer."""
    found: dict[str, tuple[float, float]] = {}
    left = 0.0
    for first in range(0, len(layers), ROWS):
        column = layers[first:first + ROWS]
        width = max(map(len, column))
        for row, layer in enumerate(column):
            for index, name in enumerate(layer):
                found[name] = (left + index + (width - len(layer)) / 2, float(row))
        left += width
    return found

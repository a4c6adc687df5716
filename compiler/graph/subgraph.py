"""Part of a graph as a graph of its own."""

from __future__ import annotations

from collections.abc import Collection

from ...base.checked_values import show_name
from .graph import Graph
from .types import GraphError


def extract_subgraph(graph: Graph, names: Collection[str]) -> Graph:
    """Some nodes of a graph, with the constants that they read.

    Inputs are the tensors that they read and do not compute; outputs are those that they compute
    and that the rest of the graph reads or gives, or nobody at all.
    """
    for name in names:
        if name not in graph.nodes:
            raise GraphError(f"there is no node {show_name(name)} in the graph")
    inside, given = set(names), set(graph.outputs)
    nodes = {name: node for name, node in graph.nodes.items() if name in inside}
    read = dict.fromkeys(each for node in nodes.values() for each in node.operation.operands())
    outputs = tuple(name for name in nodes
                    if name in given or name not in graph.readers
                    or any(each not in inside for each in graph.readers[name]))
    return Graph(
        inputs={name: graph.type_of(name) for name in read
                if name not in inside and name not in graph.constants},
        constants={name: graph.constants[name] for name in read if name in graph.constants},
        nodes=nodes, outputs=outputs, name=graph.name)

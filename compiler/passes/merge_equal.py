"""Common subexpressions: what is computed twice is computed once."""

from __future__ import annotations

from collections.abc import Hashable
from hashlib import sha256

from ..graph.graph import Constant, Graph
from .graph_edit import remove_nodes


def merge_equal(graph: Graph) -> Graph:
    """Merge nodes that compute the same from the same, and constants that are equal.

        a = Clamp(x, low=0)
        b = Clamp(x, low=0)
        y = Binary(a, b, kind=ADD)          becomes    y = Binary(a, a, kind=ADD)

    Constants are merged first, since models repeat them: the zero of every padding, the table of
    every sigmoid. Of equal nodes the first remains.
    """
    same: dict[str, str] = {}
    seen: dict[Hashable, str] = {}
    outputs = set(graph.outputs)
    for name, constant in graph.constants.items():
        first = seen.setdefault(_key(constant), name)
        if first != name and name not in outputs:
            same[name] = first
    for name, node in graph.nodes.items():
        operation = node.operation.rename_operands(lambda each: same.get(each, each))
        first = seen.setdefault((type(operation).__name__, operation, node.type), name)
        if first != name:
            same[name] = first
    return remove_nodes(graph, same)


def _key(constant: Constant) -> Hashable:
    return constant.type, sha256(constant.array.tobytes()).digest()

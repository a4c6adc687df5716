"""Activation functions into the operations before them."""

from __future__ import annotations

from dataclasses import replace

from ..graph.graph import Graph, Node, with_nodes
from ..graph.operations.pointwise.quantize import Clamp
from ..graph.operations.scaled import Clamped
from ..graph.types import TensorType


def fuse_clamp(graph: Graph) -> Graph:
    """Give a clamp's bounds to the operation whose result it reads.

        a = Conv(x, w, scales=(0.01,))
        y = Clamp(a, low=0)                 becomes    y = Conv(x, w, scales=(0.01,), low=0)

    Results are saturated while they are scaled anyway, so the clamp is free there. An operation
    that something else reads too is left alone: that reader wants all numbers.
    """
    nodes = dict(graph.nodes)
    for name, node in graph.nodes.items():
        operation = node.operation
        if not isinstance(operation, Clamp) or graph.uses[operation.x] != 1:
            continue
        before = nodes.get(operation.x)
        if before is not None and isinstance(before.operation, Clamped):
            del nodes[operation.x]
            low, high = both(before.operation, operation, node.type)
            nodes[name] = Node(replace(before.operation, low=low, high=high), node.type,
                               before.origin or node.origin)
    return with_nodes(graph, nodes)


def both(first: Clamped, second: Clamped, type_: TensorType) -> tuple[float | None, float | None]:
    """The bounds that have the effect of one pair after another: the first pair, clamped with the
    second. Bounds that the type has anyway are None."""
    low, high = first.bounds(type_)
    least, largest = second.bounds(type_)

    def clamp_bound(bound: float) -> float:
        bound = bound if least is None else max(bound, least)
        return bound if largest is None else min(bound, largest)

    low = least if low is None else clamp_bound(low)
    high = largest if high is None else clamp_bound(high)
    if type_.is_integer:
        return (None if low == type_.range[0] else low, None if high == type_.range[1] else high)
    return low, high

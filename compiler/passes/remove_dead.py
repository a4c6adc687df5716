"""Dead code, and nodes that do nothing."""

from __future__ import annotations

from ..graph.graph import Graph, Node, with_nodes
from ..graph.operations.data_movement.indexing import Expand, Tile
from ..graph.operations.data_movement.shape import Concat, Pad, Reshape, Slice, Transpose
from ..graph.operations.layers.window import Pool, PoolKind
from ..graph.operations.pointwise.quantize import Clamp, Rescale
from ..graph.operations.pointwise.unary import Cast
from ..graph.operations.scaled import Clamped
from ..graph.types import TensorType
from .graph_edit import remove_nodes


def remove_dead(graph: Graph) -> Graph:
    """Leave out what no output depends on, and nodes whose result is their operand.

        a = Reshape(x, shape=(1, 8))        # x has that shape
        b = Conv(x, w)                      # nobody reads b
        y = Clamp(a, low=0)                 becomes    y = Clamp(x, low=0)

    Inputs stay, read or not: they are how the network is called.
    """
    same = {name: node.operation.operands()[0] for name, node in graph.nodes.items()
            if does_nothing(node, graph.type_of(node.operation.operands()[0])
                            if node.operation.operands() else None)}
    graph = remove_nodes(graph, same)
    needed = set(graph.outputs)
    for name, node in reversed(list(graph.nodes.items())):
        if name in needed:
            needed.update(node.operation.operands())
    return with_nodes(graph, {name: node for name, node in graph.nodes.items() if name in needed},
                      {name: each for name, each in graph.constants.items() if name in needed})


def does_nothing(node: Node, x: TensorType | None) -> bool:
    """Whether the result of a node is its first operand, number for number."""
    operation = node.operation
    if node.type != x:
        return False
    match operation:
        case Reshape() | Expand() | Tile() | Slice() | Pad() | Cast():
            return not (isinstance(operation, Slice) and min(operation.steps, default=1) < 0)
        case Transpose(order=order):
            return order == tuple(sorted(order))
        case Concat(parts=parts):
            return len(parts) == 1
        case Clamp() | Rescale():
            single = node.type.quantization is None or len(node.type.quantization.scales) == 1
            return single and not _bounds(operation, node.type)
        case Pool(kind=PoolKind.MAX):
            return operation.kernel == operation.stride == (1, 1) and not _bounds(
                operation, node.type)
        case _:
            return False


def _bounds(operation: Clamped, result: TensorType) -> bool:
    """Whether bounds are within what the result's type holds anyway."""
    if result.is_integer:
        return operation.bounds(result) != result.range
    return operation.low is not None or operation.high is not None

"""Any function of one quantized tensor of 8 bits as a table of its results."""

from __future__ import annotations

import numpy as np

from ..graph.evaluate_graph import compute_node
from ..graph.graph import Graph, Node
from ..graph.operation import Value
from ..graph.operations.pointwise.binary import Binary
from ..graph.operations.pointwise.logic import Compare, Where
from ..graph.operations.pointwise.quantize import Clamp, Dequantize, Quantize
from ..graph.operations.pointwise.unary import Cast, Unary
from ..graph.types import Array, TensorType

ONE_BY_ONE = (Unary, Clamp, Binary, Cast, Compare, Where)
EIGHT_BITS = ("int8", "uint8")
MOST_NODES = 32             # of a function


def table_of(graph: Graph, name: str, result: TensorType) -> tuple[str, Array] | None:
    """The integers of which a real tensor is a function, number by number, and for each of them,
    beginning with the least, the integer that stands for the function's value. None if it is no
    such function."""
    nodes = _function(graph, name)
    if nodes is None:
        return None
    sources = {node.operation.x for node in nodes.values()
               if isinstance(node.operation, Dequantize) and node.operation.x not in nodes
               and not _is_known(graph, node.operation.x)}
    if len(sources) != 1:
        return None
    stored = sources.pop()
    type_ = graph.type_of(stored)
    if stored in graph.constants or type_.dtype not in EIGHT_BITS or (
            type_.shape != graph.type_of(name).shape):
        return None
    low, high = type_.range
    values = {stored: np.arange(low, high + 1).astype(type_.dtype)}
    for each, node in nodes.items():
        values[each] = _values(graph, node, values)
    every = TensorType((high - low + 1,), graph.type_of(name).dtype)
    quantized = Node(Quantize(x=name), TensorType(every.shape, result.dtype, result.quantization))
    real = np.broadcast_to(values[name], every.shape)
    return stored, compute_node(quantized, [Value(every, real)])


def _is_known(graph: Graph, name: str) -> bool:
    """Whether a tensor is a single constant number."""
    return name in graph.constants and graph.constants[name].type.size == 1


def _function(graph: Graph, name: str) -> dict[str, Node] | None:
    """The nodes that compute a tensor from Dequantize on, in order; None if there are others. What
    is quantized between two of them may itself be such a function, of the same tensor."""
    found: dict[str, Node] = {}

    def visit(each: str, depth: int) -> bool:
        node = graph.nodes.get(each)
        if each in found or _is_known(graph, each):
            return True
        if node is None or max(depth, len(found)) >= MOST_NODES:
            return False
        if isinstance(node.operation, Dequantize):
            before = dict(found)
            if not visit_quantized(node.operation.x, depth + 1):
                found.clear()
                found.update(before)
        elif not (isinstance(node.operation, ONE_BY_ONE)
                  and all(visit(operand, depth + 1) for operand in node.operation.operands())):
            return False
        found[each] = node
        return True

    def visit_quantized(each: str, depth: int) -> bool:
        node = graph.nodes.get(each)
        if node is None or not isinstance(node.operation, Quantize) or (
                node.type.dtype not in EIGHT_BITS or _is_rescaled(graph, node.operation.x)
                or not visit(node.operation.x, depth)):
            return False
        found[each] = node
        return True

    return found if visit(name, 0) else None


def _is_rescaled(graph: Graph, name: str) -> bool:
    """Whether a real tensor is only dequantized. Quantized again, it is computed by `Rescale`,
    whose integers round some ties otherwise than the reals here: all readers must see the same
    number. `compose_tables` makes a table of both."""
    node = graph.nodes.get(name)
    return node is not None and isinstance(node.operation, Dequantize)


def _values(graph: Graph, node: Node, values: dict[str, Array]) -> Array:
    """The results of a node for every integer, or a single one where operands are single."""
    operands = []
    for each in node.operation.operands():
        constant = graph.array(each)
        array = values[each] if constant is None else constant.reshape(())
        known = graph.type_of(each)
        operands.append(Value(TensorType(array.shape, known.dtype, known.quantization), array))
    shape = np.broadcast_shapes(*(each.array.shape for each in operands))
    result = TensorType(shape, node.type.dtype, node.type.quantization)
    return compute_node(Node(node.operation, result), operands)

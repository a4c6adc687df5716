"""Constant folding: what is known is computed now."""

from __future__ import annotations

from ...base.checked_values import show_name
from ..graph.evaluate_graph import compute_node
from ..graph.graph import Constant, Graph, with_nodes
from ..graph.operation import Value
from ..graph.operations.pointwise.quantize import Dequantize
from ..graph.types import GraphError

LARGEST_GROWTH = 1 << 20        # bytes by which a result may be larger than what it comes from
MOST_IN_ALL = 1 << 26           # bytes of results, besides some times what the model has itself
TIMES_THE_MODEL = 8             # reals of 32 bits, and those moved once, for weights of 8 bits


def fold_constants(graph: Graph) -> Graph:
    """Compute nodes all of whose operands are constants, but not those that make reals of
    integers.

        t = Transpose(w, order=(1, 0))
        y = MatMul(x, t)                    becomes    y = MatMul(x, t), where t is a constant

    A result that is much larger than its operands, such as a repeated number, is left to run time:
    it would only fill the image; so is everything once results in all are many times what the
    model has itself. Outputs stay nodes. A Dequantize of weights is
    half of a pattern that `integer_operators` looks for; `fold_dequantized` folds what is left.
    """
    return _fold(graph, dequantize=False)


def fold_dequantized(graph: Graph) -> Graph:
    """Compute all nodes whose operands are constants: also those that make reals of integers.

        r = Dequantize(w)
        y = MatMul(x, r)                    becomes    y = MatMul(x, r), where r is a constant
    """
    return _fold(graph, dequantize=True)


def _fold(graph: Graph, *, dequantize: bool) -> Graph:
    constants, nodes, outputs = dict(graph.constants), {}, set(graph.outputs)
    left = MOST_IN_ALL + TIMES_THE_MODEL * sum(each.type.bytes for each in constants.values())
    for name, node in graph.nodes.items():
        operands = node.operation.operands()
        known = [constants[each] for each in operands if each in constants]
        if (len(known) < len(operands) or name in outputs
                or (isinstance(node.operation, Dequantize) and not dequantize)
                or node.type.bytes > LARGEST_GROWTH + sum(each.type.bytes for each in known)
                or node.type.bytes > left):
            nodes[name] = node
            continue
        left -= node.type.bytes
        try:
            array = compute_node(node, [Value(each.type, each.array) for each in known])
        except (GraphError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise GraphError(f"{show_name(node.origin or name)}: {node.operation.title()}: "
                             f"{error}") from None
        constants[name] = Constant(node.type, array)
    return with_nodes(graph, nodes, constants)

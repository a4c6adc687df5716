"""What a graph means, in NumPy: the judge of every pass and of every device."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...base.checked_values import show_name
from ..expression.scalars import saturate
from .graph import Graph, Node
from .operation import Value
from .types import Array, GraphError, TensorType


def evaluate(graph: Graph, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """The outputs of a graph for inputs of exactly its types."""
    values = evaluate_all(graph, inputs)
    return {name: values[name] for name in graph.outputs}


def evaluate_all(graph: Graph, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Every tensor of a graph, by name."""
    for name in inputs:
        if name not in graph.inputs:
            raise GraphError(f"there is no input {show_name(name)}; inputs are "
                             f"{', '.join(map(show_name, graph.inputs))}")
    values: dict[str, Array] = {}
    for name, type_ in graph.inputs.items():
        if name not in inputs:
            raise GraphError(f"the input {show_name(name)} is not given")
        values[name] = matching(name, inputs[name], type_)
    values |= {name: each.array for name, each in graph.constants.items()}
    for name, node in graph.nodes.items():
        values[name] = compute_node(node, [Value(graph.type_of(each), values[each])
                                           for each in node.operation.operands()])
    return values


def compute_node(node: Node, operands: list[Value]) -> Array:
    """The result of one node, of exactly its type."""
    with np.errstate(all="ignore"):         # as frameworks do: infinities are numbers
        array = np.asarray(node.operation.compute(node.type, *operands))
        if array.dtype.kind == "f" and node.type.is_integer:
            array = saturate(array, np.dtype(node.type.dtype))     # NumPy's depends on processors
        array = np.asarray(array, node.type.dtype, order="C")
    assert array.shape == node.type.shape, f"{node.operation} gave a shape {array.shape}"
    return array


def matching(name: str, array: Array, type_: TensorType) -> Array:
    """An array that is of a type."""
    array = np.asarray(array)
    if array.shape != type_.shape or array.dtype != np.dtype(type_.dtype):
        raise GraphError(f"{show_name(name)} is {array.dtype} of shape {array.shape}, but must be "
                         f"{type_.dtype} of shape {type_.shape}")
    return array

"""One node of a graph as a tensor expression or a loop nest, by the functions of `registry`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...base.processor import Target
from ..errors import CompileError
from ..expression.tensor import Tensor
from ..graph.graph import Graph, Node
from ..graph.operation import Operation, operand_fields
from ..nest.nest import Buffer, Nest
from ..nest.verify_nest import verify_nest
from .registry import LOWERINGS, NEST_LOWERINGS, BufferOperand, Operand, Scheduled


class NotLoweredError(CompileError):
    """A node that cannot be computed by machine code. `node` is its name."""

    def __init__(self, node: str, operation: Operation, why: str) -> None:
        super().__init__(f"{node}: {operation.title()}: {why}")
        self.node, self.why = node, why


def is_lowered(operation: Operation) -> bool:
    """Whether there is a function that lowers it."""
    from . import operators  # registers all of them
    assert operators
    return type(operation) in LOWERINGS or type(operation) in NEST_LOWERINGS


def check_lowered(name: str, node: Node) -> None:
    if not is_lowered(node.operation):
        raise NotLoweredError(name, node.operation, "there is no lowering for the CPU")


def as_expression(graph: Graph, name: str, tensors: Mapping[str, Tensor],
                  target: Target) -> Tensor | Scheduled:
    """A node as an expression of others, for a processor."""
    node = graph.nodes[name]
    operation = drop_empty_operands(graph, node.operation)
    operands = [Operand(graph.type_of(each), tensors[each], graph.array(each), target)
                for each in operation.operands()]
    try:
        found = LOWERINGS[type(operation)](operation, node.type, *operands)
    except CompileError as error:
        raise NotLoweredError(name, operation, str(error)) from None
    tensor = found.tensor if isinstance(found, Scheduled) else found
    if (tensor.shape, tensor.dtype) != (node.type.shape, node.type.dtype):
        raise NotLoweredError(name, operation, f"the lowering gives {tensor.dtype} of shape "
                         f"{tensor.shape}, but the result is {node.type.plain()}")
    return found


def as_nest(graph: Graph, name: str, result: Buffer, buffers: Mapping[str, Buffer]) -> Nest:
    """A node as a loop nest over buffers."""
    node = graph.nodes[name]
    operation = drop_empty_operands(graph, node.operation)
    operands = [BufferOperand(graph.type_of(each), buffers[each], graph.array(each))
                for each in operation.operands()]
    try:
        nest = NEST_LOWERINGS[type(operation)](operation, node.type, result, *operands)
        verify_nest(nest)
    except CompileError as error:
        raise NotLoweredError(name, operation, str(error)) from None
    return nest


def drop_empty_operands(graph: Graph, operation: Operation) -> Operation:
    """An operation on a list of tensors without those that have no elements."""
    changes = {}
    for each in operand_fields(type(operation)):
        value = getattr(operation, each)
        if isinstance(value, tuple):
            changes[each] = tuple(name for name in value if graph.type_of(name).size)
    return replace(operation, **changes) if changes else operation

"""Fewer moves of numbers: shapes of shapes, and orders of axes that undo each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..graph.graph import Graph, Node, with_nodes
from ..graph.operation import Operation, normalize_axis
from ..graph.operations.data_movement.shape import Concat, Reshape, Slice, Transpose
from ..graph.operations.pointwise.binary import Binary
from ..graph.operations.pointwise.logic import Not
from ..graph.operations.pointwise.quantize import Clamp, Dequantize, Lookup, Quantize, Rescale
from ..graph.operations.pointwise.unary import Cast, Unary
from ..graph.types import TensorType

# Functions of each number of their first operand.
EACH_NUMBER = (Clamp, Rescale, Quantize, Dequantize, Lookup, Unary, Cast, Not)


def simplify_shape(graph: Graph) -> Graph:
    """Join reshapes, slices and transposes that follow each other; let transposes meet.

        a = Reshape(x, shape=(4, 6))
        y = Reshape(a, shape=(24,))         becomes    y = Reshape(x, shape=(24,))

        a = Transpose(x, order=(0, 2, 3, 1))
        b = Clamp(a, low=0)
        y = Transpose(b, order=(0, 3, 1, 2))    becomes    b = Clamp(x, low=0)
                                                           y = Transpose(b, order=(0, 1, 2, 3))

        a = Slice(x, starts=(0, 0), stops=(1, 8))
        b = Slice(x, starts=(0, 8), stops=(1, 16))
        y = Concat((a, b, c), axis=1)       becomes    y = Concat((x, c), axis=1)

    A transpose of nothing but axes of one index is a reshape. A transpose goes past functions of
    each number only on the way to another that joins it, and only where nobody else reads what is
    on the way: elsewhere nothing is gained. Both sides of a sum may bring the same one.
    `remove_dead` takes away what then does nothing.
    """
    graph = _sink_transposes(graph)
    nodes = dict(graph.nodes)
    types = dict(graph.types)
    for name, node in graph.nodes.items():
        match node.operation:
            case Reshape() | Transpose():
                changed = _merge_moves(graph, nodes, types, name)
                nodes[name] = replace(node, operation=changed)
            case Slice(x=x) as last if x in nodes:
                first = nodes[x].operation
                if isinstance(first, Slice) and node.type.size:
                    nodes[name] = replace(node, operation=_slice_of_slice(first, last, node.type))
            case Concat() as concat:
                nodes[name] = replace(node, operation=_join_slices(concat, nodes, types))
    return with_nodes(graph, nodes)


def _merge_moves(graph: Graph, nodes: dict[str, Node], types: dict[str, TensorType],
                 name: str) -> Operation:
    """A reshape or a transpose of what the node before moved, if it did."""
    node = nodes[name]
    operation = node.operation
    if isinstance(operation, Transpose):
        operation = _meeting(graph, nodes, types, operation)
        x = types[operation.x]
        moving = [axis for axis in operation.order if x.shape[axis] != 1]
        if moving != sorted(moving) or operation.order == tuple(sorted(operation.order)):
            return operation
        operation = Reshape(x=operation.x, shape=node.type.shape)
    assert isinstance(operation, Reshape)
    before = nodes.get(operation.x)
    if before is not None and isinstance(before.operation, Reshape):
        operation = replace(operation, x=before.operation.x)
    return operation


def _meeting(graph: Graph, nodes: dict[str, Node], types: dict[str, TensorType],
             last: Transpose) -> Transpose:
    """The transpose after one that it meets, past functions of each number in between, which then
    apply to numbers that have not been moved."""
    between: list[str] = []
    name = last.x
    while (node := nodes.get(name)) is not None and isinstance(node.operation, EACH_NUMBER):
        if graph.uses[name] != 1 or not _one_scale(node.type, types[node.operation.x]):
            return last
        between.append(name)
        name = node.operation.x
    if node is None or not isinstance(node.operation, Transpose):
        return last
    if between and graph.uses[name] != 1:
        return last
    first = node.operation
    source = types[first.x]
    for each in between:
        shape = tuple(source.shape)
        types[each] = replace(types[each], shape=shape)
        operation = nodes[each].operation
        if each == between[-1]:
            operation = replace(operation, x=first.x)       # type: ignore[call-arg]
        nodes[each] = replace(nodes[each], operation=operation, type=types[each])
    order = tuple(first.order[axis] for axis in last.order)
    return Transpose(x=between[0] if between else first.x, order=order)


def _slice_of_slice(first: Slice, last: Slice, result: TensorType) -> Slice:
    starts = tuple(start + inner * step for start, inner, step in zip(
        first.starts, last.starts, first.steps, strict=True))
    steps = tuple(one * other for one, other in zip(first.steps, last.steps, strict=True))
    stops = tuple(start + (size - 1) * step + (1 if step > 0 else -1)
                  for start, size, step in zip(starts, result.shape, steps, strict=True))
    return Slice(x=first.x, starts=starts, stops=stops, steps=steps)


def _join_slices(concat: Concat, nodes: Mapping[str, Node],
                 types: Mapping[str, TensorType]) -> Concat:
    """A concatenation in which slices that are all of a tensor, in order, are that tensor."""
    axis = normalize_axis(concat.axis, len(types[concat.parts[0]].shape))
    parts: list[str] = []
    source, count, end = "", 0, 0       # of slices that the last parts are, from the first on
    for part in concat.parts:
        parts.append(part)
        cut = nodes[part].operation if part in nodes else None
        if not isinstance(cut, Slice) or not _is_along(cut, axis, types[cut.x], types[part]):
            source = ""
            continue
        if cut.x != source or cut.starts[axis] != end:
            source, count, end = cut.x, 0, 0
        if cut.starts[axis] != end:
            source = ""
            continue
        count, end = count + 1, end + types[part].shape[axis]
        if end == types[source].shape[axis]:
            parts[-count:] = [source]
            source = ""
    return replace(concat, parts=tuple(parts))


def _is_along(cut: Slice, axis: int, x: TensorType, result: TensorType) -> bool:
    """Whether a slice takes indices in a row of one axis, and all of the others."""
    return set(cut.steps) == {1} and all(
        each == axis or (start == 0 and size == of)
        for each, (start, size, of) in enumerate(zip(cut.starts, result.shape, x.shape,
                                                     strict=True)))


def _one_scale(*types: TensorType) -> bool:
    """Whether scales do not depend on an axis, whose place a transpose would change."""
    return all(each.quantization is None or each.quantization.axis is None for each in types)


def _sink_transposes(graph: Graph) -> Graph:
    """Move transposes of both sides of a function behind it.

        y = Binary(Transpose(a), Transpose(b))    becomes    y = Transpose(Binary(a, b))
    """
    nodes: dict[str, Node] = {}
    for name, node in graph.nodes.items():
        sides = [nodes.get(each) for each in node.operation.operands()]
        if not isinstance(node.operation, Binary) or not all(
                side is not None and isinstance(side.operation, Transpose)
                and side.type.shape == node.type.shape for side in sides):
            nodes[name] = node
            continue
        first, second = (side.operation for side in sides if side is not None)
        assert isinstance(first, Transpose)
        assert isinstance(second, Transpose)
        alone = all(graph.uses[each] <= 2 and graph.readers[each] == (name,)
                    for each in node.operation.operands())
        if first.order != second.order or not alone or not _one_scale(node.type):
            nodes[name] = node
            continue
        inner = f"{name}.unmoved"
        while inner in graph.types or inner in nodes:
            inner += "'"
        back = tuple(first.order.index(axis) for axis in range(len(first.order)))
        shape = tuple(node.type.shape[axis] for axis in back)
        nodes[inner] = replace(node, type=replace(node.type, shape=shape),
                               operation=replace(node.operation, left=first.x, right=second.x))
        nodes[name] = Node(Transpose(x=inner, order=first.order), node.type, node.origin)
    return with_nodes(graph, nodes)

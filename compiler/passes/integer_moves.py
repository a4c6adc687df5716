"""Moves of integers instead of moves of the real numbers that they stand for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

import numpy as np

from ...base.classes.dataclass import dataclass
from ..graph.evaluate_graph import compute_node
from ..graph.graph import Graph, Node
from ..graph.operation import Operation, Value
from ..graph.operations.data_movement.blocks import (
    BatchToSpace,
    DepthToSpace,
    SpaceToBatch,
    SpaceToDepth,
)
from ..graph.operations.data_movement.indexing import Expand, Gather, GatherNd, Tile
from ..graph.operations.data_movement.shape import Concat, Pad, Reshape, Slice, Transpose
from ..graph.operations.layers.reduction import Reduce, ReduceKind
from ..graph.operations.layers.window import Pool, PoolKind
from ..graph.operations.pointwise.binary import Binary, BinaryKind
from ..graph.operations.pointwise.logic import Where
from ..graph.operations.pointwise.quantize import Clamp, Dequantize, Quantize
from ..graph.operations.vision.resize import Resize, ResizeKind
from ..graph.types import Quantization, TensorType
from .graph_edit import Edit, remove_nodes

MOVES = (Reshape, Transpose, Slice, Pad, Gather, GatherNd, Tile, Expand, DepthToSpace, SpaceToDepth,
         BatchToSpace, SpaceToBatch)
FURTHEST = 16           # moves that a Quantize goes before; no model has as many in a row


def integer_moves(graph: Graph) -> Graph:
    """Let Dequantize come after moves, and Quantize before them.

        r = Dequantize(q)                               s = Reshape(q)
        y = Reshape(r)                      becomes     y = Dequantize(s)

        p = Pool(x, kind=MAX)                           s = Quantize(x)
        y = Quantize(p)                     becomes     y = Pool(s, kind=MAX)

    Integers of 8 bits are cheaper to move, and the operators between find Dequantize and Quantize
    next to them. Results are the same to the bit: quantization keeps the order of numbers, so the
    largest of some, and clamps, may be taken before or after. Of several Quantize that do the same,
    one for each reader as some tools write them, one stays. A move whose real result something else
    reads too stays before its Quantize, and a border whose value no integer stands for stays after
    its Dequantize.
    """
    return _quantize_early(_dequantize_late(_quantize_once(graph)))


def moved_operands(operation: Operation) -> tuple[str, ...]:
    """The operands whose numbers an operation moves or chooses from, none if it computes."""
    match operation:
        case Concat(parts=parts):
            return parts
        case Binary(kind=BinaryKind.MIN | BinaryKind.MAX, left=left, right=right, low=None,
                    high=None) | Where(left=left, right=right):
            return left, right
        case Resize(kind=ResizeKind.NEAREST, x=x) | Pool(kind=PoolKind.MAX, x=x, low=None,
                                                         high=None):
            return (x,)
        case Reduce(kind=ReduceKind.MAX | ReduceKind.MIN, x=x, low=None, high=None):
            return (x,)
        case _ if isinstance(operation, MOVES):
            return (operation.x,)
        case _:
            return ()


def single(known: Quantization | None) -> bool:
    """Whether a whole tensor has one scale."""
    return known is not None and len(known.scales) == 1


def quantize_value(value: float, type_: TensorType) -> float:
    """The integer that stands for a real number, or for the nearest one that has any."""
    real = TensorType((), "float32")
    node = Node(Quantize(x="x"), replace(type_, shape=()))
    return float(compute_node(node, [Value(real, np.asarray(value, np.float32))]))


def _quantize_once(graph: Graph) -> Graph:
    first: dict[tuple[Quantize, TensorType], str] = {}
    same = {}
    for name, node in graph.nodes.items():
        if isinstance(node.operation, Quantize):
            found = first.setdefault((node.operation, node.type), name)
            if found != name:
                same[name] = found
    return remove_nodes(graph, same)


def _rename_operands(operation: Operation, names: Mapping[str, str]) -> Operation:
    return operation.rename_operands(lambda each: names.get(each, each))


def _dequantize_late(graph: Graph) -> Graph:
    edit = Edit(graph)
    for name, node in graph.nodes.items():
        before = {}
        for each in moved_operands(node.operation):
            source = edit.nodes.get(each)
            if source is not None and isinstance(source.operation, Dequantize):
                before[each] = source.operation.x
        types = [edit.nodes[each].type if each in edit.nodes else graph.type_of(each)
                 for each in before.values()]
        kinds = {(each.dtype, each.quantization) for each in types}
        operation = node.operation
        if not before or set(before) != set(moved_operands(operation)) or len(kinds) > 1 or (
                not single(next(iter(kinds))[1])):
            edit.keep(name)
            continue
        type_ = replace(types[0], shape=node.type.shape)
        if isinstance(operation, Pad | SpaceToBatch):
            value, known = quantize_value(operation.value, type_), type_.require_quantization()
            if (value - known.zero_point) * known.scale != operation.value:
                edit.keep(name)
                continue
            operation = replace(operation, value=value)
        inner = edit.fresh(f"{name}.stored")
        edit.put(inner, _rename_operands(operation, before), type_, node.origin)
        edit.put(name, Dequantize(x=inner), node.type, node.origin)
    return edit.finish()


@dataclass
class _Early:
    """Which nodes a Quantize goes before, and what they become."""

    graph: Graph
    edit: Edit = field(init=False)
    gone: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.edit = Edit(self.graph)

    def passes(self, name: str) -> bool:
        """Whether a Quantize that reads a tensor may go before the node that computes it."""
        node = self.graph.nodes.get(name)
        return node is not None and self.graph.uses[name] == 1 and node.type.is_float and (
            isinstance(node.operation, Clamp) or bool(moved_operands(node.operation)))

    def find(self, name: str, depth: int = 0) -> None:
        """Mark the nodes before which the Quantize of a tensor goes."""
        if depth < FURTHEST and self.passes(name):
            self.gone.add(name)
            for each in self.sources(name):
                self.find(each, depth + 1)

    def sources(self, name: str) -> tuple[str, ...]:
        operation = self.graph.nodes[name].operation
        return (operation.x,) if isinstance(operation, Clamp) else moved_operands(operation)

    def emit(self, name: str, result: str, quantize: Node) -> None:
        """Integers for a tensor, as a Quantize makes them, under the name of the result."""
        type_ = quantize.type
        if name not in self.gone:
            type_ = replace(type_, shape=self.graph.type_of(name).shape)
            operation = quantize.operation.rename_operands(lambda _: name)
            self.edit.put(result, operation, type_, quantize.origin)
            return
        node = self.graph.nodes[name]
        inner = {}
        for each in dict.fromkeys(self.sources(name)):
            inner[each] = self.edit.fresh(f"{each}.quantized")
            self.emit(each, inner[each], quantize)
        operation = _rename_operands(node.operation, inner)
        if isinstance(operation, Pad | SpaceToBatch):
            operation = replace(operation, value=quantize_value(operation.value, type_))
        if isinstance(operation, Clamp):
            low, high = (None if bound is None else quantize_value(bound, type_)
                         for bound in (operation.low, operation.high))
            operation = replace(operation, low=low, high=high)
        self.edit.put(result, operation, replace(type_, shape=node.type.shape), node.origin)


def _quantize_early(graph: Graph) -> Graph:
    early = _Early(graph)
    chosen = {name: node.operation for name, node in graph.nodes.items()
              if isinstance(node.operation, Quantize) and single(node.type.quantization)}
    for operation in chosen.values():
        early.find(operation.x)
    for name, node in graph.nodes.items():
        if name in chosen:
            early.emit(chosen[name].x, name, node)
        elif name not in early.gone:
            early.edit.keep(name)
    return early.edit.finish()

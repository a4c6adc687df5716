"""Unsigned quantized tensors as signed ones."""

from __future__ import annotations

from dataclasses import field, fields, replace

import numpy as np

from ...base.classes.dataclass import dataclass
from ...isa.instructions import Rounding
from ..graph.graph import Constant, Graph, Node
from ..graph.operation import Operation
from ..graph.operations.data_movement.blocks import (
    BatchToSpace,
    DepthToSpace,
    SpaceToBatch,
    SpaceToDepth,
)
from ..graph.operations.data_movement.indexing import Expand, Gather, GatherNd, Tile
from ..graph.operations.data_movement.shape import Concat, Pad, Reshape, Slice, Transpose
from ..graph.operations.layers.matmul import MatMul
from ..graph.operations.layers.reduction import Arg, Reduce
from ..graph.operations.layers.window import Conv, Pool, PoolKind, TransposedConv
from ..graph.operations.pointwise.binary import Binary
from ..graph.operations.pointwise.logic import Compare, Where
from ..graph.operations.pointwise.quantize import (
    Clamp,
    Dequantize,
    Lookup,
    Quantize,
    Reinterpret,
    Rescale,
)
from ..graph.operations.tflite.eight_bit import (
    FixedPointPrelu,
    FixedPointReduce,
    FixedPointSquaredDifference,
)
from ..graph.operations.tflite.fixed_point import FixedPointSoftmax
from ..graph.operations.vision.integer_upsample import Upsample
from ..graph.operations.vision.resize import Resize, ResizeKind
from ..graph.types import TensorType
from .graph_edit import Edit

MIDDLE = 128
STORED = ("low", "high", "value")       # fields that hold stored numbers of the result
# These only look at stored numbers without zero points, or compare and move them.
THE_SAME = (Conv, TransposedConv, Upsample, MatMul, Binary, Rescale, Clamp, Quantize, Dequantize,
            Lookup, Reduce, Arg, Compare, Where, Reshape, Transpose, Concat, Slice, Pad, Gather,
            GatherNd, Tile, Expand, DepthToSpace, SpaceToDepth, SpaceToBatch, BatchToSpace,
            FixedPointSoftmax, FixedPointReduce, FixedPointPrelu, FixedPointSquaredDifference)


def make_signed(graph: Graph) -> Graph:
    """Make int8 of quantized uint8, with zero points 128 lower.

        y = Conv(x, w, low=128)     x, w, y are uint8 with zero points 120, 130, 128
                        becomes     x' = Rescale(x)                 int8 with zero point −8
                                    y' = Conv(x', w', low=0)        int8 with zero point 0
                                    y = Rescale(y')                 uint8 with zero point 128

    The accelerator multiplies signed numbers. What counts, the stored number without its zero
    point, stays, and so does every result to the bit. Inputs and outputs keep their type, with a
    Rescale between that changes the zero point and nothing else. Operations for which stored
    numbers themselves count, such as an average whose ties are rounded away from zero, get such a
    Rescale before and after.
    """
    change = _Signed(Edit(graph))
    for name, type_ in graph.inputs.items():
        if changes(type_):
            change.names[name] = change.convert(name, signed_type(type_))
    for name, node in graph.nodes.items():
        change.node(name, node)
    return change.edit.finish()


def changes(type_: TensorType) -> bool:
    """Whether a tensor becomes signed. Conversions know a single scale only."""
    return is_unsigned(type_) and len(type_.require_quantization().scales) == 1


def is_unsigned(type_: TensorType) -> bool:
    return type_.dtype == "uint8" and type_.is_quantized


def signed_type(type_: TensorType) -> TensorType:
    known = type_.require_quantization()
    zeros = tuple(zero - MIDDLE for zero in known.zero_points)
    return TensorType(type_.shape, "int8", replace(known, zero_points=zeros))


@dataclass
class _Signed:
    """The graph so far. `names` are the signed tensors, by those that they stand for; constants
    are changed when the first node wants them so."""

    edit: Edit
    names: dict[str, str] = field(default_factory=dict)
    tables: dict[str, str] = field(default_factory=dict)        # that are not quantized
    outputs: set[str] = field(init=False)

    def __post_init__(self) -> None:
        self.outputs = set(self.edit.graph.outputs)

    def node(self, name: str, node: Node) -> None:
        result = node.type
        if self.is_conversion(node):
            self.edit.put(name, node.operation, result, node.origin)
            return
        operation = translate_operation(node, self.edit.graph)
        if operation is None:                           # works on unsigned numbers
            self.edit.put(name, node.operation.rename_operands(self.to_unsigned), result,
                          node.origin)
            if changes(result):
                self.names[name] = self.convert(name, signed_type(result))
            return
        if isinstance(operation, Lookup) and changes(result):
            operation = replace(operation, x=self.to_signed(operation.x),
                                table=self.table(operation.table))
        else:
            operation = operation.rename_operands(self.to_signed)
        if not changes(result):
            self.edit.put(name, operation, result, node.origin)
        elif name not in self.outputs:
            self.names[name] = name
            self.edit.put(name, operation, signed_type(result), node.origin)
        else:
            inner = self.edit.fresh(f"{name}.signed")
            self.names[name] = inner
            self.edit.put(inner, operation, signed_type(result), node.origin)
            self.edit.put(name, Rescale(x=inner), result, node.origin)

    def is_conversion(self, node: Node) -> bool:
        """Whether a node makes signed numbers of a tensor that stays unsigned, as this pass would:
        it is left alone, so that the pass changes nothing the second time."""
        if not isinstance(node.operation, Rescale) or self.names.get(node.operation.x) == (
                node.operation.x):
            return False
        source = self.edit.graph.type_of(node.operation.x)
        return changes(source) and node.type == signed_type(source)

    def to_signed(self, name: str) -> str:
        """The tensor that stands for another from now on."""
        constant = self.edit.graph.constants.get(name)
        if name not in self.names and constant is not None and is_unsigned(constant.type):
            self.names[name] = self._lower_constant(name, signed_type(constant.type))
        return self.names.get(name, name)

    def to_unsigned(self, name: str) -> str:
        """A tensor as it was, for an operation that knows nothing else."""
        if name in self.names and self.names[name] == name:
            found = self.edit.fresh(f"{name}.unsigned")
            self.edit.put(found, Rescale(x=name), self.edit.graph.type_of(name))
            return found
        return name

    def convert(self, name: str, type_: TensorType) -> str:
        """A tensor with another zero point."""
        found = self.edit.fresh(f"{name}.signed")
        self.edit.put(found, Rescale(x=name), type_)
        return found

    def table(self, name: str) -> str:
        """The signed table for another, whose type need not say what its numbers stand for."""
        type_ = self.edit.graph.type_of(name)
        if type_.is_quantized:
            return self.to_signed(name)
        if name not in self.tables:
            self.tables[name] = self._lower_constant(name, TensorType(type_.shape, "int8"))
        return self.tables[name]

    def _lower_constant(self, name: str, type_: TensorType) -> str:
        """A constant whose numbers are 128 lower."""
        found = self.edit.fresh(f"{name}.signed")
        array = np.asarray(self.edit.graph.constants[name].array.astype(np.int16) - MIDDLE)
        self.edit.constants[found] = Constant(type_, array.astype(np.int8))
        return found


def translate_operation(node: Node, graph: Graph) -> Operation | None:
    """The operation on signed numbers, if there is one that gives the same."""
    operation = node.operation
    read = {each: graph.type_of(each) for each in operation.operands()}
    if not any(map(is_unsigned, (node.type, *read.values()))):
        return operation
    activations = [node.type, *(each for name, each in read.items() if name not in graph.constants)]
    if any(is_unsigned(each) and not changes(each) for each in activations):
        return None
    found = _shifted_operation(operation, node.type, graph)
    return found if found is None or not changes(node.type) else _lower(found)


def _shifted_operation(operation: Operation, result: TensorType, graph: Graph) -> Operation | None:
    """The operation that does to shifted numbers what this one does to others, if there is one."""
    match operation:
        case Pool():
            return _pool(operation, result, graph.type_of(operation.x))
        case Resize():
            return operation if operation.kind == ResizeKind.NEAREST else None
        case Upsample(raw=True):
            return None
        case Reinterpret():
            both = changes(result) and changes(graph.type_of(operation.x))
            return operation if both else None
        case Lookup():
            right = changes(result) or not is_unsigned(graph.type_of(operation.table))
            return operation if right and operation.table in graph.constants else None
        case _:
            return operation if isinstance(operation, THE_SAME) else None


def _lower(operation: Operation) -> Operation:
    """The operation with stored numbers 128 lower."""
    lower = {each.name: getattr(operation, each.name) - MIDDLE for each in fields(operation)
             if each.name in STORED and getattr(operation, each.name) is not None}
    return replace(operation, **lower)


def _pool(pool: Pool, result: TensorType, x: TensorType) -> Pool | None:
    """A maximum, or an average whose rounding does not depend on where zero is."""
    if pool.kind == PoolKind.MAX or not pool.raw:
        return pool
    if result.quantization == x.quantization and x.require_quantization().zero_point == 0:
        return replace(pool, raw=False)         # the same as without the zero point, which is 0
    if pool.count_include_pad and any(pool.pad):
        return None                             # the border is a stored 0
    ties = pool.rounding != Rounding.EVEN and (pool.counts(x) % 2 == 0).any()
    return None if ties else pool

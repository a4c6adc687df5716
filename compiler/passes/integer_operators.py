"""From real operators between Dequantize and Quantize to integer operators."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TypeVar

import numpy as np

from ...base.classes.dataclass import dataclass
from ...isa.instructions import Rounding
from ..graph.graph import Graph, Node
from ..graph.operation import normalize_axes
from ..graph.operations.layers.matmul import MatMul
from ..graph.operations.layers.reduction import Reduce, ReduceKind
from ..graph.operations.layers.window import Conv, Pool, PoolKind, TransposedConv
from ..graph.operations.pointwise.binary import Binary, BinaryKind
from ..graph.operations.pointwise.quantize import Dequantize, Lookup, Quantize, Rescale
from ..graph.operations.scaled import Scaled, check_scale
from ..graph.operations.vision.integer_upsample import Upsample, as_upsample
from ..graph.operations.vision.resize import Resize
from ..graph.types import Array, GraphError, TensorType
from .graph_edit import Edit, remove_nodes
from .integer_moves import single
from .tables import table_of

EIGHT_BITS = ("int8", "uint8")
Product = Conv | TransposedConv | MatMul
Average = TypeVar("Average", Pool, Reduce)
BIAS_ERROR = 1 / 16             # of a step, by which rounding a bias may move a result
LARGEST_BIAS = np.iinfo(np.int32).max // 2


def integer_operators(graph: Graph) -> Graph:
    """Compute with integers what is real only between Dequantize and Quantize.

        a = Dequantize(x)
        b = Dequantize(w)
        c = Conv(a, b)
        y = Quantize(c)                 becomes     y = Conv(x, w, scales=(0.013,), rounding=EVEN)

    So do products of matrices, sums, products, averages, bilinear resizes by whole numbers, and
    Quantize right after Dequantize, which is a Rescale or nothing. A bias becomes integers at the
    scale of the sums, if rounding it moves no result by more than BIAS_ERROR. Any other function of
    one tensor of 8 bits becomes a Lookup. How far results may be from the model's own is in
    docs/arithmetic.md. A real result that something else reads too stays as it is, and so does what
    has no integer form, such as a softmax or a sum with a real constant.
    """
    change = _Change(Edit(graph))
    same: dict[str, str] = {}
    for name, node in graph.nodes.items():
        if isinstance(node.operation, Quantize) and single(node.type.quantization):
            stored = change.integers_of(node.operation.x)
            if stored is not None and graph.type_of(stored) == node.type:
                same[name] = stored
            elif change.substitute(name, node, node.operation):
                continue
        change.edit.keep(name)
    return remove_nodes(change.edit.finish(), same)


@dataclass
class _Change:
    edit: Edit

    @property
    def graph(self) -> Graph:
        return self.edit.graph

    def source(self, name: str) -> TensorType | None:
        """The type of the integers of 8 bits for which a tensor stands, all with one scale."""
        stored = self.integers_of(name)
        type_ = None if stored is None else self.graph.type_of(stored)
        return type_ if type_ is not None and single(type_.quantization) and (
            type_.dtype in EIGHT_BITS) else None

    def integers_of(self, name: str) -> str | None:
        """The tensor of integers for which a tensor stands."""
        node = self.graph.nodes.get(name)
        return node.operation.x if node is not None and isinstance(
            node.operation, Dequantize) else None

    def integers(self, *names: str) -> dict[str, str]:
        """The integers that real operands stand for."""
        return {name: found for name in names if (found := self.integers_of(name)) is not None}

    def substitute(self, name: str, node: Node, quantize: Quantize) -> bool:
        """Put an integer operator in place of a Quantize, if there is one."""
        if quantize.rounding != Rounding.EVEN or node.type.dtype not in EIGHT_BITS:
            return False
        before = self.graph.nodes.get(quantize.x)
        found: Scaled | Rescale | Lookup | None = None
        if before is not None and isinstance(before.operation, Dequantize):
            found = self._rescale(before.operation)
        elif before is not None and self.graph.uses[quantize.x] == 1:
            found = (self._composite(name, before, quantize, node.type)
                     or self._operator(before, node.type))
        if found is None:
            found = self._lookup(name, quantize.x, node.type)
        if found is None:
            return False
        self.edit.put(name, found, node.type, (before.origin if before else "") or node.origin)
        return True

    def _rescale(self, dequantize: Dequantize) -> Rescale | None:
        known = self.graph.type_of(dequantize.x)
        if not single(known.quantization) or known.dtype not in EIGHT_BITS:
            return None
        return Rescale(x=dequantize.x, rounding=Rounding.EVEN)

    def _operator(self, node: Node, result: TensorType) -> Scaled | None:
        match node.operation:
            case Conv() | TransposedConv() | MatMul() as product:
                return self._product(product, None, result)
            case Binary(kind=BinaryKind.ADD, left=left, right=right) if (
                    (unbiased := self._find_unbiased(left)) is not None):
                return self._product(unbiased, right, result)
            case Binary(kind=BinaryKind.ADD, left=left, right=right) if (
                    (unbiased := self._find_unbiased(right)) is not None):
                return self._product(unbiased, left, result)
            case Binary() as binary:
                return self._binary(binary, result)
            case Pool(kind=PoolKind.AVERAGE) as pool:
                return self._average(pool, 1, result)
            case Resize() as resize:
                return self._upsample(resize, result)
            case Reduce(kind=ReduceKind.MEAN | ReduceKind.SUM, x=x) as reduce:
                shape = self.graph.type_of(x).shape
                count = prod(shape[axis] for axis in normalize_axes(reduce.axes, len(shape)))
                return self._average(reduce, count if reduce.kind == ReduceKind.MEAN else 1, result)
            case _:
                return None

    def _average(self, operation: Average, count: int, result: TensorType) -> Average | None:
        """An average or a sum of integers of the same type as its result. `count` is what an
        operation does not divide by itself."""
        type_ = self.source(operation.x)
        if type_ is None or type_.dtype != result.dtype:
            return None
        scales = valid_scales((type_.require_quantization().scale
                               / result.require_quantization().scale / max(count, 1),))
        return None if scales is None else replace(
            operation, x=self.integers(operation.x)[operation.x], scales=scales,
            rounding=Rounding.EVEN)

    def _upsample(self, resize: Resize, result: TensorType) -> Upsample | None:
        """A bilinear resize of integers of the same type as its result, by whole numbers."""
        type_ = self.source(resize.x)
        found = None if type_ is None else as_upsample(resize, type_)
        if type_ is None or found is None or type_.dtype != result.dtype:
            return None
        rows, columns = found.axes(type_)
        scales = valid_scales((type_.require_quantization().scale
                               / result.require_quantization().scale / (rows.unit * columns.unit),))
        return None if scales is None else replace(
            found, x=self.integers(resize.x)[resize.x], scales=scales, rounding=Rounding.EVEN)

    def _binary(self, binary: Binary, result: TensorType) -> Binary | None:
        if binary.kind not in (BinaryKind.ADD, BinaryKind.SUB, BinaryKind.MUL):
            return None
        left, right = self.source(binary.left), self.source(binary.right)
        if left is None or right is None or {left.dtype, right.dtype} != {result.dtype}:
            return None
        scales: tuple[float, ...] | None = ()
        if binary.kind == BinaryKind.MUL:
            unit = left.require_quantization().scale * right.require_quantization().scale
            scales = valid_scales((unit / result.require_quantization().scale,))
        if scales is None:
            return None
        stored = self.integers(binary.left, binary.right)
        return Binary(kind=binary.kind, left=stored[binary.left], right=stored[binary.right],
                      scales=scales, rounding=Rounding.EVEN)

    def _find_unbiased(self, name: str) -> Product | None:
        """A product without a bias that only one node reads."""
        node = self.graph.nodes.get(name)
        if node is None or self.graph.uses[name] != 1:
            return None
        operation = node.operation
        return operation if isinstance(operation, Product) and operation.bias is None else None

    def _product(self, product: Product, added: str | None, result: TensorType) -> Product | None:
        x, weights = _sides(product)
        left, right = self.source(x), self._weights(product, weights)
        if left is None or right is None:
            return None
        unit = left.require_quantization().scale * np.asarray(right.require_quantization().scales,
                                                              np.float64)
        scales = valid_scales(tuple((unit / result.require_quantization().scale).tolist()))
        if scales is None:
            return None
        bias = None
        if (added or product.bias) is not None:
            bias = self._bias(product, str(added or product.bias), unit, scales)
            if bias is None:
                return None
        return replace(product.rename_operands(lambda each: self.integers_of(each) or each),
                       bias=bias, scales=scales, rounding=Rounding.EVEN)

    def _weights(self, product: Product, name: str) -> TensorType | None:
        """The type of weights: integers of 8 bits with one scale, or one for each output."""
        stored = self.integers_of(name)
        if stored is None:
            return None
        type_ = self.graph.type_of(stored)
        axis = len(type_.shape) - 1 if isinstance(product, MatMul) else 0
        known = type_.require_quantization()
        along = known.axis is not None and known.axis % len(type_.shape) == axis
        return type_ if type_.dtype in EIGHT_BITS and (len(known.scales) == 1 or along) else None

    def _bias(self, product: Product, name: str, unit: Array,
              scales: tuple[float, ...]) -> str | None:
        """A constant bias as integers at the scale of the sums, if that is fine enough."""
        outputs = self.graph.type_of(_sides(product)[1]).shape[-1 if isinstance(
            product, MatMul) else 0]
        shape = self.graph.type_of(name).shape
        along = -1 if isinstance(product, MatMul) else 1
        real = self._constant_reals(name)
        if real is None or prod(shape) != outputs or (
                len(shape) > 1 and shape[along] != outputs):
            return None
        sums = real.reshape(outputs) / unit
        whole = np.rint(sums)
        if not np.isfinite(sums).all() or np.abs(whole).max(initial=0) > LARGEST_BIAS or (
                np.abs((whole - sums) * scales).max(initial=0) > BIAS_ERROR):
            return None
        return self.edit.constant(f"{name}.stored", whole.astype(np.int32))

    def _constant_reals(self, name: str) -> Array | None:
        """The real numbers of a constant, also of one that integers stand for."""
        real, stored = self.graph.array(name), self.integers_of(name)
        array = self.graph.array(stored)
        if real is None and stored is not None and array is not None:
            known = self.graph.type_of(stored).require_quantization()
            zeroless = array.astype(np.float64) - known.along(known.zero_points, array.ndim)
            return zeroless * known.along(known.scales, array.ndim)
        return None if real is None else real.astype(np.float64)

    def _composite(self, name: str, before: Node, quantize: Quantize,
                   result: TensorType) -> Lookup | None:
        """Two tensors of which one is a function of the other, such as x · sigmoid(x), as a table,
        which rounds as the model does."""
        sides = [self.graph.nodes.get(each) for each in before.operation.operands()]
        stored = {each.operation.x for each in sides
                  if each is not None and isinstance(each.operation, Dequantize)}
        if not isinstance(before.operation, Binary) or len(stored) < 2:
            return None
        return self._lookup(name, quantize.x, result)

    def _lookup(self, name: str, real: str, result: TensorType) -> Lookup | None:
        found = table_of(self.graph, real, result)
        if found is None:
            return None
        stored, table = found
        return Lookup(x=stored, table=self.edit.constant(f"{name}.table", table,
                                                         result.quantization))


def _sides(product: Product) -> tuple[str, str]:
    """What is multiplied with what."""
    if isinstance(product, MatMul):
        return product.left, product.right
    return product.x, product.weights


def valid_scales(scales: tuple[float, ...]) -> tuple[float, ...] | None:
    """Scales, if they are some."""
    try:
        for each in scales:
            check_scale(each)
    except GraphError:
        return None
    return scales

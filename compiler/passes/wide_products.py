"""Products of integers whose sums stay real numbers: integer products, and one conversion."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..graph.graph import Graph, Node
from ..graph.operations.layers.matmul import MatMul
from ..graph.operations.layers.window import Conv
from ..graph.operations.pointwise.binary import Binary, BinaryKind
from ..graph.operations.pointwise.quantize import Dequantize, Reinterpret
from ..graph.operations.scaled import SUMS
from ..graph.types import Quantization, TensorType
from .graph_edit import Edit

EIGHT_BITS = ("int8", "uint8")


def wide_products(graph: Graph) -> Graph:
    """Multiply integers where real numbers that they stand for are multiplied, and nobody scales
    the sums back to 8 bits.

        a = Dequantize(x)
        b = Dequantize(w)                               s = MatMul(x, w)
        y = MatMul(a, b, c)                 becomes     r = Reinterpret(s), p = Dequantize(r)
                                                        y = Binary(p, c, kind=ADD)

    A model that ends in such a layer, or hands its sums to a softmax, loses nothing to rounding.
    Sums of integers are exact, so results are those of real numbers but for their last bits.
    """
    edit = Edit(graph)
    for name, node in graph.nodes.items():
        if not _put_wide(edit, name, node):
            edit.keep(name)
    return edit.finish()


def _put_wide(edit: Edit, name: str, node: Node) -> bool:
    product = node.operation
    if not isinstance(product, Conv | MatMul) or node.type.dtype != "float32" or (
            isinstance(product, Conv) and product.groups != 1):
        return False
    left, right = (product.left, product.right) if isinstance(product, MatMul) else (
        product.x, product.weights)
    one, other = _stored_integers(edit.graph, left), _stored_integers(edit.graph, right)
    bias = None if product.bias is None else _real(edit.graph, product.bias)
    if one is None or other is None or (product.bias is not None and bias is None):
        return False
    data, weights = (edit.graph.type_of(each) for each in (one, other))
    channels = weights.shape[-1 if isinstance(product, MatMul) else 0]
    axis = len(node.type.shape) - 1 if isinstance(product, MatMul) else product.channel_axis
    units = _units(data, weights, len(weights.shape) - 1 if isinstance(product, MatMul) else 0)
    if units is None:
        return False
    names = {left: one, right: other}
    inner = replace(product.rename_operands(lambda each: names.get(each, each)), bias=None)
    type_ = TensorType(node.type.shape, SUMS)
    sums, scaled = edit.fresh(f"{name}.sums"), edit.fresh(f"{name}.scaled")
    edit.put(sums, inner, type_, node.origin)
    known = Quantization(units, (0,), None if len(units) == 1 else axis)
    edit.put(scaled, Reinterpret(x=sums), replace(type_, quantization=known), node.origin)
    if bias is None:
        edit.put(name, Dequantize(x=scaled), node.type, node.origin)
        return True
    unbiased = edit.fresh(f"{name}.unbiased")
    edit.put(unbiased, Dequantize(x=scaled), node.type, node.origin)
    shape = [channels if each == axis else 1 for each in range(len(node.type.shape))]
    added = edit.constant(f"{name}.bias", bias.reshape(shape).astype(np.float32))
    edit.put(name, Binary(kind=BinaryKind.ADD, left=unbiased, right=added), node.type,
             node.origin)
    return True


def _stored_integers(graph: Graph, name: str) -> str | None:
    """The integers of 8 bits that a real tensor stands for."""
    node = graph.nodes.get(name)
    if node is None or not isinstance(node.operation, Dequantize):
        return None
    stored = node.operation.x
    return stored if graph.type_of(stored).dtype in EIGHT_BITS else None


def _units(data: TensorType, weights: TensorType, axis: int) -> tuple[float, ...] | None:
    """What a sum counts, for all channels or for each."""
    one, other = data.require_quantization(), weights.require_quantization()
    along = other.axis is not None and other.axis % len(weights.shape) == axis
    if len(one.scales) != 1 or (len(other.scales) != 1 and not along):
        return None
    return tuple(one.scale * each for each in other.scales)


def _real(graph: Graph, name: str) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]] | None:
    """The real numbers of a constant, also of one that integers stand for."""
    array = graph.array(name)
    if array is not None:
        return array.astype(np.float64)
    node = graph.nodes.get(name)
    if node is None or not isinstance(node.operation, Dequantize):
        return None
    stored = graph.array(node.operation.x)
    if stored is None:
        return None
    known = graph.type_of(node.operation.x).require_quantization()
    zeroless = stored.astype(np.float64) - known.along(known.zero_points, stored.ndim)
    return zeroless * known.along(known.scales, stored.ndim)

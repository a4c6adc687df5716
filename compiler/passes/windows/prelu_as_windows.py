"""PReLU with a slope for each channel, of quantized images and rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ....base.classes.dataclass import dataclass
from ....isa.instructions import Rounding
from ...graph.graph import Graph, Node
from ...graph.operations.data_movement.shape import Reshape
from ...graph.operations.layers.window import Conv, common_channel_axis
from ...graph.operations.pointwise.binary import Binary, BinaryKind
from ...graph.operations.pointwise.logic import Compare, CompareKind, Where
from ...graph.operations.pointwise.quantize import Clamp, Dequantize, Quantize, Rescale
from ...graph.operations.tflite.eight_bit import FixedPointPrelu
from ...graph.types import Array, Quantization, TensorType
from ..graph_edit import Edit
from ..integer_moves import single
from ..integer_operators import EIGHT_BITS, valid_scales

AXES = 4
ROW_AXES = 2


def prelu_as_windows(graph: Graph) -> Graph:
    """Compute both branches for all numbers, and choose by their order.

        y = PReLU(x, slopes)    becomes     a = Rescale(x)
                                            b = Conv(x, ones, groups, scales=slopes × …)
                                            y = Binary(a, b, kind=MAX)

    That is right for slopes from 0 to 1: rounding keeps the order of numbers, so the larger of two
    rounded numbers is the larger one, rounded. For others, `a` is zero below zero and `b` above it,
    and y is their sum, one side of which is zero. Results are those of the model's own arithmetic:
    a change of scale and a product, rounded once. Functions of one slope are a table instead.
    """
    axis = common_channel_axis(node.operation for node in graph.nodes.values())
    if axis is None:
        return graph
    edit = Edit(graph)
    return edit.rewrite(lambda name, node: _substitute(edit, axis, name, node))


@dataclass(frozen=True)
class _Prelu:
    """x × above, or below zero x × weight × scale of its channel."""

    x: str
    type: TensorType            # of x
    axis: int
    above: float
    weights: Array
    scales: tuple[float, ...]
    rounding: Rounding


def _substitute(edit: Edit, axis: int, name: str, node: Node) -> bool:
    match node.operation:
        case Where() as where if node.type.dtype in EIGHT_BITS and single(node.type.quantization):
            found = _real(edit.graph, axis, where, node.type)
        case FixedPointPrelu() as prelu:
            found = _fixed_point(edit.graph, axis, prelu, node.type)
        case _:
            return False
    if found is None or valid_scales((found.above, *found.scales)) is None:
        return False
    if len(node.type.shape) == AXES:
        _put(edit, name, node, found)
    else:
        _put_rows(edit, name, node, found)
    return True


def _real(graph: Graph, axis: int, where: Where, result: TensorType) -> _Prelu | None:
    """Where(x < 0, Quantize(x × slopes), Quantize(x)), as moves of integers leave it."""
    below = graph.nodes.get(where.condition)
    product, right = (_quantize_input(graph, each) for each in (where.left, where.right))
    if below is None or product is None or right is None or (
            not isinstance(below.operation, Compare)
            or below.operation.kind != CompareKind.LESS):
        return None
    times = graph.nodes[product].operation if product in graph.nodes else None
    if not isinstance(times, Binary) or times.kind != BinaryKind.MUL:
        return None
    zero, slopes = graph.array(below.operation.right), _reals(graph, times.right)
    stored = {_integers_of(graph, each) for each in (right, below.operation.left, times.left)}
    x = stored.pop()
    if stored or x is None or zero is None or zero.any() or slopes is None:
        return None
    type_ = graph.type_of(x)
    every = _by_channel(slopes, type_, axis)
    if every is None or type_.dtype != result.dtype or not single(type_.quantization):
        return None
    ratio = type_.require_quantization().scale / result.require_quantization().scale
    return _Prelu(x, type_, axis, ratio, np.where(every < 0, -1, 1).astype(np.int8),
                  tuple((np.abs(every) * ratio).tolist()), Rounding.EVEN)


def _fixed_point(graph: Graph, axis: int, prelu: FixedPointPrelu,
                 result: TensorType) -> _Prelu | None:
    """TFLite's, whose slopes are integers."""
    slopes, type_ = graph.array(prelu.slopes), graph.type_of(prelu.x)
    known = graph.type_of(prelu.slopes)
    if slopes is None or prelu.x in graph.constants or not single(known.quantization):
        return None
    weights = slopes.astype(np.int64) - known.require_quantization().zero_point
    every = _by_channel(weights, type_, axis)
    if every is None or np.abs(every).max() > np.iinfo(np.int8).max:
        return None
    above, below = prelu.scales(result, type_, known)
    return _Prelu(prelu.x, type_, axis, above, every.astype(np.int8), (below,), Rounding.TWICE)


def _by_channel(slopes: Array, x: TensorType, axis: int) -> Array | None:
    """One slope for each channel of an image, or for each column of a matrix, if there are several
    and no more than these."""
    axis = axis if len(x.shape) == AXES else ROW_AXES - 1
    shape = (1,) * (len(x.shape) - slopes.ndim) + slopes.shape
    wanted = tuple(size if each == axis else 1 for each, size in enumerate(x.shape))
    if len(x.shape) not in (AXES, ROW_AXES) or slopes.size < 2 or shape != wanted or 0 in x.shape:
        return None
    return slopes.reshape(-1)


def _quantize_input(graph: Graph, name: str) -> str | None:
    """The real numbers that a tensor is quantized from."""
    node = graph.nodes.get(name)
    return node.operation.x if node is not None and isinstance(node.operation, Quantize) and (
        node.operation.rounding == Rounding.EVEN) else None


def _integers_of(graph: Graph, name: str) -> str | None:
    node = graph.nodes.get(name)
    return node.operation.x if node is not None and isinstance(node.operation, Dequantize) and (
        graph.type_of(node.operation.x).dtype in EIGHT_BITS) else None


def _reals(graph: Graph, name: str) -> Array | None:
    """The real numbers of a constant, also of one that integers stand for."""
    array, stored = graph.array(name), _integers_of(graph, name)
    if array is None and stored is not None and (integers := graph.array(stored)) is not None:
        known = graph.type_of(stored).require_quantization()
        zeroless = integers.astype(np.float64) - known.along(known.zero_points, integers.ndim)
        return zeroless * known.along(known.scales, integers.ndim)
    return None if array is None else array.astype(np.float64)


def _put_rows(edit: Edit, name: str, node: Node, prelu: _Prelu) -> None:
    """Rows, as after a fully connected layer, are images of one pixel."""
    rows, channels = node.type.shape
    shape = (rows, channels, 1, 1) if prelu.axis == 1 else (rows, 1, 1, channels)
    image, result = edit.fresh(f"{name}.image"), edit.fresh(f"{name}.pixels")
    type_ = replace(prelu.type, shape=shape)
    edit.put(image, Reshape(x=prelu.x, shape=shape), type_, node.origin)
    _put(edit, result, replace(node, type=replace(node.type, shape=shape)),
         replace(prelu, x=image, type=type_))
    edit.put(name, Reshape(x=result, shape=node.type.shape), node.type, node.origin)


def _put(edit: Edit, name: str, node: Node, prelu: _Prelu) -> None:
    """Both branches, and what chooses between them."""
    type_ = prelu.type
    zero = node.type.require_quantization().zero_point
    factors = prelu.weights * np.asarray(prelu.scales)
    by_order = bool((factors >= 0).all() and (factors <= prelu.above).all())
    above, x = prelu.x, prelu.x
    if not by_order or type_ != node.type or prelu.above != 1:
        above = edit.fresh(f"{name}.above")
        low = None if by_order else zero
        if prelu.rounding == Rounding.EVEN:
            edit.put(above, Rescale(x=prelu.x, rounding=prelu.rounding, low=low), node.type,
                     node.origin)
        else:
            _put_depthwise(edit, above, node, prelu.x, replace(
                prelu, weights=np.ones_like(prelu.weights), scales=(prelu.above,)), low, None)
    if (factors < 0).any():
        x = edit.fresh(f"{name}.negative")
        edit.put(x, Clamp(x=prelu.x, high=type_.require_quantization().zero_point), type_,
                 node.origin)
    below = edit.fresh(f"{name}.below")
    _put_depthwise(edit, below, node, x, prelu, None, None if by_order else zero if (
        x == prelu.x) else None)
    kind = BinaryKind.MAX if by_order else BinaryKind.ADD
    edit.put(name, Binary(kind=kind, left=above, right=below, rounding=prelu.rounding), node.type,
             node.origin)


def _put_depthwise(edit: Edit, name: str, node: Node, x: str, prelu: _Prelu, low: int | None,
                   high: int | None) -> None:
    """Every channel times a number of its own."""
    constant = edit.constant(f"{name}.slopes", prelu.weights.reshape(-1, 1, 1, 1),
                             Quantization((1.0,)))
    edit.put(name, Conv(x=x, weights=constant, groups=len(prelu.weights), low=low, high=high,
                        channel_axis=prelu.axis, scales=prelu.scales, rounding=prelu.rounding),
             node.type, node.origin)

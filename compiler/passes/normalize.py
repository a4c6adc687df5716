"""One form for what can be written in several."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from ...isa.arithmetic import INT32_HIGH, quantize_scale, scale_array
from ...isa.instructions import Rounding
from ..graph.graph import Graph, Node
from ..graph.operation import normalize_axes
from ..graph.operations.data_movement.shape import Reshape
from ..graph.operations.layers.matmul import MatMul
from ..graph.operations.layers.reduction import Reduce, ReduceKind
from ..graph.operations.layers.window import Pair, Pool, PoolKind, common_channel_axis
from ..graph.operations.pointwise.binary import Binary, BinaryKind
from ..graph.operations.tflite.eight_bit import UNIT, FixedPointReduce, FixedPointResize
from ..graph.operations.vision.integer_upsample import Upsample
from ..graph.operations.vision.resize import Coordinates, Resize, ResizeKind
from ..graph.types import Array, TensorType
from ..operators.depthwise.linear_taps import LARGEST_UNIT
from .graph_edit import Edit
from .integer_moves import single

POOLS = {ReduceKind.MEAN: PoolKind.AVERAGE, ReduceKind.MAX: PoolKind.MAX}
CHANNEL_AXES = {(2, 3): 1, (1, 2): 3}           # by the axes of rows and columns
MOST_PIXELS = 1 << 12           # of a mean whose sums are all tried
EITHER_WAY = (BinaryKind.ADD, BinaryKind.MUL, BinaryKind.MIN, BinaryKind.MAX)


def normalize(graph: Graph) -> Graph:
    """Write equal things in the same way, so that later passes and the accelerator see one form.

        y = Reduce(x, kind=MEAN, axes=(2, 3))       a pool over the whole image, and a reshape
        y = Reduce(x, kind=MEAN, axes=(3,))         a pool over whole rows of images, and a reshape
        y = Resize(x, kind=LINEAR), x of one pixel  the same with kind=NEAREST
        y = FixedPointReduce(x, axes=(1, 2), …)     the same, if it is for every sum there can be
        y = FixedPointResize(x, sides)              y = Upsample(x, factors), if weights are equal
        y = Binary(c, x, kind=ADD), c constant      y = Binary(x, c, kind=ADD)
        y = MatMul(x, w), w of shape (1, k, n)      w of shape (k, n)

    A mean of quantized numbers becomes a pool only if its scale is the same to the last bit when
    the pool divides it by the number of pixels. TFLite's has a multiplier of fewer bits than a
    scale, which rounds differently now and then: there all sums are tried.
    """
    edit = Edit(graph)
    channels = common_channel_axis(node.operation for node in graph.nodes.values())
    for name, node in graph.nodes.items():
        match node.operation:
            case Reduce() | FixedPointReduce() as reduce:
                _pool_instead(edit, name, node, reduce, channels)
            case Resize(kind=ResizeKind.LINEAR, x=x) as resize if all(
                    graph.type_of(x).shape[axis] == 1
                    for axis in resize.changed_axes(graph.type_of(x).shape)):
                edit.put(name, replace(resize, kind=ResizeKind.NEAREST), node.type, node.origin)
            case Binary(kind=kind, left=left, right=right) if (
                    kind in EITHER_WAY and left in graph.constants
                    and right not in graph.constants):
                edit.put(name, replace(node.operation, left=right, right=left), node.type,
                         node.origin)
            case FixedPointResize() as resize:
                found = _upsample_of(resize, graph.type_of(resize.x))
                edit.put(name, found or resize, node.type, node.origin)
            case MatMul() as matmul:
                _flat_weights(edit, name, node, matmul)
            case _:
                edit.keep(name)
    return edit.finish()


def _upsample_of(resize: FixedPointResize, x: TensorType) -> Upsample | None:
    """The enlargement by whole numbers that a resize of TFLite is, if its weights are not rounded:
    they count 1024ths."""
    sides = list(zip(x.shape[1:3], resize.sides, strict=True))
    if x.dtype != "int8" or not single(x.quantization) or any(
            after % before or not 1 <= after // before <= LARGEST_UNIT for before, after in sides):
        return None
    found = Upsample(x=resize.x, factors=(sides[0][1] // sides[0][0], sides[1][1] // sides[1][0]),
                     centred=resize.coordinates == Coordinates.HALF_PIXEL, raw=True,
                     rounding=Rounding.AWAY)
    taps = found.axes(x)
    for (before, after), each in zip(sides, taps, strict=True):
        lower, upper, weight = resize.places(before, after)
        given = _weights_of(before, (lower, UNIT - weight), (upper, weight))
        ours = _weights_of(before, (each.below, each.lower),
                           (np.minimum(each.below + 1, before - 1), each.upper))
        if not np.array_equal(given * each.unit, ours * UNIT):
            return None
    unit = taps[0].unit * taps[1].unit
    return replace(found, scales=(1 / unit,)) if unit <= LARGEST_UNIT else None


def _weights_of(size: int, *taps: tuple[Array, Array]) -> Array:
    """(index of the result, pixel) → weight"""
    found = np.zeros((len(taps[0][0]), size), np.int64)
    for pixels, weights in taps:
        np.add.at(found, (np.arange(len(pixels)), pixels), weights)
    return found


def _pool_instead(edit: Edit, name: str, node: Node, reduce: Reduce | FixedPointReduce,
                  channels: int | None) -> None:
    x = edit.graph.type_of(reduce.x)
    axes = normalize_axes(reduce.axes, len(x.shape))
    pool = None
    if len(x.shape) == 4:
        if len(axes) == 1 and channels is not None and axes[0] not in (0, channels):
            pool = _pool_of_any(reduce, x, node.type, axes, channels)
        elif axes in CHANNEL_AXES:
            pool = _pool_of_any(reduce, x, node.type, axes, CHANNEL_AXES[axes[0], axes[1]])
    if pool is None:
        edit.keep(name)
        return
    shape = tuple(1 if axis in axes else size for axis, size in enumerate(x.shape))
    if shape == node.type.shape:
        edit.put(name, pool, node.type, node.origin)
        return
    inner = edit.fresh(f"{name}.pool")
    edit.put(inner, pool, replace(node.type, shape=shape), node.origin)
    edit.put(name, Reshape(x=inner, shape=node.type.shape), node.type, node.origin)


def _pool_of_any(reduce: Reduce | FixedPointReduce, x: TensorType, result: TensorType,
                 axes: tuple[int, ...], channels: int) -> Pool | None:
    sides = (2, 3) if channels == 1 else (1, 2)
    kernel = (x.shape[sides[0]] if sides[0] in axes else 1,
              x.shape[sides[1]] if sides[1] in axes else 1)
    if isinstance(reduce, Reduce):
        return _pool_of(reduce, x, kernel, channels)
    return _pool_of_fixed_point(reduce, x, result, kernel, channels)


def _pool_of(reduce: Reduce, x: TensorType, kernel: Pair, channels: int) -> Pool | None:
    """The pool over whole images, rows or columns that is the same, if there is one."""
    count = prod(kernel)
    # means of plain integers are cut off, those of a pool are rounded
    plain = x.is_integer and not x.is_quantized and reduce.kind == ReduceKind.MEAN
    if reduce.kind not in POOLS or x.dtype == "bool" or plain or count == 0:
        return None
    scales = tuple(scale * count for scale in reduce.scales)
    for wide, scale in zip(scales, reduce.scales, strict=True):
        if not 0 <= wide <= INT32_HIGH or quantize_scale(wide / count) != quantize_scale(scale):
            return None
    return Pool(x=reduce.x, kind=POOLS[reduce.kind], kernel=kernel, scales=scales,
                channel_axis=channels, rounding=reduce.rounding, low=reduce.low, high=reduce.high)


def _pool_of_fixed_point(reduce: FixedPointReduce, x: TensorType, result: TensorType,
                         kernel: Pair, channels: int) -> Pool | None:
    """The pool that gives the same for every sum of as many numbers as there are."""
    count = prod(kernel)
    scale = reduce.multiplier / 2 ** reduce.shift * count
    if not 0 < count <= MOST_PIXELS or not 0 < scale <= INT32_HIGH:
        return None
    low, high = ((bound - x.require_quantization().zero_point) * count for bound in x.range)
    sums = np.arange(low, high + 1)
    before, after = (np.clip(scale_array(sums, *pair, Rounding.TWICE).astype(np.int64)
                             + result.require_quantization().zero_point, *result.range)
                     for pair in ((reduce.multiplier, reduce.shift),
                                  quantize_scale(scale / count)))
    if not np.array_equal(before, after):
        return None
    return Pool(x=reduce.x, kind=PoolKind.AVERAGE, kernel=kernel, scales=(scale,),
                channel_axis=channels, rounding=Rounding.TWICE)


def _flat_weights(edit: Edit, name: str, node: Node, matmul: MatMul) -> None:
    """Weights without leading axes of one index, which repeat for all of the left side anyway."""
    left, right = (edit.graph.type_of(each) for each in (matmul.left, matmul.right))
    array = edit.graph.array(matmul.right)
    known = right.quantization
    if (array is None or not 2 < len(right.shape) <= len(left.shape)
            or any(size != 1 for size in right.shape[:-2])
            or (known is not None and known.axis not in (None, -1, len(right.shape) - 1))):
        edit.keep(name)
        return
    if known is not None and known.axis is not None:
        known = replace(known, axis=1)
    flat = edit.constant(f"{matmul.right}.flat", array.reshape(right.shape[-2:]), known)
    edit.put(name, replace(matmul, right=flat), node.type, node.origin)

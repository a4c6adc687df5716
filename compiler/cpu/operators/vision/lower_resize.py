"""Images in another size."""

from __future__ import annotations

import numpy as np

from ....expression.expression import Constant, Expression
from ....expression.functions import truncate
from ....expression.tensor import Tensor, compute
from ....graph.operations.vision.integer_upsample import Upsample
from ....graph.operations.vision.resize import Resize, ResizeKind
from ....graph.types import TensorType
from ...registry import Operand, lowers
from ..lowering import Axes, clamp, each, index_table, table, with_axis
from ..rescaling import WIDE, scale_and_round


@lowers(Resize)
def resize(operation: Resize, result: TensorType, x: Operand) -> Tensor:
    axes = operation.changed_axes(x.type.shape)
    if operation.kind == ResizeKind.NEAREST:
        return each(operation, result, lambda i: x.tensor[_nearest(operation, x.type, axes, i)])
    # Averages are rounded to integers, here or by what quantizes them: they are the graph's own.
    found = x.tensor
    for axis in axes:
        found = _interpolate(operation, found, axis)

    def element(i: Axes) -> Expression:
        value = found[i]
        if result.is_float or not axes:
            return value.cast(result.dtype)
        low, high = result.range
        return truncate(clamp(value, float(low), float(high))).cast(result.dtype)

    return each(operation, result, element)


def _nearest(operation: Resize, x: TensorType, axes: list[int], i: Axes) -> Axes:
    for axis in axes:
        size = x.shape[axis]
        places = np.clip(operation.nearest_pixels(operation.places(axis, size)), 0, size - 1)
        i = with_axis(i, axis, index_table(f"places{axis}", places, i[axis]))
    return i


def _interpolate(operation: Resize, before: Tensor, axis: int) -> Tensor:
    """Averages of the pixels around each place along an axis."""
    last = before.shape[axis] - 1
    places = operation.places(axis, last + 1)
    if operation.kind == ResizeKind.LINEAR:
        places = np.clip(places, 0, last)
    below = np.floor(places)
    taps = [(np.clip(below.astype(np.int64) + step, 0, last), np.asarray(weight, np.float64))
            for step, weight in operation._weights(places - below)]

    def element(*i: Expression) -> Expression:
        total = None
        for place, (index, weight) in enumerate(taps):
            there = with_axis(i, axis, index_table(f"places{axis}_{place}", index, i[axis]))
            term = before[there].cast("float64") * table(f"weights{axis}_{place}", weight, i[axis])
            total = term if total is None else total + term
        assert total is not None
        return total

    return compute(f"resized{axis}", with_axis(before.shape, axis, operation.shape[axis]), element)


@lowers(Upsample)
def upsample(operation: Upsample, result: TensorType, x: Operand) -> Tensor:
    """Sums of four pixels times whole weights, scaled once."""
    down, across = (2, 3) if operation.channel_axis == 1 else (1, 2)
    rows, columns = operation.axes(x.type)
    height, width = x.type.shape[down], x.type.shape[across]
    zero, target = (0, 0) if operation.raw else (
        x.type.require_quantization().zero_point, result.require_quantization().zero_point)
    low, high = (int(bound) for bound in operation.bounds(result) if bound is not None)

    def element(i: Axes) -> Expression:
        value: Expression = Constant(0, "int32")
        for step, row_weights in enumerate((rows.lower, rows.upper)):
            for other, column_weights in enumerate((columns.lower, columns.upper)):
                row = index_table(f"rows{step}", np.minimum(rows.below + step, height - 1),
                                  i[down])
                column = index_table(f"columns{other}", np.minimum(
                    columns.below + other, width - 1), i[across])
                pixel = x.tensor[with_axis(with_axis(i, down, row), across, column)]
                weight = (table(f"down{step}", row_weights.astype(np.int32), i[down])
                          * table(f"across{other}", column_weights.astype(np.int32), i[across]))
                value = value + (pixel.cast("int32") - zero) * weight
        found = scale_and_round(value.cast(WIDE), list(operation.scales), operation.rounding)
        return clamp(found + target, low, high).cast(result.dtype)

    return each(operation, result, element)

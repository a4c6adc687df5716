"""Operations on 8-bit numbers as TFLite's reference kernels compute them."""

from __future__ import annotations

import numpy as np

from .....isa.arithmetic import TWICE
from ....expression.expression import Constant, Expression, select, total
from ....expression.functions import floor
from ....expression.tensor import Tensor
from ....graph.operations.tflite.eight_bit import (
    SQUARE_HEADROOM,
    UNIT,
    FixedPointPrelu,
    FixedPointReduce,
    FixedPointResize,
    FixedPointSquaredDifference,
)
from ....graph.types import Array, TensorType
from ...registry import Operand, lowers
from ..layers.lower_reduction import Places
from ..lowering import Axes, at, clamp, each, index_table, saturate, table
from ..rescaling import WIDE, multiply_shift, scale_and_round
from ..sums import reduce_values


def _store(result: TensorType, value: Expression) -> Expression:
    return clamp(value + result.require_quantization().zero_point, *result.range).cast(result.dtype)


def _zeroless(x: Operand, i: Axes) -> Expression:
    return at(x, i).cast(WIDE) - x.type.require_quantization().zero_point


@lowers(FixedPointReduce)
def fixed_point_reduce(operation: FixedPointReduce, result: TensorType, x: Operand) -> Tensor:
    places, zero = Places(x, operation.axes,
                          operation.keep), x.type.require_quantization().zero_point
    if not x.type.size:
        return each(operation, result, lambda i: _store(result, Constant(0, WIDE)))
    sums = reduce_values("sums", result.shape, places.extents,
                         lambda i, r: places.at(i, r).cast("int32") - zero, total)
    multiplier, shift = (np.array([value], np.int64)
                         for value in (operation.multiplier, operation.shift))
    return each(operation, result, lambda i: _store(
        result, multiply_shift(sums[i], multiplier, shift, TWICE)))


@lowers(FixedPointPrelu)
def fixed_point_prelu(operation: FixedPointPrelu, result: TensorType, x: Operand,
                      slopes: Operand) -> Tensor:
    above, below = operation.scales(result, x.type, slopes.type)

    def element(i: Axes) -> Expression:
        value, factor = _zeroless(x, i), _zeroless(slopes, i)
        return _store(result, select(value >= 0, scale_and_round(value, [above], TWICE),
                                     scale_and_round(value * factor, [below], TWICE)))

    return each(operation, result, element)


@lowers(FixedPointSquaredDifference)
def fixed_point_squared_difference(operation: FixedPointSquaredDifference, result: TensorType,
                                   left: Operand, right: Operand) -> Tensor:
    double = 2 * max(left.type.require_quantization().scale,
                     right.type.require_quantization().scale)
    last = operation.scale(result, left.type, right.type)

    def element(i: Axes) -> Expression:
        one, other = (scale_and_round(_zeroless(x, i) << SQUARE_HEADROOM,
                                      [x.type.require_quantization().scale / double],
                                      TWICE) for x in (left, right))
        away = one - other
        return _store(result, scale_and_round(away * away, [last], TWICE))

    return each(operation, result, element)


@lowers(FixedPointResize)
def fixed_point_resize(operation: FixedPointResize, result: TensorType, x: Operand) -> Tensor:
    real = x.type.dtype == "uint8"
    sides = list(zip(x.type.shape[1:3], operation.sides, strict=True))
    rows, columns = ((operation.real_places if real else operation.places)(*each_side)
                     for each_side in sides)
    return _average_reals(operation, result, x, rows, columns) if real else (
        _average(operation, result, x, rows, columns))


Places_ = tuple[Array, Array, Array]        # the two pixels around each place, and a weight


def _average(operation: FixedPointResize, result: TensorType, x: Operand, rows: Places_,
             columns: Places_) -> Tensor:
    def element(i: Axes) -> Expression:
        n, y, x_, channel = i
        value: Expression = Constant(0, WIDE)
        for row, down in ((rows[0], UNIT - rows[2]), (rows[1], rows[2])):
            for column, across in ((columns[0], UNIT - columns[2]), (columns[1], columns[2])):
                pixel = x.tensor[n, index_table("rows", row, y),
                                 index_table("columns", column, x_), channel]
                weight = table("down", down, y) * table("across", across, x_)
                value = value + pixel.cast(WIDE) * weight
        unit = UNIT * UNIT
        found = value + select(value > 0, Constant(unit // 2, WIDE), -(unit // 2))
        return select(found < 0, 0 - (0 - found) // unit, found // unit).cast(result.dtype)

    return each(operation, result, element)


def _average_reals(operation: FixedPointResize, result: TensorType, x: Operand, rows: Places_,
                   columns: Places_) -> Tensor:
    one = np.float32(1)

    def element(i: Axes) -> Expression:
        n, y, x_, channel = i
        value: Expression = Constant(0.0, "float32")
        for column, across in ((columns[0], one - columns[2]), (columns[1], columns[2])):
            for row, down in ((rows[0], one - rows[2]), (rows[1], rows[2])):
                pixel = x.tensor[n, index_table("rows", row, y),
                                 index_table("columns", column, x_), channel]
                value = value + (pixel.cast("float32") * table("down", down, y)
                                 * table("across", across, x_))
        return saturate(floor(value + 0.5), result.dtype)

    return each(operation, result, element)

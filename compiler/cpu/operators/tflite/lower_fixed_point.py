"""Functions in fixed-point arithmetic, to the bit as TFLite's reference kernels compute them: what
`graph.operations.fixed_point` says, as expressions."""

from __future__ import annotations

from .....isa.arithmetic import INT32_HIGH, INT32_LOW, TWICE, quantize_scale
from ....expression.expression import (
    Expression,
    as_expression,
    binary,
    largest,
    minimum,
    select,
    total,
)
from ....expression.functions import as_bits
from ....expression.tensor import Tensor, compute, reduce_axis
from ....graph.operations.tflite.fixed_point import (
    DIFFERENCE_BITS,
    EXP_OF_MINUS_EIGHTH,
    EXPONENTIALS,
    FORTY_EIGHT_SEVENTEENTHS,
    FRACTION_BITS,
    MINUS_THIRTY_TWO_SEVENTEENTHS,
    ONE,
    ONE_OF_TWO_BITS,
    SUM_BITS,
    THIRD,
    FixedPointSoftmax,
    input_radius,
)
from ....graph.types import TensorType
from ...registry import Operand, lowers
from ..lowering import Axes, at, clamp, each
from ..rescaling import WIDE, scale_and_round, shift_right


def product(left: Expression, right: Expression | int) -> Expression:
    """The doubling high multiply: rounded, ties up."""
    return minimum((left * right + (1 << 30)) >> 31, INT32_HIGH)


def shift_left(value: Expression, amount: int) -> Expression:
    return clamp(value << amount, INT32_LOW, INT32_HIGH)


def exp_near_zero(value: Expression) -> Expression:
    x = value + (1 << 28)
    square = product(x, x)
    cube, fourth = product(square, x), product(square, square)
    rest = shift_right(product(shift_right(fourth, 2) + cube, THIRD) + square, 1)
    return product(x + rest, EXP_OF_MINUS_EIGHTH) + EXP_OF_MINUS_EIGHTH


def exp_of_negative(value: Expression, integer_bits: int) -> Expression:
    quarter = 1 << (FRACTION_BITS - integer_bits - 2)
    near = (value & (quarter - 1)) - quarter
    result = exp_near_zero(shift_left(near, integer_bits))
    rest = near - value
    for exponent, factor in zip(range(-2, 5), EXPONENTIALS, strict=True):
        if integer_bits > exponent:
            bit = 1 << (FRACTION_BITS - integer_bits + exponent)
            there = binary("!=", rest & bit, as_expression(0, WIDE))
            result = select(there, product(result, factor), result)
    return select(value.equals(0), ONE, result)


def reciprocal_of_one_plus(value: Expression) -> Expression:
    half = (value + ONE + 1) >> 1
    x = product(half, MINUS_THIRTY_TWO_SEVENTEENTHS) + FORTY_EIGHT_SEVENTEENTHS
    for _ in range(3):
        x = x + shift_left(product(x, ONE_OF_TWO_BITS - product(half, x)), 2)
    return shift_left(x, 1)


def leading_zeros(value: Expression) -> Expression:
    """Of positive numbers as 32 bits: what the exponent of a real number says."""
    return 32 - ((as_bits(value.cast("float64")) >> 52) - 1022)


@lowers(FixedPointSoftmax)
def fixed_point_softmax(operation: FixedPointSoftmax, result: TensorType, x: Operand) -> Tensor:
    real = operation.multiplier(x.type)
    _, shift = quantize_scale(real)
    radius = -input_radius(DIFFERENCE_BITS, FRACTION_BITS - shift)
    rows, size = x.type.shape[:-1], x.type.shape[-1]
    k, m = reduce_axis("k", size), reduce_axis("m", size)
    highest = compute("highest", rows, lambda *i: largest(x.tensor[(*i, k)].cast("int32"), k))

    def difference(i: Axes) -> Expression:
        return at(x, i).cast(WIDE) - highest[i[:-1]].cast(WIDE)

    def power(*i: Expression) -> Expression:
        """exp of a difference, or −1 for one that does not count."""
        away = difference(i)
        counted = away >= radius
        value = exp_of_negative(select(counted, scale_and_round(away, [real], TWICE), 0),
                                DIFFERENCE_BITS)
        return select(counted, value, -1).cast("int32")

    powers = compute("powers", x.type.shape, power)
    sums = compute("sums", rows, lambda *i: total(select(
        powers[(*i, m)] >= 0, shift_right(powers[(*i, m)].cast(WIDE), SUM_BITS), 0), m))
    headroom = compute("headroom", rows, lambda *i: leading_zeros(sums[i]))
    inverse = compute("inverse", rows, lambda *i: reciprocal_of_one_plus(
        (sums[i] << headroom[i]) - (1 << FRACTION_BITS)))

    def element(i: Axes) -> Expression:
        over = SUM_BITS + FRACTION_BITS - 8 - headroom[i[:-1]]
        value = powers[i].cast(WIDE)
        share = shift_right(product(value, inverse[i[:-1]]), over)
        low, high = result.range
        return clamp(select(value >= 0, share, 0) + low, low, high).cast(result.dtype)

    return each(operation, result, element)

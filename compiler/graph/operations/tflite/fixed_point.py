"""Functions in fixed-point arithmetic, to the bit as TFLite's reference kernels compute them.

A number of n integer bits is an int32 that counts 2^(n − 31). Arrays hold them as int64, so that
products need no care. The formulas are those of gemmlowp's fixedpoint.h.
"""

from __future__ import annotations

from math import floor, isfinite

import numpy as np

from .....base.classes.dataclass import dataclass
from .....isa.arithmetic import INT32_HIGH, INT32_LOW, TWICE, quantize_scale, scale_array
from ...operation import Operation, Value, operand
from ...types import Array, GraphError, TensorType

ONE = INT32_HIGH                    # with no integer bits, one is the largest number below it
FRACTION_BITS = 31
DIFFERENCE_BITS = 5                 # integer bits of differences to the largest of a row
SUM_BITS = 12                       # integer bits of sums of exponentials
MOST_EXPONENTIALS = 1 << SUM_BITS   # that such a sum holds
# exp(−2^k) for k from −2 to 4, with no integer bits.
EXPONENTIALS = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)
EXP_OF_MINUS_EIGHTH = 1895147668
THIRD = 715827883
FORTY_EIGHT_SEVENTEENTHS, MINUS_THIRTY_TWO_SEVENTEENTHS = 1515870810, -1010580540   # 2 bits
ONE_OF_TWO_BITS, ONE_OF_THREE_BITS = 1 << 29, 1 << 28
ONE_AND_A_HALF, HALF_ROOT_OF_TWO = 3 << 27, 1518500250              # 3 bits, and none


def product(left: Array, right: Array | int) -> Array:
    """The doubling high multiply: rounded, ties up. Integer bits add up."""
    whole: Array = left * right
    return np.asarray(np.minimum((whole + (1 << 30)) >> 31, INT32_HIGH))


def shift_left(value: Array, amount: int) -> Array:
    """value × 2^amount, saturated."""
    return np.asarray(np.clip(value << amount, INT32_LOW, INT32_HIGH))


def shift_right(value: Array, amount: Array | int) -> Array:
    """value / 2^amount, rounded, ties away from zero."""
    half: Array = (np.int64(1) << np.asarray(amount, np.int64)) >> 1
    found: Array = (value + half - ((value < 0) & (half > 0))) >> amount
    return found


def exp_near_zero(value: Array) -> Array:
    """exp of numbers from −1/4 to 0, without integer bits: a series around −1/8."""
    x = value + (1 << 28)
    square = product(x, x)
    cube, fourth = product(square, x), product(square, square)
    rest = shift_right(product(shift_right(fourth, 2) + cube, THIRD) + square, 1)
    return EXP_OF_MINUS_EIGHTH + product(x + rest, EXP_OF_MINUS_EIGHTH)


def exp_of_negative(value: Array, integer_bits: int) -> Array:
    """exp of numbers up to 0 with some integer bits; the result has none."""
    quarter = 1 << (FRACTION_BITS - integer_bits - 2)
    near = (value & (quarter - 1)) - quarter
    result = exp_near_zero(shift_left(near, integer_bits))
    rest = near - value
    for exponent, factor in zip(range(-2, 5), EXPONENTIALS, strict=True):
        if integer_bits > exponent:
            bit = 1 << (FRACTION_BITS - integer_bits + exponent)
            result = np.where(rest & bit, product(result, factor), result)
    return np.where(value == 0, ONE, result)


def reciprocal_of_one_plus(value: Array) -> Array:
    """1 / (1 + value) for numbers from 0 to 1, by Newton's method; nothing has integer bits, but
    for what is between: 2 / (1 + value) with two."""
    half = (value + ONE + 1) >> 1
    x = FORTY_EIGHT_SEVENTEENTHS + product(half, MINUS_THIRTY_TWO_SEVENTEENTHS)
    for _ in range(3):
        x = x + shift_left(product(x, ONE_OF_TWO_BITS - product(half, x)), 2)
    return shift_left(x, 1)


def inverse_square_root(value: Array) -> tuple[Array, Array]:
    """1 / √value of whole numbers, as a number without integer bits and what it is to be shifted
    right by: five steps of Newton's method, from 1, on a number with three integer bits."""
    pairs = (leading_zeros(value) - 1) // 2 - 1         # of bits that there is room for
    half = shift_right((value << 2 * pairs) >> 1, 1)
    x = np.full_like(value, ONE_OF_THREE_BITS)
    for _ in range(5):
        cube = shift_left(product(product(x, x), x), 6)
        x = shift_left(product(x, ONE_AND_A_HALF) - product(half, cube), 3)
    x, shift = product(x, HALF_ROOT_OF_TWO), 11 - pairs
    x = np.where(shift < 0, x << np.maximum(-shift, 0), x)
    few = value <= 1
    return np.where(few, ONE, x), np.where(few, 0, np.maximum(shift, 0))


def input_radius(integer_bits: int, left_shift: int) -> int:
    """The largest stored difference that fits after it is scaled."""
    largest = ((1 << integer_bits) - 1) * (1 << (FRACTION_BITS - integer_bits))
    return floor(largest / 2.0 ** left_shift)


def leading_zeros(values: Array) -> Array:
    """Of positive numbers as 32 bits."""
    _, exponents = np.frexp(values.astype(np.float64))
    return 32 - exponents.astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class FixedPointSoftmax(Operation):
    """exp(beta × x) over its sum along the last axis, of 8-bit numbers; those of the result count
    256ths, beginning with the least number of its type."""

    x: str = operand()
    beta: float = 1.0

    def infer(self, x: TensorType) -> TensorType:
        if x.dtype not in ("int8", "uint8") or not x.is_quantized or not x.shape:
            raise GraphError(f"the input is {x}, but must be 8-bit numbers with a scale")
        if not 1 <= x.shape[-1] < MOST_EXPONENTIALS:
            raise GraphError(f"rows have {x.shape[-1]} numbers, but must have 1 to "
                             f"{MOST_EXPONENTIALS - 1}")
        if not (isfinite(self.beta) and self.multiplier(x) >= 1):
            scale = x.require_quantization().scale
            raise GraphError(f"beta is {self.beta} and the input's scale {scale:.6g}, which are "
                             f"too small")
        return TensorType(x.shape, x.dtype)

    def check(self, result: TensorType, *types: TensorType) -> None:
        expected = self.infer(*types)
        if (result.shape, result.dtype) != (expected.shape, expected.dtype):
            raise GraphError(f"the result is {result.plain()}, but must be {expected.plain()}")
        if (result.require_quantization().scale,
            result.require_quantization().zero_point) != (2.0 ** -8, result.range[0]):
            raise GraphError(f"the result is {result}, but must have a scale of 1/256 and a zero "
                             f"point of {result.range[0]}")

    def multiplier(self, x: TensorType) -> float:
        """What a difference of stored numbers is multiplied with."""
        return min(self.beta * x.require_quantization().scale *
                   (1 << (FRACTION_BITS - DIFFERENCE_BITS)), (1 << FRACTION_BITS) - 1.0)

    def compute(self, result: TensorType, x: Value) -> Array:
        multiplier, shift = quantize_scale(self.multiplier(x.type))
        values = x.array.astype(np.int64)
        differences = values - values.max(axis=-1, keepdims=True)
        counted = differences >= -input_radius(DIFFERENCE_BITS, FRACTION_BITS - shift)
        scaled = scale_array(differences, multiplier, shift, TWICE).astype(np.int64)
        powers = exp_of_negative(np.where(counted, scaled, 0), DIFFERENCE_BITS)
        sums = np.where(counted, shift_right(powers, SUM_BITS), 0).sum(axis=-1, keepdims=True)
        headroom = leading_zeros(sums)
        inverse = reciprocal_of_one_plus((sums << headroom) - (1 << FRACTION_BITS))
        over = SUM_BITS - headroom + FRACTION_BITS - 8
        shares = shift_right(product(powers, inverse), over)
        low, high = result.range
        return np.asarray(np.clip(np.where(counted, shares, 0) + low, low, high))

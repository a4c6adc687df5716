"""Sums times real scales in integers, to the bit as `isa.arithmetic` defines it, as expressions.

Values are int64, as products of 32 bits are; multipliers and shifts are known when a kernel is
made, one pair for all or one for each channel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ....isa.arithmetic import (
    EVEN,
    HIGH_MULTIPLY_SHIFT,
    INT32_HIGH,
    INT32_LOW,
    TWICE,
    quantize_scales,
)
from ...expression.expression import (
    Constant,
    Expression,
    as_expression,
    binary,
    both,
    maximum,
    minimum,
    select,
)
from ...graph.operations.scaled import SUMS, Clamped
from ...graph.types import Array, TensorType
from ..setting import setting
from .lowering import clamp, clamp_result, table

WIDE = "int64"
NARROW = ("int8", "uint8", "int16", "uint16")
Lane = Callable[[str, Array], Expression]       # a number of the channel that is computed


def single(name: str, values: Array) -> Expression:
    """The number of all channels."""
    return setting(name, int(values[0]), values.dtype.name)


def per_channel(channel: Expression) -> Lane:
    return lambda name, values: table(name, values, channel)


def store_result(operation: Clamped, result: TensorType, value: Expression) -> Expression:
    """What an operation with bounds stores of a scaled value: it adds the zero point."""
    zero = result.require_quantization().zero_point
    if result.dtype not in NARROW:
        return clamp_result(operation, result, value + setting("zero_point", zero, WIDE))
    # Within its bounds before the zero point is added, a value is never too large for 32 bits.
    low, high = (int(each) - zero for each in operation.bounds(result) if each is not None)
    value = minimum(maximum(value.cast(SUMS), setting("low", low, SUMS)),
                    setting("high", high, SUMS))
    return (value + setting("zero_point", zero, SUMS)).cast(result.dtype)


def scale_and_round(value: Expression, scales: Sequence[float], rounding: int,
                    lane: Lane = single) -> Expression:
    """value × scale, rounded and saturated to 32 bits, as int64."""
    return multiply_shift(value, *quantize_scales(scales), rounding, lane)


def multiply_shift(value: Expression, multipliers: Array, shifts: Array, rounding: int,
                   lane: Lane = single) -> Expression:
    """value × multiplier / 2^shift, likewise."""
    # Both factors have 32 bits, and are seen to: some processors have no larger products.
    product = value.cast(WIDE) * lane("multipliers", multipliers.astype(np.int32)).cast(WIDE)
    if rounding == TWICE:
        return _round_twice(product, shifts, lane)
    return clamp(_round_once(product, shifts, rounding, lane), INT32_LOW, INT32_HIGH)


def _round_twice(product: Expression, shifts: Array, lane: Lane) -> Expression:
    first = np.minimum(shifts, HIGH_MULTIPLY_SHIFT)
    value = product
    if first.any():
        value = ((product >> lane("first_shifts", np.maximum(first - 1, 0))) + 1) >> 1
    if first.any() and not first.all():
        value = select(lane("first_shifts_or_none", first).equals(0), product, value)
    value = clamp(value, INT32_LOW, INT32_HIGH)
    second = shifts - first
    if not second.any():
        return value
    # Ties go away from zero: one less is added to negative numbers, if anything is.
    sign = (value >> 63) & lane("signs", -(second > 0).astype(np.int64))
    half = (np.int64(1) << second) >> 1
    return (value + lane("halves", half) + sign) >> lane("second_shifts", second)


def _round_once(product: Expression, shifts: Array, rounding: int, lane: Lane) -> Expression:
    if not shifts.any():
        return product
    shift, half = lane("shifts", shifts), (np.int64(1) << shifts) >> 1
    if rounding != EVEN:                # ties go away from zero
        return (product + lane("halves", half) + (
            (product >> 63) & lane("signs", -(shifts > 0).astype(np.int64)))) >> shift
    # One less than a half, unless the whole number below is odd: then ties go up.
    odd = (product >> shift) & (1 if shifts.all() else lane("odd", (shifts > 0).astype(np.int64)))
    return (product + lane("halves", np.maximum(half - 1, 0)) + odd) >> shift


def shift_right(value: Expression, amount: Expression | int) -> Expression:
    """value / 2^amount, rounded, ties away from zero."""
    if isinstance(amount, int):
        if amount == 0:
            return value
        return (value + (1 << (amount - 1)) + (value >> 63)) >> amount
    half = (Constant(1, WIDE) << amount) >> 1
    negative = both(value < 0, binary("<", as_expression(0, WIDE), half))
    return (value + half - negative.cast(WIDE)) >> amount

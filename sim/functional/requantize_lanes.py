"""Requantization of four lanes at once, in LLVM's vectors.

`isa.arithmetic.scale` says what is computed. Here nothing branches, and where that rounds by
`((x >> n - 1) + 1) >> 1` to do without a 65th bit, half of the divisor is added: a product of two
32-bit numbers leaves room for it. Importing this module imports numba.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types

from ...isa.arithmetic import HIGH_MULTIPLY_SHIFT, INT32_HIGH, INT32_LOW, SCALE_SHIFT_MASK
from ..compiled.vectors import cgutils, intrinsic
from .four_lanes import FOUR, FOUR_NUMBERS, LANES, WIDE_LANES

LANE_BITS = 32


@intrinsic
def scaled_twice(context: Any, value: Any, bias: Any, multiplier: Any, shift: Any) -> Any:
    """`scale(wrap(value + bias), multiplier, shift, TWICE)`."""
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        product, amount = _product(builder, values)
        high = _all(HIGH_MULTIPLY_SHIFT)
        first = builder.select(builder.icmp_signed("<", amount, high), amount, high)
        quotient = builder.ashr(builder.add(product, _half(builder, first)), first)
        return _divided(builder, _saturated(builder, quotient), builder.sub(amount, first))
    return FOUR_NUMBERS(*[FOUR_NUMBERS] * 4), generate


def _divided(builder: Any, value: Any, amount: Any) -> Any:
    """By 2**amount, from 0 to 32, ties away from zero: up if the bits that are dropped are more
    than half of it, or as much and the value is not negative."""
    mask = builder.trunc(builder.sub(builder.shl(_all(1), amount), _all(1)), LANES)
    most = ir.Constant(LANES, [LANE_BITS - 1] * FOUR)       # by which such a lane can be shifted
    amount = builder.trunc(amount, LANES)
    amount = builder.select(builder.icmp_signed("<", amount, most), amount, most)
    negative = builder.ashr(value, most)                    # -1 or 0
    half = builder.sub(builder.lshr(mask, ir.Constant(LANES, [1] * FOUR)), negative)
    up = builder.icmp_unsigned(">", builder.and_(value, mask), half)
    return builder.sub(builder.ashr(value, amount), builder.sext(up, LANES))


@intrinsic
def scaled_once(context: Any, value: Any, bias: Any, multiplier: Any, shift: Any,
                even: Any) -> Any:
    """`scale(wrap(value + bias), multiplier, shift, EVEN if even else AWAY)`."""
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        product, amount = _product(builder, values)
        quotient = builder.ashr(product, amount)
        rest = builder.sub(product, builder.shl(quotient, amount))
        half = _half(builder, amount)
        odd = builder.icmp_signed("!=", builder.and_(quotient, _all(1)), _all(0))
        not_negative = builder.icmp_signed(">=", product, _all(0))
        tie_goes_up = builder.select(values[4], odd, not_negative)
        up = builder.or_(builder.icmp_signed(">", rest, half),
                         builder.and_(builder.icmp_signed("==", rest, half), tie_goes_up))
        up = builder.and_(up, builder.icmp_signed(">", amount, _all(0)))
        return _saturated(builder, builder.add(quotient, builder.zext(up, WIDE_LANES)))
    return FOUR_NUMBERS(*[FOUR_NUMBERS] * 4, types.boolean), generate


@intrinsic
def clamped(context: Any, value: Any, zero_point: Any, low: Any, high: Any) -> Any:
    """The values plus the zero point, between `low` and `high`: numbers of eight bits."""
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        value, zero_point, low, high = values
        # Where this saturates, the limits are exceeded anyway.
        add = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(LANES, [LANES, LANES]), "llvm.sadd.sat.v4i32")
        return _between(builder, builder.call(add, [value, zero_point]), low, high)
    return FOUR_NUMBERS(*[FOUR_NUMBERS] * 4), generate


def _all(number: int) -> Any:
    return ir.Constant(WIDE_LANES, [number] * FOUR)


def _product(builder: Any, values: Any) -> tuple[Any, Any]:
    """Of the biased value and the multiplier, and by how much to shift it."""
    value, bias, multiplier, shift = values[:4]
    biased = builder.sext(builder.add(value, bias), WIDE_LANES)
    amount = builder.and_(shift, ir.Constant(LANES, [SCALE_SHIFT_MASK] * FOUR))
    return (builder.mul(biased, builder.sext(multiplier, WIDE_LANES)),
            builder.zext(amount, WIDE_LANES))


def _half(builder: Any, amount: Any) -> Any:
    """Half of 2**amount, or nothing of 1."""
    return builder.lshr(builder.shl(_all(1), amount), _all(1))


def _between(builder: Any, value: Any, low: Any, high: Any) -> Any:
    value = builder.select(builder.icmp_signed("<", value, low), low, value)
    return builder.select(builder.icmp_signed(">", value, high), high, value)


def _saturated(builder: Any, value: Any) -> Any:
    return builder.trunc(_between(builder, value, _all(INT32_LOW), _all(INT32_HIGH)), LANES)

"""Requantization of four lanes at once, in LLVM's vectors.

`isa.arithmetic.scale` defines the result. This code is branch-free, and where that one rounds by
`((x >> n - 1) + 1) >> 1` to avoid a 65th bit, this one adds half of the divisor: a product of two
32-bit numbers leaves room for it. Importing this module imports numba.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types

from ...isa.arithmetic import HIGH_MULTIPLY_SHIFT, INT32_HIGH, INT32_LOW, SCALE_SHIFT_MASK
from ...isa.instructions import TABLE_ENTRIES
from ..compiled.numba_types import Builder, Context, Intrinsic, Kind, Signature, Word, Words
from ..compiled.vectors import I8, I32, I64, cgutils, intrinsic, load, store
from .four_lanes import FOUR, FOUR_NUMBERS, LANES, WIDE_LANES

LANE_BITS = 32
ZERO = TABLE_ENTRIES // 2       # the entry for a result of 0


@intrinsic
def scale_rounding_twice(context: Context, value: Kind, bias: Kind, multiplier: Kind,
                         shift: Kind) -> Intrinsic:
    """`scale(wrap(value + bias), multiplier, shift, TWICE)`."""
    def generate(context: Context, builder: Builder, signature: Signature, values: Words) -> Word:
        product, amount = _product(builder, values)
        high = _all(HIGH_MULTIPLY_SHIFT)
        first = builder.select(builder.icmp_signed("<", amount, high), amount, high)
        quotient = builder.ashr(builder.add(product, _half(builder, first)), first)
        return _divide_by_power_of_two(builder, _saturate(builder, quotient), builder.sub(amount,
                                                                                          first))
    return FOUR_NUMBERS(*[FOUR_NUMBERS] * 4), generate


def _divide_by_power_of_two(builder: Builder, value: Word, amount: Word) -> Word:
    """Divide by 2**amount, where amount is from 0 to 32, with ties away from zero: rounds up if the
    dropped bits are more than half, or exactly half and the value is not negative."""
    mask = builder.trunc(builder.sub(builder.shl(_all(1), amount), _all(1)), LANES)
    most = ir.Constant(LANES, [LANE_BITS - 1] * FOUR)       # largest shift of such a lane
    amount = builder.trunc(amount, LANES)
    amount = builder.select(builder.icmp_signed("<", amount, most), amount, most)
    negative = builder.ashr(value, most)                    # -1 or 0
    half = builder.sub(builder.lshr(mask, ir.Constant(LANES, [1] * FOUR)), negative)
    up = builder.icmp_unsigned(">", builder.and_(value, mask), half)
    return builder.sub(builder.ashr(value, amount), builder.sext(up, LANES))


@intrinsic
def scale_rounding_once(context: Context, value: Kind, bias: Kind, multiplier: Kind, shift: Kind,
                        even: Kind) -> Intrinsic:
    """`scale(wrap(value + bias), multiplier, shift, EVEN if even else AWAY)`."""
    def generate(context: Context, builder: Builder, signature: Signature, values: Words) -> Word:
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
        return _saturate(builder, builder.add(quotient, builder.zext(up, WIDE_LANES)))
    return FOUR_NUMBERS(*[FOUR_NUMBERS] * 4, types.boolean), generate


@intrinsic
def clamp_to_8_bits(context: Context, value: Kind, zero_point: Kind, low: Kind,
                    high: Kind) -> Intrinsic:
    """The values plus the zero point, limited to `low` … `high`, in eight bits."""
    def generate(context: Context, builder: Builder, signature: Signature, values: Words) -> Word:
        value, zero_point, low, high = values
        # If this saturates, the limits are exceeded anyway.
        add = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(LANES, [LANES, LANES]), "llvm.sadd.sat.v4i32")
        return _clamp(builder, builder.call(add, [value, zero_point]), low, high)
    return FOUR_NUMBERS(*[FOUR_NUMBERS] * 4), generate


@intrinsic
def write_entries(context: Context, value: Kind, address: Kind, table: Kind) -> Intrinsic:
    """Write the entries of a table, given its address, for four results of 8 bits."""
    def generate(context: Context, builder: Builder, signature: Signature, values: Words) -> Word:
        results, address, table = values
        zero = builder.add(table, I64(ZERO))
        for lane in range(FOUR):
            result = builder.sext(builder.extract_element(results, I32(lane)), I64)
            entry = load(builder, builder.add(zero, result), I8)
            store(builder, entry, builder.add(address, I64(lane)))
        return context.get_dummy_value()
    return types.void(FOUR_NUMBERS, types.int64, types.int64), generate


def _all(number: int) -> Word:
    return ir.Constant(WIDE_LANES, [number] * FOUR)


def _product(builder: Builder, values: Word) -> tuple[Word, Word]:
    """The product of the biased value and the multiplier, and the amount to shift it by."""
    value, bias, multiplier, shift = values[:4]
    biased = builder.sext(builder.add(value, bias), WIDE_LANES)
    amount = builder.and_(shift, ir.Constant(LANES, [SCALE_SHIFT_MASK] * FOUR))
    return (builder.mul(biased, builder.sext(multiplier, WIDE_LANES)),
            builder.zext(amount, WIDE_LANES))


def _half(builder: Builder, amount: Word) -> Word:
    """Half of 2**amount, and 0 if that is 1."""
    return builder.lshr(builder.shl(_all(1), amount), _all(1))


def _clamp(builder: Builder, value: Word, low: Word, high: Word) -> Word:
    value = builder.select(builder.icmp_signed("<", value, low), low, value)
    return builder.select(builder.icmp_signed(">", value, high), high, value)


def _saturate(builder: Builder, value: Word) -> Word:
    return builder.trunc(_clamp(builder, value, _all(INT32_LOW), _all(INT32_HIGH)), LANES)

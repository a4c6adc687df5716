"""Integer arithmetic to the bit: known values, exact fractions, and arrays against the scalars."""

from __future__ import annotations

import math
import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from microtron.base.errors import MicrotronError
from microtron.isa.arithmetic import (
    INT32_HIGH,
    INT32_LOW,
    alu,
    alu_array,
    quantize_scale,
    quantize_scales,
    requantize,
    requantize_array,
    saturate,
    scale,
    scale_array,
    wrap,
)
from microtron.isa.instructions import AluOp, Rounding

from .strategies import INT32

TWICE, EVEN, AWAY = Rounding
SHIFTS = st.sampled_from([0, 1, 30, 31, 32, 61, 62, 63]) | st.integers(0, 63)
MULTIPLIERS = INT32 | st.integers(1 << 30, INT32_HIGH)      # the second are what models use
INT8 = st.integers(-128, 127)


@st.composite
def near_ties(draw):
    """A value, multiplier and shift whose exact quotient is a half or next to one."""
    shift = draw(st.integers(1, 40))
    half = (2 * draw(st.integers(-300, 300)) + 1) << shift - 1
    multiplier = draw(st.sampled_from([1, 3, 1 << 20, 1 << 30, (1 << 30) + 1, INT32_HIGH]))
    value = half // multiplier + draw(st.integers(-1, 1))
    return saturate(value, INT32_LOW, INT32_HIGH), multiplier, shift


SCALINGS = st.tuples(INT32, MULTIPLIERS, SHIFTS) | near_ties()


@pytest.mark.parametrize(("op", "left", "right", "result"), [
    (AluOp.ADD, 2, 3, 5), (AluOp.ADD, INT32_HIGH, 1, INT32_LOW),
    (AluOp.SUB, 2, 3, -1), (AluOp.SUB, INT32_LOW, 1, INT32_HIGH),
    (AluOp.MUL, -3, 7, -21), (AluOp.MUL, 1 << 16, 1 << 15, INT32_LOW),
    (AluOp.MUL, INT32_LOW, INT32_LOW, 0), (AluOp.MUL, INT32_LOW, -1, INT32_LOW),
    (AluOp.MIN, -3, 2, -3), (AluOp.MAX, -3, 2, 2),
    (AluOp.SHR, 5, 1, 3), (AluOp.SHR, -5, 1, -2), (AluOp.SHR, -1, 1, 0), (AluOp.SHR, -3, 1, -1),
    (AluOp.SHR, 6, 2, 2), (AluOp.SHR, -6, 2, -1), (AluOp.SHR, 7, 0, 7),
    (AluOp.SHR, INT32_HIGH, 1, 1 << 30), (AluOp.SHR, INT32_HIGH, 31, 1),
    (AluOp.SHR, INT32_LOW, 31, -1), (AluOp.SHR, 5, 33, 3),          # 33 counts as 1
    (AluOp.SHR, INT32_LOW, -1, -1),                                 # −1 counts as 31
    (AluOp.SHL, 3, 4, 48), (AluOp.SHL, 3, 31, INT32_LOW), (AluOp.SHL, -1, 31, INT32_LOW),
    (AluOp.SHL, 1, 32, 1), (AluOp.MOVE, 5, -7, -7),
])
def test_known_results_of_the_alu(op, left, right, result):
    assert alu(op, left, right) == result
    assert alu_array(op, left, right) == result


@given(INT32, st.integers(0, 31))
def test_a_right_shift_rounds_to_nearest_with_ties_up(value, amount):
    exact = Fraction(value, 1 << amount)
    assert alu(AluOp.SHR, value, amount) == math.floor(exact + Fraction(1, 2))


@given(st.sampled_from(AluOp), st.lists(st.tuples(INT32, INT32), min_size=1, max_size=50))
def test_the_alu_on_arrays_is_the_alu_on_numbers(op, pairs):
    left, right = np.array(pairs, np.int32).T
    result = alu_array(op, left, right)
    assert result.dtype == np.int32
    assert result.tolist() == [alu(op, *pair) for pair in pairs]
    assert alu_array(op, left, right[0]).tolist() == [alu(op, a, pairs[0][1]) for a, _ in pairs]


@given(INT32, INT32)
def test_wrapping_keeps_the_low_32_bits(left, right):
    for value in (left + right, left - right, left * right):
        assert INT32_LOW <= wrap(value) <= INT32_HIGH
        assert (wrap(value) - value) % (1 << 32) == 0


HALF = 1 << 30      # with a shift of 31


@pytest.mark.parametrize(("value", "multiplier", "shift", "twice", "even", "away"), [
    (1, HALF, 31, 1, 0, 1),             # 0.5
    (-1, HALF, 31, 0, 0, -1),
    (3, HALF, 31, 2, 2, 2),             # 1.5
    (-3, HALF, 31, -1, -2, -2),
    (5, HALF, 31, 3, 2, 3),             # 2.5
    (-5, HALF, 31, -2, -2, -3),
    (5, HALF, 32, 2, 1, 1),             # 1.25: twice goes over 3, then 1.5
    (-5, HALF, 32, -1, -1, -1),         # −1.25: over −2
    (-6, HALF, 32, -2, -2, -2),         # −1.5: the second rounding takes ties away from zero
    (6, HALF, 32, 2, 2, 2),
    (3, 1, 1, 2, 2, 2), (1, 1, 1, 1, 0, 1), (-1, 1, 1, 0, 0, -1),       # small shifts, same ties
    (7, 1, 0, 7, 7, 7), (-7, 3, 0, -21, -21, -21), (7, 1, 64, 7, 7, 7),   # 64 counts as 0
    (INT32_HIGH, INT32_HIGH, 0, INT32_HIGH, INT32_HIGH, INT32_HIGH),
    (INT32_LOW, INT32_HIGH, 0, INT32_LOW, INT32_LOW, INT32_LOW),
    (INT32_LOW, INT32_LOW, 31, INT32_HIGH, INT32_HIGH, INT32_HIGH),
    (INT32_LOW, INT32_LOW, 62, 1, 1, 1),
    (INT32_LOW, INT32_LOW, 63, 0, 0, 1),        # 0.5, and below it once saturated in between
    (INT32_HIGH, INT32_HIGH, 62, 1, 1, 1), (INT32_HIGH, INT32_HIGH, 63, 0, 0, 0),
])
def test_known_results_of_scaling(value, multiplier, shift, twice, even, away):
    for rounding, result in ((TWICE, twice), (EVEN, even), (AWAY, away)):
        assert scale(value, multiplier, shift, rounding) == result
        assert scale_array(value, multiplier, shift, rounding) == result


def doubling_high_multiply(a, b):
    """The high half of 2·a·b, as fixed-point kernels state it: a nudge, then C++'s division,
    which drops the fraction towards zero."""
    if a == b == INT32_LOW:
        return INT32_HIGH
    product = a * b
    nudge = 1 << 30 if product >= 0 else 1 - (1 << 30)
    magnitude = abs(product + nudge) >> 31
    return magnitude if product + nudge >= 0 else -magnitude


def divide_by_power_of_two(x, exponent):
    """As the same kernels state it: mask, remainder, threshold."""
    mask = (1 << exponent) - 1
    threshold = (mask >> 1) + (1 if x < 0 else 0)
    return (x >> exponent) + (1 if x & mask > threshold else 0)


@given(SCALINGS)
@example((INT32_LOW, INT32_LOW, 31))
@example((-5, HALF, 32))
@example((INT32_LOW, INT32_HIGH, 62))
def test_rounding_twice_is_a_doubling_high_multiply_and_a_rounding_division(scaling):
    value, multiplier, shift = scaling
    assume(shift <= 62)                             # those kernels divide by 2**31 at most
    shifted = value << max(31 - shift, 0)
    assume(INT32_LOW <= shifted <= INT32_HIGH)      # and leave open what overflows
    expected = divide_by_power_of_two(doubling_high_multiply(shifted, multiplier),
                                      max(shift - 31, 0))
    assert scale(value, multiplier, shift, TWICE) == expected


@given(SCALINGS)
def test_rounding_twice_rounds_up_once_then_away_once_and_saturates_between(scaling):
    value, multiplier, shift = scaling
    first = min(shift, 31)
    high = math.floor(Fraction(value * multiplier, 1 << first) + Fraction(1, 2))
    high = saturate(high, INT32_LOW, INT32_HIGH)
    assert scale(value, multiplier, shift, TWICE) == away_from_zero(
        Fraction(high, 1 << shift - first))


def away_from_zero(exact):
    magnitude = math.floor(abs(exact) + Fraction(1, 2))
    return magnitude if exact >= 0 else -magnitude


@given(SCALINGS)
def test_rounding_once_is_the_exact_quotient_rounded(scaling):
    value, multiplier, shift = scaling
    exact = Fraction(value * multiplier, 1 << shift)
    assert scale(value, multiplier, shift, EVEN) == saturate(round(exact), INT32_LOW, INT32_HIGH)
    assert scale(value, multiplier, shift, AWAY) == saturate(away_from_zero(exact), INT32_LOW,
                                                             INT32_HIGH)


@given(st.sampled_from(Rounding), INT32, MULTIPLIERS, INT32)
def test_only_the_low_six_bits_of_a_shift_count(rounding, value, multiplier, shift):
    assert scale(value, multiplier, shift, rounding) == scale(value, multiplier, shift % 64,
                                                              rounding)


@given(st.sampled_from(Rounding), st.lists(SCALINGS, min_size=1, max_size=50), INT32)
def test_scaling_arrays_is_scaling_numbers(rounding, scalings, other_shift):
    value, multiplier, shift = np.array(scalings, np.int32).T
    result = scale_array(value, multiplier, shift, rounding)
    assert result.dtype == np.int32
    assert result.tolist() == [scale(*each, rounding) for each in scalings]
    assert scale_array(value, multiplier[0], other_shift, rounding).tolist() == [
        scale(each, scalings[0][1], other_shift, rounding) for each, _, _ in scalings]


@given(st.lists(st.tuples(SCALINGS, INT32), min_size=1, max_size=30), INT8, INT8, INT8,
       st.sampled_from(Rounding))
def test_requantizing_arrays_is_requantizing_numbers(lanes, zero_point, one, other, rounding):
    low, high = min(one, other), max(one, other)
    options = {"zero_point": zero_point, "low": low, "high": high, "rounding": rounding}
    value, multiplier, shift = np.array([scaling for scaling, _ in lanes], np.int32).T
    bias = np.array([bias for _, bias in lanes], np.int32)
    result = requantize_array(value, bias, multiplier, shift, **options)
    assert result.dtype == np.int8
    assert result.tolist() == [requantize(scaling[0], bias, *scaling[1:], **options)
                               for scaling, bias in lanes]


@given(SCALINGS, INT32, INT8, INT8, INT8, st.sampled_from(Rounding))
def test_a_requantize_is_bias_scale_zero_point_and_clamp(scaling, bias, zero_point, one, other,
                                                         rounding):
    value, multiplier, shift = scaling
    low, high = min(one, other), max(one, other)
    scaled = scale(wrap(value + bias), multiplier, shift, rounding)
    assert requantize(value, bias, multiplier, shift, zero_point=zero_point, low=low, high=high,
                      rounding=rounding) == sorted((low, scaled + zero_point, high))[1]


@pytest.mark.parametrize(("value", "bias", "options", "result"), [
    (100, 28, {}, 127), (-100, -29, {}, -128), (-100, 0, {"low": 0}, 0),        # 128, −129, ReLU
    (10, 0, {"zero_point": -128}, -118), (200, 0, {"zero_point": -128}, 72),
    (INT32_HIGH, 1, {}, -128),                                                  # the bias wraps
])
def test_known_results_of_requantizing(value, bias, options, result):
    assert requantize(value, bias, 1, 0, **options) == result
    assert requantize_array([value], [bias], [1], [0], **options).tolist() == [result]


@given(st.floats(2.0 ** -32, 2.0 ** 31 - 1))
@example(2.0 ** -32)
@example(1.0)
@example(math.nextafter(1.0, 0.0))
@example(math.nextafter(2.0 ** -20, 0.0))
def test_a_real_scale_keeps_31_significant_bits(real):
    multiplier, shift = quantize_scale(real)
    assert 1 << 30 <= multiplier < 1 << 31
    assert 0 <= shift <= 62
    error = abs(Fraction(real) - Fraction(multiplier, 1 << shift))
    assert error <= Fraction(real) / (1 << 31)


@given(st.integers(1 << 30, INT32_HIGH), st.integers(1, 62))
def test_a_multiplier_and_a_shift_come_back_from_the_scale_they_stand_for(multiplier, shift):
    assert quantize_scale(math.ldexp(multiplier, -shift)) == (multiplier, shift)


@pytest.mark.parametrize("real", [0.0, 1e-300, 2.0 ** -33, 2.0 ** -32 * 0.999])
def test_a_scale_too_small_to_matter_is_zero(real):
    assert quantize_scale(real) == (0, 31)


@given(st.lists(st.floats(0, 2.0 ** 31 - 1), max_size=5))
@example([math.nextafter(1.0, 0.0), 2.0 ** -33, 0.0, -0.0])
def test_an_array_of_scales_is_the_same(reals):
    found = np.transpose(quantize_scales(reals)).tolist()
    assert found == [list(quantize_scale(each)) for each in reals]


@pytest.mark.parametrize("real", [-1.0, math.inf, -math.inf, math.nan, 2.0 ** 31])
def test_a_scale_that_no_multiplier_stands_for_is_refused(real):
    with pytest.raises(ValueError, match=re.escape(
            f"scale is {real}, but must be from 0 to 2147483647")):
        quantize_scale(real)
    with pytest.raises(ValueError, match=f"scale is {re.escape(str(real))}, but must be from 0"):
        quantize_scales([1.0, real])


def test_an_operation_that_nobody_defined_has_no_result():
    for wrong in (len(AluOp), -1, 99):
        with pytest.raises(ValueError, match="no such ALU operation"):
            alu(wrong, 1, 2)
        with pytest.raises(ValueError, match="is not a valid AluOp"):
            alu_array(wrong, [1], [2])


def test_only_a_move_has_no_left_operand():
    """And that is so: the left operand makes no difference to it, and one to every other."""
    for op in AluOp:
        results = {alu(op, left, 3) for left in (-100, 0, 7, 100)}
        assert (len(results) > 1) == op.reads_left, op


@pytest.mark.parametrize("value", [[5.5], "x", [True], None])
def test_only_integers_are_requantized(value):
    with pytest.raises(MicrotronError, match=r"value has numbers of type .*, but must have"):
        requantize_array(value, 0, 1, 0)

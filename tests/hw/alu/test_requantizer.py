"""One lane of requantization against its definition in isa.arithmetic, a value every cycle."""

import random

import pytest
from amaranth.back import verilog

from microtron.hw.alu.requantizer import Requantizer
from microtron.isa.arithmetic import INT32_HIGH, INT32_LOW, requantize, saturate, scale, wrap
from microtron.isa.instructions import Rounding

from ..simulate import kept
from .lanes import check_lane, near_a_corner

EDGES = (0, 1, -1, 2, -2, 3, -3, INT32_LOW, INT32_LOW + 1, INT32_HIGH, INT32_HIGH - 1, 1 << 30,
         -(1 << 30), (1 << 30) - 1, 1 << 16, 0xFFFF, -(1 << 16), 0x55555555, -0x55555555)
PLAIN = {"rounding": Rounding.TWICE, "wrap": 0, "narrow": 0, "zero_point": 0, "low": 0, "high": 0}
OPERANDS = ("value", "bias", "multiplier", "shift")
NARROW = {**PLAIN, "narrow": 1, "low": -128, "high": 127}


def expected(scaling, value, bias, multiplier, shift):
    zero_point, low, high = (scaling[name] for name in ("zero_point", "low", "high"))
    rounding = scaling["rounding"]
    if scaling["wrap"]:
        scaled = wrap(wrap(value + bias) * multiplier)
        return saturate(scaled + zero_point, low, high) if scaling["narrow"] else scaled
    if scaling["narrow"]:
        return requantize(value, bias, multiplier, shift, zero_point=zero_point, low=low,
                          high=high, rounding=rounding)
    return scale(wrap(value + bias), multiplier, shift, rounding)


def check(cases):
    unit = kept(Requantizer)
    check_lane(unit, OPERANDS, unit.scaling, cases, expected)


def number(rng):
    return near_a_corner(rng, EDGES)


def any_scaling(rng):
    low, high = sorted(rng.choice((-128, 127, 0, rng.randrange(-128, 128))) for _ in range(2))
    return {"rounding": rng.choice(list(Rounding)), "wrap": 0, "narrow": rng.randrange(2),
            "zero_point": rng.choice((0, -128, 127, rng.randrange(-128, 128))),
            "low": low, "high": high}


@pytest.mark.parametrize("seed", range(3))
def test_equals_the_definition_on_random_operands_that_lean_on_corners(seed):
    rng = random.Random(seed)
    check([(any_scaling(rng), number(rng), rng.choice((0, number(rng))), number(rng),
            rng.randrange(64)) for _ in range(2000)])


@pytest.mark.parametrize("rounding", Rounding)
def test_ties_and_their_neighbours_round_right_at_every_shift(rounding):
    cases = []
    for shift in range(1, 64):
        multiplier = 1 << min(shift - 1, 30)
        for odd in (1, -1, 3, -3):
            tie = odd << max(shift - 31, 0)     # tie × multiplier = odd × 2**(shift - 1)
            cases += [({**PLAIN, "rounding": rounding}, wrap(tie + near), 0, multiplier, shift)
                      for near in (-1, 0, 1)]
    check(cases)


def test_every_single_bit_below_a_tie_breaks_it():
    cases = []
    for shift in range(2, 62):
        for bit in range(max(shift - 31, 0), min(shift - 1, 31)):
            value = (1 << shift - 1 - bit) + 1      # value × 2**bit = 2**(shift - 1) + 2**bit
            assert scale(value, 1 << bit, shift, Rounding.EVEN) == 1
            cases.append(({**PLAIN, "rounding": Rounding.EVEN}, value, 0, 1 << bit, shift))
    check(cases)


@pytest.mark.parametrize("rounding", Rounding)
def test_the_largest_products_saturate_right_at_every_shift(rounding):
    values = (INT32_LOW, INT32_LOW + 1, INT32_HIGH, 1 << 30)
    check([({**PLAIN, "rounding": rounding}, value, 0, multiplier, shift)
           for shift in range(64) for value in values for multiplier in (INT32_LOW, INT32_HIGH)])


def test_a_number_that_rounds_up_to_two_to_the_31_saturates():
    left, right = 3, 1_431_655_765                      # 2**32 - 1: half of it is one too many
    assert left * right == 2 * INT32_HIGH + 1
    for rounding in Rounding:
        assert scale(left, right, 1, rounding) == INT32_HIGH
    check([({**PLAIN, "rounding": each}, left, 0, right, 1) for each in Rounding])


def test_half_of_two_to_the_62_is_exact_when_rounded_once():
    assert scale(INT32_LOW, INT32_LOW, 32, Rounding.EVEN) == 1 << 30
    assert scale(INT32_LOW, INT32_LOW, 32, Rounding.TWICE) == 1 << 30
    assert scale(INT32_LOW, INT32_LOW, 31, Rounding.AWAY) == INT32_HIGH
    check([({**PLAIN, "rounding": each}, INT32_LOW, 0, INT32_LOW, shift)
           for shift in (31, 32, 33, 62, 63) for each in Rounding])


def test_the_zero_point_is_added_before_the_clamp_and_only_when_narrow():
    wide = {**PLAIN, "zero_point": 100, "low": -5, "high": 5}
    narrow = {**wide, "narrow": 1}
    assert expected(narrow, -102, 0, 1, 0) == -2
    check([(wide, 40, 0, 1, 0),
           *((narrow, value, 0, 1, 0) for value in (40, -120, -102, INT32_HIGH)),
           ({**narrow, "zero_point": -100}, INT32_LOW, 0, 1, 0),
           *((NARROW, value, 0, 1, 0) for value in (-129, 128, -128))])


def test_wrap_keeps_the_low_half_of_the_product():
    rng = random.Random(5)
    cases = []
    for _ in range(500):
        scaling = {**rng.choice((PLAIN, NARROW)), "wrap": 1}
        cases.append((scaling, number(rng), 0, number(rng), 0))
    check(cases)


def test_becomes_verilog_without_a_reset_on_its_data():
    text = verilog.convert(Requantizer())
    assert "module top" in text
    assert "if (rst)" not in text

"""hw.requantizer: one lane, held against the definition in isa.arithmetic."""

import random
from collections import deque

import pytest

from microtron.hw.requantizer import STAGES, Requantizer
from microtron.isa.arithmetic import INT32_HIGH, INT32_LOW, requantize, scale, wrap
from microtron.isa.instructions import Rounding

from .simulate import simulate

EDGES = (0, 1, -1, 2, -2, 3, -3, INT32_LOW, INT32_LOW + 1, INT32_HIGH, INT32_HIGH - 1, 1 << 30,
         -(1 << 30), (1 << 30) - 1, 1 << 16, 0xFFFF, -(1 << 16), 0x55555555, -0x55555555)
PLAIN = {"rounding": Rounding.TWICE, "wrap": 0, "narrow": 0, "zero_point": 0, "low": 0, "high": 0}


def expected(value, bias, multiplier, shift, scaling):
    if scaling["wrap"]:
        scaled = wrap(wrap(value + bias) * multiplier)
        if not scaling["narrow"]:
            return scaled
        return min(max(scaled + scaling["zero_point"], scaling["low"]), scaling["high"])
    if not scaling["narrow"]:
        return scale(wrap(value + bias), multiplier, shift, scaling["rounding"])
    return requantize(value, bias, multiplier, shift, zero_point=scaling["zero_point"],
                      low=scaling["low"], high=scaling["high"], rounding=scaling["rounding"])


def check(cases):
    """Put one case in every cycle and expect each answer exactly STAGES cycles later."""
    unit = Requantizer()
    scalings, answers = deque([PLAIN] * STAGES, STAGES), deque()

    async def testbench(ctx):
        for case in [*cases, *[(0, 0, 0, 0, PLAIN)] * STAGES]:
            value, bias, multiplier, shift, scaling = case
            scalings.appendleft(scaling)
            ctx.set(unit.value, value)
            ctx.set(unit.bias, bias)
            ctx.set(unit.multiplier, multiplier)
            ctx.set(unit.shift, shift)
            for stage, each in enumerate(scalings):
                ctx.set(unit.scaling[stage], each)
            if len(answers) == STAGES:
                came, (of, right) = ctx.get(unit.result), answers.popleft()
                assert came == right, f"{of} gave {came} instead of {right}"
            answers.append((case, expected(*case)))
            await ctx.tick()

    simulate(unit, testbench, limit=len(cases) + 10 * STAGES)


def near_a_corner(rng):
    match rng.randrange(4):
        case 0:
            return rng.choice(EDGES)
        case 1:
            return wrap((rng.choice((1, -1)) << rng.randrange(32)) + rng.randrange(-2, 3))
        case 2:
            return rng.randrange(-300, 300)
        case _:
            return rng.randrange(INT32_LOW, INT32_HIGH + 1)


def any_scaling(rng):
    low, high = sorted(rng.choice((-128, 127, 0, rng.randrange(-128, 128))) for _ in range(2))
    return {"rounding": rng.choice(list(Rounding)), "wrap": 0, "narrow": rng.randrange(2),
            "zero_point": rng.choice((0, -128, 127, rng.randrange(-128, 128))),
            "low": low, "high": high}


@pytest.mark.parametrize("seed", range(3))
def test_equals_the_definition_on_random_operands_that_lean_on_corners(seed):
    rng = random.Random(seed)
    check([(near_a_corner(rng), near_a_corner(rng) if rng.random() < 0.5 else 0,
            near_a_corner(rng), rng.randrange(64), any_scaling(rng)) for _ in range(3000)])


@pytest.mark.parametrize("rounding", Rounding)
def test_ties_and_their_neighbours_round_right_at_every_shift(rounding):
    cases = []
    for shift in range(64):
        for odd in (1, -1, 3, -3, 5, -5):
            # product = odd × 2**(shift - 1): half way between two quotients
            halves = max(shift - 1, 0)
            power = 1 << min(halves, 29)
            value = odd << halves - min(halves, 29)
            if INT32_LOW <= value + 1 <= INT32_HIGH:
                cases += [(value + near, 0, power, shift, {**PLAIN, "rounding": rounding})
                          for near in (-1, 0, 1)]
    check(cases)


@pytest.mark.parametrize("rounding", Rounding)
def test_saturation_and_the_largest_products_are_right_at_every_shift(rounding):
    extremes = (INT32_LOW, INT32_LOW + 1, INT32_HIGH, INT32_HIGH - 1, 1 << 30, -(1 << 30))
    check([(value, 0, multiplier, shift, {**PLAIN, "rounding": rounding})
           for shift in range(64) for value in extremes for multiplier in extremes[:4]])


def test_a_number_that_rounds_up_to_two_to_the_31_saturates():
    # INT32_HIGH and a half: rounding reaches 2**31, which is one too many.
    product = 2 * INT32_HIGH + 1
    value, multiplier = 0x7FFFFFFF * 2 + 1, 1
    assert product == value * multiplier
    factors = next((each, product // each) for each in range(3, 1 << 16) if product % each == 0)
    for rounding in Rounding:
        assert scale(*factors, 1, rounding) == INT32_HIGH
    check([(*(factors[0], 0, factors[1]), 1, {**PLAIN, "rounding": each}) for each in Rounding])


def test_zero_point_is_added_before_the_clamp_and_only_when_narrow():
    wide = {**PLAIN, "zero_point": 100, "low": -5, "high": 5}
    check([(40, 0, 1, 0, wide), (40, 0, 1, 0, {**wide, "narrow": 1}),
           (-120, 0, 1, 0, {**wide, "narrow": 1}), (-102, 0, 1, 0, {**wide, "narrow": 1}),
           (INT32_HIGH, 0, 1, 0, {**wide, "narrow": 1}),
           (INT32_LOW, 0, 1, 0, {**wide, "narrow": 1, "zero_point": -100})])
    assert expected(-102, 0, 1, 0, {**wide, "narrow": 1}) == -2


def test_wrap_keeps_the_low_half_of_the_product():
    rng = random.Random(5)
    scaling = {**PLAIN, "wrap": 1, "low": -128, "high": 127}
    check([(near_a_corner(rng), 0, near_a_corner(rng), 0, {**scaling, "narrow": rng.randrange(2)})
           for _ in range(1000)])

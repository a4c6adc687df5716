"""One lane of the ALU against isa.arithmetic, any mix of operations, a value every cycle."""

import random

import pytest
from amaranth.hdl import Const

from microtron.hw.alu.alu_lane import AluLane, wraps
from microtron.isa.arithmetic import INT32_HIGH, INT32_LOW, alu, requantize, saturate, scale, wrap
from microtron.isa.instructions import AluOp, Rounding

from ..simulate import kept, simulate
from .lanes import check_lane, near_a_corner

EDGES = (0, 1, -1, 2, 31, 32, 33, -31, 127, 128, -128, -129, INT32_LOW, INT32_LOW + 1,
         INT32_HIGH, INT32_HIGH - 1, 1 << 30, -(1 << 30))
OPERANDS = ("left", "right", "bias", "multiplier", "shift")


def operation(op, *, narrow=0):
    """The control of an ALU operation that writes to acc, or to out where it is narrow."""
    scaling = {"rounding": Rounding.TWICE, "wrap": op in (AluOp.MUL, AluOp.SHL), "narrow": narrow,
               "zero_point": 0, "low": -128, "high": 127}
    return {"op": op, "requantize": 0, "scaling": scaling}


def scaling(rounding, *, narrow=0, zero_point=0, low=-128, high=127):
    """The control of a requantize."""
    fields = {"rounding": rounding, "wrap": 0, "narrow": narrow, "zero_point": zero_point,
              "low": low, "high": high}
    return {"op": AluOp.ADD, "requantize": 1, "scaling": fields}


def expected(control, left, right, bias, multiplier, shift):
    fields = control["scaling"]
    if not control["requantize"]:
        result = alu(control["op"], left, right)
        return saturate(result, -128, 127) if fields["narrow"] else result
    if not fields["narrow"]:
        return scale(wrap(left + bias), multiplier, shift, fields["rounding"])
    return requantize(left, bias, multiplier, shift, zero_point=fields["zero_point"],
                      low=fields["low"], high=fields["high"], rounding=fields["rounding"])


def check(cases):
    unit = kept(AluLane)
    check_lane(unit, OPERANDS, unit.controls, cases, expected)


def number(rng):
    return near_a_corner(rng, EDGES)


def any_control(rng):
    if rng.random() < 0.7:
        return operation(rng.choice(list(AluOp)), narrow=rng.randrange(2))
    low, high = sorted(rng.randrange(-128, 128) for _ in range(2))
    return scaling(rng.choice(list(Rounding)), narrow=rng.randrange(2), low=low, high=high,
                   zero_point=rng.randrange(-128, 128))


@pytest.mark.parametrize("seed", range(2))
def test_any_mix_of_operations_equals_the_definition(seed):
    rng = random.Random(seed)
    check([(any_control(rng), number(rng), number(rng), number(rng), number(rng),
            rng.randrange(64)) for _ in range(2000)])


@pytest.mark.parametrize("op", AluOp)
def test_every_pair_of_edges_is_right(op):
    check([(operation(op, narrow=narrow), left, right, 7, 7, 7)
           for left in EDGES for right in EDGES for narrow in (0, 1)])


def test_shifts_take_the_low_five_bits_of_the_right_operand():
    check([(operation(op), left, right, 0, 0, 0) for op in (AluOp.SHR, AluOp.SHL)
           for right in range(-33, 66) for left in (1, -1, 5, -5, INT32_LOW, INT32_HIGH)])


def test_only_products_wrap():
    for op in AluOp:
        wanted = operation(op)["scaling"]["wrap"]
        found = []

        async def testbench(ctx, op=op, found=found):
            found.append(ctx.get(wraps(Const(op, 3))))

        simulate(kept(AluLane), testbench)
        assert found == [wanted]

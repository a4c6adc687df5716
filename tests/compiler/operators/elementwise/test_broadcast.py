"""Operations with one number for each channel: compiled programs against NumPy, bit for bit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from microtron.compiler.errors import CompileError
from microtron.compiler.operators.elementwise.broadcast import Broadcast, form_of
from microtron.compiler.operators.elementwise.broadcast_schedule import Knobs
from microtron.compiler.operators.elementwise.elementwise import EXTREMES, Operation
from microtron.isa.config import tiny
from microtron.isa.instructions import Rounding

from ..operations import CONFIGS, check, check_meaning

OPERATIONS = [each for each in Operation if each != Operation.RESCALE]


def spec_for(operation, **fields):
    given = {"channels": 11, "height": 7, "width": 5, "images": 3} | fields
    if operation not in EXTREMES:
        given = {"scale_left": 0.5, "scale_right": 0.013, "zero_point_left": 5,
                 "zero_point_right": -7, "zero_point_out": 11,
                 "scale_out": 0.4 if operation == Operation.MUL else 0.55} | given
    return Broadcast(operation=operation, **given)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_is_numpys(operation, config):
    check(spec_for(operation), config)


@pytest.mark.parametrize("rounding", Rounding)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_rounding_and_bounds_are_those_that_are_asked_for(operation, rounding):
    check(spec_for(operation, rounding=rounding, low=-30, high=50, images=1), tiny)


@pytest.mark.parametrize("knobs", [
    Knobs(blocks=3, rows=7, columns=5, doubled=False), Knobs(blocks=1, rows=2, columns=5),
    Knobs(blocks=2, rows=1, columns=5), Knobs(blocks=1, rows=1, columns=2, doubled=False)], ids=str)
def test_knobs_do_not_change_what_is_computed(knobs):
    check(spec_for(Operation.MUL, images=1), tiny, "functional", "cycle", knobs=knobs)


@pytest.mark.parametrize("fields", [
    {"height": 1, "width": 1}, {"channels": 1}, {"channels": 70, "height": 1},
    {"height": 1, "width": 600, "images": 1}, {"zero_point_left": 0, "zero_point_right": 0}],
                         ids=str)
def test_any_shape_fits(fields):
    check(spec_for(Operation.MUL, **fields), replace(tiny, acc_bytes=4 << 10, out_bytes=1 << 10))


def test_expressions_mean_it():
    for operation in OPERATIONS:
        spec = spec_for(operation, images=1, height=2)
        check_meaning(spec, form_of(spec, tiny))


def test_extremes_have_one_scale():
    with pytest.raises(CompileError, match="must have one scale and zero point"):
        Broadcast(operation="max", channels=4, scale_left=0.5)
    with pytest.raises(CompileError, match="operation is"):
        Broadcast(operation="rescale", channels=4)

"""Element-wise operations: compiled programs against NumPy, bit for bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import microtron
from microtron.compiler.compile import compile_op
from microtron.compiler.errors import CompileError
from microtron.compiler.operators.elementwise.elementwise import (
    EXTREMES,
    Elementwise,
    Operation,
    flat_forms,
    form_of,
)
from microtron.compiler.operators.elementwise.elementwise_schedule import OPERATOR, Knobs
from microtron.isa.config import base, tiny
from microtron.isa.instructions import AluI, AluOp, Rounding
from microtron.isa.stream import decode

from ..operations import check, check_meaning

TALL = replace(tiny, batch=2, block_in=8)
FLAT = replace(tiny, batch=2, block_out=8)
CONFIGS = [tiny, TALL, FLAT]
SCALES = [(1.0, 3.0, 4.0), (0.5, 0.5, 0.7), (0.013, 0.2, 0.1), (0.2, 0.013, 0.31)]


def spec_for(operation, scales=SCALES[0], **fields):
    left, right, out = scales if operation not in EXTREMES else (scales[0],) * 3
    given = {"channels": 11, "height": 7, "width": 5, "images": 3, "zero_point_left": 5,
             "zero_point_right": -7, "zero_point_out": 11} | fields
    if operation in EXTREMES:
        given["zero_point_right"] = given["zero_point_out"] = given["zero_point_left"]
    wider = 30 if operation == Operation.MUL else 1         # products of numbers up to 128
    return Elementwise(operation=operation, scale_left=left, scale_right=right,
                       scale_out=out * wider, **given)


@pytest.mark.parametrize("config", CONFIGS, ids=("tiny", "tall", "flat"))
@pytest.mark.parametrize("scales", SCALES, ids=str)
@pytest.mark.parametrize("operation", Operation)
def test_an_operation_is_numpys_whatever_the_scales(operation, scales, config):
    check(spec_for(operation, scales), config)


@pytest.mark.parametrize("config", CONFIGS, ids=("tiny", "tall", "flat"))
def test_numbers_that_follow_one_another_need_no_whole_tiles_of_channels(config):
    spec = spec_for(Operation.ADD)
    form = flat_forms(spec, config)[0]
    assert form.output.shape[0] == -(-11 * 7 * 5 * 3 // (config.batch * config.block_out))
    check(spec, config, form=form)
    assert compile_op(spec, config).form.flat
    assert not any(each.flat for each in OPERATOR.forms_of(spec, config)), "of a network"
    assert not flat_forms(spec_for(Operation.ADD, channels=16, images=2), config)


@pytest.mark.parametrize("operation", Operation)
@pytest.mark.parametrize("rounding", Rounding)
def test_rounding_and_clamp_are_those_that_are_asked_for(operation, rounding):
    check(spec_for(operation, rounding=rounding, low=-30, high=50), tiny)


@pytest.mark.parametrize("operation", Operation)
@pytest.mark.parametrize("knobs", [Knobs(tiles=8), Knobs(tiles=1), Knobs(tiles=20, doubled=False),
                                   Knobs(tiles=7, in_place=True)],
                         ids=str)
def test_knobs_do_not_change_what_is_computed(operation, knobs):
    check(spec_for(operation, height=3, images=1), tiny, knobs=knobs)


@pytest.mark.parametrize("operation", Operation)
def test_the_cycle_device_computes_the_same(operation):
    check(spec_for(operation), TALL, "cycle")


@pytest.mark.parametrize("operation", Operation)
def test_one_element_and_a_prime_number_of_tiles_work_too(operation):
    check(spec_for(operation, channels=1, height=1, width=1, images=1), tiny)
    check(spec_for(operation, channels=3, height=1, width=1009, images=1), tiny)


def test_relu_is_a_rescale_that_changes_no_scale():
    spec = Elementwise(operation=Operation.RESCALE, channels=4, width=64, low=0)
    left = np.arange(-128, 128).reshape(1, 4, 1, 64)
    result, _ = microtron.compile_op(spec, tiny).run({"left": left})
    np.testing.assert_array_equal(result, np.maximum(left, 0))


@pytest.mark.parametrize(("scales", "shifts"), [((0.5, 0.5, 1.0), 0), ((0.5, 0.3, 1.0), 1)])
def test_operands_of_a_sum_are_shifted_only_where_it_makes_a_difference(scales, shifts):
    spec = spec_for(Operation.ADD, scales, channels=4, height=1, images=1)
    code = decode(compile_op(spec, tiny).program.code)
    found = [each for each in code if isinstance(each, AluI) and each.op == AluOp.SHL]
    assert len(found) == shifts


@pytest.mark.parametrize("operation", Operation)
def test_the_expressions_mean_what_the_program_computes(operation):
    check_meaning(spec_for(operation), form_of(spec_for(operation), FLAT))


def test_an_accumulator_that_is_too_small_is_refused():
    with pytest.raises(CompileError, match=r"elementwise: not even one tile fits: acc_bytes "
                                           r"is 128, which is 8 tiles, but must be 256 or more"):
        compile_op(spec_for(Operation.ADD), replace(tiny, acc_bytes=128, acc_banks=1))


def test_scales_are_positive():
    with pytest.raises(CompileError, match="scale_out is 0, but must be a positive number"):
        Elementwise(operation=Operation.ADD, channels=1, scale_out=0)


def test_an_addition_keeps_the_bus_busy():
    spec = spec_for(Operation.ADD, (0.02, 0.03, 0.04), channels=64, height=28, width=28, images=1)
    _, (report,) = check(spec, base, "cycle")
    assert report.cycles * 0.9 < 3 * 64 * 28 * 28 / base.bus_bytes

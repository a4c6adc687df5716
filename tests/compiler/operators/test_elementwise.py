"""Element-wise operations: compiled programs against NumPy, bit for bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from microtron.compiler.errors import CompileError
from microtron.compiler.expression.evaluate import evaluate
from microtron.compiler.operators import elementwise
from microtron.compiler.operators.build_other import compile_elementwise
from microtron.compiler.operators.elementwise import Elementwise, Knobs, Operation
from microtron.compiler.operators.packing import pack_activations, unpack_activations
from microtron.isa.config import base, tiny
from microtron.isa.instructions import AluI, AluOp, Rounding
from microtron.isa.stream import decode
from microtron.isa.verifier import verify
from microtron.runtime.device import run

from .references import elementwise as reference

TALL = replace(tiny, batch=2, block_in=8)
FLAT = replace(tiny, batch=2, block_out=8)
CONFIGS = [tiny, TALL, FLAT]
SCALES = [(1.0, 3.0, 4.0), (0.5, 0.5, 0.7), (0.013, 0.2, 0.1), (0.2, 0.013, 0.31)]


def spec_for(operation, scales=SCALES[0], **fields):
    left, right, out = scales
    given = {"channels": 11, "height": 7, "width": 5, "images": 3, "zero_point_left": 5,
             "zero_point_right": -7, "zero_point_out": 11} | fields
    wider = 30 if operation == Operation.MUL else 1         # products of numbers up to 128
    return Elementwise(operation=operation, scale_left=left, scale_right=right,
                       scale_out=out * wider, **given)


def inputs_for(spec, config, seed=0):
    rng = np.random.default_rng(seed)
    shape = (spec.images, spec.channels, spec.height, spec.width)
    left, right = rng.integers(-128, 128, (2, *shape), dtype=np.int8)
    tiles = [pack_activations(each, config, config.block_out) for each in (left, right)]
    given = {"left": tiles[0], "right": tiles[1]}
    if spec.operation == Operation.RESCALE:
        del given["right"]
    packed = {name: each.reshape(-1, *each.shape[-2:]) for name, each in given.items()}
    return packed | {"parameters": elementwise.parameters(spec, config)}, (left, right), tiles[0]


def check(spec, config, knobs=None, device="functional"):
    given, operands, like = inputs_for(spec, config)
    kernel = compile_elementwise(spec, config, knobs=knobs)
    verify(kernel.program)
    outputs, report = run(kernel.program, given, device)
    result = unpack_activations(outputs["output"].reshape(like.shape), spec.images, spec.channels)
    assert np.array_equal(result, reference(spec, *operands))
    return report, kernel


@pytest.mark.parametrize("config", CONFIGS, ids=("tiny", "tall", "flat"))
@pytest.mark.parametrize("scales", SCALES, ids=str)
@pytest.mark.parametrize("operation", Operation)
def test_an_operation_is_numpys_whatever_the_scales(operation, scales, config):
    check(spec_for(operation, scales), config)


@pytest.mark.parametrize("operation", Operation)
@pytest.mark.parametrize("rounding", Rounding)
def test_rounding_and_clamp_are_those_that_are_asked_for(operation, rounding):
    check(spec_for(operation, rounding=rounding, low=-30, high=50), tiny)


@pytest.mark.parametrize("operation", Operation)
@pytest.mark.parametrize("knobs", [Knobs(tiles=8), Knobs(tiles=1), Knobs(tiles=20, doubled=False)],
                         ids=str)
def test_knobs_do_not_change_what_is_computed(operation, knobs):
    check(spec_for(operation, height=3, images=1), tiny, knobs)


@pytest.mark.parametrize("operation", Operation)
def test_the_cycle_device_computes_the_same(operation):
    check(spec_for(operation), TALL, device="cycle")


@pytest.mark.parametrize("operation", Operation)
def test_one_element_and_a_prime_number_of_tiles_work_too(operation):
    check(spec_for(operation, channels=1, height=1, width=1, images=1), tiny)
    check(spec_for(operation, channels=3, height=1, width=1009, images=1), tiny)


def test_relu_is_a_rescale_that_changes_no_scale():
    spec = Elementwise(operation=Operation.RESCALE, channels=4, width=64, low=0)
    given, (left, _), _ = inputs_for(spec, tiny)
    outputs, _ = run(compile_elementwise(spec, tiny).program, given)
    result = outputs["output"].reshape(1, 1, 1, 64, 1, 4)
    assert np.array_equal(unpack_activations(result, 1, 4), np.maximum(left, 0))


@pytest.mark.parametrize(("scales", "shifts"), [((0.5, 0.5, 1.0), 0), ((0.5, 0.3, 1.0), 1)])
def test_operands_of_a_sum_are_shifted_only_where_it_makes_a_difference(scales, shifts):
    spec = spec_for(Operation.ADD, scales, channels=4, height=1, images=1)
    code = decode(compile_elementwise(spec, tiny).program.code)
    found = [each for each in code if isinstance(each, AluI) and each.op == AluOp.SHL]
    assert len(found) == shifts


@pytest.mark.parametrize("operation", Operation)
def test_the_expressions_mean_what_the_program_computes(operation):
    spec = spec_for(operation)
    given, operands, like = inputs_for(spec, FLAT)
    what = elementwise.expressions(spec, FLAT)
    values = {tensor: given[tensor.name] for tensor in (*what.operands, what.parameters)}
    result = evaluate(what.output, values).reshape(like.shape)
    assert np.array_equal(unpack_activations(result, spec.images, spec.channels),
                          reference(spec, *operands))


def test_an_accumulator_that_is_too_small_is_refused():
    with pytest.raises(CompileError, match=r"not even one tile of Elementwise.* has 8 tiles"):
        compile_elementwise(spec_for(Operation.ADD), replace(tiny, acc_bytes=128, acc_banks=1))


def test_scales_are_positive():
    with pytest.raises(CompileError, match="scale_out is 0, but must be positive"):
        Elementwise(operation=Operation.ADD, channels=1, scale_out=0)


def test_an_addition_keeps_the_bus_busy():
    spec = spec_for(Operation.ADD, (0.02, 0.03, 0.04), channels=64, height=28, width=28, images=1)
    report, _ = check(spec, base, device="cycle")
    assert report.cycles * 0.9 < 3 * 64 * 28 * 28 / base.bus_bytes

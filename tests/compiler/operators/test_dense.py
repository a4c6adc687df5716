"""Matrix products: compiled programs against NumPy, bit for bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from microtron.compiler.errors import CompileError
from microtron.compiler.expression.evaluate import evaluate
from microtron.compiler.operators import dense, dense_schedule
from microtron.compiler.operators.build_other import compile_dense
from microtron.compiler.operators.choice import candidates
from microtron.compiler.operators.dense import Dense
from microtron.compiler.operators.dense_schedule import Knobs
from microtron.compiler.operators.packing import bias_with_zero_point, pack_parameters
from microtron.isa.arithmetic import quantize_scale
from microtron.isa.config import base, tiny
from microtron.isa.instructions import Buffer, Rounding
from microtron.isa.verifier import verify
from microtron.runtime.device import run

from .references import dense as reference

TALL = replace(tiny, batch=2, block_in=8)
FLAT = replace(tiny, batch=2, block_out=8)


def data_for(spec, seed=0):
    """Data, weights, bias, multipliers and shifts. With a zero point, weights are constants."""
    rng = np.random.default_rng(seed)
    x = rng.integers(-128, 128, (spec.matrices, spec.rows, spec.inputs), dtype=np.int8)
    w = rng.integers(-128, 128, (spec.matrices, spec.outputs, spec.inputs), dtype=np.int8)
    bias = rng.integers(-5000, 5000, spec.outputs).astype(np.int32)
    scales = rng.uniform(0.0005, 0.01, spec.outputs)
    scales[0] = 2.0 ** -8           # ties
    multiplier, shift = np.transpose([quantize_scale(float(scale)) for scale in scales])
    return x, w, bias, multiplier, shift


def check(spec, config, knobs=None, device="functional"):
    x, w, bias, multiplier, shift = given = data_for(spec)
    kernel = compile_dense(spec, config, knobs=knobs)
    verify(kernel.program)
    whole = (bias_with_zero_point(bias, w[0], spec.zero_point_in) if spec.constant_weights
             else dense.run_time_bias(bias, spec))
    outputs, report = run(kernel.program, {
        "data": dense.pack_data(x, config), "weights": dense.pack_matrix(w, config),
        "parameters": pack_parameters(whole, multiplier, shift, config),
        **dense.run_time_inputs(spec, config)}, device)
    assert np.array_equal(dense.unpack_output(outputs["output"], spec), reference(spec, *given))
    return report, kernel


@pytest.mark.parametrize("config", [tiny, TALL, FLAT], ids=("tiny", "tall", "flat"))
@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 17, 3), (5, 11, 9), (3, 4, 33), (40, 70, 50)],
                         ids=str)
def test_a_product_is_numpys_whatever_its_shape(config, shape):
    rows, inputs, outputs = shape
    check(Dense(rows=rows, inputs=inputs, outputs=outputs, zero_point_in=3, zero_point_out=-4),
          config)


@pytest.mark.parametrize("rounding", Rounding)
def test_rounding_and_clamp_are_those_that_are_asked_for(rounding):
    check(Dense(rows=6, inputs=10, outputs=7, rounding=rounding, low=-20, high=60), tiny)


def test_fully_connected_layers_round_away_from_zero_by_default():
    assert Dense(rows=1, inputs=1, outputs=1).rounding == Rounding.AWAY


@pytest.mark.parametrize("knobs", [
    Knobs(rows=3, blocks=2, depth=2), Knobs(rows=3, blocks=2, depth=2, data_stays=True),
    Knobs(rows=2, blocks=3, depth=5), Knobs(rows=2, blocks=3, depth=5, data_stays=True),
    Knobs(rows=4, blocks=2, depth=5, data_stays=True, resident=True),
    Knobs(rows=1, blocks=1, depth=1, doubled=False), Knobs(rows=7, blocks=4, depth=5)], ids=str)
def test_knobs_do_not_change_what_is_computed(knobs):
    spec = Dense(rows=7, inputs=18, outputs=15, zero_point_out=9)
    check(spec, tiny, knobs)


@pytest.mark.parametrize("config", [tiny, TALL], ids=("tiny", "tall"))
def test_many_matrices_each_have_their_own_right_side(config):
    check(Dense(rows=9, inputs=12, outputs=10, matrices=3), config)


@pytest.mark.parametrize("zeros", [(3, -128), (0, 7), (-128, 0), (127, -1)], ids=str)
@pytest.mark.parametrize("config", [tiny, TALL, FLAT], ids=("tiny", "tall", "flat"))
def test_zero_points_of_two_activations_are_taken_away_at_run_time(zeros, config):
    check(Dense(rows=9, inputs=20, outputs=13, matrices=2, constant_weights=False,
                zero_point_in=zeros[0], zero_point_weights=zeros[1]), config)


@pytest.mark.parametrize("knobs", [
    Knobs(rows=2, blocks=2, depth=2), Knobs(rows=2, blocks=3, depth=5, data_stays=True),
    Knobs(rows=1, blocks=1, depth=1, doubled=False)], ids=str)
def test_knobs_do_not_change_a_product_of_two_activations(knobs):
    check(Dense(rows=5, inputs=18, outputs=11, constant_weights=False, zero_point_in=-3,
                zero_point_weights=5), tiny, knobs)


def test_constant_weights_have_no_zero_point():
    with pytest.raises(CompileError, match="zero_point_weights is 4, but constant weights have"):
        Dense(rows=1, inputs=1, outputs=1, zero_point_weights=4)


@pytest.mark.parametrize("constant", [True, False])
def test_the_cycle_device_computes_the_same(constant):
    check(Dense(rows=9, inputs=21, outputs=18, constant_weights=constant, zero_point_in=4,
                zero_point_weights=0 if constant else -9), TALL, device="cycle")


@pytest.mark.parametrize("shape", [(2, 2000, 5), (300, 3, 5), (2, 5, 3000)], ids=str)
def test_what_does_not_fit_at_once_is_divided(shape):
    rows, inputs, outputs = shape
    check(Dense(rows=rows, inputs=inputs, outputs=outputs), tiny)


def test_primes_are_divided_too():
    check(Dense(rows=127, inputs=4 * 67, outputs=4 * 61), tiny)


def test_a_small_accumulator_is_used_without_double_buffers():
    few = replace(tiny, acc_bytes=64, acc_banks=1)
    _, kernel = check(Dense(rows=5, inputs=9, outputs=9), few)
    assert not kernel.knobs.doubled


def test_an_accumulator_without_room_for_parameters_is_refused():
    none = replace(tiny, acc_bytes=32, acc_banks=1)
    with pytest.raises(CompileError, match="has 2 tiles, and a requantize alone needs 4"):
        compile_dense(Dense(rows=5, inputs=9, outputs=9), none)


def test_extents_are_positive():
    with pytest.raises(CompileError, match="inputs is 0, but must be at least 1"):
        Dense(rows=1, inputs=0, outputs=1)


def test_the_expressions_mean_what_the_program_computes():
    spec = Dense(rows=5, inputs=11, outputs=9)
    x, w, bias, multiplier, shift = given = data_for(spec)
    what = dense.expressions(spec, TALL)
    values = {what.data: dense.pack_data(x, TALL), what.weights: dense.pack_matrix(w, TALL),
              what.parameters: pack_parameters(bias, multiplier, shift, TALL)}
    result = evaluate(what.output, values)
    assert np.array_equal(dense.unpack_output(result, spec), reference(spec, *given))


def test_every_candidate_fits_in_the_scratchpads():
    what = dense.expressions(Dense(rows=128, inputs=768, outputs=768), base)
    found = candidates(dense_schedule, what)
    assert found
    for knobs in found:
        numbers, need = dense_schedule.copies(what, knobs), dense_schedule.tiles(what, knobs)
        assert all(numbers[buffer] * need[buffer] <= base.tiles(buffer)
                   for buffer in (Buffer.INP, Buffer.WGT, Buffer.ACC, Buffer.OUT))


def test_a_product_of_a_transformer_keeps_the_array_busy():
    spec = Dense(rows=128, inputs=768, outputs=768)
    kernel = compile_dense(spec, base)
    verify(kernel.program)
    x, w, bias, multiplier, shift = data_for(spec)
    _, report = run(kernel.program, {
        "data": dense.pack_data(x, base), "weights": dense.pack_matrix(w, base),
        "parameters": pack_parameters(bias, multiplier, shift, base)}, "cycle")
    assert report.cycles * 0.97 < spec.macs / base.macs_per_cycle


def test_two_activations_are_refused_where_weights_have_4_bits():
    with pytest.raises(CompileError, match="the right side of a product of two activations has 8 "
                                           "bits, but weights of this configuration have 4"):
        compile_dense(Dense(rows=1, inputs=1, outputs=1, constant_weights=False),
                      replace(tiny, wgt_bits=4))

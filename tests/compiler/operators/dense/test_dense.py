"""Matrix products: compiled programs against NumPy, bit for bit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from microtron.compiler.compile import compile_op
from microtron.compiler.errors import CompileError
from microtron.compiler.operators.choice import candidates, rank_candidates
from microtron.compiler.operators.dense.dense import Dense, batch_matmul, form_of
from microtron.compiler.operators.dense.dense_schedule import TEMPLATE, Knobs, copies, tiles
from microtron.isa.config import base, tiny
from microtron.isa.instructions import Buffer, Rounding

from ..operations import check, check_meaning

TALL = replace(tiny, batch=2, block_in=8)
FLAT = replace(tiny, batch=2, block_out=8)


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
    Knobs(rows=3, blocks=2, depth=2, single_sums=True),
    Knobs(rows=2, blocks=3, depth=5, data_stays=True, single_sums=True),
    Knobs(rows=1, blocks=1, depth=1, doubled=False), Knobs(rows=7, blocks=4, depth=5)], ids=str)
def test_knobs_do_not_change_what_is_computed(knobs):
    spec = Dense(rows=7, inputs=18, outputs=15, zero_point_out=9)
    check(spec, tiny, knobs=knobs)


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
    Knobs(rows=2, blocks=2, depth=2, single_sums=True),
    Knobs(rows=1, blocks=1, depth=1, doubled=False)], ids=str)
def test_knobs_do_not_change_a_product_of_two_activations(knobs):
    check(Dense(rows=5, inputs=18, outputs=11, constant_weights=False, zero_point_in=-3,
                zero_point_weights=5), tiny, knobs=knobs)


def test_constant_weights_have_no_zero_point():
    with pytest.raises(CompileError, match=r"zero_point_weights is 4, but must be 0 for constant "
                                           r"weights: subtract it before they are packed"):
        Dense(rows=1, inputs=1, outputs=1, zero_point_weights=4)


@pytest.mark.parametrize("constant", [True, False])
def test_the_cycle_device_computes_the_same(constant):
    check(Dense(rows=9, inputs=21, outputs=18, constant_weights=constant, zero_point_in=4,
                zero_point_weights=0 if constant else -9), TALL, "cycle")


@pytest.mark.parametrize("shape", [(2, 2000, 5), (300, 3, 5), (2, 5, 3000)], ids=str)
def test_what_does_not_fit_at_once_is_divided(shape):
    rows, inputs, outputs = shape
    check(Dense(rows=rows, inputs=inputs, outputs=outputs), tiny)


def test_primes_are_divided_too():
    check(Dense(rows=127, inputs=4 * 67, outputs=4 * 61), tiny)


def test_a_small_accumulator_is_used_without_double_buffers():
    few = replace(tiny, acc_bytes=64, acc_banks=1)
    kernel, _ = check(Dense(rows=5, inputs=9, outputs=9), few)
    assert not kernel.knobs.doubled


def test_an_accumulator_without_room_for_parameters_is_refused():
    none = replace(tiny, acc_bytes=32, acc_banks=1)
    with pytest.raises(CompileError, match=r"fits: acc_bytes is 32, which is 2 tiles, but must be "
                                           r"64 or more"):
        compile_op(Dense(rows=5, inputs=9, outputs=9), none)


def test_extents_are_positive():
    with pytest.raises(CompileError, match="dense: inputs is 0, but must be a whole number from 1"):
        Dense(rows=1, inputs=0, outputs=1)


@pytest.mark.parametrize("spec", [
    Dense(rows=5, inputs=11, outputs=9, zero_point_in=4),
    batch_matmul(rows=5, inputs=11, outputs=9, zero_point_in=4, zero_point_weights=-7)],
    ids=("constant", "two activations"))
def test_the_expressions_mean_what_the_program_computes(spec):
    check_meaning(spec, form_of(spec, replace(tiny, batch=2)))


def test_every_candidate_fits_in_the_scratchpads():
    form = form_of(Dense(rows=128, inputs=768, outputs=768), base)
    found = candidates(TEMPLATE, form)
    assert found
    for knobs in found:
        numbers, need = copies(form, knobs), tiles(form, knobs)
        assert all(numbers[buffer] * need[buffer] <= base.tiles(buffer)
                   for buffer in (Buffer.INP, Buffer.WGT, Buffer.ACC, Buffer.OUT))


def test_a_product_of_a_transformer_keeps_the_array_busy():
    spec = Dense(rows=128, inputs=768, outputs=768)
    _, (report,) = check(spec, base, "cycle")
    assert report.cycles * 0.97 < spec.macs / base.macs_per_cycle


def test_two_activations_are_refused_where_weights_have_4_bits():
    with pytest.raises(CompileError, match="the right side of a product of two activations has 8 "
                                           "bits, but weights of this configuration have 4"):
        compile_op(Dense(rows=1, inputs=1, outputs=1, constant_weights=False),
                      replace(tiny, wgt_bits=4))


def test_sums_have_one_buffer_where_that_saves_loads():
    few = replace(base, inp_bytes=2 << 10, wgt_bytes=16 << 10, acc_bytes=8 << 10, out_bytes=2 << 10)
    spec = Dense(rows=116, inputs=1024, outputs=96)
    every = rank_candidates(TEMPLATE, [form_of(spec, few)])
    kernel, (report,) = check(spec, few, "cycle")
    assert kernel.knobs.single_sums
    twice = next(each.knobs for each in every if not each.knobs.single_sums)
    _, (other,) = check(spec, few, "cycle", knobs=twice)
    assert report.cycles < 0.9 * other.cycles

"""Products whose right side is a result as a program left it: nothing is packed in between."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from microtron.compiler.errors import CompileError
from microtron.compiler.expression.evaluate import evaluate
from microtron.compiler.operators import dense, dense_schedule
from microtron.compiler.operators.build import compile_conv2d
from microtron.compiler.operators.build_other import compile_dense
from microtron.compiler.operators.choice import candidates
from microtron.compiler.operators.conv2d import Conv2d
from microtron.compiler.operators.dense import Dense, Layout, as_right_side
from microtron.compiler.operators.packing import (
    bias_with_zero_point,
    pack_activations,
    pack_parameters,
    pack_weights,
)
from microtron.isa.arithmetic import quantize_scale
from microtron.isa.config import small, tiny
from microtron.isa.verifier import verify
from microtron.runtime.device import run

from .references import dense as reference

TOKENS, WIDTH, HEADS = 11, 20, 3
HEAD = 2 * tiny.block_in            # channels of a head: whole blocks
BLOCK = tiny.block_out
PADDED = -(-TOKENS // BLOCK) * BLOCK


def bytes_of(rng, *shape):
    return rng.integers(-128, 128, shape, np.int8)


def epilogue(channels, real=0.002):
    """No bias, and one scale for all channels."""
    multiplier, shift = quantize_scale(real)
    return [np.full(channels, each) for each in (0, multiplier, shift)]


def computed(spec, data, weights, config=tiny, device="functional"):
    """The packed output of a product of packed operands."""
    program = compile_dense(spec, config).program
    verify(program)
    bias, *scale = epilogue(spec.outputs)
    if spec.constant_weights:
        bias = bias_with_zero_point(bias, weights[0], spec.zero_point_in)
        weights = dense.pack_matrix(weights, config)
    else:
        bias = dense.run_time_bias(bias, spec)
    outputs, _ = run(program, {"data": data, "weights": weights,
                               "parameters": pack_parameters(bias, *scale, config),
                               **dense.run_time_inputs(spec, config)}, device)
    return outputs["output"]


def right(spec, data, weights):
    """What NumPy says."""
    return reference(spec, data, weights, *epilogue(spec.outputs))


def filled_up(rows):
    """Tokens, of which there are more in DRAM, whatever they are."""
    return np.concatenate([rows, np.full((PADDED - len(rows), rows.shape[1]), 77, np.int8)])


@pytest.mark.parametrize("device", ["functional", "cycle", "rtl"])
def test_scores_take_queries_and_keys_as_their_projections_left_them(device):
    rng = np.random.default_rng(1)
    tokens = bytes_of(rng, TOKENS, WIDTH)
    project = Dense(rows=PADDED, inputs=WIDTH, outputs=HEADS * HEAD, zero_point_in=5,
                    zero_point_out=-3, layout=Layout.BLOCKS)
    score = Dense(rows=PADDED, inputs=HEAD, outputs=TOKENS, matrices=HEADS, zero_point_in=-3,
                  zero_point_weights=-3, constant_weights=False, right_activations=True,
                  layout=Layout.BLOCKS)
    packed = dense.pack_data(filled_up(tokens), tiny, Layout.BLOCKS)
    sides, expected = [], []
    for _ in range(2):
        weights = bytes_of(rng, 1, HEADS * HEAD, WIDTH)
        sides.append(computed(project, packed, weights, device=device))
        whole = right(project, filled_up(tokens)[None], weights)[0]
        expected.append(whole.reshape(PADDED, HEADS, HEAD).swapaxes(0, 1))
    queries, keys = sides
    scores = computed(score, queries.reshape(HEADS, -1, *queries.shape[2:]),
                      as_right_side(keys, score, tiny), device=device)
    np.testing.assert_array_equal(dense.unpack_output(scores, score),
                                  right(score, expected[0], expected[1][:, :TOKENS]))


@pytest.mark.parametrize("device", ["functional", "cycle"])
def test_values_come_transposed_out_of_their_projection_with_its_sides_swapped(device):
    rng = np.random.default_rng(2)
    tokens, projection = bytes_of(rng, PADDED, WIDTH), bytes_of(rng, HEAD, WIDTH)
    weights = bytes_of(rng, 1, TOKENS, PADDED)
    swapped = Dense(rows=HEAD, inputs=WIDTH, outputs=PADDED, constant_weights=False,
                    right_activations=True, layout=Layout.BLOCKS)
    apply = Dense(rows=TOKENS, inputs=PADDED, outputs=HEAD, constant_weights=False,
                  right_activations=True)
    given = dense.pack_data(tokens, tiny, Layout.BLOCKS)
    values = computed(swapped, dense.pack_data(projection, tiny, Layout.BLOCKS),
                      as_right_side(given, swapped, tiny), device=device)
    result = computed(apply, dense.pack_data(weights, tiny), as_right_side(values, apply, tiny),
                      device=device)
    transposed = right(swapped, projection[None], tokens[None])
    np.testing.assert_array_equal(dense.unpack_output(result, apply),
                                  right(apply, weights, transposed))


def test_the_result_of_a_convolution_is_a_right_side_too():
    rng = np.random.default_rng(3)
    spec = Conv2d(height=2, width=BLOCK, channels_in=5, channels_out=HEAD, kernel=(1, 1))
    image, weights = bytes_of(rng, 1, 5, 2, BLOCK), bytes_of(rng, HEAD, 5, 1, 1)
    bias, *scale = epilogue(HEAD)
    outputs, _ = run(compile_conv2d(spec, tiny).program, {
        "data": pack_activations(image, tiny, tiny.block_in),
        "weights": pack_weights(weights, tiny),
        "parameters": pack_parameters(bias, *scale, tiny)})
    project = Dense(rows=2 * BLOCK, inputs=5, outputs=HEAD)
    positions = right(replace(project, rounding=spec.rounding),
                      image.reshape(1, 5, -1).swapaxes(1, 2), weights.reshape(1, HEAD, 5))
    product = Dense(rows=3, inputs=HEAD, outputs=2 * BLOCK, constant_weights=False,
                    right_activations=True)
    data = bytes_of(rng, 1, 3, HEAD)
    result = computed(product, dense.pack_data(data, tiny),
                      as_right_side(outputs["output"], product, tiny))
    np.testing.assert_array_equal(dense.unpack_output(result, product),
                                  right(product, data, positions))


@pytest.mark.parametrize("zeros", [(0, 0), (3, -128)], ids=("without", "with"))
@pytest.mark.parametrize("layout", Layout)
def test_any_knobs_and_layouts_give_numpys_product(layout, zeros):
    spec = Dense(rows=7, inputs=18, outputs=10, matrices=2, constant_weights=False,
                 zero_point_in=zeros[0], zero_point_weights=zeros[1], right_activations=True,
                 layout=layout)
    rng = np.random.default_rng(4)
    data, weights = bytes_of(rng, 2, 7, 18), bytes_of(rng, 2, 10, 18)
    sides = (dense.pack_data(data, tiny, layout),
             np.ascontiguousarray(dense.pack_matrix(weights, tiny).swapaxes(1, 2)))
    bias, *scale = epilogue(10)
    parameters = pack_parameters(dense.run_time_bias(bias, spec), *scale, tiny)
    what = dense.expressions(spec, tiny)
    for knobs in candidates(dense_schedule, what)[::40]:
        program = compile_dense(spec, tiny, knobs=knobs).program
        verify(program)
        outputs, _ = run(program, {"data": sides[0], "weights": sides[1], "parameters": parameters,
                                   **dense.run_time_inputs(spec, tiny)})
        np.testing.assert_array_equal(dense.unpack_output(outputs["output"], spec),
                                      right(spec, data, weights), str(knobs))


def test_the_expressions_mean_the_same_product():
    spec = Dense(rows=3, inputs=9, outputs=6, constant_weights=False, right_activations=True,
                 layout=Layout.BLOCKS)
    rng = np.random.default_rng(5)
    data, weights = bytes_of(rng, 1, 3, 9), bytes_of(rng, 1, 6, 9)
    what = dense.expressions(spec, tiny)
    bias, *scale = epilogue(6)
    result = evaluate(what.output, {
        what.data: dense.pack_data(data, tiny, Layout.BLOCKS),
        what.weights: dense.pack_matrix(weights, tiny).swapaxes(1, 2),
        what.parameters: pack_parameters(bias, *scale, tiny)})
    np.testing.assert_array_equal(dense.unpack_output(result, spec), right(spec, data, weights))


@pytest.mark.parametrize(("config", "found"), [
    (replace(tiny, batch=2), "batch is 2, block_in 4 and block_out 4"),
    (replace(small, block_in=16), "batch is 1, block_in 16 and block_out 8"),
], ids=("batch", "blocks"))
def test_a_configuration_whose_activations_are_no_weight_tiles_is_refused(config, found):
    spec = Dense(rows=1, inputs=1, outputs=1, constant_weights=False, right_activations=True)
    with pytest.raises(CompileError, match=f"only with batch 1 and equal blocks, but {found}"):
        compile_dense(spec, config)


def test_a_right_side_of_activations_is_not_constant():
    with pytest.raises(CompileError, match="results of a program are not constant"):
        Dense(rows=1, inputs=1, outputs=1, right_activations=True)

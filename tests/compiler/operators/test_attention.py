"""Products whose right side is a result as a program left it: nothing is packed in between."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from microtron.compiler.compile import compile_op
from microtron.compiler.errors import CompileError
from microtron.compiler.operators.choice import candidates
from microtron.compiler.operators.convolution.conv2d import Conv2d
from microtron.compiler.operators.dense.dense import (
    Dense,
    Layout,
    form_of,
    pack_data,
    view_as_weights,
)
from microtron.compiler.operators.dense.dense_schedule import TEMPLATE
from microtron.isa.arithmetic import quantize_scale
from microtron.isa.config import small, tiny
from microtron.isa.verification.verifier import verify
from microtron.runtime.devices.device import run

from .operations import check, check_meaning
from .references import expected

TOKENS, WIDTH, HEADS = 11, 20, 3
HEAD = 2 * tiny.block_in            # channels of a head: whole blocks
BLOCK = tiny.block_out
PADDED = -(-TOKENS // BLOCK) * BLOCK


def bytes_of(rng, *shape):
    return rng.integers(-128, 128, shape, np.int8)


def compare(spec, data, weights, /, device="functional", **left):
    """A product, or a convolution, that NumPy agrees with. Operands that are `left` in DRAM are
    taken as they are there. Gives the output as the program leaves it, and what it means."""
    multiplier, shift = quantize_scale(0.002)
    given = {"data": data, "weights": weights, "bias": 0, "multiplier": multiplier, "shift": shift}
    kernel = compile_op(spec, tiny)
    verify(kernel.program)
    outputs, _ = run(kernel.program, kernel.pack(given) | left, device)
    right = expected(spec, given)
    np.testing.assert_array_equal(kernel.unpack(outputs), right)
    return outputs["output"], right


def filled_up(rows):
    """Tokens, of which there are more in DRAM, whatever they are."""
    return np.concatenate([rows, np.full((PADDED - len(rows), rows.shape[1]), 77, np.int8)])


@pytest.mark.parametrize("device", ["functional", "cycle", "rtl"])
def test_scores_take_queries_and_keys_as_their_projections_left_them(device):
    rng = np.random.default_rng(1)
    tokens = filled_up(bytes_of(rng, TOKENS, WIDTH))
    project = Dense(rows=PADDED, inputs=WIDTH, outputs=HEADS * HEAD, zero_point_in=5,
                    zero_point_out=-3, layout=Layout.BLOCKS)
    score = Dense(rows=PADDED, inputs=HEAD, outputs=TOKENS, matrices=HEADS, zero_point_in=-3,
                  zero_point_weights=-3, constant_weights=False, right_activations=True,
                  layout=Layout.BLOCKS)
    (queries, plain_queries), (keys, plain_keys) = (
        compare(project, tokens, bytes_of(rng, HEADS * HEAD, WIDTH), device) for _ in range(2))
    by_head = [plain.reshape(PADDED, HEADS, HEAD).swapaxes(0, 1)
               for plain in (plain_queries, plain_keys)]
    compare(score, by_head[0], by_head[1][:, :TOKENS], device,
             data=queries.reshape(HEADS, -1, *queries.shape[2:]),
             weights=view_as_weights(keys, score, tiny))


@pytest.mark.parametrize("device", ["functional", "cycle"])
def test_values_come_transposed_out_of_their_projection_with_its_sides_swapped(device):
    rng = np.random.default_rng(2)
    tokens, projection = bytes_of(rng, PADDED, WIDTH), bytes_of(rng, HEAD, WIDTH)
    swapped = Dense(rows=HEAD, inputs=WIDTH, outputs=PADDED, constant_weights=False,
                    right_activations=True, layout=Layout.BLOCKS)
    apply = Dense(rows=TOKENS, inputs=PADDED, outputs=HEAD, constant_weights=False,
                  right_activations=True)
    given = pack_data(tokens, tiny, Layout.BLOCKS)      # as an earlier layer leaves them
    values, transposed = compare(swapped, projection, tokens, device,
                                  weights=view_as_weights(given, swapped, tiny))
    compare(apply, bytes_of(rng, TOKENS, PADDED), transposed, device,
             weights=view_as_weights(values, apply, tiny))


def test_the_result_of_a_convolution_is_a_right_side_too():
    rng = np.random.default_rng(3)
    spec = Conv2d(height=2, width=BLOCK, channels_in=5, channels_out=HEAD, kernel=(1, 1))
    image, positions = compare(spec, bytes_of(rng, 1, 5, 2, BLOCK), bytes_of(rng, HEAD, 5, 1, 1))
    product = Dense(rows=3, inputs=HEAD, outputs=2 * BLOCK, constant_weights=False,
                    right_activations=True)
    compare(product, bytes_of(rng, 3, HEAD), positions.reshape(HEAD, -1).T,
             weights=view_as_weights(image, product, tiny))


@pytest.mark.parametrize("zeros", [(0, 0), (3, -128)], ids=("without", "with"))
@pytest.mark.parametrize("layout", Layout)
def test_any_knobs_and_layouts_give_numpys_product(layout, zeros):
    spec = Dense(rows=7, inputs=18, outputs=10, matrices=2, constant_weights=False,
                 zero_point_in=zeros[0], zero_point_weights=zeros[1], right_activations=True,
                 layout=layout)
    for knobs in candidates(TEMPLATE, form_of(spec, tiny))[::40]:
        check(spec, tiny, knobs=knobs)


def test_the_expressions_mean_the_same_product():
    spec = Dense(rows=3, inputs=9, outputs=6, constant_weights=False, right_activations=True,
                 layout=Layout.BLOCKS)
    check_meaning(spec, form_of(spec, tiny))


@pytest.mark.parametrize(("config", "found"), [
    (replace(tiny, batch=2), "batch is 2, block_in 4 and block_out 4"),
    (replace(small, block_in=16), "batch is 1, block_in 16 and block_out 8"),
], ids=("batch", "blocks"))
def test_a_configuration_whose_activations_are_no_weight_tiles_is_refused(config, found):
    spec = Dense(rows=1, inputs=1, outputs=1, constant_weights=False, right_activations=True)
    with pytest.raises(CompileError, match=f"only with batch 1 and equal blocks, but {found}"):
        compile_op(spec, config)


def test_a_right_side_of_activations_is_not_constant():
    with pytest.raises(CompileError, match="results of a program are not constant"):
        Dense(rows=1, inputs=1, outputs=1, right_activations=True)

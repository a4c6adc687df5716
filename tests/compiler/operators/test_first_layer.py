"""First layers: folding taps into channels changes the layout and never the result."""

from __future__ import annotations

import numpy as np
import pytest

from microtron.compiler.expression.evaluate import evaluate
from microtron.compiler.operators.build_convolutions import compile_first_layer
from microtron.compiler.operators.conv2d import Conv2d
from microtron.compiler.operators.first_layer import (
    UNFOLDED,
    Fold,
    bound,
    candidates,
    default_fold,
    folded,
    folding,
)
from microtron.compiler.operators.packing import (
    bias_with_zero_point,
    pack_activations,
    pack_parameters,
    pack_weights,
    unpack_activations,
)
from microtron.compiler.operators.packing_convolutions import fold_activations, fold_weights
from microtron.isa.config import base, tiny

from .convolutions import CONFIGS, grouped, numbers, result

SPECS = {
    "5x5 of 3": Conv2d(height=12, width=11, channels_in=3, channels_out=6, kernel=(5, 5),
                       stride=(2, 2), pad=(2, 2, 1, 3), zero_point_in=5, zero_point_out=-3),
    "7x3 of 1, dilated": Conv2d(height=12, width=11, channels_in=1, channels_out=5, kernel=(7, 3),
                                stride=(3, 1), dilation=(1, 2), pad=(2, 2, 1, 3),
                                zero_point_in=-128, images=3),
    "stride above kernel": Conv2d(height=9, width=13, channels_in=2, channels_out=3, kernel=(2, 3),
                                  stride=(4, 5), zero_point_in=7),
    "border above kernel": Conv2d(height=2, width=3, channels_in=1, channels_out=9, kernel=(2, 2),
                                  pad=(3, 2, 4, 3), zero_point_in=70),
}
RESNET = Conv2d(height=224, width=224, channels_in=3, channels_out=64, kernel=(7, 7),
                stride=(2, 2), pad=(3, 3, 3, 3), zero_point_in=-14)


def computed(spec, config, device="functional", fold=None):
    """What a compiled program gives and what it should, the kernel and the report."""
    data, weights, bias, multiplier, shift = numbers(
        spec, (spec.channels_out, spec.channels_in, *spec.kernel))
    kernel = compile_first_layer(spec, config, fold=fold)
    packed_data, packed_weights = data, weights
    if kernel.fold != UNFOLDED:
        packed_data = fold_activations(data, spec, kernel.fold)
        packed_weights = fold_weights(weights, kernel.fold)
    output, report = result(
        kernel.program, pack_activations(packed_data, config, config.block_in),
        pack_weights(packed_weights, config),
        pack_parameters(bias_with_zero_point(bias, weights, spec.zero_point_in), multiplier,
                        shift, config), device)
    got = unpack_activations(output, spec.images, spec.channels_out)
    return got, grouped(spec, 1, data, weights, bias, multiplier, shift), kernel, report


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_a_first_layer_equals_numpy(spec, config):
    got, right, _, _ = computed(spec, config)
    assert np.array_equal(got, right)


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_every_fold_gives_the_same(spec):
    for fold in candidates(spec, tiny):
        got, right, _, _ = computed(spec, tiny, fold=fold)
        assert np.array_equal(got, right), fold


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_the_host_folds_what_the_expression_says(spec):
    data = numbers(spec, (1,))[0]
    for fold in candidates(spec, tiny):
        image, value = folding(spec, fold)
        right = evaluate(value, {image: data})
        shape = (spec.images, -1, *right.shape[-2:])
        assert np.array_equal(fold_activations(data, spec, fold), right.reshape(shape)), fold


def test_a_whole_kernel_folded_leaves_one_tap():
    after = folded(RESNET, Fold(rows=7, columns=7))
    assert (after.channels_in, after.kernel, after.height, after.width) == (147, (1, 1), 112, 112)


def test_rows_folded_alone_keep_the_stride():
    after = folded(RESNET, Fold(rows=1, columns=7))
    assert (after.channels_in, after.kernel, after.stride) == (21, (7, 1), (2, 1))
    assert (after.out_height, after.out_width) == (112, 112)


def test_plain_convolutions_stay_plain():
    wide = Conv2d(height=8, width=8, channels_in=base.block_in, channels_out=16)
    assert default_fold(wide, base) == UNFOLDED
    assert default_fold(Conv2d(height=8, width=8, channels_in=3, channels_out=16, kernel=(1, 1)),
                        base) == UNFOLDED


def test_the_first_layer_of_resnet_runs_near_the_bound_of_its_folded_products():
    got, right, kernel, report = computed(RESNET, base, "cycle")
    assert np.array_equal(got, right)
    assert bound(kernel.spec, base) == 112 * 112 * 4 * 10
    assert bound(kernel.spec, base) / report.cycles >= 0.95

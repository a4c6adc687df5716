"""First layers: folding taps into channels changes the layout and never the result."""

from __future__ import annotations

import numpy as np
import pytest

from microtron.compiler.compile import compile_op
from microtron.compiler.expression.evaluate import evaluate
from microtron.compiler.operators.convolution.conv2d import Conv2d, Conv2dForm
from microtron.compiler.operators.convolution.first_layer import (
    UNFOLDED,
    Fold,
    FoldedForm,
    candidates,
    fold_activations,
    fold_convolution,
    folded_forms,
    folding,
    forms_of,
)
from microtron.isa.config import base, tiny

from ..operations import CONFIGS, check, operands_for

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


def folds(spec, config):
    """All that there are."""
    return [fold for fold in candidates(spec, config) if fold != UNFOLDED]


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_a_first_layer_equals_numpy(spec, config):
    check(spec, config)


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_every_fold_gives_the_same(spec):
    for fold in folds(spec, tiny):
        form, = folded_forms(spec, tiny, fold)
        check(spec, tiny, form=form)


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_the_host_folds_what_the_expression_says(spec):
    for fold in folds(spec, tiny):
        data = operands_for(folded_forms(spec, tiny, fold)[0])["data"]
        image, value = folding(spec, fold)
        right = evaluate(value, {image: data})
        shape = (spec.images, -1, *right.shape[-2:])
        assert np.array_equal(fold_activations(data, spec, fold), right.reshape(shape)), fold


def test_a_whole_kernel_folded_leaves_one_tap():
    after = fold_convolution(RESNET, Fold(rows=7, columns=7))
    assert (after.channels_in, after.kernel, after.height, after.width) == (147, (1, 1), 112, 112)


def test_rows_folded_alone_keep_the_stride():
    after = fold_convolution(RESNET, Fold(rows=1, columns=7))
    assert (after.channels_in, after.kernel, after.stride) == (21, (7, 1), (2, 1))
    assert (after.out_height, after.out_width) == (112, 112)


@pytest.mark.parametrize("spec", [
    Conv2d(height=8, width=8, channels_in=base.block_in, channels_out=16),
    Conv2d(height=8, width=8, channels_in=3, channels_out=16, kernel=(1, 1))],
    ids=("whole blocks", "one tap"))
def test_where_nothing_is_gained_an_image_is_not_folded(spec):
    assert [type(form) for form in forms_of(spec, base)] == [Conv2dForm]
    assert type(compile_op(spec, base).form) is Conv2dForm


def test_a_folded_form_can_be_scheduled_with_given_knobs():
    image = Conv2d(height=32, width=32, channels_in=3, channels_out=16, pad=1)
    kernel = compile_op(image, base, form=next(iter(forms_of(image, base))))
    assert isinstance(kernel.form, FoldedForm)
    again = compile_op(image, base, form=kernel.form, knobs=kernel.knobs)
    assert (again.form, again.knobs) == (kernel.form, kernel.knobs)
    assert np.array_equal(again.program.code, kernel.program.code)


def test_the_first_layer_of_resnet_runs_near_the_bound_of_its_folded_products():
    kernel, (report,) = check(RESNET, base, "cycle")
    assert kernel.form.fold == Fold(rows=7, columns=7)
    assert kernel.form.work.products == 112 * 112 * 4 * 10
    assert kernel.form.work.products / report.cycles >= 0.95

"""Grouped convolutions give what NumPy gives, however groups are merged."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microtron.compiler.errors import CompileError
from microtron.compiler.expression.evaluate import evaluate
from microtron.compiler.operators import conv2d_schedule
from microtron.compiler.operators.build_convolutions import compile_grouped
from microtron.compiler.operators.choice import candidates
from microtron.compiler.operators.grouped import Grouped, default_merge, expressions, is_plain
from microtron.compiler.operators.packing import bias_with_zero_point, pack_activations
from microtron.compiler.operators.packing_convolutions import (
    pack_grouped_activations,
    pack_grouped_parameters,
    pack_grouped_weights,
    unpack_grouped_activations,
)
from microtron.isa.config import base, tiny

from .convolutions import CONFIGS, grouped, numbers, result

SPECS = {
    "3 groups of 2 to 3": Grouped(height=9, width=8, channels_in=6, channels_out=9, groups=3,
                                  pad=(1, 1, 1, 1), zero_point_in=3, zero_point_out=-4),
    "2 groups of 10 to 5": Grouped(height=9, width=8, channels_in=20, channels_out=10, groups=2,
                                   stride=(2, 2), pad=(0, 1, 0, 1), images=3, high=20),
    "17 groups of 1": Grouped(height=5, width=4, channels_in=17, channels_out=17, groups=17,
                              kernel=(2, 2), dilation=(2, 1), zero_point_in=-128),
    "one group": Grouped(height=6, width=5, channels_in=5, channels_out=7, pad=(1, 1, 1, 1)),
    "window above the scratchpads": Grouped(height=20, width=19, channels_in=6, channels_out=6,
                                            groups=6, kernel=(18, 17), pad=(2, 1, 3, 4),
                                            zero_point_in=-7),
    "one pixel": Grouped(height=1, width=1, channels_in=8, channels_out=4, groups=4,
                         kernel=(1, 1)),
}
RESNEXT = Grouped(height=14, width=14, channels_in=128, channels_out=128, groups=32,
                  pad=(1, 1, 1, 1), zero_point_in=-20)


def computed(spec, config, device="functional", merged=None, knobs=None, seed=0):
    """What a compiled program gives and what it should, the kernel and the report."""
    data, weights, bias, multiplier, shift = numbers(
        spec, (spec.channels_out, spec.group_in, *spec.kernel), seed)
    kernel = compile_grouped(spec, config, merged=merged, knobs=knobs)
    output, report = result(kernel.program, *packed(
        spec, config, kernel.merged, data, weights, bias, multiplier, shift), device)
    got = unpack_grouped_activations(output, spec, kernel.merged)
    right = grouped(spec, spec.groups, data, weights, bias, multiplier, shift)
    return got, right, kernel, report


def packed(spec, config, merged, data, weights, bias, multiplier, shift):
    return (pack_grouped_activations(data, config, spec, merged),
            pack_grouped_weights(weights, config, spec, merged),
            pack_grouped_parameters(bias_with_zero_point(bias, weights, spec.zero_point_in),
                                    multiplier, shift, config, spec, merged))


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_a_grouped_convolution_equals_numpy(spec, config):
    got, right, _, _ = computed(spec, config)
    assert np.array_equal(got, right)


@pytest.mark.parametrize("merged", [1, 2, 3, 4])
def test_any_merge_gives_the_same(merged):
    for spec in (SPECS["3 groups of 2 to 3"], SPECS["17 groups of 1"]):
        got, right, _, _ = computed(spec, tiny, merged=merged)
        assert np.array_equal(got, right)


@settings(max_examples=15)
@given(st.data())
def test_any_shape_compiles_and_equals_numpy(data):
    def draw(low, high):
        return data.draw(st.integers(low, high))

    kernel, groups = (draw(1, 4), draw(1, 4)), draw(1, 7)
    spec = Grouped(height=kernel[0] + draw(0, 6), width=kernel[1] + draw(0, 6),
                   channels_in=groups * draw(1, 6), channels_out=groups * draw(1, 6),
                   groups=groups, kernel=kernel, stride=(draw(1, 3), draw(1, 3)),
                   pad=(draw(0, 3), draw(0, 3), draw(0, 3), draw(0, 3)), images=draw(1, 3),
                   zero_point_in=draw(-128, 127), zero_point_out=draw(-128, 127))
    got, right, _, _ = computed(spec, CONFIGS[data.draw(st.sampled_from(sorted(CONFIGS)))],
                                seed=draw(0, 99))
    assert np.array_equal(got, right)


def test_every_candidate_gives_the_same():
    spec = Grouped(height=6, width=5, channels_in=18, channels_out=20, groups=2,
                   pad=(1, 1, 1, 1))
    for knobs in candidates(conv2d_schedule, expressions(spec, tiny, 1))[::40]:
        got, right, _, _ = computed(spec, tiny, merged=1, knobs=knobs)
        assert np.array_equal(got, right), knobs


def test_the_expressions_mean_a_grouped_convolution():
    spec, config = SPECS["3 groups of 2 to 3"], CONFIGS["batch 2"]
    given_numbers = numbers(spec, (spec.channels_out, spec.group_in, *spec.kernel))
    what = expressions(spec, config, 2)
    tensors = (what.data, what.weights, what.parameters)
    output = evaluate(what.output, dict(zip(tensors, packed(spec, config, 2, *given_numbers),
                                            strict=True)))
    assert np.array_equal(unpack_grouped_activations(output, spec, 2),
                          grouped(spec, spec.groups, *given_numbers))


def test_narrow_groups_are_merged_until_they_fill_blocks():
    assert default_merge(RESNEXT, base) == 4
    assert is_plain(RESNEXT, base, 4)
    data = numbers(RESNEXT, (1,))[0]
    assert np.array_equal(pack_grouped_activations(data, base, RESNEXT, 4).ravel(),
                          pack_activations(data, base, base.block_in).ravel())


def test_wide_groups_are_convolutions_of_their_own():
    wide = Grouped(height=8, width=8, channels_in=64, channels_out=64, groups=2)
    assert default_merge(wide, base) == 1


def test_groups_must_divide_channels():
    with pytest.raises(CompileError, match=re.escape(
            "grouped: channels_out is 7, which 2 groups do not divide")):
        Grouped(height=3, width=3, channels_in=4, channels_out=7, groups=2)


def test_merged_groups_keep_the_array_busy():
    got, right, kernel, report = computed(RESNEXT, base, "cycle")
    assert np.array_equal(got, right)
    products = 14 * 14 * 9 * 8              # 8 merged groups of one block each
    assert kernel.merged == 4
    assert products / report.cycles >= 0.9

"""Grouped convolutions give what NumPy gives, however groups are merged."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microtron.compiler.errors import CompileError
from microtron.compiler.operators.choice import candidates
from microtron.compiler.operators.convolution.conv2d_schedule import TEMPLATE
from microtron.compiler.operators.depthwise.grouped import Grouped, form_of, forms_of, is_plain
from microtron.compiler.operators.packing import check_operands, pack_activations
from microtron.isa.config import base, tiny

from ..operations import CONFIGS, check, check_meaning, operands_for

SPECS = {
    "3 groups of 2 to 3": Grouped(height=9, width=8, channels_in=6, channels_out=9, groups=3,
                                  pad=(1, 1, 1, 1), zero_point_in=3, zero_point_out=-4),
    "2 groups of 10 to 5": Grouped(height=9, width=8, channels_in=20, channels_out=10, groups=2,
                                   stride=(2, 2), pad=(0, 1, 0, 1), images=3, high=20),
    "17 groups of 1": Grouped(height=5, width=4, channels_in=17, channels_out=17, groups=17,
                              kernel=(2, 2), dilation=(2, 1), zero_point_in=-128),
    "one group": Grouped(height=6, width=5, channels_in=5, channels_out=7, groups=1, pad=1),
    "window above the scratchpads": Grouped(height=20, width=19, channels_in=6, channels_out=6,
                                            groups=6, kernel=(18, 17), pad=(2, 1, 3, 4),
                                            zero_point_in=-7),
    "one pixel": Grouped(height=1, width=1, channels_in=8, channels_out=4, groups=4,
                         kernel=(1, 1)),
}
RESNEXT = Grouped(height=14, width=14, channels_in=128, channels_out=128, groups=32,
                  pad=(1, 1, 1, 1), zero_point_in=-20)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_a_grouped_convolution_equals_numpy(spec, config):
    check(spec, config)


@pytest.mark.parametrize("merged", [1, 2, 3, 4])
def test_any_merge_gives_the_same(merged):
    for spec in (SPECS["3 groups of 2 to 3"], SPECS["17 groups of 1"]):
        check(spec, tiny, form=form_of(spec, tiny, merged))


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
    check(spec, CONFIGS[data.draw(st.sampled_from(sorted(CONFIGS)))], seed=draw(0, 99))


def test_every_candidate_gives_the_same():
    spec = Grouped(height=6, width=5, channels_in=18, channels_out=20, groups=2,
                   pad=(1, 1, 1, 1))
    form = form_of(spec, tiny, 1)
    for knobs in candidates(TEMPLATE, form)[::40]:
        check(spec, tiny, form=form, knobs=knobs)


def test_the_expressions_mean_a_grouped_convolution():
    spec = SPECS["3 groups of 2 to 3"]
    check_meaning(spec, form_of(spec, CONFIGS["batch 2"], 2))


def test_narrow_groups_are_merged_until_they_fill_blocks():
    best, *_ = forms_of(RESNEXT, base)
    assert best.merged == 4
    assert is_plain(RESNEXT, base, 4)
    given = check_operands(best.operands, operands_for(best))
    assert np.array_equal(best.pack(given)["data"].ravel(),
                          pack_activations(given["data"], base, base.block_in).ravel())


def test_wide_groups_are_convolutions_of_their_own():
    wide = Grouped(height=8, width=8, channels_in=64, channels_out=64, groups=2)
    assert next(iter(forms_of(wide, base))).merged == 1


@pytest.mark.parametrize("blocks", [(16, 8), (4, 64)], ids=str)
def test_on_different_blocks_groups_are_merged_only_where_others_take_as_many_products(blocks):
    config = replace(base, block_in=blocks[0], block_out=blocks[1], window_taps=1)
    regnet = Grouped(height=4, width=5, channels_in=240, channels_out=240, groups=6)
    forms = list(forms_of(regnet, config))
    assert forms[0].merged == 1
    assert forms[0].handicap > 1
    assert all(each.handicap == 1 for each in forms[1:])    # what streams are made of
    assert check(regnet, config)[0].form.merged == 1
    resnext = replace(RESNEXT, height=4, width=4)
    assert all(each.handicap == 1 for each in forms_of(resnext, config))


def test_groups_must_divide_channels():
    with pytest.raises(CompileError, match=re.escape(
            "grouped: channels_out is 7, but must be a multiple of groups, which is 2")):
        Grouped(height=3, width=3, channels_in=4, channels_out=7, groups=2)


def test_merged_groups_keep_the_array_busy():
    form = next(iter(forms_of(RESNEXT, base)))
    kernel, (report,) = check(RESNEXT, base, "cycle", form=form)
    products = 14 * 14 * 9 * 8              # 8 merged groups of one block each
    assert kernel.form.merged == 4
    assert products / report.cycles >= 0.9

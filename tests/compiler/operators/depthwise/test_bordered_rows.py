"""Depthwise convolutions of rows with a border between them give what NumPy gives."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microtron.compiler.compile import compile_op
from microtron.compiler.operators.choice import candidates
from microtron.compiler.operators.depthwise.bordered_rows import BorderedForm, forms_of
from microtron.compiler.operators.depthwise.depthwise import Depthwise, form_of
from microtron.compiler.operators.depthwise.depthwise_schedule import OPERATOR, TEMPLATE
from microtron.isa.config import base, tiny
from microtron.isa.instructions import Buffer, Load
from microtron.isa.stream import positions_of

from ..operations import CONFIGS, check, check_meaning

EQUAL_BLOCKS = {name: each for name, each in CONFIGS.items() if each.block_in == each.block_out}
LAST = Depthwise(height=7, width=7, channels_in=40, channels_out=40, pad=1, zero_point_in=3)


def bordered(spec, config):
    return next(forms_of(spec, config, form_of(spec, config)), None)


@pytest.mark.parametrize("config", EQUAL_BLOCKS.values(), ids=EQUAL_BLOCKS)
@pytest.mark.parametrize("pad", [(1, 1, 1, 1), (0, 0, 1, 0), (2, 0, 0, 3)], ids=str)
def test_bordered_rows_equal_numpy(pad, config):
    spec = Depthwise(height=6, width=5, channels_in=9, channels_out=9, pad=pad, images=3,
                     zero_point_in=-9, zero_point_out=4)
    check(spec, config, form=bordered(spec, config))
    check_meaning(spec, bordered(spec, config))


@settings(max_examples=20)
@given(st.data())
def test_any_bordered_rows_equal_numpy(data):
    def draw(low, high):
        return data.draw(st.integers(low, high))

    kernel, channels = (draw(1, 5), draw(1, 5)), draw(1, 10)
    spec = Depthwise(height=kernel[0] + draw(0, 7), width=kernel[1] + draw(0, 7),
                     channels_in=channels, channels_out=channels, kernel=kernel,
                     stride=(draw(1, 3), draw(1, 3)), pad=tuple(draw(0, 3) for _ in range(4)),
                     images=draw(1, 3), zero_point_in=draw(-128, 127),
                     zero_point_out=draw(-128, 127))
    config = EQUAL_BLOCKS[data.draw(st.sampled_from(sorted(EQUAL_BLOCKS)))]
    form = bordered(spec, config)
    if form is not None:
        every = candidates(TEMPLATE, form)
        check(spec, config, form=form, knobs=every[draw(0, len(every) - 1)], seed=draw(0, 99))


@pytest.mark.parametrize(("size", "kernel", "stride"), [(65, 3, 1), (56, 5, 2)])
def test_steps_reach_no_further_below_an_image_than_a_load_fills(size, kernel, stride):
    """The last step of 4 rows has one of 65, and 3 × 66 tiles and the border below it."""
    spec = Depthwise(height=size, width=size, channels_in=16, channels_out=16, pad=kernel // 2,
                     kernel=(kernel, kernel), stride=(stride, stride))
    form = bordered(spec, base)
    every = candidates(TEMPLATE, form)
    assert every
    for knobs in every[::max(1, len(every) // 12)]:
        compile_op(spec, base, form=form, knobs=knobs)


def test_a_whole_image_is_one_run():
    kernel, _ = check(LAST, base, form=bordered(LAST, base))
    loads = [each for each in positions_of(kernel.program.code, Load)[1]
             if each["buffer"] == Buffer.INP]
    assert {tuple(each["shape"][1:]) for each in loads} == {(1, 7 * 8)}


def test_rows_without_a_border_and_layers_between_others_have_no_such_form():
    plain = Depthwise(height=7, width=7, channels_in=16, channels_out=16)
    assert bordered(plain, base) is None
    assert not any(isinstance(each, BorderedForm) for each in OPERATOR.forms_of(LAST, tiny))
    assert any(isinstance(each, BorderedForm)
               for each in OPERATOR.forms_of(LAST, tiny, alone=True))

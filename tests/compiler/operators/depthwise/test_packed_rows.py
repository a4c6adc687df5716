"""Convolutions of rows without gaps give what NumPy gives, and are chosen where they are faster."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microtron import Conv2d, compile_op
from microtron.compiler.operators.catalogue import operator_of
from microtron.compiler.operators.depthwise.grouped import Grouped
from microtron.compiler.operators.depthwise.packed_rows import (
    PackedRowsForm,
    compile_packed_rows,
    form_of,
)
from microtron.compiler.operators.depthwise.row_periods import Part, period_of
from microtron.compiler.operators.kernel import Options
from microtron.isa.config import base, tiny
from microtron.isa.verification.verifier import verify
from microtron.runtime.devices.device import run

from ..operations import CONFIGS, operands_for
from ..references import expected

EQUAL_BLOCKS = {name: each for name, each in CONFIGS.items() if each.block_in == each.block_out}
REGNET = Grouped(height=28, width=28, channels_in=48, channels_out=48, groups=2, pad=1)
SPECS = {
    "groups": Grouped(height=7, width=9, channels_in=18, channels_out=18, groups=3, pad=1,
                      zero_point_in=7, zero_point_out=-3),
    "stride, dilation, images": Grouped(height=9, width=12, channels_in=12, channels_out=20,
                                        groups=2, stride=(2, 3), dilation=(1, 2), images=3,
                                        pad=(1, 0, 3, 2), zero_point_in=-20),
    "one group": Conv2d(height=5, width=11, channels_in=6, channels_out=10, kernel=(1, 3),
                        pad=(0, 0, 1, 1), low=-50),
    "a single result": Conv2d(height=3, width=3, channels_in=3, channels_out=5),
}


def equals_numpy(spec, config, seed=0):
    form = form_of(spec, config, next(iter(operator_of(spec).forms_of(spec, config))).work)
    kernel = compile_packed_rows(form, Options())
    verify(kernel.program)
    operands = operands_for(form, seed)
    outputs, _ = run(kernel.program, kernel.pack(operands), "functional")
    np.testing.assert_array_equal(kernel.unpack(outputs), expected(spec, operands))


@pytest.mark.parametrize("config", EQUAL_BLOCKS.values(), ids=EQUAL_BLOCKS)
@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_packed_rows_equal_numpy(spec, config):
    equals_numpy(spec, config)


@settings(max_examples=15)
@given(st.data())
def test_any_packed_rows_equal_numpy(data):
    def draw(low, high):
        return data.draw(st.integers(low, high))

    kernel, groups = (draw(1, 4), draw(1, 4)), draw(1, 3)
    spec = Grouped(height=kernel[0] + draw(0, 6), width=kernel[1] + draw(0, 6),
                   channels_in=groups * draw(1, 12), channels_out=groups * draw(1, 12),
                   groups=groups, kernel=kernel, stride=(draw(1, 3), draw(1, 3)),
                   pad=tuple(draw(0, 3) for _ in range(4)), images=draw(1, 3),
                   zero_point_in=draw(-128, 127), zero_point_out=draw(-128, 127))
    config = EQUAL_BLOCKS[data.draw(st.sampled_from(sorted(EQUAL_BLOCKS)))]
    if period_of(spec, config) is not None:
        equals_numpy(spec, config, seed=draw(0, 99))


def test_a_tile_of_results_takes_the_tiles_of_data_that_its_pixels_see():
    """Of 24 channels, a tile is of one pixel, the next of two, the third of the second one."""
    period = period_of(REGNET, base)
    assert (period.pixels, period.shift) == (2, 0)
    assert period.parts == (Part(0, 1, 0, 5), Part(1, 1, 0, 6), Part(2, 1, 1, 5))


def test_groups_that_fill_no_tiles_alone_are_packed_without_gaps():
    kernel = compile_op(REGNET, base)
    assert isinstance(kernel.form, PackedRowsForm)
    assert "without gaps" in kernel.form.note
    again = compile_op(REGNET, base, form=kernel.form, knobs=kernel.knobs)
    assert np.array_equal(again.program.code, kernel.program.code)


def test_channels_that_fill_tiles_have_a_period_of_a_pixel_and_nothing_to_gain():
    spec = Conv2d(height=8, width=8, channels_in=16, channels_out=32)
    assert period_of(spec, base).pixels == 1
    assert not isinstance(compile_op(spec, base).form, PackedRowsForm)


def test_long_periods_and_wide_results_are_left_out():
    work = next(iter(operator_of(REGNET).forms_of(REGNET, base))).work
    odd = Conv2d(height=8, width=8, channels_in=17, channels_out=33)
    assert period_of(odd, base) is None
    wide = Conv2d(height=8, width=8, channels_in=24, channels_out=24, wide=True)
    assert form_of(wide, tiny, work) is None

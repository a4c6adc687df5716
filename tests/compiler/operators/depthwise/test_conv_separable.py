"""A convolution, a depthwise one and a pointwise one equal all three, one after the other."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from microtron.compiler.operators.choice import candidates
from microtron.compiler.operators.depthwise.conv_separable import (
    TEMPLATE,
    ConvSeparable,
    forms_of,
)
from microtron.isa.instructions import Gemm, GemmFlags, Opcode, Window

from ..operations import CONFIGS, check, check_meaning
from ..shapes import ANY, CORNERS

ALL = [name for name, config in CONFIGS.items() if config.block_in == config.block_out]
SPEC = ConvSeparable(height=9, width=8, channels_in=3, channels_out=6, pad=1, window_pad=1,
                     channels_mixed=5, zero_point_in=3, zero_point_conv=-7, zero_point_between=-5)


def fitting(spec, config):
    """Its forms that fit: all weights and a row of everything else must."""
    return [form for form in forms_of(spec, config) if candidates(TEMPLATE, form)]


@pytest.mark.parametrize("config", ALL)
@given(spec=ANY["conv_separable"], seed=st.integers(0, 99))
@settings(max_examples=25)
def test_any_shape_equals_numpy(config, spec, seed):
    forms = fitting(spec, CONFIGS[config])
    assume(forms)
    for form in forms:
        check(spec, CONFIGS[config], form=form, seed=seed)


@pytest.mark.parametrize("config", ALL)
def test_corners_equal_numpy(config):
    for spec in CORNERS["conv_separable"].values():
        for form in fitting(spec, CONFIGS[config]):
            check(spec, CONFIGS[config], form=form)


@pytest.mark.parametrize("config", ALL)
@pytest.mark.parametrize("stride", [(1, 1), (2, 2)])
def test_every_candidate_gives_the_same(config, stride):
    spec = ConvSeparable(**vars(SPEC) | {"window_stride": stride})
    for form in fitting(spec, CONFIGS[config]):
        for knobs in candidates(TEMPLATE, form):
            check(spec, CONFIGS[config], form=form, knobs=knobs)


@pytest.mark.parametrize("config", ALL)
@pytest.mark.parametrize("stride", [(1, 1), (2, 2)])
def test_its_expressions_mean_it(config, stride):
    spec = ConvSeparable(**vars(SPEC) | {"window_stride": stride})
    for form in forms_of(spec, CONFIGS[config]):
        check_meaning(spec, form)


def test_what_lies_between_stays_on_the_chip():
    kernel, _ = check(SPEC, CONFIGS["windows"])
    code = kernel.program.code
    windows = code[code["opcode"] == Opcode.WINDOW].view(Window.dtype())
    assert (windows["flags"] & GemmFlags.OUT != 0).all()
    flags = code[code["opcode"] == Opcode.GEMM].view(Gemm.dtype())["flags"]
    assert len(windows)
    assert 0 < (flags & GemmFlags.OUT != 0).sum() < len(flags)      # the third's, and the first's

"""A depthwise convolution and the pointwise one after it equal both, one after the other."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from microtron.compiler.operators.choice import candidates
from microtron.compiler.operators.depthwise.separable import (
    TEMPLATE,
    Knobs,
    Separable,
    fits,
    form_of,
)
from microtron.isa.instructions import Gemm, GemmFlags, Opcode

from ..operations import CONFIGS, check, check_meaning
from ..shapes import ANY, CORNERS

BOTH = [name for name, config in CONFIGS.items() if config.block_in == config.block_out]
SPEC = Separable(height=7, width=6, channels_in=9, channels_out=9, channels_mixed=6, pad=1,
                 zero_point_in=3, zero_point_between=-5)


@pytest.mark.parametrize("config", BOTH)
@given(spec=ANY["separable"], seed=st.integers(0, 99))
@settings(max_examples=15)
def test_any_shape_equals_numpy(config, spec, seed):
    assume(not refused(spec, CONFIGS[config]))
    check(spec, CONFIGS[config], seed=seed)


def refused(spec, config):
    """Whether it does not fit: all weights and a row of everything else must."""
    return not candidates(TEMPLATE, form_of(spec, config))


@pytest.mark.parametrize("config", BOTH)
def test_corners_equal_numpy(config):
    for spec in CORNERS["separable"].values():
        if not refused(spec, CONFIGS[config]):
            check(spec, CONFIGS[config])


@pytest.mark.parametrize("config", BOTH)
def test_every_candidate_gives_the_same(config):
    form = form_of(SPEC, CONFIGS[config])
    for knobs in (*candidates(TEMPLATE, form), *TEMPLATE.at_once(form)):
        check(SPEC, CONFIGS[config], knobs=knobs)


@pytest.mark.parametrize("config", BOTH)
def test_several_images_in_parts_of_channels_give_the_same(config):
    spec = replace(SPEC, images=3, height=3)
    for rows in (1, 3):
        knobs = Knobs(rows=rows, blocks=1)
        assert fits(form_of(spec, CONFIGS[config]), knobs)
        check(spec, CONFIGS[config], knobs=knobs)


@pytest.mark.parametrize("config", BOTH)
@pytest.mark.parametrize("stride", [(1, 1), (2, 2)])
def test_its_expressions_mean_it(config, stride):
    spec = Separable(**vars(SPEC) | {"stride": stride})
    check_meaning(spec, form_of(spec, CONFIGS[config]))


def test_with_windows_only_the_second_is_gemms():
    kernel, _ = check(SPEC, CONFIGS["windows"])
    code = kernel.program.code
    flags = code.view(Gemm.dtype())["flags"][code["opcode"] == Opcode.GEMM]
    assert (code["opcode"] == Opcode.WINDOW).any()
    assert (flags & GemmFlags.OUT != 0).all()

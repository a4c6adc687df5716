"""No operator needs more micro-ops than the least that a configuration may have."""

from dataclasses import replace

import pytest

from microtron.compiler.operators.dense.dense import Dense
from microtron.compiler.operators.depthwise.depthwise import Depthwise
from microtron.isa.config import tiny
from microtron.isa.instructions import MicroOp

from .operations import check
from .shapes import CORNERS, form_for

FEWEST = replace(tiny, uop_bytes=2 * MicroOp.size)
WINDOWS = replace(FEWEST, window_taps=3)


@pytest.mark.parametrize(("operator", "config"), [
    *((operator, FEWEST) for operator in CORNERS),
    *((operator, WINDOWS) for operator in ("depthwise", "separable", "conv_separable"))])
def test_two_micro_ops_are_enough_for_every_operator(operator, config):
    for corner in ("17 channels", "kernel larger than the image"):
        if spec := CORNERS[operator].get(corner):
            check(spec, config, form=form_for(operator, spec, config))


@pytest.mark.parametrize("count", [2, 4, 16, 32])
@pytest.mark.parametrize("spec", [
    Dense(rows=5, inputs=40, outputs=24),
    Dense(rows=5, inputs=40, outputs=24, matrices=2, constant_weights=False, zero_point_in=3,
          zero_point_weights=-5),
    Depthwise(height=9, width=9, channels_in=5, channels_out=5, kernel=7, pad=3),
], ids=["dense", "matmul", "depthwise"])
def test_sums_that_are_longer_than_the_scratchpad_are_right(spec, count):
    check(spec, replace(tiny, uop_bytes=count * MicroOp.size))

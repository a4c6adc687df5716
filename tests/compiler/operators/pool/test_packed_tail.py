"""Averages whose last channels share tiles give what NumPy gives, and are taken where faster."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microtron import compile_op
from microtron.compiler.operators.catalogue import operator_of
from microtron.compiler.operators.kernel import Options, best_kernel
from microtron.compiler.operators.pool.packed_tail import (
    PackedTailForm,
    compile_packed_tail,
    step_sizes,
    ways_of,
)
from microtron.compiler.operators.pool.pool import Kind, Pool, global_average
from microtron.isa.config import base, tiny
from microtron.isa.instructions import Rounding
from microtron.isa.verification.verifier import verify
from microtron.runtime.devices.device import run

from ..operations import CONFIGS, operands_for
from ..references import expected

EQUAL_BLOCKS = {name: each for name, each in CONFIGS.items() if each.block_in == each.block_out}
SQUEEZE = global_average(height=28, width=28, channels=40)


def equals_numpy(pool, config, *, tail_first, seed=0):
    """Each size of steps; says how many there were."""
    operator, body = operator_of(pool), None
    if pool.channels > config.block_out:
        less = replace(pool, channels=pool.channels // config.block_out * config.block_out)
        body = best_kernel(operator.template, [*operator.forms_of(less, config)], Options())
    form = PackedTailForm(spec=pool, config=config, body=None if body is None else body.form,
                          own=operator.forms_of(pool, config)[0].work)
    operands = operands_for(form, seed)
    sizes = step_sizes(pool, config)
    for size in sizes:
        kernel = compile_packed_tail(form, body and body.knobs, size, tail_first=tail_first)
        verify(kernel.program)
        outputs, _ = run(kernel.program, kernel.pack(operands), "functional")
        np.testing.assert_array_equal(kernel.unpack(outputs), expected(pool, operands))
    return len(sizes)


@pytest.mark.parametrize("tail_first", [False, True])
@pytest.mark.parametrize("config", EQUAL_BLOCKS.values(), ids=EQUAL_BLOCKS)
@pytest.mark.parametrize("channels", [1, 2, 5, 9])
def test_packed_tails_equal_numpy(channels, config, tail_first):
    pool = global_average(height=5, width=6, channels=channels, images=3)
    assert equals_numpy(pool, config, tail_first=tail_first)


@settings(max_examples=20)
@given(st.data())
def test_any_packed_tail_equals_numpy(data):
    def draw(low, high):
        return data.draw(st.integers(low, high))

    config = EQUAL_BLOCKS[data.draw(st.sampled_from(sorted(EQUAL_BLOCKS)))]
    height, width = draw(2, 9), draw(1, 9)
    pool = Pool(kind=Kind.AVERAGE, height=height, width=width, kernel=(height, width),
                channels=draw(1, 12), images=draw(1, 3), zero_point_in=draw(-128, 127),
                zero_point_out=draw(-128, 127), scale_in=0.7, scale_out=0.6,
                rounding=data.draw(st.sampled_from(Rounding)))
    if ways_of(pool, config):
        equals_numpy(pool, config, tail_first=bool(draw(0, 1)), seed=draw(0, 99))


def test_pixels_share_tiles_where_two_fit():
    assert ways_of(SQUEEZE, base) == 2
    assert ways_of(replace(SQUEEZE, channels=20), base) == 4
    assert ways_of(replace(SQUEEZE, channels=44), base) == 0        # 12 channels in the last tile
    assert ways_of(replace(SQUEEZE, channels=48), base) == 0
    assert ways_of(replace(SQUEEZE, kernel=(3, 3)), base) == 0
    assert ways_of(replace(SQUEEZE, kind=Kind.MAX), base) == 0


def test_averages_of_40_channels_are_packed():
    kernel = compile_op(SQUEEZE, base)
    assert isinstance(kernel.form, PackedTailForm)
    again = compile_op(SQUEEZE, base, form=kernel.form, knobs=kernel.knobs)
    assert np.array_equal(again.program.code, kernel.program.code)
    serial = compile_op(SQUEEZE, base, hide_latency=False)
    assert serial.knobs == kernel.knobs
    assert not isinstance(compile_op(replace(SQUEEZE, channels=48), tiny).form, PackedTailForm)


def test_sums_that_find_no_room_are_left_to_others():
    """The MAC array sums 13 × 33 pixels as a whole, or not at all."""
    small = replace(base, uop_bytes=2 << 10, inp_bytes=2 << 10, wgt_bytes=16 << 10,
                    acc_bytes=8 << 10, out_bytes=2 << 10)
    verify(compile_op(global_average(height=33, width=13, channels=24), small).program)

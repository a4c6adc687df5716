"""1 × 1 kernels as matrix products give what NumPy gives, and are chosen where they are faster."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microtron import compile_op
from microtron.compiler.operators.catalogue import operator_of
from microtron.compiler.operators.convolution.conv2d import Conv2d
from microtron.compiler.operators.convolution.pointwise import PointwiseForm, forms_of
from microtron.compiler.operators.dense.dense_schedule import TEMPLATE
from microtron.compiler.operators.kernel import Options, best_kernel
from microtron.isa.config import base
from microtron.isa.verification.verifier import verify
from microtron.runtime.devices.device import run
from microtron.sim.simulate import simulate

from ..operations import CONFIGS, operands_for
from ..references import expected

PIXEL = Conv2d(height=28, width=28, channels_in=40, channels_out=240, kernel=(1, 1))


def equals_numpy(spec, config, seed=0):
    work = next(iter(operator_of(spec).forms_of(spec, config))).work
    for form in forms_of(spec, config, work):
        knobs = best_kernel(TEMPLATE, [form.product], Options()).knobs
        kernel = form.build(knobs, hide_latency=True)
        verify(kernel.program)
        operands = operands_for(form, seed)
        outputs, _ = run(kernel.program, kernel.pack(operands), "functional")
        np.testing.assert_array_equal(kernel.unpack(outputs), expected(spec, operands))


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_any_pixels_as_rows_equal_numpy(data):
    def draw(low, high):
        return data.draw(st.integers(low, high))

    wide = data.draw(st.booleans())
    ends = {"wide": True} if wide else {"zero_point_out": draw(-128, 127), "low": draw(-128, 0)}
    spec = Conv2d(height=draw(1, 7), width=draw(1, 7), channels_in=draw(1, 40),
                  channels_out=draw(1, 40), kernel=(1, 1), stride=(draw(1, 3), draw(1, 3)),
                  images=draw(1, 3), zero_point_in=draw(-128, 127), **ends)
    equals_numpy(spec, CONFIGS[data.draw(st.sampled_from(sorted(CONFIGS)))], seed=draw(0, 99))


@pytest.mark.parametrize("change", [{"kernel": (1, 2)}, {"pad": 1}, {"planes": 2}], ids=str)
def test_other_convolutions_are_no_products_of_pixels(change):
    spec = replace(PIXEL, **change)
    assert forms_of(spec, base, next(iter(operator_of(spec).forms_of(spec, base))).work) == []


def test_pixels_are_rows_where_bursts_are_few_and_form_and_knobs_make_the_same_program_again():
    one_burst = replace(base, reads_in_flight=1, writes_in_flight=1)
    found = compile_op(PIXEL, one_burst)
    assert isinstance(found.form, PointwiseForm)
    again = compile_op(PIXEL, one_burst, form=found.form, knobs=found.knobs)
    assert again.program.code.tobytes() == found.program.code.tobytes()
    assert simulate(found.program).cycles < 40_000       # 41,938 with runs of channel blocks

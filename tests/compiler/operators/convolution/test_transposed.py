"""Transposed convolutions give what NumPy gives, phase by phase, without inserted zeros."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from microtron.compiler.compile import compile_op
from microtron.compiler.errors import CompileError
from microtron.compiler.operators.choice import candidates
from microtron.compiler.operators.convolution import all_phases
from microtron.compiler.operators.convolution.transposed import (
    Transposed,
    form_of,
    joint_form_of,
    phases,
    phases_along,
)
from microtron.compiler.operators.kernel import Options, best_kernel
from microtron.isa.config import base, tiny
from microtron.isa.verification.verifier import verify
from microtron.runtime.devices.device import run

from ..operations import CONFIGS, check, check_meaning, operands_for
from ..references import expected

SPECS = {
    "4x4": Transposed(height=5, width=4, channels_in=5, channels_out=6, kernel=(4, 4),
                      pad=(1, 1, 1, 1), zero_point_in=3, zero_point_out=-4),
    "3x3, output padding": Transposed(height=5, width=4, channels_in=5, channels_out=6,
                                      pad=(1, 1, 1, 1), output_padding=(1, 1), zero_point_in=3,
                                      images=3),
    "phases without taps": Transposed(height=3, width=4, channels_in=5, channels_out=6,
                                      kernel=(2, 1), stride=(3, 4), output_padding=(2, 3),
                                      zero_point_in=-99),
    "dilated": Transposed(height=3, width=4, channels_in=5, channels_out=6, kernel=(2, 5),
                          stride=(3, 2), dilation=(3, 3), pad=(3, 0, 0, 1),
                          output_padding=(2, 1), zero_point_in=3),
    "stride 1, cut border": Transposed(height=3, width=4, channels_in=5, channels_out=3,
                                       kernel=(9, 5), stride=(1, 4), pad=(7, 3, 0, 1),
                                       zero_point_in=3),
    "input cut off": Transposed(height=9, width=8, channels_in=4, channels_out=4, kernel=(2, 2),
                                pad=(6, 5, 4, 7), zero_point_in=-5),
    "phases that begin alike": Transposed(height=4, width=5, channels_in=5, channels_out=6,
                                          kernel=(6, 2), stride=(3, 1), pad=(2, 1, 0, 1),
                                          zero_point_in=3),
    "one pixel": Transposed(height=1, width=1, channels_in=1, channels_out=1, kernel=(1, 1),
                            stride=(3, 3), output_padding=(2, 7), zero_point_in=3),
}
DCGAN = Transposed(height=8, width=8, channels_in=64, channels_out=32, kernel=(4, 4),
                   pad=(1, 1, 1, 1), zero_point_in=-11)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_a_transposed_convolution_equals_numpy(spec, config):
    check(spec, config)


@settings(max_examples=15)
@given(st.data())
def test_any_shape_compiles_and_equals_numpy(data):
    def draw(low, high):
        return data.draw(st.integers(low, high))

    sizes = {"height": draw(1, 6), "width": draw(1, 6), "channels_in": draw(1, 9),
             "channels_out": draw(1, 9), "images": draw(1, 3)}
    kernel, stride, dilation = ((draw(1, 5), draw(1, 5)), (draw(1, 3), draw(1, 3)),
                                (draw(1, 3), draw(1, 3)))
    pad, more = (draw(0, 3), draw(0, 3), draw(0, 3), draw(0, 3)), (draw(0, 3), draw(0, 3))
    for axis, size in enumerate((sizes["height"], sizes["width"])):
        assume((size - 1) * stride[axis] + (kernel[axis] - 1) * dilation[axis] + more[axis]
               >= pad[2 * axis] + pad[2 * axis + 1])
    spec = Transposed(**sizes, kernel=kernel, stride=stride, dilation=dilation, pad=pad,
                      output_padding=more, zero_point_in=draw(-128, 127),
                      zero_point_out=draw(-128, 127))
    check(spec, CONFIGS[data.draw(st.sampled_from(sorted(CONFIGS)))], seed=draw(0, 99))


def test_phases_share_the_taps_among_them():
    for spec in SPECS.values():
        taps = [tap for phase in phases_along(spec, 0) for tap in phase.taps]
        assert len(taps) == len(set(taps))
    assert [phase.taps for phase in phases_along(SPECS["4x4"], 0)] == [(3, 1), (2, 0)]


def test_no_product_with_an_inserted_zero_is_computed():
    assert sum(each.spec.macs for each in phases(DCGAN)) == DCGAN.macs


def test_a_border_that_leaves_nothing_is_refused():
    with pytest.raises(CompileError, match="leaves nothing of the output"):
        Transposed(height=2, width=2, channels_in=1, channels_out=1, pad=(3, 3, 0, 0))


def test_knobs_of_all_phases_cannot_be_given_at_once():
    knobs = compile_op(SPECS["3x3, output padding"], tiny).knobs
    assert len(knobs) == 4
    with pytest.raises(CompileError, match="transposed: every phase has knobs of its own"):
        compile_op(SPECS["4x4"], tiny, knobs=knobs[0])


EVEN = {
    "2x2": Transposed(height=5, width=4, channels_in=5, channels_out=6, kernel=(2, 2), images=3,
                      zero_point_in=-7),
    "4x4": SPECS["4x4"],
    "6x2, stride 3x1": Transposed(height=4, width=5, channels_in=9, channels_out=6, kernel=(6, 2),
                                  stride=(3, 1), pad=(0, 1, 0, 1), zero_point_in=3),
    "rows cut off": Transposed(height=9, width=5, channels_in=4, channels_out=5, kernel=(4, 2),
                               stride=(2, 2), pad=(6, 5, 0, 0), zero_point_in=-5)}


@pytest.mark.parametrize("config", [tiny, CONFIGS["batch 2"]], ids=["tiny", "batch 2"])
@pytest.mark.parametrize("spec", EVEN.values(), ids=EVEN)
def test_phases_with_as_many_taps_are_one_expression_with_any_knobs(spec, config):
    form = form_of(spec, config)
    joint = joint_form_of(form)
    check_meaning(spec, joint)
    every = candidates(all_phases.TEMPLATE, joint)
    given = operands_for(form)
    for knobs in every[::max(1, len(every) // 4)]:
        kernel = best_kernel(all_phases.TEMPLATE, [joint], Options(knobs=knobs))
        verify(kernel.program)
        outputs, _ = run(kernel.program, kernel.pack(given), "functional")
        np.testing.assert_array_equal(kernel.unpack(outputs), expected(spec, given), str(knobs))


@pytest.mark.parametrize("name", ["3x3, output padding", "phases without taps", "dilated",
                                  "phases that begin alike"])
def test_phases_that_differ_are_convolutions_of_their_own(name):
    assert joint_form_of(form_of(SPECS[name], tiny)) is None


def test_the_input_of_all_phases_is_loaded_once():
    spec = Transposed(height=16, width=16, channels_in=64, channels_out=64, kernel=(2, 2))
    kernel, (report,) = check(spec, base, "cycle")
    assert isinstance(kernel.knobs, all_phases.Knobs)
    assert report.bytes <= 1.1 * kernel.form.work.bytes


def test_the_array_is_busy_most_of_the_time():
    _, (report,) = check(DCGAN, base, "cycle")
    assert DCGAN.macs / base.macs_per_cycle / report.cycles >= 0.5


def test_it_runs_on_the_cycle_device_as_well():
    check(SPECS["3x3, output padding"], tiny, "cycle")

"""Programs with cut ends are safe, compute the same, and are taken where they are faster."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import microtron
from microtron import Conv2d, Grouped
from microtron.compiler.compile import compile_op
from microtron.compiler.operators.dense.dense import batch_matmul
from microtron.compiler.operators.ends.cut_ends import FIRST, LAST, WHOLE, best_ends, cut_ends
from microtron.compiler.operators.ends.cut_first import cut_first
from microtron.compiler.operators.ends.cut_last import cut_last
from microtron.isa.config import base, tiny
from microtron.isa.instructions import Engine
from microtron.isa.program import engines_of
from microtron.isa.verification.verifier import verify
from microtron.runtime.devices.device import run

from ...examples import examples
from .operations import CONFIGS, operands_for
from .references import expected
from .shapes import ANY

MATMUL = batch_matmul(rows=50, inputs=64, outputs=100, matrices=3)
VIT = batch_matmul(rows=197, inputs=64, outputs=197, matrices=3)
LAYERS = {
    "convolution": Conv2d(height=12, width=11, channels_in=20, channels_out=24, pad=1,
                          zero_point_in=9),
    "1 × 1": Conv2d(height=9, width=10, channels_in=24, channels_out=40, kernel=(1, 1)),
    "groups": Grouped(height=8, width=9, channels_in=24, channels_out=24, groups=2, pad=1),
    "matmul": MATMUL,
}


def cuts(program):
    """The program cut in every way."""
    for data, weights in FIRST:
        yield cut_first(program, data, weights)
    for count in LAST:
        yield (last := cut_last(program, count))
        if last is not None:
            yield cut_first(last, 2, 1)


def check_cuts(spec, config, seed=0, **options):
    """How many ways of cutting there were; all must be right."""
    kernel = compile_op(spec, config, **options)
    given_operands = operands_for(kernel.form, seed)
    packed, right, found = kernel.pack(given_operands), expected(spec, given_operands), 0
    for program in cuts(kernel.program):
        if program is not None:
            found += 1
            verify(program)
            outputs, _ = run(program, packed, "functional")
            np.testing.assert_array_equal(kernel.unpack(outputs), right)
    return found


@pytest.mark.parametrize("config", [tiny, base, CONFIGS["windows, more in than out, batch 2"]],
                         ids=("tiny", "base", "batch 2"))
@pytest.mark.parametrize("spec", LAYERS.values(), ids=LAYERS)
def test_cut_programs_equal_numpy(spec, config):
    assert check_cuts(spec, config) or spec is MATMUL


@pytest.mark.parametrize("operator", ANY)
@given(data=st.data(), config=st.sampled_from(sorted(CONFIGS)), seed=st.integers(0, 99))
@examples(5)
def test_any_cut_program_of_any_operator_equals_numpy(operator, data, config, seed):
    config = CONFIGS[config]
    if "separable" in operator and config.block_in != config.block_out:
        config = tiny
    check_cuts(data.draw(ANY[operator]), config, seed)


def test_the_first_product_begins_sooner_and_the_last_store_ends_sooner():
    """Half of the time before the first product is its loads."""
    layer = Conv2d(height=56, width=56, channels_in=64, channels_out=128, kernel=(1, 1))
    plain = compile_op(layer, base).program

    def ends(program):
        report = microtron.simulate(program)
        engines, timeline = engines_of(program), report.timeline
        first = int(timeline.start[engines == Engine.GEMM].min())
        return first, report.cycles - int(timeline.end[engines == Engine.GEMM].max())

    begun, ended = ends(plain)
    assert ends(cut_first(plain, 4, 1))[0] < begun
    assert ends(cut_last(plain, 4))[1] < ended


def test_ends_are_cut_only_where_that_is_faster():
    program = compile_op(VIT, base).program

    def cost(program):
        return microtron.simulate(program).cycles

    assert cost(cut_ends(program, best_ends(program, cost))) < cost(program)
    assert best_ends(program, lambda program: len(program.code)) == WHOLE


def test_operators_that_stand_alone_have_cut_ends_and_their_form_says_how():
    alone = microtron.compile_op(VIT, base)
    plain = compile_op(VIT, base, form=replace(alone.form, ends=WHOLE), knobs=alone.knobs)
    assert microtron.simulate(alone.program).cycles < microtron.simulate(plain.program).cycles
    again = compile_op(VIT, base, form=alone.form, knobs=alone.knobs)
    assert np.array_equal(again.program.code, alone.program.code)

"""Both emitters, compiled code and objects, give the same streams, and lowering at once the same
nests as one pass after the other: any operator, accelerator and schedule."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from microtron.compiler.accelerator import lower_schedule
from microtron.compiler.accelerator.emission import emit as module
from microtron.compiler.accelerator.emission.compiled.build import emit_words
from microtron.compiler.accelerator.emission.emit import Emitter
from microtron.compiler.accelerator.selection.intrinsic import collect_intrinsics
from microtron.compiler.compile import compile_op, schedules_of
from microtron.compiler.errors import CompileError
from microtron.compiler.nest.listing import listing
from microtron.compiler.operators.convolution import conv2d_schedule
from microtron.compiler.operators.convolution.conv2d import Conv2d
from microtron.compiler.operators.dense import dense_schedule
from microtron.compiler.operators.dense.dense import Dense
from microtron.compiler.operators.depthwise.depthwise import Depthwise
from microtron.isa.config import PRESETS, tiny
from microtron.isa.instructions import Buffer

from .operations import CONFIGS, check
from .shapes import ANY

QUICK, LONG = 2, 250        # schedules of each operator in `make test` and in `make soak`
ACCELERATORS = {
    **CONFIGS, "small": PRESETS["small"],
    "few micro-ops": replace(tiny, uop_bytes=64),
}


class Comparison:
    """Takes the place of `emit_words`: what it emits is emitted a second time, as objects."""

    def __init__(self):
        self.emitted = Counter()

    def __call__(self, placed, most):
        found = emit_words(placed, most)
        self.emitted["words" if found is not None else "objects"] += 1
        if found is not None:
            code, micro_ops = Emitter(placed).emit_objects()
            assert found[0].tobytes() == code.tobytes()
            assert found[1].tolist() == list(map(list, micro_ops))
        return found


LOWER = lower_schedule.lower_to_intrinsics


def lower_twice(plan, config, intrinsics=()):
    """Takes the place of `lower_to_intrinsics`."""
    nest = LOWER(plan, config, intrinsics)
    slowly = lower_schedule.lower_step_by_step(plan, collect_intrinsics(config, intrinsics))
    assert listing(nest) == listing(slowly)
    return nest


@pytest.fixture(scope="module")
def compared():
    with pytest.MonkeyPatch.context() as patch:
        comparison = Comparison()
        patch.setattr(module, "emit_words", comparison)
        patch.setattr(lower_schedule, "lower_to_intrinsics", lower_twice)
        yield comparison


def compile_any(data, operator):
    """An operator of any shape with any knobs, on any accelerator."""
    spec = data.draw(ANY[operator])
    config = ACCELERATORS[data.draw(st.sampled_from(sorted(ACCELERATORS)))]
    try:
        found = [] if operator in ("transposed", "upsample") else list(schedules_of(spec, config))
        form, knobs = data.draw(st.sampled_from(found)) if found else (None, None)
        compile_op(spec, config, form=form, knobs=knobs)
    except CompileError:
        pass                    # both refuse, or nothing fits


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("operator", [Conv2d, Depthwise])
def test_compiled_code_emits_whatever_the_blocks_are(compared, operator, name):
    before = Counter(compared.emitted)
    compile_op(operator(height=5, width=5, channels_in=9, channels_out=9, pad=1), CONFIGS[name])
    assert compared.emitted - before == {"words": 1}


@given(rows=st.integers(2, 9), depth=st.integers(4, 9), tiles=st.sampled_from([4, 8]),
       seed=st.integers(0, 99), stays=st.booleans())
@settings(max_examples=8, deadline=None)
def test_streams_are_the_same_and_right_where_a_part_of_an_operand_stays(
        compared, rows, depth, tiles, seed, stays):
    few = replace(tiny, wgt_bytes=tiles * tiny.tile_bytes(Buffer.WGT),
                  inp_bytes=tiles * tiny.tile_bytes(Buffer.INP))
    size = {"channels_in": 4 * depth, "channels_out": 8}
    for spec, knobs in (
            (Dense(rows=rows, inputs=4 * depth, outputs=8),
             dense_schedule.Knobs(rows=1, blocks=1, depth=1, data_stays=stays,
                                  single_sums=True)),
            (Conv2d(height=rows, width=3, kernel=(1, 1), **size),
             conv2d_schedule.Knobs(blocks=1, rows=1, columns=1, depth=1))):
        before = Counter(compared.emitted)
        check(spec, few, knobs=knobs, seed=seed)
        assert compared.emitted - before == {"words": 1}


@pytest.mark.parametrize("operator", ANY)
@given(data=st.data())
@settings(max_examples=QUICK, suppress_health_check=list(HealthCheck), deadline=None)
def test_streams_are_the_same(compared, operator, data):
    compile_any(data, operator)


@pytest.mark.soak
@pytest.mark.parametrize("operator", ANY)
@given(data=st.data())
@settings(max_examples=LONG, suppress_health_check=list(HealthCheck), deadline=None)
def test_many_streams_are_the_same(compared, operator, data):
    compile_any(data, operator)

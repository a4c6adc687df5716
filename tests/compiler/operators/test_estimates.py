"""Estimates choose schedules, so they must follow what the simulator says, whatever limits."""

from dataclasses import replace

import pytest

import microtron
from microtron.compiler.compile import compile_op
from microtron.compiler.operators.catalogue import OPERATORS, operator_of
from microtron.compiler.operators.choice import rank_candidates
from microtron.compiler.operators.convolution.conv2d import Conv2d
from microtron.compiler.operators.convolution.residual import ResidualConv2d
from microtron.compiler.operators.convolution.transposed import Transposed
from microtron.compiler.operators.dense.dense import Dense
from microtron.compiler.operators.depthwise.conv_separable import ConvSeparable
from microtron.compiler.operators.depthwise.depthwise import Depthwise
from microtron.compiler.operators.depthwise.grouped import Grouped
from microtron.compiler.operators.depthwise.separable import Separable
from microtron.compiler.operators.depthwise.upsample import Upsample
from microtron.compiler.operators.elementwise.broadcast import Broadcast
from microtron.compiler.operators.elementwise.elementwise import Elementwise
from microtron.compiler.operators.pool.conv_global_average import AveragedConv2d
from microtron.compiler.operators.pool.pool import Pool
from microtron.isa.config import small
from microtron.isa.memory_timing import MemoryTiming

IMAGE = {"height": 28, "width": 28}
LAYERS = {
    "conv2d": Conv2d(**IMAGE, channels_in=32, channels_out=32, pad=1),
    "first layer": Conv2d(**IMAGE, channels_in=3, channels_out=16, pad=1),
    "every other pixel": Conv2d(**IMAGE, channels_in=32, channels_out=32, kernel=1, stride=2),
    "residual": ResidualConv2d(**IMAGE, channels_in=32, channels_out=32, pad=1),
    "averaged": AveragedConv2d(height=14, width=14, channels_in=64, channels_out=64, kernel=1),
    "separable": Separable(height=14, width=14, channels_in=64, channels_out=64, pad=1),
    "conv_separable": ConvSeparable(height=32, width=32, channels_in=3, channels_out=8, stride=2,
                                    pad=1, window_pad=1),
    "grouped": Grouped(height=14, width=14, channels_in=32, channels_out=32, groups=4, pad=1),
    "depthwise": Depthwise(**IMAGE, channels_in=32, channels_out=32, pad=1),
    "dense": Dense(rows=64, inputs=128, outputs=96),
    "one row": Dense(rows=1, inputs=512, outputs=256),
    "max pool": Pool(kind="max", **IMAGE, channels=32, kernel=2, stride=2),
    "overlapping max pool": Pool(kind="max", **IMAGE, channels=32, kernel=3, pad=1),
    "average pool": Pool(kind="average", **IMAGE, channels=16, kernel=3, pad=1),
    "average pool, even": Pool(kind="average", **IMAGE, channels=16, kernel=3, pad=1,
                               rounding="even"),
    "global average": Pool(kind="average", height=7, width=7, channels=64, kernel=7),
    "add": Elementwise(operation="add", **IMAGE, channels=32),
    "mul": Elementwise(operation="mul", **IMAGE, channels=32),
    "rescale": Elementwise(operation="rescale", **IMAGE, channels=32),
    "gate": Broadcast(operation="mul", **IMAGE, channels=32),
    "add to channels": Broadcast(operation="add", **IMAGE, channels=32),
}
LEAST, MOST = 0.6, 1.5      # estimate / cycles
TWO_LANES = replace(small, vector_cycles=4)


def test_every_operator_with_estimates_of_its_own_is_tried():
    assert {type(spec) for spec in LAYERS.values()} == set(OPERATORS) - {Transposed, Upsample}


@pytest.mark.parametrize(("beat", "config"), [(1, small), (4, small), (1, TWO_LANES)],
                         ids=["usual", "slow memory", "slow ALU"])
@pytest.mark.parametrize("name", LAYERS)
def test_an_estimate_is_not_far_from_the_simulator(name, beat, config):
    spec, memory = LAYERS[name], MemoryTiming(cycles_per_beat=beat)
    operator = operator_of(spec)
    ordered = rank_candidates(operator.template, operator.forms(spec, config), memory)
    for candidate in (ordered[0], ordered[len(ordered) // 2]):
        program = compile_op(spec, config, form=candidate.form, knobs=candidate.knobs).program
        cycles = microtron.simulate(program, memory=memory).cycles
        assert LEAST < candidate.estimate / candidate.form.handicap / cycles < MOST


@pytest.mark.parametrize("spec", [
    Conv2d(height=14, width=9, channels_in=8, channels_out=8, pad=1),
    Conv2d(height=15, width=16, channels_in=8, channels_out=8, stride=2, pad=(1, 1, 0, 1)),
    Conv2d(height=15, width=15, channels_in=8, channels_out=8, kernel=1, stride=2),
    Conv2d(height=12, width=12, channels_in=8, channels_out=8, kernel=5, dilation=2, pad=4),
])
@pytest.mark.parametrize("parts", [1, 2, 3])
@pytest.mark.parametrize("axis", [0, 1])
def test_borders_are_not_loaded(spec, parts, axis):
    """All rows or columns that parts of the output see, counted one by one."""
    outputs, size = spec.out_shape[axis], (spec.height, spec.width)[axis]
    before, seen = spec.pad[2 * axis], 0
    for part in range(parts):
        first, last = outputs * part / parts, outputs * (part + 1) / parts - 1
        begin = first * spec.stride[axis] - before
        end = last * spec.stride[axis] + spec.reach(axis) - before
        seen += min(size, end) - max(0, begin)
    assert spec.loaded(axis, parts) * parts == pytest.approx(seen)

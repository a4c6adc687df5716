"""Requantize: against exact fractions, and corners by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microtron.isa.config import tiny
from microtron.isa.instructions import Requantize, RequantizeFlags
from microtron.sim.functional.simulator import Functional

from .support import CONFIGS, configs, fill, program, same_as_reference, seeds

triples = st.tuples(*[st.integers(-2, 2)] * 3)
indices = st.integers(14, 18)
int8 = st.integers(-128, 127)
WHERE = (RequantizeFlags(0), RequantizeFlags.ACC, RequantizeFlags.ACC | RequantizeFlags.WIDE)
HOW = (RequantizeFlags(0), RequantizeFlags.EVEN, RequantizeFlags.AWAY)
HALF = 1 << 30              # with a shift of 31: a half


@given(config=configs, seed=seeds, where=st.sampled_from(WHERE), how=st.sampled_from(HOW),
       loops=st.tuples(*[st.integers(0, 3)] * 3), dst=indices, src=indices, params=indices,
       params_stride=st.integers(0, 4), dst_stride=triples, src_stride=triples, zero_point=int8,
       clip=st.tuples(int8, int8))
def test_equals_the_reference(config, seed, where, how, clip, **fields):
    same_as_reference(config, Requantize(flags=where | how, low=min(clip), high=max(clip),
                                         **fields), seed)


def pads_after(requantize, value, parameters, *, config=tiny):
    """Runs on acc[0] = value with bias, multiplier and shift in acc[4], acc[5] and acc[6]."""
    machine = Functional(program(config, requantize))
    machine.scratchpads.acc[0] = value
    for tile, each in enumerate(parameters):
        machine.scratchpads.acc[4 + tile] = each
    machine.execute(0)
    return machine.scratchpads


@pytest.mark.parametrize(("how", "value", "result"), [
    (RequantizeFlags(0), 3, 2), (RequantizeFlags(0), -3, -1), (RequantizeFlags(0), 5, 3),
    (RequantizeFlags.EVEN, 3, 2), (RequantizeFlags.EVEN, 5, 2), (RequantizeFlags.EVEN, -3, -2),
    (RequantizeFlags.AWAY, 3, 2), (RequantizeFlags.AWAY, 5, 3), (RequantizeFlags.AWAY, -3, -2)])
def test_a_half_is_rounded_as_the_flags_say(how, value, result):
    requantize = Requantize(flags=how, params=4)
    assert (pads_after(requantize, value, (0, HALF, 31)).out[0] == result).all()


def test_bias_multiplier_and_shift_are_of_each_lane_and_batch_row():
    config = CONFIGS["batch"]
    lanes = np.arange(8).reshape(2, 4)
    pads = pads_after(Requantize(params=4), 10, (lanes, HALF + 0 * lanes, 31 - lanes % 2),
                      config=config)
    # Odd lanes have a shift of 30: they are not halved.
    assert pads.out[0].tolist() == [[5, 11, 6, 13], [7, 15, 8, 17]]


def test_the_bias_wraps_before_scaling():
    pads = pads_after(Requantize(params=4), 2**31 - 1, (1, 1, 24))
    assert (pads.out[0] == -128).all()


def test_zero_point_then_clamp():
    requantize = Requantize(params=4, zero_point=-20, low=-20, high=100)
    for value, result in ((-3, -20), (0, -20), (1, -19), (120, 100), (200, 100), (2**31 - 1, 100)):
        assert (pads_after(requantize, value, (0, 1, 0)).out[0] == result).all()


def test_scaling_saturates_before_the_zero_point():
    requantize = Requantize(params=4, zero_point=-128)
    assert (pads_after(requantize, 2**31 - 1, (0, 2**31 - 1, 0)).out[0] == 127).all()


def test_acc_without_wide_keeps_zero_point_and_clamp():
    requantize = Requantize(flags=RequantizeFlags.ACC, dst=9, params=4, zero_point=3, high=50)
    pads = pads_after(requantize, 1000, (0, 1, 0))
    assert (pads.acc[9] == 50).all()
    assert (pads.out == 0).all()
    assert (pads_after(requantize, 4, (0, 1, 0)).acc[9] == 7).all()


def test_wide_keeps_32_bits_without_zero_point_and_clamp():
    requantize = Requantize(flags=RequantizeFlags.ACC | RequantizeFlags.WIDE, dst=9, params=4,
                            zero_point=3, low=0, high=50)
    assert (pads_after(requantize, -1000, (0, 5, 0)).acc[9] == -5000).all()
    assert (pads_after(requantize, 2**31 - 1, (0, 2**31 - 1, 0)).acc[9] == 2**31 - 1).all()


def test_parameters_move_with_the_outer_loop_only():
    requantize = Requantize(src=0, params=4, params_stride=3, loops=(2, 2, 2), dst_stride=(4, 2, 1))
    pads = pads_after(requantize, 0, (1, 1, 0, 2, 1, 0))
    assert pads.out[:8, 0, 0].tolist() == [1] * 4 + [2] * 4


@pytest.mark.parametrize(("loops", "stride", "second"), [
    ((1, 1, 2), (0, 0, 6), 8),      # in the same outer iteration: not yet
    ((2, 1, 1), (6, 0, 0), 15),     # in the next
])
def test_parameters_that_the_instruction_changes_count_from_the_next_outer_iteration(
        loops, stride, second):
    # The first step writes 7 + 1 into the bias tile.
    requantize = Requantize(flags=RequantizeFlags.ACC, dst=4, src=0, params=4, loops=loops,
                            dst_stride=stride)
    assert pads_after(requantize, 7, (1, 1, 0)).acc[[4, 10], 0, 0].tolist() == [8, second]


def test_a_result_may_replace_its_source():
    requantize = Requantize(flags=RequantizeFlags.ACC, dst=0, src=0, params=4)
    assert (pads_after(requantize, 7, (1, 2, 0)).acc[0] == 16).all()


@pytest.mark.parametrize("loops", [(0, 1, 1), (1, 0, 1), (1, 1, 0)])
def test_a_loop_without_iterations_does_nothing_wherever_it_points(loops):
    machine = Functional(program(tiny, Requantize(dst=65535, src=65535, params=65535,
                                                  loops=loops)))
    fill(machine, 0)
    before = machine.scratchpads.acc.copy(), machine.scratchpads.out.copy()
    machine.execute(0)
    assert (machine.scratchpads.acc == before[0]).all()
    assert (machine.scratchpads.out == before[1]).all()

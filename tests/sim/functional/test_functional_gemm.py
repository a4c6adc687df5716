"""GEMM: random shapes against the reference, and every corner by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microtron.isa.config import Config, tiny
from microtron.isa.instructions import Gemm, GemmFlags
from microtron.sim.functional.simulator import Functional

from .support import CONFIGS, SMALL, configs, program, same_as_reference, seeds

MIDDLE = 14                         # strides and loops below reach 12 tiles to either side
triples = st.tuples(*[st.integers(-2, 2)] * 3)
indices = st.integers(MIDDLE - 2, MIDDLE + 2)
FIRSTS = (GemmFlags.FIRST_UOP, GemmFlags.FIRST_INNER, GemmFlags.FIRST_MIDDLE,
          GemmFlags.FIRST_OUTER)


@st.composite
def gemm_flags(draw):
    flags = draw(st.sampled_from((GemmFlags(0), GemmFlags.DEPTHWISE)))
    if draw(st.booleans()):
        flags |= GemmFlags.START
        for each in (GemmFlags.BIAS, *FIRSTS):
            flags |= each if draw(st.booleans()) else GemmFlags(0)
    return flags


@given(config=configs, seed=seeds, flags=gemm_flags(), uop=st.integers(0, 3),
       uops=st.lists(st.tuples(indices, indices, indices, indices), max_size=4),
       loops=st.tuples(*[st.integers(0, 3)] * 3), dst=triples, src=triples, wgt=triples)
def test_equals_the_reference(config, seed, flags, uop, uops, loops, dst, src, wgt):
    gemm = Gemm(flags=flags, uop=uop, count=len(uops), loops=loops, dst_stride=dst,
                src_stride=src, wgt_stride=wgt)
    same_as_reference(config, gemm, seed, [(0, 0, 0, 0)] * uop + uops)


def machine_for(config, gemm, uops):
    """A machine with ones everywhere in inp and wgt and 100 × tile in acc."""
    machine = Functional(program(config, gemm))
    machine.scratchpads.uop[:len(uops)] = uops
    machine.scratchpads.inp[:] = 1
    machine.scratchpads.wgt[:] = 1
    machine.scratchpads.acc[:] = 100 * np.arange(len(machine.scratchpads.acc))[:, None, None]
    return machine


def acc_after(gemm, *uops, config=tiny):
    machine = machine_for(config, gemm, uops)
    machine.execute(0)
    return machine.scratchpads.acc


def test_adds_to_what_the_accumulator_holds():
    assert (acc_after(Gemm(), (3, 0, 0, 0))[3] == 300 + 4).all()


def test_micro_ops_are_innermost():
    # Each starts a sum in tile 0, so only the very last product of all stays.
    gemm = Gemm(flags=GemmFlags.START, count=2, loops=(1, 1, 2), src_stride=(0, 0, 2))
    machine = machine_for(tiny, gemm, [(0, 0, 0, 0), (0, 1, 0, 0)])
    machine.scratchpads.inp[:4] = np.array([1, 2, 3, 4])[:, None, None]
    machine.execute(0)
    assert (machine.scratchpads.acc[0] == 4 * 4).all()      # inp[3]: second micro-op, last inner


@pytest.mark.parametrize("axis", range(3))
def test_a_loop_without_iterations_does_nothing(axis):
    loops = [2, 2, 2]
    loops[axis] = 0
    gemm = Gemm(flags=GemmFlags.START, loops=tuple(loops), dst_stride=(-9, -9, -9))
    assert (acc_after(gemm, (0, 0, 0, 0))[0] == 0).all()
    assert (acc_after(gemm, (7, 0, 0, 0))[7] == 700).all()


def test_an_empty_sequence_does_nothing():
    assert (acc_after(Gemm(flags=GemmFlags.START, count=0), (7, 0, 0, 0))[7] == 700).all()


def test_an_empty_sequence_may_stand_anywhere():
    assert (acc_after(Gemm(uop=65535, count=0), (7, 0, 0, 0))[7] == 700).all()


@pytest.mark.parametrize(("firsts", "sums"), [
    (GemmFlags(0), 4),                                      # every product starts anew
    (GemmFlags.FIRST_UOP, 2 * 4),
    (GemmFlags.FIRST_INNER, 4 + 2 * 2 * 4),                 # both micro-ops start at inner 0
    (GemmFlags.FIRST_UOP | GemmFlags.FIRST_INNER, 3 * 2 * 4),
    (GemmFlags.FIRST_UOP | GemmFlags.FIRST_INNER | GemmFlags.FIRST_MIDDLE, 5 * 3 * 2 * 4),
    (GemmFlags.FIRST_UOP | GemmFlags.FIRST_INNER | GemmFlags.FIRST_MIDDLE
     | GemmFlags.FIRST_OUTER, 7 * 5 * 3 * 2 * 4),
    (GemmFlags.FIRST_OUTER, 6 * 5 * 3 * 2 * 4 + 4),         # the whole first pass keeps starting
])
def test_a_sum_starts_where_all_first_counters_are_zero(firsts, sums):
    gemm = Gemm(flags=GemmFlags.START | firsts, count=2, loops=(7, 5, 3))
    assert (acc_after(gemm, (3, 0, 0, 0), (3, 0, 0, 0))[3] == sums).all()


def test_a_sum_starts_from_the_bias_of_its_micro_op():
    gemm = Gemm(flags=GemmFlags.START | GemmFlags.BIAS, count=2)
    acc = acc_after(gemm, (3, 0, 0, 8), (4, 0, 0, 9))
    assert (acc[3] == 804).all()
    assert (acc[4] == 904).all()


def test_tile_zero_is_a_bias_like_any_other():
    machine = machine_for(tiny, Gemm(flags=GemmFlags.START | GemmFlags.BIAS), [(3, 0, 0, 0)])
    machine.scratchpads.acc[0] = 70
    machine.execute(0)
    assert (machine.scratchpads.acc[3] == 74).all()


def test_the_bias_does_not_walk_with_the_loops():
    gemm = Gemm(flags=GemmFlags.START | GemmFlags.BIAS, loops=(1, 1, 3), dst_stride=(0, 0, 1))
    assert (acc_after(gemm, (3, 0, 0, 8))[3:6] == 804).all()


def test_a_bias_that_the_instruction_has_changed_is_read_as_changed():
    # acc[8] is started first, from acc[0]; acc[9] then starts from the new acc[8].
    gemm = Gemm(flags=GemmFlags.START | GemmFlags.BIAS, count=2)
    acc = acc_after(gemm, (8, 0, 0, 0), (9, 0, 0, 8))
    assert (acc[9] == 8).all()


def test_a_sum_may_start_from_the_tile_it_goes_to():
    gemm = Gemm(flags=GemmFlags.START | GemmFlags.BIAS)
    assert (acc_after(gemm, (8, 0, 0, 8))[8] == 804).all()


def test_negative_strides_walk_backwards():
    gemm = Gemm(flags=GemmFlags.START, loops=(1, 1, 3), dst_stride=(0, 0, -2))
    acc = acc_after(gemm, (9, 0, 0, 0))
    assert (acc[[9, 7, 5]] == 4).all()
    assert (acc[[8, 6, 3]] == np.array([800, 600, 300])[:, None, None]).all()


def test_sums_wrap_at_32_bits():
    machine = machine_for(tiny, Gemm(), [(0, 0, 0, 0)])
    machine.scratchpads.acc[0] = 2**31 - 1
    machine.execute(0)
    assert (machine.scratchpads.acc[0] == -2**31 + 3).all()


def test_depthwise_multiplies_lane_by_lane_with_one_row_of_weights():
    config = CONFIGS["batch"]
    gemm = Gemm(flags=GemmFlags.START | GemmFlags.DEPTHWISE)
    machine = machine_for(config, gemm, [(0, 5, 2 * config.block_out + 3, 0)])
    machine.scratchpads.inp[5] = [[1, 2, 3, 4], [5, 6, 7, 8]]
    machine.scratchpads.wgt[2, 3] = [10, -10, 0, 1]
    machine.execute(0)
    assert machine.scratchpads.acc[0].tolist() == [[10, -20, 0, 4], [50, -60, 0, 8]]


@pytest.mark.parametrize("group", range(4))
def test_a_depthwise_product_writes_one_group_of_lanes(group):
    config = Config(block_in=4, block_out=16, **SMALL)
    gemm = Gemm(flags=GemmFlags.START | GemmFlags.BIAS | GemmFlags.DEPTHWISE)
    acc = acc_after(gemm, (4 * 3 + group, 0, 0, 8), config=config)
    assert acc[3].tolist() == [[801 if lane // 4 == group else 300 for lane in range(16)]]


@pytest.mark.parametrize("group", range(4))
def test_a_depthwise_product_reads_one_group_of_lanes(group):
    config = Config(block_in=16, block_out=4, **SMALL)
    machine = machine_for(config, Gemm(flags=GemmFlags.START | GemmFlags.DEPTHWISE),
                          [(3, 4 * 5 + group, 0, 0)])
    machine.scratchpads.inp[5, 0] = np.arange(16)
    machine.scratchpads.wgt[0, 0, :4] = 10
    machine.execute(0)
    assert machine.scratchpads.acc[3, 0].tolist() == [10 * (4 * group + lane) for lane in range(4)]


def test_depthwise_strides_count_rows_of_weights():
    gemm = Gemm(flags=GemmFlags.START | GemmFlags.DEPTHWISE, loops=(1, 1, 8),
                dst_stride=(0, 0, 1), wgt_stride=(0, 0, 1))
    machine = machine_for(tiny, gemm, [(0, 0, 2, 0)])
    machine.scratchpads.wgt[:3] = np.arange(12).reshape(3, 4)[:, :, None]
    machine.execute(0)
    assert machine.scratchpads.acc[:8, 0, 0].tolist() == list(range(2, 10))


def test_batch_rows_are_separate():
    config = CONFIGS["batch"]
    machine = machine_for(config, Gemm(flags=GemmFlags.START), [(0, 0, 0, 0)])
    machine.scratchpads.inp[0] = [[1, 1, 1, 1], [-128, 127, 0, 2]]
    machine.scratchpads.wgt[0] = [[1, 0, 0, 0], [0, 1, 0, 0], [-128, -128, 1, 1], [0, 0, 0, 3]]
    machine.execute(0)
    assert machine.scratchpads.acc[0].tolist() == [[1, 1, -254, 3], [-128, 127, 130, 6]]

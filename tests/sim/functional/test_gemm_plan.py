"""GEMM in another order: taken where it may be, with the same sums; and not where it may not."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microtron.isa.instructions import GemmFlags
from microtron.sim.compiled.interruptible import NEVER
from microtron.sim.functional import datapath, gemm_plan

SHAPES = [(1, 4, 4), (2, 4, 16), (1, 8, 8), (4, 8, 4), (2, 16, 8), (1, 16, 16), (1, 16, 64),
          (1, 32, 32), (2, 64, 16)]                 # batch, block_in, block_out
FIRST = (GemmFlags.FIRST_OUTER, GemmFlags.FIRST_MIDDLE, GemmFlags.FIRST_INNER)
ACC_TILES, INP_TILES, WGT_TILES = 512, 64, 16
MIDDLE = 256                                        # loops reach 225 tiles to either side
BIAS_TILE = ACC_TILES - 1                           # nothing is written there
NOTHING = (0, 0, 0)


def pads(shape, seed):
    (batch, block_in, block_out), rng = shape, np.random.default_rng(seed)
    acc = rng.choice([-2**31, 2**31 - 1, 0, 12345], (ACC_TILES, batch, block_out)).astype(np.int32)
    inp = rng.choice([-128, -1, 0, 3, 127], (INP_TILES, batch, block_in)).astype(np.int8)
    wgt = rng.choice([-128, -7, 0, 1, 127], (WGT_TILES, block_out, block_in)).astype(np.int8)
    return acc, inp, wgt


def by_slots(calls):
    """The other way to do a gemm, which notes that it was gone."""
    slots = datapath.gemm_by_slots

    def noting(*arguments):
        calls.append(arguments)
        slots(*arguments)
    return noting


def is_planned(shape, seed, uops, *instruction):
    """Whether a gemm goes through a plan. Either way its sums must be right."""
    acc, inp, wgt = pads(shape, seed)
    expected, uops = acc.copy(), np.array(uops, np.uint16).reshape(-1, 4)
    datapath.gemm_by_slots(expected, inp, wgt, uops, *instruction, NEVER.address)
    calls = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(datapath, "gemm_by_slots", by_slots(calls))
        datapath.gemm(acc, inp, wgt, uops, *instruction)
    np.testing.assert_array_equal(acc, expected)
    return not calls


@st.composite
def free_gemms(draw):
    """Micro-ops and the other arguments of a gemm whose order is free."""
    loops = [draw(st.integers(1, 5)) for _ in range(3)]
    loops[draw(st.integers(0, 2))] = draw(st.integers(1, 9))
    adds = [draw(st.booleans()) for _ in range(3)]      # loops that add to the same tiles
    dst, reach = [0, 0, 0], 1
    for loop in draw(st.sampled_from(list(permutations(range(3))))):
        if not adds[loop] and loops[loop] > 1:
            dst[loop] = draw(st.sampled_from((-1, 1))) * reach
            reach *= loops[loop]
    src = [draw(st.integers(-1, 1)) for _ in range(3)]
    wgt = [draw(st.sampled_from((0, 0, 1))) if count < 5 else 0 for count in loops]
    count = draw(st.integers(1, 5))
    uops = [(MIDDLE, 30 + draw(st.integers(-4, 4)), draw(st.integers(0, 2)), BIAS_TILE)
            for _ in range(count)]
    flags = draw(st.sampled_from((GemmFlags(0), GemmFlags.DEPTHWISE)))
    if draw(st.booleans()):
        flags |= GemmFlags.START | GemmFlags.FIRST_UOP
        flags |= draw(st.sampled_from((GemmFlags(0), GemmFlags.BIAS)))
        for loop in range(3):
            if dst[loop] == 0 or draw(st.booleans()):
                flags |= FIRST[loop]
    return uops, int(flags), tuple(loops), tuple(dst), tuple(src), tuple(wgt)


@pytest.mark.parametrize("shape", SHAPES)
@given(gemm=free_gemms(), seed=st.integers(0, 2**32 - 1))
def test_where_the_order_is_free_it_is_another_one_with_the_same_sums(shape, gemm, seed):
    batch, block_in, block_out = shape
    in_groups = gemm[1] & GemmFlags.DEPTHWISE and block_in != block_out
    from_bias = gemm[1] & GemmFlags.BIAS and block_out > block_in
    apart = batch > 1 and block_in > block_out and not in_groups        # lanes of a row
    assert is_planned(shape, seed, *gemm) == (not (in_groups and from_bias) and not apart)


@pytest.mark.parametrize("shape", [(1, 2, 16), (1, 16, 2), (4, 1, 1)])
def test_small_blocks_have_no_kernel(shape):
    assert not is_planned(shape, 0, [(0, 0, 0, 0)], 0, (1, 1, 2), NOTHING, NOTHING, NOTHING)


START, BIAS = int(GemmFlags.START), int(GemmFlags.BIAS)
FIRST_UOP, FIRST_INNER = int(GemmFlags.FIRST_UOP), int(GemmFlags.FIRST_INNER)


@pytest.mark.parametrize(("why", "uops", "flags", "loops", "dst"), [
    ("micro-ops add to different tiles", [(1, 0, 0, 0), (2, 0, 0, 0)], 0, (1, 1, 2), NOTHING),
    ("every micro-op starts", [(1, 0, 0, 0), (1, 1, 0, 0)], START, (1, 1, 1), NOTHING),
    ("every iteration starts", [(1, 0, 0, 0)], START, (1, 1, 3), NOTHING),
    ("two loops meet", [(1, 0, 0, 0)], 0, (1, 3, 3), (0, 2, 1)),
    ("a step back and a step forward meet", [(9, 0, 0, 0)], START, (1, 2, 2), (0, -1, 1)),
    ("a bias is written", [(1, 0, 0, 2)], START | BIAS, (1, 1, 3), (0, 0, 1)),
    ("a sum starts from its own tile", [(1, 0, 0, 1)], START | BIAS, (1, 1, 1), NOTHING),
])
def test_where_the_order_matters_it_is_kept(why, uops, flags, loops, dst):
    assert not is_planned((1, 16, 16), 0, uops, flags, loops, dst, (0, 0, 1), NOTHING), why


def test_a_bias_beside_what_is_written_is_no_obstacle():
    for bias in (0, 4):
        assert is_planned((1, 16, 16), 0, [(1, 0, 0, bias)], START | BIAS, (1, 1, 3), (0, 0, 1),
                          (0, 0, 1), NOTHING)


def test_lists_that_are_too_long_are_not_made():
    longest = gemm_plan.LONGEST // 4
    uops = [(1, 0, 0, 0)] * 4
    for inner in (longest - 1, longest):
        planned = is_planned((1, 4, 4), 0, uops, START | FIRST_UOP | FIRST_INNER, (1, 1, inner),
                             NOTHING, NOTHING, NOTHING)
        assert planned == (inner < longest)

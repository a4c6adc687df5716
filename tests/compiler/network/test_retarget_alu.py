"""Other loops of an instruction: the same iterations in the same order, writing elsewhere."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from microtron.compiler.network.linking.retarget_alu import FARTHEST, iteration_tiles, retarget
from microtron.isa.instructions import Alu, AluI, AluOp, Buffer, Requantize
from microtron.isa.stream import decode, encode

SMALL = st.integers(1, 4)
STEP = st.integers(0, 9)


def steps_of(instructions):
    """What each iteration reads and writes: source, parameters, destination."""
    found = []
    for each in instructions:
        dst, src = (iteration_tiles(first, each.loops, strides).ravel().tolist()
                    for first, strides in (
            (each.dst, each.dst_stride), (each.src, each.src_stride)))
        params = [0] * len(dst)
        if isinstance(each, Requantize):
            params = iteration_tiles(each.params, each.loops,
                                     (each.params_stride, 0, 0)).ravel().tolist()
        found += list(zip(src, params, dst, strict=True))
    return found


def bordered(first, planes, rows, columns, pitch, width):
    """Where the tiles of planes lie inside a border."""
    return iteration_tiles(first, (planes, rows, columns), (pitch, width, 1)).ravel()


@given(st.data(), st.sampled_from((Requantize, AluI)), SMALL, SMALL, SMALL, st.integers(0, 3))
def test_whatever_loops_there_are_each_iteration_writes_its_tile(data, kind, planes, rows, columns,
                                                                 border):
    loops = data.draw(st.sampled_from([
        (planes, rows, columns), (planes, 1, rows * columns), (planes, rows * columns, 1),
        (1, planes, rows * columns), (1, planes * rows, columns), (1, 1, planes * rows * columns)]))
    fused = loops[1:] == (planes, rows * columns) or data.draw(st.booleans())
    stride = data.draw(st.tuples(STEP, STEP, STEP)) if not fused else (
        loops[1] * loops[2] * 2, loops[2] * 2, 2)
    fields = {"params": 5, "params_stride": 3} if kind is Requantize else {"op": AluOp.ADD}
    given_one = kind(dst=7, src=11, loops=loops, dst_stride=(50, 9, 1), src_stride=stride, **fields)
    width = columns + border
    tiles = bordered(40, planes, rows, columns, (rows + border) * width, width)
    new = retarget(encode([given_one]), tiles)
    right = [(src, params, int(dst)) for (src, params, _), dst in zip(
        steps_of([given_one]), tiles, strict=True)]
    if new is not None:
        assert steps_of(decode(new)) == right
    elif loops[:2] == (planes, 1):
        raise AssertionError("rows of a plane are always found")


def test_a_row_of_planes_becomes_one_instruction_with_three_loops():
    word = encode([Requantize(dst=0, src=512, params=0, loops=(8, 1, 36), dst_stride=(36, 0, 1),
                              src_stride=(36, 0, 1), params_stride=3)])
    new, = decode(retarget(word, bordered(9, 8, 6, 6, 64, 8)))
    assert (new.loops, new.dst_stride, new.src_stride) == ((8, 6, 6), (64, 8, 1), (36, 6, 1))
    assert new.params_stride == 3


def test_what_three_loops_do_not_reach_is_one_instruction_for_each_plane():
    word = encode([Requantize(dst=0, src=0, params=6, loops=(2, 3, 4), dst_stride=(12, 4, 1),
                              src_stride=(12, 5, 1), params_stride=3)])
    tiles = iteration_tiles(0, (6, 2, 2), (10, 4, 1)).ravel()
    new = decode(retarget(word, tiles))
    assert [each.params for each in new] == [6, 9]
    assert [each.dst for each in new] == [0, 30]


def test_no_loops_reach_tiles_in_disorder_or_too_far_apart():
    word = encode([AluI(op=AluOp.MOVE, dst=0, loops=(1, 1, 4), dst_stride=(0, 0, 1),
                        target=Buffer.OUT)])
    assert retarget(word, np.array([0, 1, 3, 9])) is None
    assert retarget(word, np.arange(4) * FARTHEST) is not None
    assert retarget(word, np.arange(4) * (FARTHEST + 1)) is None


def test_an_operand_that_moves_with_the_result_cannot_stay():
    word = encode([Alu(dst=0, lhs=0, rhs=4, loops=(1, 1, 4), dst_stride=(0, 0, 1),
                       target=Buffer.OUT)])
    assert retarget(word, np.arange(4)) is None

"""Places on the chip: who works at the same time does so in different banks of the accumulator."""

from itertools import pairwise

import pytest

from microtron.compiler.accelerator.emission.scratchpads import place_buffers
from microtron.compiler.compile import compile_op
from microtron.compiler.operators.convolution.conv2d import Conv2d
from microtron.isa.config import base


def banks(first, tiles):
    return set(range(first // base.acc_bank_tiles,
                     (first + tiles - 1) // base.acc_bank_tiles + 1))


def sums_of(**shape):
    """The place of a convolution's sums, and their shape."""
    nest = compile_op(Conv2d(**shape), base).nest
    places = {buffer.name: (place, buffer) for buffer, place in place_buffers(nest, base).items()}
    place, sums = places["sums"]
    return place, sums.shape, places["output.out"][1].shape


def test_parts_that_leave_one_by_one_have_banks_of_their_own():
    place, shape, output = sums_of(height=56, width=56, channels_in=64, channels_out=64,
                                   pad=(1, 1, 1, 1))
    parts, size = shape[1], shape[2] * shape[3]
    assert (parts, output[1], place.copies) == (4, 1, 2)
    for turn in range(place.copies):
        used = [banks(place.of(0, turn) + part * place.pitch, size) for part in range(parts)]
        assert all(one.isdisjoint(next_one) for one, next_one in pairwise([*used, used[0]]))


@pytest.mark.parametrize("shape", [
    {"height": 28, "width": 28, "channels_in": 128, "channels_out": 128, "pad": (1, 1, 1, 1)},
    {"height": 112, "width": 112, "channels_in": 16, "channels_out": 64, "kernel": (1, 1)}])
def test_copies_have_banks_of_their_own(shape):
    place, _, _ = sums_of(**shape)
    assert place.pitch is None
    assert place.copies == 2
    assert banks(place.of(0, 0), place.tiles).isdisjoint(banks(place.of(0, 1), place.tiles))

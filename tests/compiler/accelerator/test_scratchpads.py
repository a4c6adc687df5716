"""Places on the chip: who works at the same time does so in different banks of the accumulator."""

from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from microtron.compiler.accelerator.emission.placed_nest import PlacedNest
from microtron.compiler.accelerator.emission.scratchpads import place_buffers
from microtron.compiler.accelerator.emission.separate_operands import (
    Lot,
    Wishes,
    _best_places,
    _cost,
)
from microtron.compiler.compile import compile_op
from microtron.compiler.nest.nest import Scope
from microtron.compiler.operators.convolution.conv2d import Conv2d
from microtron.compiler.operators.pool.pool import Kind, Pool
from microtron.isa.config import base, tiny
from microtron.isa.instructions import Buffer


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


def test_banks_are_shared_where_there_is_no_other():
    spec = Pool(kind=Kind.MAX, height=40, width=40, channels=4, kernel=(5, 5), pad=(2,) * 4)
    places = place_buffers(compile_op(spec, tiny).nest, tiny)
    assert max(place.of(0, place.copies - 1) + place.tiles for buffer, place in places.items()
               if buffer.scope == Scope.ACC) <= tiny.tiles(Buffer.ACC)


@pytest.mark.parametrize("size", [5, 9, 13])
def test_what_the_alu_combines_lies_in_different_banks(size):
    spec = Pool(kind=Kind.MAX, height=13, width=13, channels=512, kernel=(size, size),
                pad=(size // 2,) * 4)
    placed = PlacedNest(base, compile_op(spec, base).nest, {})
    places = {buffer.name: place for buffer, place in placed.places.items()}
    used = {name: [banks(places[name].of(0, turn), places[name].tiles)
                   for turn in range(places[name].copies)]
            for name in ("sums", "columns", "padded")}
    for one, other in (("sums", "columns"), ("columns", "padded")):
        assert all(first.isdisjoint(second) for first in used[one] for second in used[other])


@given(lots=st.lists(st.builds(Lot, st.integers(1, 40), st.integers(1, 2)), min_size=2, max_size=4))
def test_the_best_order_has_room_for_all_and_meets_least(lots):
    wishes = Wishes(((0, 1),), ((1, 0),))
    best = _best_places(tuple(lots), wishes, 32, 128)
    if sum(lot.tiles * lot.copies for lot in lots) > 128:
        assert best is None
        return
    taken = sorted((begin, begin + lot.tiles * lot.copies)
                   for begin, lot in zip(best.begins, lots, strict=True))
    assert all(end <= begin for (_, end), (begin, _) in pairwise([(0, 0), *taken, (128, 128)]))
    ends = [[begin + turn * lot.tiles for turn in range(lot.copies)]
            for begin, lot in zip(best.begins, lots, strict=True)]
    assert best.cost == _cost(ends, lots, wishes, 32)
    side_by_side = [*accumulate((lot.tiles * lot.copies for lot in lots), initial=0)][:-1]
    assert best.cost <= _cost([[begin + turn * lot.tiles for turn in range(lot.copies)]
                               for begin, lot in zip(side_by_side, lots, strict=True)],
                              lots, wishes, 32)

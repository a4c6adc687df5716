"""Copies of any box become transfers that move what the copy says, and nothing else."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from microtron.compiler.accelerator.emission.emit import emit
from microtron.compiler.accelerator.emission.transfers import transfer_of
from microtron.compiler.errors import CompileError
from microtron.compiler.expression.expression import Axis, Constant
from microtron.compiler.nest.nest import (
    Allocate,
    Buffer,
    Copy,
    Loop,
    Nest,
    Region,
    Scope,
    make_sequence,
)
from microtron.compiler.nest.run import interpret
from microtron.compiler.nest.verify_nest import verify_nest
from microtron.isa.config import tiny
from microtron.isa.instructions import Buffer as Scratchpad
from microtron.isa.instructions import Load
from microtron.isa.stream import decode
from microtron.isa.verification.verifier import verify
from microtron.runtime.devices.device import run

TILE = (tiny.batch, tiny.block_out)
ZERO = Constant(0)
STEPS = Axis("step", 3)


def whole(buffer):
    return Region(buffer, (ZERO,) * len(buffer.shape), buffer.shape)


def at(buffer, start, extents):
    """A box of tiles of a buffer."""
    return Region(buffer, (*start, ZERO, ZERO), (*extents, *TILE))


@st.composite
def boxes(draw):
    """A box that moves through DRAM from step to step, perhaps beyond its ends, and the part of a
    buffer on the chip that it goes to."""
    rank = draw(st.integers(1, 4))

    def each(strategy):
        return tuple(draw(strategy) for _ in range(rank))

    extents = each(st.integers(1, 4))
    around = each(st.sampled_from((0, 0, 1, 2)))
    first = tuple(draw(st.integers(0, more)) for more in around)
    size = tuple(extent + more for extent, more in zip(extents, around, strict=True))
    assume(prod(size) <= tiny.tiles(Scratchpad.ACC))
    start = tuple(STEPS * draw(st.sampled_from((0, 0, 1, -1, 3))) + draw(st.integers(-3, 3))
                  for _ in range(rank))
    return each(st.integers(1, 5)), start, extents, size, first


def compute(nest, seed=0):
    """What a nest gives on the accelerator and what it means; both run on the same numbers."""
    verify_nest(nest)
    program = emit(nest, tiny)
    verify(program)
    rng = np.random.default_rng(seed)
    values = {each: rng.integers(-99, 99, each.shape).astype(each.dtype) for each in nest.inputs}
    outputs, _ = run(program, {each.name: value for each, value in values.items()})
    expected = interpret(nest, values)
    return [(outputs[each.name], expected[each]) for each in nest.outputs], program


@given(boxes(), st.none() | st.integers(-128, 127), st.sampled_from(("int32", "int8")),
       st.booleans())
def test_a_box_is_moved_wherever_it_starts(box, padding, dtype, fresh):
    """A buffer is filled, a box of it overwritten, and all of it stored. If it is not fresh in each
    step, what was left alone in one is still there in the next."""
    shape, start, extents, size, first = box
    x, z = Buffer("x", (*shape, *TILE), dtype), Buffer("z", (*size, *TILE), "int32")
    y = Buffer("y", (STEPS.extent * size[0], *z.shape[1:]), "int32")
    inside = Buffer("inside", z.shape, "int32", Scope.ACC)
    fill = Copy(whole(inside), whole(z))
    load = Copy(at(inside, map(Constant, first), extents), at(x, start, extents), padding)
    store = Copy(at(y, (STEPS * size[0], *[ZERO] * (len(size) - 1)), size), whole(inside))
    steps = (Loop(STEPS, Allocate(inside, make_sequence(fill, load, store))) if fresh else
             Allocate(inside, make_sequence(fill, Loop(STEPS, make_sequence(load, store)))))
    try:
        pairs, _ = compute(Nest((x, z), (y,), steps))
    except CompileError as error:
        assume("but there are only" not in str(error))          # a box that misses its buffer
        raise
    for result, expected in pairs:
        assert np.array_equal(result, expected)


@given(boxes())
def test_what_lies_outside_is_not_stored(box):
    """A box that moves through DRAM and beyond its ends, the other way around."""
    shape, start, extents, size, first = box
    x, y = Buffer("x", (*size, *TILE), "int32"), Buffer("y", (*shape, *TILE), "int32")
    inside = Buffer("inside", x.shape, "int32", Scope.ACC)
    store = Copy(at(y, start, extents), at(inside, map(Constant, first), extents))
    nest = Nest((x,), (y,), Allocate(inside, make_sequence(
        Copy(whole(inside), whole(x)), Loop(STEPS, store))))
    try:
        (result, expected), = compute(nest)[0]
    except CompileError as error:
        assume("but there are only" not in str(error))
        raise
    written = expected != -0x5A5A5A5B           # the pattern of what nothing was written to
    assert np.array_equal(result[written], expected[written])


def test_a_border_is_written_once_where_it_stays():
    """A row with a border on both sides: of three loads, only the first writes the border."""
    x, y = Buffer("x", (6, 1, *TILE), "int32"), Buffer("y", (9, 1, *TILE), "int32")
    inside, middle = Buffer("inside", (4, 3, *TILE), "int32", Scope.ACC), (STEPS * 2, Constant(-1))
    load = Copy(whole(inside), at(x, middle, (4, 3)), 7)
    store = Copy(at(y, (STEPS * 3, ZERO), (3, 1)), at(inside, (ZERO, Constant(1)), (3, 1)))
    pairs, program = compute(Nest((x,), (y,), Loop(STEPS, Allocate(
        inside, make_sequence(load, store)))))
    pads = [each.pad for each in decode(program.code) if isinstance(each, Load)]
    assert pads[0] == (0, 0, 1, 1)
    assert all(np.array_equal(*pair) for pair in pairs)


def test_a_border_wider_than_a_load_pads_is_refused():
    x, wide = Buffer("x", (1, *TILE), "int32"), Buffer("wide", (300, *TILE), "int32", Scope.ACC)
    y = Buffer("y", (300, *TILE), "int32")
    nest = Nest((x,), (y,), Allocate(wide, make_sequence(
        Copy(whole(wide), at(x, (Constant(-260),), (300,)), 0), Copy(whole(y), whole(wide)))))
    with pytest.raises(CompileError, match="a border of 260 tiles is more than the 255 that a "):
        emit(nest, tiny)


@pytest.mark.parametrize(("source", "region", "message"), [
    ((4, 1, 8), (1, 1, 4), "a copy of x cuts through its tiles; only whole tiles are moved"),
    ((4, 1, 2), (1, 1, 2), "a tile of x has 1 × 2 elements of 8 bits, but a tile of the scratchpad "
                           "takes 4 bytes of DRAM"),
])
def test_only_whole_tiles_are_moved(source, region, message):
    x, inside = Buffer("x", source, "int8"), Buffer("inside", (1, *region[1:]), "int8", Scope.INP)
    copy = Copy(whole(inside), Region(x, (ZERO, ZERO, ZERO), region))
    with pytest.raises(CompileError, match=message):
        transfer_of(copy, tiny, 8)


def test_a_copy_that_starts_inside_a_tile_is_refused():
    x, inside = Buffer("x", (4, *TILE), "int8"), Buffer("inside", (1, *TILE), "int8", Scope.INP)
    transfer = transfer_of(Copy(whole(inside), at(x, (ZERO,), (1,))), tiny, 8)
    assert transfer.at((3, 0, 0))[0] == 12
    with pytest.raises(CompileError, match="a copy starts at row 0 and lane 2 of a tile; only "):
        transfer.at((3, 0, 2))


def test_a_transfer_does_not_convert():
    x, inside = Buffer("x", (1, *TILE), "int32"), Buffer("inside", (1, *TILE), "int8", Scope.INP)
    with pytest.raises(CompileError, match="x is int32 and inside int8: a transfer widens int8"):
        transfer_of(Copy(whole(inside), whole(x)), tiny, 32)

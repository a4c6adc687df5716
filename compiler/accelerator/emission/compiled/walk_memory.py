"""What a walk remembers, and what it writes to.

Most of it are lists that are filled from the front: nobody reads what has not been written, so a
thread keeps the arrays for its next nest, as large as they have become.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from math import prod
from operator import gt
from threading import local
from typing import NamedTuple, TypeVar

import numpy as np

from .....base.arrays import Array
from .....base.classes.dataclass import dataclass
from .....isa.instructions import INSTRUCTION_BYTES
from . import nest_arrays as tables
from .jit import bind
from .nest_arrays import LOOP_OPERANDS, MOST_AXES

ROOM = 2048                 # words, micro-ops and sequences of them that there is room for at first
SHAPES, WALKS = 64, 256     # loops of micro-ops, and of tiles of sums, at first
MOST_KEPT = 1 << 15         # words that there is room for in what is kept
MOST_RANK, MOST_OPERANDS = 12, 8
LEAST = 32, 16, 32, 2       # axes, buffers, copies of them and sections that there is room for
SIDE = 5                    # numbers of a side of a copy
AnyLists = TypeVar("AnyLists", tables.Output, tables.Walks)


@dataclass(frozen=True)
class Sizes:
    """How large the arrays are whose size is known: axes, buffers, their copies, sections of a loop
    that runs ahead, tiles of the accumulator. And walks that are known before."""

    axes: int
    buffers: int
    copies: int
    delays: int
    acc: int
    walks: Sequence[tuple[int, ...]]
    steps: Sequence[tuple[int, int]]


class Room(NamedTuple):
    """What a walk is given, with its addresses."""

    state: tables.State
    output: tables.Output
    words: tuple[tables.State, tables.Output]           # the same for compiled code


class Space(NamedTuple):
    """Numbers of a walk that are zero at first, and for which sizes there is room."""

    most: tuple[int, ...]
    block: tables.Numbers
    heads: tables.Numbers
    room: Room


class Lists(local):
    """The arrays that a thread keeps."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        self.output = tables.Output(np.empty((ROOM, INSTRUCTION_BYTES), np.uint8),
                                    np.empty((ROOM, LOOP_OPERANDS), np.uint16))
        self.known, self.noted = np.empty(ROOM, tables.SEQUENCE), np.empty(ROOM, tables.NOTE)
        self.resident = np.empty(ROOM, np.int64)
        self.shapes = np.empty((SHAPES, tables.SHAPE_SIZE), np.int64)
        self.walks = tables.Walks(np.empty(WALKS, tables.WALK), np.empty((2 * WALKS, 2), np.int64))
        self.spaces: dict[int, Space] = {}              # by the tiles of the accumulator


KEPT = Lists()


def new_room(sizes: Sizes) -> Room:
    """The state before the first operation, and room for words."""
    if len(KEPT.output.words) > MOST_KEPT:
        KEPT.renew()
    while len(sizes.walks) > len(KEPT.walks.walks) or len(sizes.steps) > len(KEPT.walks.steps):
        KEPT.walks = _twice_each(KEPT.walks)
        KEPT.spaces.clear()
    for array, rows in ((KEPT.walks.walks, sizes.walks), (KEPT.walks.steps, sizes.steps)):
        if rows:
            array[:len(rows)] = rows
    space = KEPT.spaces.get(sizes.acc)
    wanted = sizes.axes, sizes.buffers, sizes.copies, sizes.delays
    if space is None or any(map(gt, wanted, space.most)):
        most = tuple([1 << each.bit_length() for each in wanted])
        space = KEPT.spaces[sizes.acc] = _new_space(sizes.acc, *map(max, most, (
            LEAST if space is None else space.most)))
    else:
        space.block[:] = 0
        space.heads[:] = -1
    counters = space.room.state.numbers
    counters[tables.WALKS], counters[tables.WALK_STEPS] = len(sizes.walks), len(sizes.steps)
    return space.room


def _new_space(acc: int, axes: int, buffers: int, copies: int, delays: int) -> Space:
    """Room for so many of each. One array is all of it, so that it is cleared at once."""
    shapes = [(tables.COUNTERS,), (2 * axes + 2,), (buffers,), (buffers,), (buffers,),
              (copies, MOST_RANK + 1), (copies, tables.KEY + 1), (buffers, delays), (2 * acc + 1,),
              (tables.KEY + 1,), (MOST_AXES,), (MOST_AXES,), (MOST_OPERANDS,), (MOST_OPERANDS,),
              (LOOP_OPERANDS,), (tables.EVERY_LIST, MOST_AXES, tables.LOOP_SIZE),
              (tables.EVERY_LIST,), *((rank, SIDE) for rank in (
                  MOST_RANK, MOST_RANK + 1, MOST_RANK + 1, LOOP_OPERANDS))]
    ends = [0, *accumulate(map(prod, shapes))]
    block = np.zeros(ends[-1], np.int64)
    given = [block[begin:end].reshape(shape)
             for (begin, end), shape in zip(pairwise(ends), shapes, strict=True)]
    heads = np.full(tables.HEADS, -1, np.int64)
    (numbers, values, bases, turns, loaded, holds, borders, history, mask, key, starts, extents,
     tiles, others, near) = given[:15]
    state = tables.State(
        numbers, values, bases, turns, loaded, holds, borders, history, KEPT.known, heads,
        KEPT.resident, KEPT.noted, mask, key, starts, extents, tiles, others, near,
        tables.Lists(*given[15:17]), KEPT.shapes, KEPT.walks, tables.Sides(*given[17:]))
    return Space((axes, buffers, copies, delays), block, heads, _room_of(state, KEPT.output))


def _room_of(state: tables.State, output: tables.Output) -> Room:
    return Room(state, output, (bind(state), bind(output)))


def with_more_room(state: tables.State, output: tables.Output) -> Room:
    """The same with twice the room in all lists."""
    KEPT.known, KEPT.noted = _twice(state.known), _twice(state.noted)
    KEPT.resident, KEPT.shapes = _twice(state.resident), _twice(state.shapes)
    KEPT.walks, KEPT.output = _twice_each(state.known_walks), _twice_each(output)
    KEPT.spaces.clear()
    return _room_of(state._replace(
        known=KEPT.known, noted=KEPT.noted, resident=KEPT.resident, shapes=KEPT.shapes,
        known_walks=KEPT.walks), KEPT.output)


def _twice_each(lists: AnyLists) -> AnyLists:
    return type(lists)(*[_twice(each) for each in lists])


def _twice(array: Array) -> Array:
    return np.concatenate([array, np.empty_like(array)])

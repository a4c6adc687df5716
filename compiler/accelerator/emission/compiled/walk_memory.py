"""What a walk remembers, and what it writes to.

Most of it are lists that are filled from the front: nobody reads what has not been written, so a
thread keeps the arrays for its next nest, as large as they have become.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import local
from typing import TypeVar

import numpy as np

from .....base.arrays import Array
from .....base.classes.dataclass import dataclass
from .....isa.instructions import INSTRUCTION_BYTES
from . import nest_arrays as tables
from .nest_arrays import LOOP_OPERANDS, MOST_AXES

ROOM = 2048                 # words, micro-ops and sequences of them that there is room for at first
SHAPES, WALKS = 64, 256     # loops of micro-ops, and of tiles of sums, at first
MOST_KEPT = 1 << 15         # words that there is room for in what is kept
MOST_RANK, MOST_OPERANDS = 12, 8
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


KEPT = Lists()


def new_state(sizes: Sizes) -> tuple[tables.State, tables.Output]:
    """The state before the first operation, and room for words."""
    if len(KEPT.output.words) > MOST_KEPT:
        KEPT.renew()
    walks = KEPT.walks
    while len(sizes.walks) > len(walks.walks) or len(sizes.steps) > len(walks.steps):
        walks = _twice_each(walks)
    for array, rows in ((walks.walks, sizes.walks), (walks.steps, sizes.steps)):
        if rows:
            array[:len(rows)] = rows

    def numbers(*shape: int) -> tables.Numbers:
        return np.zeros(shape, np.int64)

    counters = numbers(tables.COUNTERS)
    counters[[tables.WALKS, tables.WALK_STEPS]] = len(sizes.walks), len(sizes.steps)
    buffers = sizes.buffers
    return tables.State(
        counters, numbers(2 * sizes.axes + 2), numbers(buffers), numbers(buffers),
        numbers(buffers), numbers(sizes.copies, MOST_RANK + 1),
        numbers(sizes.copies, tables.KEY + 1), numbers(buffers, sizes.delays), KEPT.known,
        np.full(tables.HEADS, -1, np.int64), KEPT.resident, KEPT.noted, numbers(2 * sizes.acc + 1),
        numbers(tables.KEY + 1), numbers(MOST_AXES), numbers(MOST_AXES), numbers(MOST_OPERANDS),
        numbers(MOST_OPERANDS), numbers(LOOP_OPERANDS), tables.Lists(
            numbers(tables.EVERY_LIST, MOST_AXES, tables.LOOP_SIZE), numbers(tables.EVERY_LIST)),
        KEPT.shapes, walks,
        tables.Sides(*(numbers(rank, SIDE) for rank in (
            MOST_RANK, MOST_RANK + 1, MOST_RANK + 1, LOOP_OPERANDS)))), KEPT.output


def with_more_room(state: tables.State,
                   output: tables.Output) -> tuple[tables.State, tables.Output]:
    """The same with twice the room in all lists."""
    KEPT.known, KEPT.noted = _twice(state.known), _twice(state.noted)
    KEPT.resident, KEPT.shapes = _twice(state.resident), _twice(state.shapes)
    KEPT.walks, KEPT.output = _twice_each(state.known_walks), _twice_each(output)
    return state._replace(known=KEPT.known, noted=KEPT.noted, resident=KEPT.resident,
                          shapes=KEPT.shapes, known_walks=KEPT.walks), KEPT.output


def _twice_each(lists: AnyLists) -> AnyLists:
    return type(lists)(*[_twice(each) for each in lists])


def _twice(array: Array) -> Array:
    return np.concatenate([array, np.empty_like(array)])

"""Walks a stream in program order and knows, at each instruction, what is surely complete.

Every token counter has one producer and one consumer, both in order, so the k-th wait is always
satisfied by the k-th post, whatever the timing: the order that tokens give is a fact of the
stream. `walk` keeps it as vector clocks (how many instructions of each engine are complete
before this one starts) and, for every cell of memory, who touched it last. A conflict with an
instruction that the clock does not cover is a race; `walk` either reports it or, when it derives
tokens, adds the wait and the post that close it. Compiled with numba: linear in what is touched.
"""

# No postponed annotations here: numba reads the functions as they are.
from typing import Any, NamedTuple

import numba
import numpy as np

from .accesses import DRAM, NO_COLUMN, SPACES

ENGINES = 4
LOAD, STORE = 0, 3
DONE, STARVED, OUTSIDE = 0, 1, 2    # how a walk ends

RACE = np.dtype([           # an access that no token orders after an earlier one
    ("instruction", "i8"), ("space", "i8"), ("cell", "i8"),
    ("engine", "i8"), ("sequence", "i8"),       # the earlier one
])


class Code(NamedTuple):
    """The stream: what each instruction waits for, posts and touches."""

    engine: Any         # -1 is a barrier
    wait: Any           # filled when tokens are derived
    post: Any
    rows: Any           # the access table ...
    row_begin: Any      # ... and where each instruction's rows begin
    feed: Any           # micro-ops brought in by loads: index, dst, src, wgt, bias ...
    feed_begin: Any     # ... and where each instruction's begin


class Shadow(NamedTuple):
    """For every cell, the sequence number of each engine's last write and last read."""

    base: Any           # first cell of each space
    limit: Any          # number of cells of each space
    pads: Any           # scratchpads: four engines' writes, then four engines' reads
    dram: Any           # segments: STORE's writes and LOAD's reads
    uops: Any           # the micro-ops themselves


class Order(NamedTuple):
    """What the walk finds out; and what must be complete before each instruction starts, whatever
    its data demand, when tokens are derived."""

    least: Any
    clocks: Any         # of each instruction
    members: Any        # instructions of each engine, in order
    races: Any
    found: Any          # one number: races written down


def new_shadow(sizes: dict[int, int]) -> Shadow:
    """A blank shadow of spaces with so many cells each."""
    base, limit = np.zeros(SPACES, np.int64), np.zeros(SPACES, np.int64)
    totals = [0, 0]
    for space, size in sorted(sizes.items()):
        kind = int(space >= DRAM)
        base[space], limit[space] = totals[kind], size
        totals[kind] += size
    return Shadow(base, limit, np.zeros((totals[0], 2 * ENGINES), np.int32),
                  np.zeros((totals[1], 2), np.int32), np.zeros((sizes[0], ENGINES), np.int64))


def new_order(instructions: int, most_races: int) -> Order:
    return Order(np.zeros((instructions, ENGINES), np.int64),
                 np.zeros((instructions, ENGINES), np.int64),
                 np.zeros((ENGINES, instructions), np.int64),
                 np.zeros(most_races, RACE), np.zeros(1, np.int64))


@numba.njit(cache=True)
def walk(code: Code, shadow: Shadow, result: Order, derive: bool) -> Any:
    """Returns how the walk ended, at which instruction, and the engine it starved for."""
    sequence = np.zeros(ENGINES, np.int64)
    floor = np.zeros(ENGINES, np.int64)
    latest = np.zeros((ENGINES, ENGINES), np.int64)
    given = np.zeros((ENGINES, ENGINES), np.int64)
    taken = np.zeros((ENGINES, ENGINES), np.int64)
    posters = np.zeros((ENGINES, ENGINES, 1 if derive else len(code.engine)), np.int32)
    need = np.zeros(ENGINES, np.int64)
    for now in range(len(code.engine)):
        own = code.engine[now]
        if own < 0:
            floor[:] = sequence
            continue
        result.members[own, sequence[own]] = now
        sequence[own] += 1
        clock = np.maximum(latest[own], floor)
        for other in range(ENGINES):
            if not derive and code.wait[now] >> other & 1:
                if taken[other, own] == given[other, own]:
                    return STARVED, now, other
                poster = posters[other, own, taken[other, own]]
                clock = np.maximum(clock, result.clocks[poster])
                taken[other, own] += 1
        need[:] = result.least[now]
        for at in range(code.row_begin[now], code.row_begin[now + 1]):
            if not _touch_row(code.rows[at], shadow, result, clock, need, own, sequence[own], now):
                return OUTSIDE, now, -1
        if derive:
            clock = _satisfy(need, clock, code, result, own, now)
        for at in range(code.feed_begin[now], code.feed_begin[now + 1]):
            shadow.uops[code.feed[at, 0]] = code.feed[at, 1:]
        clock[own] = sequence[own]
        result.clocks[now] = clock
        latest[own] = clock
        for other in range(ENGINES):
            if not derive and code.post[now] >> other & 1:
                posters[own, other, given[own, other]] = now
                given[own, other] += 1
    return DONE, len(code.engine), -1


@numba.njit(cache=True)
def _touch_row(row: Any, shadow: Shadow, result: Order, clock: Any, need: Any, own: int,
               sequence: int, now: int) -> bool:
    """Visit every cell of one access. False if one lies outside its space."""
    limit = shadow.limit[row.space]
    for step in range(row.count):
        start = row.base
        if row.column != NO_COLUMN:
            if row.uop + step >= len(shadow.uops):
                return False
            start = shadow.uops[row.uop + step, row.column]
        for outer in range(row.loops[0]):
            for middle in range(row.loops[1]):
                index = start + outer * row.stride[0] + middle * row.stride[1]
                for _ in range(row.loops[2]):
                    cell = index // row.divisor
                    if cell < 0 or cell >= limit:
                        return False
                    if row.space < DRAM:
                        _touch_pad(row, cell, shadow, result, clock, need, own, sequence, now)
                    else:
                        _touch_dram(row, cell, shadow, result, clock, need, sequence, now)
                    index += row.stride[2]
    return True


@numba.njit(cache=True)
def _touch_pad(row: Any, cell: int, shadow: Shadow, result: Order, clock: Any, need: Any,
               own: int, sequence: int, now: int) -> None:
    seen = shadow.pads[shadow.base[row.space] + cell]
    for other in range(ENGINES):
        if other != own:
            last = max(seen[other], seen[ENGINES + other]) if row.write else seen[other]
            if last > max(clock[other], need[other]):
                _conflict(result, need, now, other, last, row.space, cell)
    seen[own if row.write else ENGINES + own] = sequence


@numba.njit(cache=True)
def _touch_dram(row: Any, cell: int, shadow: Shadow, result: Order, clock: Any, need: Any,
                sequence: int, now: int) -> None:
    seen = shadow.dram[shadow.base[row.space] + cell]
    mine, other = (0, LOAD) if row.write else (1, STORE)
    last = seen[1 - mine]
    if last > max(clock[other], need[other]):
        _conflict(result, need, now, other, last, row.space, cell)
    seen[mine] = sequence


@numba.njit(cache=True)
def _conflict(result: Order, need: Any, now: int, other: int, last: int, space: int,
              cell: int) -> None:
    need[other] = last
    if result.found[0] < len(result.races):
        race = result.races[result.found[0]]
        race.instruction, race.space, race.cell = now, space, cell
        race.engine, race.sequence = other, last
        result.found[0] += 1


@numba.njit(cache=True)
def _satisfy(need: Any, clock: Any, code: Code, result: Order, own: int, now: int) -> Any:
    """Add the waits that `need` asks for. The latest instruction first: it may cover the rest."""
    while True:
        chosen, latest = -1, -1
        for other in range(ENGINES):
            if need[other] > clock[other] and result.members[other, need[other] - 1] > latest:
                chosen, latest = other, result.members[other, need[other] - 1]
        if chosen < 0:
            return clock
        code.wait[now] |= 1 << chosen
        code.post[latest] |= 1 << own
        clock = np.maximum(clock, result.clocks[latest])

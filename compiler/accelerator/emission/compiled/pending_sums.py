"""Sums that begin with their first product: `sum_starts` as compiled code."""

from .jit import helper
from .nest_arrays import (
    BROKEN,
    MARK,
    NOTED,
    ROW_MOVED,
    ROW_WORD,
    TILE_LIMIT,
    Numbers,
    Output,
    Plans,
    State,
    Tables,
)
from .write import copy_word, put


@helper
def forget_sum(state: State, tile: int, walks: int) -> bool:
    """Whether these very tiles are noted. They are not any more."""
    for place in range(state.numbers[NOTED]):
        if state.noted[place].tile == tile and state.noted[place].walks == walks:
            _drop(state, place)
            return True
    return False


@helper
def _drop(state: State, place: int) -> None:
    for at in range(place, state.numbers[NOTED] - 1):
        here, there = state.noted[at], state.noted[at + 1]
        here.tile, here.walks, here.value = there.tile, there.walks, there.value
    state.numbers[NOTED] -= 1


@helper
def clear_touched(tables: Tables, plans: Plans, state: State, output: Output, tile: int,
           walks: int) -> bool:
    """Give noted tiles that are touched the value that their sums begin with."""
    place = 0
    good: bool = True
    while place < state.numbers[NOTED]:
        note = state.noted[place]
        if not _meet(plans, state, note.tile, note.walks, tile, walks):
            place += 1
            continue
        known = plans.walks[note.walks]
        for at in range(known.fills, known.fills + known.fill_count):
            word = copy_word(output, state, plans.words, plans.rows[at, ROW_WORD])
            dst = note.tile + plans.rows[at, ROW_MOVED]
            good = good and tables.fields[3] == 0 and 0 <= dst < TILE_LIMIT
            put(output, word, tables.fields[1], 2, dst)
            put(output, word, tables.fields[2], 4, note.value)
        _drop(state, place)
    return good


@helper
def _meet(plans: Plans, state: State, tile: int, walks: int, other: int, others: int) -> bool:
    """Whether some tile is in both."""
    one, two = plans.walks[walks], plans.walks[others]
    if tile + one.low > other + two.high or other + two.low > tile + one.high:
        return False
    state.numbers[MARK] += 1
    mark = state.numbers[MARK]
    base = min(tile + one.low, other + two.low)
    if max(tile + one.high, other + two.high) - base >= len(state.mask):
        state.numbers[BROKEN] = 1
        return False
    return (_mark(plans, state.mask, walks, tile - base, mark, False)
            or _mark(plans, state.mask, others, other - base, mark, True))


@helper
def _mark(plans: Plans, mask: Numbers, walks: int, tile: int, mark: int, asks: bool) -> bool:
    """Mark tiles, or ask whether one of them is marked."""
    walk = plans.walks[walks]
    total = 1
    for loop in range(walk.count):
        total *= plans.loops[walk.loops + loop, 0]
    for number in range(total):
        at, rest = tile, number
        for loop in range(walk.count - 1, -1, -1):
            extent = plans.loops[walk.loops + loop, 0]
            at += rest % extent * plans.loops[walk.loops + loop, 1]
            rest //= extent
        if asks and mask[at] == mark:
            return True
        mask[at] = mark
    return False

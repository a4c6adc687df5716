"""Sums that begin with their first product: `sum_starts` as compiled code."""

from .....isa.instructions import AluI
from .jit import helper
from .nest_arrays import (
    BROKEN,
    CLEAR,
    CLEARED,
    EXTENT,
    FAR,
    HARDWARE_LOOPS,
    MARK,
    NOTED,
    STEP,
    TILE_LIMIT,
    TOUCHED,
    WALK_STEPS,
    WALKS,
    Bytes,
    Lists,
    Numbers,
    Record,
    Records,
    State,
    Walks,
)
from .visit_loops import (
    iterations,
    join_loop,
    moved,
    put_counts,
    put_strides,
    split_off,
    step_of,
)
from .word_fields import offset_of
from .write import copy_word, put

DST, LOOPS, STRIDE, IMMEDIATE = (offset_of(AluI, name) for name in (
    "dst", "loops", "dst_stride", "immediate"))


@helper
def touched_walk(operands: Records, moves: Numbers, extents: Numbers, lists: Lists, known: Walks,
                 numbers: Numbers, site: Record, operand: int) -> int:
    """The number of the walk of an operand through its tiles at a visit."""
    lists.counts[TOUCHED] = 0
    for axis in range(site.axis_count):
        step = step_of(operands, moves, site, operand, axis)
        if extents[axis] > 1 and step != 0:
            join_loop(lists, TOUCHED, extents[axis], step, 0, 0)
    loops, count = lists.rows[TOUCHED], lists.counts[TOUCHED]
    for place in range(1, count):           # by their steps
        extent, step, at = loops[place, EXTENT], loops[place, STEP], place
        while at > 0 and loops[at - 1, STEP] > step:
            loops[at, EXTENT], loops[at, STEP] = loops[at - 1, EXTENT], loops[at - 1, STEP]
            at -= 1
        loops[at, EXTENT], loops[at, STEP] = extent, step
    for number in range(numbers[WALKS]):
        walk = known.walks[number]
        same = walk.count == count
        for at in range(count if same else 0):
            same = (same and known.steps[walk.loops + at, 0] == loops[at, EXTENT]
                    and known.steps[walk.loops + at, 1] == loops[at, STEP])
        if same:
            return number
    return _new_walk(lists, known, numbers)


@helper
def _new_walk(lists: Lists, known: Walks, numbers: Numbers) -> int:
    """Number the walk that was found."""
    loops, count, first = lists.rows[TOUCHED], lists.counts[TOUCHED], numbers[WALK_STEPS]
    number: int = numbers[WALKS]
    walk = known.walks[number]
    walk.loops, walk.count, walk.low, walk.high = first, count, 0, 0
    for at in range(count):
        extent, step = loops[at, EXTENT], loops[at, STEP]
        known.steps[first + at, 0], known.steps[first + at, 1] = extent, step
        walk.low += min((extent - 1) * step, 0)
        walk.high += max((extent - 1) * step, 0)
    numbers[WALKS], numbers[WALK_STEPS] = number + 1, first + count
    _plan_fill(lists, known, number)
    walk.fill_count = iterations(lists, FAR, 0)
    return number


@helper
def _plan_fill(lists: Lists, known: Walks, number: int) -> None:
    """The loops that fill the tiles of a walk: of the hardware, and written out."""
    walk = known.walks[number]
    lists.counts[CLEARED] = lists.counts[FAR] = 0
    for at in range(walk.loops, walk.loops + walk.count):
        join_loop(lists, CLEARED, known.steps[at, 0], known.steps[at, 1], 0, 0)
    split_off(lists, CLEARED, HARDWARE_LOOPS, FAR)


@helper
def forget_sum(noted: Records, numbers: Numbers, tile: int, walks: int) -> bool:
    """Whether these very tiles are noted. They are not any more."""
    for place in range(numbers[NOTED]):
        if noted[place].tile == tile and noted[place].walks == walks:
            _drop(noted, numbers, place)
            return True
    return False


@helper
def _drop(noted: Records, numbers: Numbers, place: int) -> None:
    for at in range(place, numbers[NOTED] - 1):
        here, there = noted[at], noted[at + 1]
        here.tile, here.walks, here.value = there.tile, there.walks, there.value
    numbers[NOTED] -= 1


@helper
def clear_touched(words: Bytes, lanes: int, state: State, target: Bytes, tile: int,
                  walk: int) -> bool:
    """Give noted tiles that are touched the value that their sums begin with."""
    place, lists, known, numbers = 0, state.lists, state.known_walks, state.numbers
    good: bool = True
    while place < numbers[NOTED]:
        note = state.noted[place]
        if not _meet(known, numbers, state.mask, note.tile, note.walks, tile, walk):
            place += 1
            continue
        _plan_fill(lists, known, note.walks)
        for number in range(iterations(lists, FAR, 0)):
            word = copy_word(target, numbers, words, CLEAR)
            dst = note.tile + moved(lists, FAR, number, 0)
            good = good and lanes == 0 and 0 <= dst < TILE_LIMIT
            put(target, word, DST, 2, dst)
            put(target, word, IMMEDIATE, 4, note.value)
            good = (put_counts(lists, target, word, LOOPS, CLEARED)
                    and put_strides(lists, target, word, STRIDE, CLEARED, 0) and good)
        _drop(state.noted, numbers, place)
    return good


@helper
def _meet(known: Walks, numbers: Numbers, mask: Numbers, tile: int, walk: int, other: int,
          other_walk: int) -> bool:
    """Whether some tile is in both."""
    one, two = known.walks[walk], known.walks[other_walk]
    if tile + one.low > other + two.high or other + two.low > tile + one.high:
        return False
    numbers[MARK] += 1
    mark = numbers[MARK]
    base = min(tile + one.low, other + two.low)
    if max(tile + one.high, other + two.high) - base >= len(mask):
        numbers[BROKEN] = 1
        return False
    return (_mark(known, mask, walk, tile - base, mark, False)
            or _mark(known, mask, other_walk, other - base, mark, True))


@helper
def _mark(known: Walks, mask: Numbers, number: int, tile: int, mark: int, asks: bool) -> bool:
    """Mark tiles, or ask whether one of them is marked."""
    walk, steps = known.walks[number], known.steps
    total = 1
    for at in range(walk.loops, walk.loops + walk.count):
        total *= steps[at, 0]
    for each in range(total):
        place, rest = tile, each
        for at in range(walk.loops + walk.count - 1, walk.loops - 1, -1):
            place += rest % steps[at, 0] * steps[at, 1]
            rest //= steps[at, 0]
        if asks and mask[place] == mark:
            return True
        mask[place] = mark
    return False

"""Words and micro-ops: what a plan says, written for the tiles of a visit. Compiled with numba."""

import numpy as np

from .....isa.instructions import INSTRUCTION_BYTES, Load, MicroOp
from .jit import helper, inline_always
from .nest_arrays import (
    CAPACITY,
    EVERY_LIST,
    EXTENT,
    HEADS,
    KNOWN,
    LOOP_OPERANDS,
    MOST_AXES,
    NOTED,
    OFFSET_LIMIT,
    PLACE,
    RESIDENT,
    ROW_COUNT,
    ROW_FIELD,
    ROW_KIND,
    ROW_MODE,
    ROW_MOVED,
    ROW_OPERAND,
    ROW_STEPS,
    ROW_WORD,
    SHAPES,
    STEP,
    SUMS,
    TILE_LIMIT,
    TOP,
    UOP_LOAD,
    UOPS,
    USE,
    WALK_STEPS,
    WALKS,
    WRITTEN,
    Bytes,
    Lists,
    MicroOps,
    Numbers,
    Output,
    Plans,
    State,
    Tables,
)
from .word_fields import offset_of

LOADED, OFFSET = offset_of(Load, "sram"), offset_of(Load, "offset")
LENGTH = offset_of(Load, "shape") + 2 * np.dtype("u2").itemsize     # the last of three
UOP_BYTES = MicroOp.size


@helper
def copy_word(target: Bytes, numbers: Numbers, words: Bytes, number: int) -> int:
    """Write a word, and say where it is."""
    at: int = numbers[WRITTEN]
    for byte in range(INSTRUCTION_BYTES):
        target[at, byte] = words[number, byte]
    numbers[WRITTEN] = at + 1
    return at


@helper
def put(words: Bytes, at: int, field: int, size: int, value: int) -> None:
    for byte in range(size):
        words[at, field + byte] = value >> 8 * byte & 255


@helper
def has_room(state: State, output: Output, rows: int, uops: int) -> bool:
    """Whether so many rows, and everything that is noted, can be written."""
    numbers = state.numbers
    for place in range(numbers[NOTED]):
        rows += state.known_walks.walks[state.noted[place].walks].fill_count
    fits: bool = (numbers[WRITTEN] + rows <= len(output.words)
                  and numbers[UOPS] + uops <= len(output.uops)
                  and numbers[KNOWN] + rows <= len(state.known)
                  and numbers[NOTED] < len(state.noted)
                  and numbers[SHAPES] < len(state.shapes)
                  and numbers[WALKS] + EVERY_LIST <= len(state.known_walks.walks)
                  and numbers[WALK_STEPS] + EVERY_LIST * MOST_AXES <= len(state.known_walks.steps))
    return fits


@helper
def write_rows(tables: Tables, plans: Plans, state: State, output: Output, first: int, count: int,
           tiles: Numbers) -> bool:
    """Write the rows of a plan for some tiles."""
    rows, uop = plans.rows, 0
    good: bool = True
    for at in range(first, first + count):
        if rows[at, ROW_KIND] == PLACE:
            uop = _place(tables, plans, state, output, at, tiles)
            if uop < 0:
                return False
            continue
        word = copy_word(output.words, state.numbers, plans.words, rows[at, ROW_WORD])
        if rows[at, ROW_KIND] == USE:
            put(output.words, word, rows[at, ROW_FIELD], 2, uop + rows[at, ROW_MOVED])
            continue
        for place in range(rows[at, ROW_COUNT]):
            tile = tiles[rows[at, ROW_OPERAND + place]] + rows[at, ROW_MOVED + place]
            good = good and 0 <= tile < TILE_LIMIT
            put(output.words, word, rows[at, ROW_FIELD + place], 2, tile)
    return good


@inline_always
def _place(tables: Tables, plans: Plans, state: State, output: Output, row: int,
           tiles: Numbers) -> int:
    """Where the micro-ops of a row of a plan are."""
    rows = plans.rows
    steps = rows[row, ROW_STEPS]
    return place_sequence(tables.words, tables.fields[CAPACITY], plans, state, output,
                          rows[row, ROW_MODE], steps, plans.sequences[steps].count,
                          tiles[0] + rows[row, ROW_MOVED],
                          tiles[1] + rows[row, ROW_MOVED + 1],
                          tiles[2] + rows[row, ROW_MOVED + 2])


@helper
def place_sequence(words: Bytes, capacity: int, plans: Plans, state: State, output: Output,
                   mode: int, steps: int, count: int, dst: int, src: int, wgt: int) -> int:
    """Where a sequence of micro-ops is in the scratchpad; it is loaded if it is not there yet. -1
    if it cannot be. Its steps are those of a plan, or those of a shape, which count down."""
    numbers = state.numbers
    head = (dst * 31 + src * 1009 + wgt * 7919 + steps * 104729 + mode) % HEADS
    known = state.heads[head]
    while known >= 0:
        each = state.known[known]
        if (each.dst == dst and each.src == src and each.wgt == wgt and each.steps == steps
                and each.mode == mode):
            break
        known = each.before
    if count > capacity:
        return -1
    if known < 0:
        known = _remember(plans, state, output, head, dst, src, wgt, steps, mode, count)
        if known < 0:
            return -1
    each = state.known[known]
    first: int = each.place
    if first >= 0:
        return first
    first = numbers[TOP] if numbers[TOP] + count <= capacity else 0
    left = 0
    for at in range(numbers[RESIDENT]):
        other = state.known[state.resident[at]]
        if other.place + other.count <= first or other.place >= first + count:
            state.resident[left] = state.resident[at]
            left += 1
        else:
            other.place = -1
    state.resident[left] = known
    numbers[RESIDENT] = left + 1
    each.place = first
    numbers[TOP] = first + count
    offset = each.dram * UOP_BYTES
    if offset >= OFFSET_LIMIT:
        return -1
    word = copy_word(output.words, state.numbers, words, UOP_LOAD)
    put(output.words, word, LOADED, 2, first)
    put(output.words, word, OFFSET, 4, offset)
    put(output.words, word, LENGTH, 2, count)
    return first


@helper
def _remember(plans: Plans, state: State, output: Output, head: int, dst: int, src: int, wgt: int,
              steps: int, mode: int, count: int) -> int:
    """Write a new sequence of micro-ops to DRAM; -1 if a tile has no number there."""
    number: int = state.numbers[KNOWN]
    each = state.known[number]
    each.dst, each.src, each.wgt, each.steps, each.mode = dst, src, wgt, steps, mode
    each.count, each.dram, each.place = count, state.numbers[UOPS], -1
    each.before = state.heads[head]
    state.heads[head] = number
    state.numbers[KNOWN] = number + 1
    first = state.numbers[UOPS]
    good = (_write_shape(state.shapes[-1 - steps], first, output.uops, dst, src, wgt) if steps < 0
            else _write_steps(plans, first, output.uops, steps, dst, src, wgt))
    state.numbers[UOPS] += count
    return number if good else -1


@inline_always
def _write_steps(plans: Plans, first: int, uops: MicroOps, steps: int, dst: int, src: int,
                 wgt: int) -> bool:
    sequence = plans.sequences[steps]
    for place in range(sequence.count):
        at = first + place
        step = plans.steps[sequence.first + place]
        low = min(dst + step[0], src + step[1], wgt + step[2])
        if low < 0 or max(dst + step[0], src + step[1], wgt + step[2]) >= TILE_LIMIT:
            return False
        uops[at, 0] = dst + step[0]
        uops[at, 1] = src + step[1]
        uops[at, 2] = wgt + step[2]
    return True


@inline_always
def find_shape(lists: Lists, shapes: Numbers, numbers: Numbers) -> int:
    """The number of the loops that are micro-ops at a visit."""
    loops, count = lists.rows[SUMS], lists.counts[SUMS]
    known: int = numbers[SHAPES]
    size = LOOP_OPERANDS + 1
    for number in range(known):
        shape = shapes[number]
        same = shape[0] == count
        for at in range(count if same else 0):
            for column in range(size):
                same = same and shape[1 + size * at + column] == loops[at, column]
        if same:
            return number
    shape = shapes[known]
    shape[0] = count
    for at in range(count):
        for column in range(size):
            shape[1 + size * at + column] = loops[at, column]
    numbers[SHAPES] = known + 1
    return known


@inline_always
def _write_shape(shape: Numbers, first: int, uops: MicroOps, dst: int, src: int,
                 wgt: int) -> bool:
    """The micro-ops of some loops: those of a loop are those inside it, again and again."""
    count, size = 1, LOOP_OPERANDS + 1
    for operand in range(LOOP_OPERANDS):
        low = high = dst if operand == 0 else src if operand == 1 else wgt
        for at in range(shape[0]):
            reach = (shape[1 + size * at + EXTENT] - 1) * shape[1 + size * at + STEP + operand]
            low, high = low + min(reach, 0), high + max(reach, 0)
        if low < 0 or high >= TILE_LIMIT:
            return False
    uops[first, 0], uops[first, 1], uops[first, 2] = dst, src, wgt
    for at in range(shape[0] - 1, -1, -1):
        loop = 1 + size * at
        for iteration in range(1, shape[loop + EXTENT]):
            begin = first + iteration * count
            for operand in range(LOOP_OPERANDS):
                moved = iteration * shape[loop + STEP + operand]
                for place in range(count):
                    uops[begin + place, operand] = uops[first + place, operand] + moved
        count *= shape[loop + EXTENT]
    return True

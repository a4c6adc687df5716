"""Words and micro-ops: what a plan says, written for the tiles of a visit. Compiled with numba."""

from .jit import helper
from .nest_arrays import (
    HEADS,
    KNOWN,
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
    TILE_LIMIT,
    TOP,
    UOPS,
    USE,
    WRITTEN,
    Bytes,
    Numbers,
    Output,
    Plans,
    State,
    Tables,
)


@helper
def copy_word(output: Output, state: State, words: Bytes, number: int) -> int:
    """Write a word, and say where it is."""
    at: int = state.numbers[WRITTEN]
    for byte in range(words.shape[1]):
        output.words[at, byte] = words[number, byte]
    state.numbers[WRITTEN] = at + 1
    return at


@helper
def put(output: Output, at: int, field: int, size: int, value: int) -> None:
    for byte in range(size):
        output.words[at, field + byte] = value >> 8 * byte & 255


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
        word = copy_word(output, state, plans.words, rows[at, ROW_WORD])
        if rows[at, ROW_KIND] == USE:
            put(output, word, rows[at, ROW_FIELD], 2, uop + rows[at, ROW_MOVED])
            continue
        for place in range(rows[at, ROW_COUNT]):
            tile = tiles[rows[at, ROW_OPERAND + place]] + rows[at, ROW_MOVED + place]
            good = good and 0 <= tile < TILE_LIMIT
            put(output, word, rows[at, ROW_FIELD + place], 2, tile)
    return good


@helper
def _place(tables: Tables, plans: Plans, state: State, output: Output, row: int,
           tiles: Numbers) -> int:
    """Where a sequence of micro-ops is in the scratchpad; it is loaded if it is not there yet."""
    rows, numbers = plans.rows, state.numbers
    mode, steps = rows[row, ROW_MODE], rows[row, ROW_STEPS]
    dst = tiles[0] + rows[row, ROW_MOVED]
    src = tiles[1] + rows[row, ROW_MOVED + 1]
    wgt = tiles[2] + rows[row, ROW_MOVED + 2]
    head = (dst * 31 + src * 1009 + wgt * 7919 + steps * 104729 + mode) % HEADS
    known = state.heads[head]
    while known >= 0:
        each = state.known[known]
        if (each.dst == dst and each.src == src and each.wgt == wgt and each.steps == steps
                and each.mode == mode):
            break
        known = each.before
    if known < 0:
        known = _remember(plans, state, output, head, dst, src, wgt, steps, mode)
        if known < 0:
            return -1
    each = state.known[known]
    first: int = each.place
    if first >= 0:
        return first
    capacity, length = tables.fields[0], each.count
    if length > capacity:
        return -1
    first = numbers[TOP] if numbers[TOP] + length <= capacity else 0
    left = 0
    for at in range(numbers[RESIDENT]):
        other = state.known[state.resident[at]]
        if other.place + other.count <= first or other.place >= first + length:
            state.resident[left] = state.resident[at]
            left += 1
        else:
            other.place = -1
    state.resident[left] = known
    numbers[RESIDENT] = left + 1
    each.place = first
    numbers[TOP] = first + length
    offset = each.dram * tables.fields[7]
    if offset >= OFFSET_LIMIT:
        return -1
    word = copy_word(output, state, tables.uop_load, 0)
    put(output, word, tables.fields[4], 2, first)
    put(output, word, tables.fields[5], 4, offset)
    put(output, word, tables.fields[6], 2, length)
    return first


@helper
def _remember(plans: Plans, state: State, output: Output, head: int, dst: int, src: int, wgt: int,
              steps: int, mode: int) -> int:
    """Write a new sequence of micro-ops to DRAM; -1 if a tile has no number there."""
    number: int = state.numbers[KNOWN]
    sequence = plans.sequences[steps]
    each = state.known[number]
    each.dst, each.src, each.wgt, each.steps, each.mode = dst, src, wgt, steps, mode
    each.count, each.dram, each.place = sequence.count, state.numbers[UOPS], -1
    each.before = state.heads[head]
    state.heads[head] = number
    state.numbers[KNOWN] = number + 1
    for place in range(sequence.count):
        at = state.numbers[UOPS] + place
        moved = plans.steps[sequence.first + place]
        low = min(dst + moved[0], src + moved[1], wgt + moved[2])
        if low < 0 or max(dst + moved[0], src + moved[1], wgt + moved[2]) >= TILE_LIMIT:
            return -1
        output.uops[at, 0] = dst + moved[0]
        output.uops[at, 1] = src + moved[1]
        output.uops[at, 2] = wgt + moved[2]
    state.numbers[UOPS] += sequence.count
    return number


@helper
def write_transfers(plans: Plans, state: State, output: Output, first: int, count: int, tile: int,
                    offset: int) -> bool:
    """Write loads or stores, moved to where they start. Mere borders have no place in DRAM."""
    good: bool = True
    for at in range(first, first + count):
        word = copy_word(output, state, plans.words, plans.rows[at, ROW_WORD])
        sram = tile + plans.rows[at, ROW_MOVED]
        begin = offset + plans.rows[at, ROW_MOVED + 1] if plans.rows[at, ROW_COUNT] else 0
        good = good and 0 <= sram < TILE_LIMIT and 0 <= begin < OFFSET_LIMIT
        put(output, word, plans.rows[at, ROW_FIELD], 2, sram)
        put(output, word, plans.rows[at, ROW_FIELD + 1], 4, begin)
    return good

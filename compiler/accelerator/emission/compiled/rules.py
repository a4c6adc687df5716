"""The accelerator's own rules as compiled code: `selection.instructions`, without objects.

A visit is planned first, which says how many words and micro-ops it takes, and then written. Rules
of others are asked by `plans`. Compiled with numba.
"""

# No postponed annotations here: numba reads the functions as they are.
from .....isa.instructions import PARAMETER_TILES, Alu, AluI, Gemm, GemmFlags, Requantize
from .jit import helper
from .nest_arrays import (
    ALL,
    CAPACITY,
    FRESH,
    HARDWARE_LOOPS,
    IMMEDIATE,
    LISTS,
    LOOP_OPERANDS,
    NEAR,
    PAIRS,
    PARTS,
    PRODUCT,
    REQUANTIZATION,
    REST,
    ROWS,
    SPACE,
    STEP,
    SUMS,
    TILE_LIMIT,
    Bytes,
    Lists,
    Numbers,
    Output,
    Plans,
    Record,
    Records,
    State,
    Tables,
)
from .visit_loops import (
    append_loop,
    iterations,
    join_loop,
    move_loop,
    moved,
    put_counts,
    put_strides,
    split_off,
    step_of,
)
from .word_fields import offset_of
from .write import copy_word, find_shape, place_sequence, put

GEMM_FLAGS, GEMM_UOP, GEMM_COUNT, GEMM_LOOPS = (
    offset_of(Gemm, name) for name in ("flags", "uop", "count", "loops"))
GEMM_STRIDES = offset_of(Gemm, "dst_stride")            # the three follow one another
GEMM_STEP = offset_of(Gemm, "src_stride") - GEMM_STRIDES
BEGIN, FIRST_UOP = int(GemmFlags.START), int(GemmFlags.FIRST_UOP)
SCALE_TILES, SCALE_LOOPS, SCALE_STRIDES, SCALE_PARAMETERS = (
    offset_of(Requantize, name) for name in ("dst", "loops", "dst_stride", "params_stride"))
SCALE_STEP = offset_of(Requantize, "src_stride") - SCALE_STRIDES
MOST_PARAMETERS = 255           # tiles from block to block
ALU_DST, ALU_LHS, ALU_RHS, ALU_LOOPS, ALU_STRIDES, ALU_RIGHT = (
    offset_of(Alu, name) for name in ("dst", "lhs", "rhs", "loops", "dst_stride", "rhs_stride"))
ALUI_DST, ALUI_SRC, ALUI_LOOPS, ALUI_STRIDES, ALUI_SOURCE = (
    offset_of(AluI, name) for name in ("dst", "src", "loops", "dst_stride", "src_stride"))
assert offset_of(Gemm, "wgt_stride") - GEMM_STRIDES == 2 * GEMM_STEP
assert offset_of(Requantize, "params") - SCALE_TILES == 2 * 2
assert PARAMETER_TILES == 3


@helper
def plan_visit(operands: Records, steps: Numbers, most: int, lists: Lists, extents: Numbers,
               numbers: Numbers, site: Record, tiles: Numbers) -> bool:
    """Plan the words of a visit, whose loops are `extents`. Whether its rule allows it."""
    for which in range(LISTS):
        lists.counts[which] = 0
    good: bool = True
    if site.rule == PRODUCT:
        _plan_products(operands, steps, most, lists, extents, site)
    elif site.rule == REQUANTIZATION:
        good = _plan_channels(operands, steps, lists, extents, site, tiles)
    else:
        for axis in range(site.axis_count):
            if extents[axis] > 1:
                _join_axis(operands, steps, lists, extents[axis], site, SPACE, axis)
        split_off(lists, SPACE, HARDWARE_LOOPS, REST)
    words = iterations(lists, PARTS, 0) * iterations(lists, REST, 0)
    numbers[ROWS] = 2 * words
    numbers[FRESH] = words * iterations(lists, SUMS, 0) if site.rule == PRODUCT else 0
    return good


@helper
def _join_axis(operands: Records, steps: Numbers, lists: Lists, extent: int, site: Record,
               which: int, axis: int) -> None:
    two = step_of(operands, steps, site, 1, axis) if site.operand_count > 1 else 0
    three = step_of(operands, steps, site, 2, axis) if site.operand_count > 2 else 0
    join_loop(lists, which, extent, step_of(operands, steps, site, 0, axis), two, three)


@helper
def _plan_products(operands: Records, steps: Numbers, most: int, lists: Lists, extents: Numbers,
                   site: Record) -> None:
    """Loops over which a sum runs become micro-ops, as many as there may be; the others become
    loops of the hardware."""
    for axis in range(site.axis_count):
        if extents[axis] > 1:
            _join_axis(operands, steps, lists, extents[axis], site,
                       SPACE if step_of(operands, steps, site, 0, axis) else ALL, axis)
    split_off(lists, SPACE, HARDWARE_LOOPS, REST)
    parts = 0
    while iterations(lists, ALL, parts) > most:
        parts += 1
    for at in range(lists.counts[ALL]):
        move_loop(lists, ALL, at, PARTS if at < parts else SUMS)


@helper
def _plan_channels(operands: Records, steps: Numbers, lists: Lists, extents: Numbers,
                   site: Record, tiles: Numbers) -> bool:
    """Loops around a requantization: the parameters of channels change with the outer loop of the
    hardware, and with loops that are written out. They must be three tiles in a row."""
    good: bool = True
    for number in range(1, PARAMETER_TILES):
        good = good and tiles[2 + number] == tiles[2] + number
    for axis in range(site.axis_count):
        if extents[axis] > 1:
            _join_axis(operands, steps, lists, extents[axis], site, ALL, axis)
            for number in range(1, PARAMETER_TILES):
                good = good and step_of(operands, steps, site, 2 + number, axis) == step_of(
                    operands, steps, site, 2, axis)
    last = -1
    for at in range(lists.counts[ALL]):
        if lists.rows[ALL, at, STEP + 2] == 0:
            move_loop(lists, ALL, at, NEAR)         # the others, for now
        else:
            if last >= 0:
                move_loop(lists, ALL, last, REST)
            last = at
    split_off(lists, NEAR, HARDWARE_LOOPS - 1, REST)
    if last >= 0:
        move_loop(lists, ALL, last, SPACE)
        for _ in range(HARDWARE_LOOPS - 1 - lists.counts[NEAR]):
            append_loop(lists, SPACE, 1, 0, 0, 0)
    for at in range(lists.counts[NEAR]):
        move_loop(lists, NEAR, at, SPACE)
    return good


@helper
def write_visit(words: Bytes, lists: Lists, numbers: Numbers, target: Bytes, site: Record,
                tiles: Numbers) -> bool:
    """Write what is planned for some tiles, other than products. Whether all numbers fit."""
    good: bool = True
    for number in range(iterations(lists, REST, 0)):
        word = copy_word(target, numbers, words, site.word)
        if site.rule == REQUANTIZATION:
            fits = _write_scale(lists, target, word, number, tiles)
        elif site.rule == PAIRS:
            fits = _write_pairs(lists, target, word, number, tiles)
        else:
            fits = _put_tile(lists, target, word, ALUI_DST, number, tiles, 0)
            fits = put_counts(lists, target, word, ALUI_LOOPS, SPACE) and fits
            fits = put_strides(lists, target, word, ALUI_STRIDES, SPACE, 0) and fits
            if site.rule == IMMEDIATE:
                fits = _put_tile(lists, target, word, ALUI_SRC, number, tiles, 1) and fits
                fits = put_strides(lists, target, word, ALUI_SOURCE, SPACE, 1) and fits
        good = good and fits
    return good


@helper
def write_products(tables: Tables, plans: Plans, state: State, output: Output, site: Record,
                   tiles: Numbers, begins: bool) -> bool:
    """Write the products that are planned for some tiles."""
    lists, words = state.lists, output.words
    shape = find_shape(lists, state.shapes, state.numbers)
    count, good = iterations(lists, SUMS, 0), True
    written = iterations(lists, REST, 0)
    first = BEGIN | (FIRST_UOP if lists.counts[SUMS] else 0)
    for number in range(iterations(lists, PARTS, 0) * written):
        part, near = number // written, number % written
        for operand in range(LOOP_OPERANDS):
            state.near[operand] = (tiles[operand] + moved(lists, PARTS, part, operand)
                                   + moved(lists, REST, near, operand))
        uop = place_sequence(tables.words, tables.fields[CAPACITY], plans, state, output,
                             site.value, -1 - shape, count, state.near[0], state.near[1],
                             state.near[2])
        if uop < 0:
            return False
        word = copy_word(words, state.numbers, tables.words, site.word)
        if begins and part == 0:
            words[word, GEMM_FLAGS] |= first
        put(words, word, GEMM_UOP, 2, uop)
        put(words, word, GEMM_COUNT, 2, count)
        good = put_counts(lists, words, word, GEMM_LOOPS, SPACE) and good and count < TILE_LIMIT
        for operand in range(LOOP_OPERANDS):
            good = put_strides(lists, words, word, GEMM_STRIDES + operand * GEMM_STEP, SPACE,
                               operand) and good
    return good


@helper
def _put_tile(lists: Lists, words: Bytes, word: int, field: int, number: int, tiles: Numbers,
              operand: int) -> bool:
    """Write which tile an operand is in one of the loops that are written out."""
    tile: int = tiles[operand] + moved(lists, REST, number, operand)
    put(words, word, field, 2, tile)
    return 0 <= tile < TILE_LIMIT


@helper
def _write_scale(lists: Lists, words: Bytes, word: int, number: int, tiles: Numbers) -> bool:
    good: bool = put_counts(lists, words, word, SCALE_LOOPS, SPACE)
    for operand in range(LOOP_OPERANDS):
        good = _put_tile(lists, words, word, SCALE_TILES + 2 * operand, number, tiles,
                         operand) and good
    for operand in range(LOOP_OPERANDS - 1):
        good = put_strides(lists, words, word, SCALE_STRIDES + operand * SCALE_STEP, SPACE,
                           operand) and good
    step = lists.rows[SPACE, 0, STEP + 2] if lists.counts[SPACE] == HARDWARE_LOOPS else 0
    put(words, word, SCALE_PARAMETERS, 1, step)
    return good and 0 <= step <= MOST_PARAMETERS


@helper
def _write_pairs(lists: Lists, words: Bytes, word: int, number: int, tiles: Numbers) -> bool:
    """An element-wise operation. The left operand must walk as the result does."""
    good: bool = put_counts(lists, words, word, ALU_LOOPS, SPACE)
    for which in (SPACE, REST):
        for at in range(lists.counts[which]):
            good = good and lists.rows[which, at, STEP] == lists.rows[which, at, STEP + 1]
    good = _put_tile(lists, words, word, ALU_DST, number, tiles, 0) and good
    good = _put_tile(lists, words, word, ALU_LHS, number, tiles, 1) and good
    good = _put_tile(lists, words, word, ALU_RHS, number, tiles, 2) and good
    good = put_strides(lists, words, word, ALU_STRIDES, SPACE, 0) and good
    return put_strides(lists, words, word, ALU_RIGHT, SPACE, 2) and good

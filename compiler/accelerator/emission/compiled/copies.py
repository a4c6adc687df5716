"""Loads and stores of a copy as compiled code: `transfers`, without objects. Compiled with numba.

A copy has a side for each dimension: how many tiles, how far apart they are in DRAM and in the
scratchpad, and how many of them lie outside DRAM before and after.
"""

# No postponed annotations here: numba reads the functions as they are.
from .....isa.instructions import Load, Store
from .jit import helper, inline_always
from .nest_arrays import (
    MOST_ROWS,
    OFFSET_LIMIT,
    TILE_LIMIT,
    Bytes,
    Numbers,
    Record,
    Sides,
)
from .word_fields import WIDEST, offset_of
from .write import copy_word, put

TILES, DRAM, PAD, BEFORE, AFTER = range(5)              # columns of `Sides.sides`
ROW, LINES, PLANES = range(3)                           # rows of `Sides.box`
LOAD_TILE, LOAD_OFFSET, LOAD_SHAPE, LOAD_PITCH, LOAD_STRIDE, LOAD_PAD = (
    offset_of(Load, name) for name in ("sram", "offset", "shape", "sram_pitch", "stride", "pad"))
STORE_TILE, STORE_OFFSET, STORE_SHAPE, STORE_PITCH, STORE_STRIDE = (
    offset_of(Store, name) for name in ("sram", "offset", "shape", "sram_pitch", "stride"))
STRIDE_LIMIT = OFFSET_LIMIT >> 1
REFUSED = -1                # in place of a number of words


@helper
def write_copy(room: Sides, words: Bytes, numbers: Numbers, target: Bytes, site: Record, rank: int,
               tile: int, offset: int, padded: bool, word: int) -> int:
    """Write the words of a box with the sides that are given, which starts at a tile and a byte,
    or only count them, if there is no word to begin with. What lies outside DRAM is padded, or
    left out."""
    first, count = 0, 0
    for place in range(rank):
        side = room.given[place]
        extent, before, after = side[TILES], side[BEFORE], side[AFTER]
        if not padded:
            first += before * side[PAD]
            extent, before, after = extent - before - after, 0, 0
        if extent <= 0:
            return 0
        if extent > 1 or before or after:
            count = _merge(room.sides, count, extent, side[DRAM], side[PAD], before, after)
    far = _take_box(room, count, site)
    total = 1
    for at in range(far):
        total = min(total * room.sides[at, TILES], MOST_ROWS)
    if total >= MOST_ROWS:
        return REFUSED
    written = 0
    for number in range(total):
        count = _write_part(room, words, numbers, target, site, far, number, tile + first,
                            offset, word)
        if count < 0:
            return REFUSED
        written += count
    return written


@inline_always
def _merge(sides: Numbers, count: int, extent: int, dram: int, pad: int, before: int,
           after: int) -> int:
    """Append a side, joined with the one before if they step as one."""
    if count > 0 and before == 0 and after == 0:
        last = sides[count - 1]
        if last[BEFORE] == 0 and last[AFTER] == 0 and last[DRAM] == dram * extent and (
                last[PAD] == pad * extent):
            last[TILES] *= extent
            last[DRAM], last[PAD] = dram, pad
            return count
    side = sides[count]
    side[TILES], side[DRAM], side[PAD], side[BEFORE], side[AFTER] = (
        extent, dram, pad, before, after)
    return count + 1


@helper
def _take(room: Sides, count: int, which: int, takes: bool, tiles: int, dram: int,
          pad: int) -> int:
    """Make the last side a dimension of the box, or one of a single index."""
    box = room.box[which]
    if takes:
        for column in range(AFTER + 1):
            box[column] = room.sides[count - 1, column]
        return count - 1
    box[TILES], box[DRAM], box[PAD], box[BEFORE], box[AFTER] = tiles, dram, pad, 0, 0
    return count


@helper
def _take_box(room: Sides, count: int, site: Record) -> int:
    """The box that an instruction moves: a row, rows and planes. Returns how many sides are left,
    which are written out."""
    sides, row = room.sides, room.box[ROW]
    count = _take(room, count, ROW, count > 0 and sides[count - 1, PAD] == 1
                  and sides[count - 1, DRAM] == site.tile_bytes, 1, site.tile_bytes, 1)
    if not site.loads:
        count = _take(room, count, LINES, count > 0, 1, 0, 0)
        return _take(room, count, PLANES, count > 0, 1, 0, 0)
    count = _take(room, count, LINES, count > 0 and sides[count - 1, PAD] == row[TILES],
                  1, 0, row[TILES])
    return _take(room, count, PLANES, count > 0 and sides[count - 1, BEFORE] == 0
                 and sides[count - 1, AFTER] == 0, 1, 0, 0)


@helper
def _write_part(room: Sides, words: Bytes, numbers: Numbers, target: Bytes, site: Record,
                far: int, number: int, tile: int, offset: int, word: int) -> int:
    """One of the boxes that a copy is: a word, or several if all of it is border."""
    row, lines, planes = room.box[ROW], room.box[LINES], room.box[PLANES]
    outside, rest = False, number
    for at in range(far - 1, -1, -1):
        side = room.sides[at]
        index = rest % side[TILES]
        rest //= side[TILES]
        outside = outside or index < side[BEFORE] or index >= side[TILES] - side[AFTER]
        offset += (index - side[BEFORE]) * side[DRAM]
        tile += index * side[PAD]
    width = row[TILES] - row[BEFORE] - row[AFTER]
    height = lines[TILES] - lines[BEFORE] - lines[AFTER]
    if not site.loads:
        return _write_store(room, words, numbers, target, tile, offset, word)
    if outside or width <= 0 or height <= 0:
        tiles, count = lines[TILES] * row[TILES], 0
        for done in range(0, tiles, WIDEST):
            if word >= 0:
                at = copy_word(target, numbers, words, word)
                put(target, at, LOAD_PAD, 1, 1)
                put(target, at, LOAD_PAD + 2, 1, min(WIDEST, tiles - done))
                if not _put_load(target, at, tile + done, 0, planes[TILES], 0, 0, 0, 0,
                                 planes[PAD]):
                    return REFUSED
            count += 1
        return count
    if max(max(row[BEFORE], row[AFTER]), max(lines[BEFORE], lines[AFTER])) > WIDEST:
        return REFUSED
    if word >= 0:
        at = copy_word(target, numbers, words, word)
        for place in range(2):
            put(target, at, LOAD_PAD + place, 1, lines[BEFORE + place])
            put(target, at, LOAD_PAD + 2 + place, 1, row[BEFORE + place])
        if not _put_load(target, at, tile, offset, planes[TILES], height, width, planes[DRAM],
                         lines[DRAM], planes[PAD]):
            return REFUSED
    return 1


@helper
def _put_load(target: Bytes, at: int, tile: int, offset: int, planes: int, height: int,
              width: int, far: int, near: int, pitch: int) -> bool:
    put(target, at, LOAD_TILE, 2, tile)
    put(target, at, LOAD_OFFSET, 4, offset)
    put(target, at, LOAD_SHAPE, 2, planes)
    put(target, at, LOAD_SHAPE + 2, 2, height)
    put(target, at, LOAD_SHAPE + 4, 2, width)
    put(target, at, LOAD_PITCH, 2, pitch)
    put(target, at, LOAD_STRIDE, 4, far)
    put(target, at, LOAD_STRIDE + 4, 4, near)
    return (0 <= tile < TILE_LIMIT and 0 <= offset < OFFSET_LIMIT
            and max(planes, max(height, width)) < TILE_LIMIT and 0 <= pitch < TILE_LIMIT
            and max(far, near) < STRIDE_LIMIT and min(far, near) >= -STRIDE_LIMIT)


@helper
def _write_store(room: Sides, words: Bytes, numbers: Numbers, target: Bytes, tile: int,
                 offset: int, word: int) -> int:
    row, lines, planes = room.box[ROW], room.box[LINES], room.box[PLANES]
    if word < 0:
        return 1
    at = copy_word(target, numbers, words, word)
    put(target, at, STORE_TILE, 2, tile)
    put(target, at, STORE_OFFSET, 4, offset)
    put(target, at, STORE_SHAPE, 2, planes[TILES])
    put(target, at, STORE_SHAPE + 2, 2, lines[TILES])
    put(target, at, STORE_SHAPE + 4, 2, row[TILES])
    put(target, at, STORE_PITCH, 2, planes[PAD])
    put(target, at, STORE_PITCH + 2, 2, lines[PAD])
    put(target, at, STORE_STRIDE, 4, planes[DRAM])
    put(target, at, STORE_STRIDE + 4, 4, lines[DRAM])
    fits = (0 <= tile < TILE_LIMIT and 0 <= offset < OFFSET_LIMIT
            and max(planes[TILES], max(lines[TILES], row[TILES])) < TILE_LIMIT
            and max(planes[PAD], lines[PAD]) < TILE_LIMIT and min(planes[PAD], lines[PAD]) >= 0
            and max(planes[DRAM], lines[DRAM]) < STRIDE_LIMIT)
    return 1 if fits else REFUSED

"""Loads and stores as compiled code: which boxes a copy is, as `transfers.Transfer` says. Compiled
with numba."""

from .copies import AFTER, BEFORE, DRAM, PAD, TILES, write_copy
from .jit import helper
from .nest_arrays import (
    BROKEN,
    DONE,
    FULL,
    LANES,
    NOTED,
    REFUSED,
    Numbers,
    Output,
    Record,
    State,
    Tables,
)
from .pending_sums import clear_touched
from .visit_loops import next_run, value_of
from .write import has_room

BORDER = 3                      # numbers of a side that a border is known by


@helper
def visit_copy(tables: Tables, state: State, output: Output, number: int) -> int:
    """A load or a store. What is still on the chip is not loaded again."""
    site = tables.transfers[number]
    if site.target >= 0 and state.loaded[site.target]:
        return DONE
    first = state.bases[site.buffer] + value_of(tables.forms, site.tile, state.values)
    if not _start_tiles(tables, state, site):
        return REFUSED
    offset = _find_sides(tables, state, site)
    tile, padded = first // tables.buffers[site.buffer].parts, site.padded > 0
    words, boxes = _write_boxes(tables, state, output, site, tile, offset, padded, -1)
    if words < 0:
        return REFUSED
    if not has_room(state, output, words, 0):
        return FULL
    if state.numbers[NOTED] and site.in_acc and not clear_touched(
            tables.words, tables.fields[LANES], state, output.words, first, site.touched):
        return REFUSED
    word = site.word
    if boxes == 1 and site.has_border and _renew(tables, state, site, tile, padded):
        inside, _ = _write_boxes(tables, state, output, site, tile, offset, False, -1)
        if 0 <= inside <= words:            # what a border leaves is loaded alone
            padded, word = False, site.inside
    if _write_boxes(tables, state, output, site, tile, offset, padded, word)[0] < 0:
        return REFUSED
    return DONE


@helper
def _start_tiles(tables: Tables, state: State, site: Record) -> bool:
    """With which tile of DRAM a copy starts: `starts`. Whether that is a whole one."""
    starts, leading = state.starts, site.rank - 2
    for place in range(site.rank):
        starts[place] = value_of(tables.forms, site.starts + place, state.values)
    row, lane = starts[leading], starts[leading + 1]
    if site.part_rows:
        row += starts[0] * site.part_rows
        leading = 0
    if site.tile_rows:
        starts[leading] = row // site.tile_rows
        row = row % site.tile_rows
    whole: bool = row == 0 and lane == 0
    return whole


@helper
def _find_sides(tables: Tables, state: State, site: Record) -> int:
    """The sides of a copy, as far as they lie in DRAM: `whole`. Returns the byte that it begins
    with. Along runs, that is without the side that is interleaved."""
    offset = 0
    for place in range(site.side_count):
        side, begin, whole = tables.sides[site.sides + place], state.starts[place], (
            state.sides.whole[place])
        extent, before, after = side.extent, 0, 0
        if place != site.place or not site.runs:
            if place == site.place:
                begin = begin // site.ways
            before = min(max(0, -begin), extent)
            after = min(max(0, begin + extent - side.size), extent)
            offset += max(begin, 0) * side.origin
        whole[TILES], whole[DRAM], whole[PAD] = extent * side.scale, side.dram, side.pad
        whole[BEFORE], whole[AFTER] = before * side.scale, after * side.scale
    return offset


@helper
def _write_boxes(tables: Tables, state: State, output: Output, site: Record, tile: int,
                 offset: int, padded: bool, word: int) -> tuple[int, int]:
    """Write the words of a copy, or only count them. Returns how many there are, -1 if that cannot
    be, and in how many boxes."""
    room = state.sides
    if not site.runs:
        for place in range(site.side_count):
            _set_side(room.given[place], room.whole[place])
        return write_copy(room, tables.words, state.numbers, output.words, site, site.side_count,
                          tile, offset, padded, word), 1
    side, first = room.whole[site.place], state.starts[site.place]
    size = tables.sides[site.sides + site.place].size
    at, end, words, boxes = first, first + min(side[TILES], size - first), 0, 0
    while at < end:
        groups, length = next_run(at, end, site.ways)
        _set_run(room.given, room.whole, site, groups, length)
        found, count = _split_borders(
            tables, state, output, site, tile + (at - first) * side[PAD],
            offset + at // site.ways * side[DRAM] + at % site.ways * site.tile_bytes, padded, word)
        if found < 0:
            return -1, boxes
        words, boxes, at = words + found, boxes + count, at + max(groups, 1) * length
    return words, boxes


@helper
def _set_side(side: Numbers, source: Numbers) -> None:
    for column in range(AFTER + 1):
        side[column] = source[column]


@helper
def _set_run(given: Numbers, whole: Numbers, site: Record, groups: int, length: int) -> None:
    """The sides of a box of single tiles along a run, which are groups and what is in one of
    them."""
    place = site.place
    for at in range(site.side_count):
        _set_side(given[at if at < place else at + 1], whole[at])
    outer, inner, side = given[place], given[place + 1], whole[place]
    outer[TILES], outer[DRAM], outer[PAD] = max(groups, 1), side[DRAM], site.ways * side[PAD]
    inner[TILES], inner[DRAM], inner[PAD] = length, site.tile_bytes, side[PAD]
    outer[BEFORE] = outer[AFTER] = inner[BEFORE] = inner[AFTER] = 0


@helper
def _split_borders(tables: Tables, state: State, output: Output, site: Record, tile: int,
                   offset: int, padded: bool, word: int) -> tuple[int, int]:
    """Write a box of single tiles, in which only the last side is padded by the load that moves
    it: the rows of another border are boxes of their own. Returns words and boxes."""
    rows = state.sides.given[site.side_count - 1]
    extent, before, after = rows[TILES], rows[BEFORE], rows[AFTER]
    inside = max(0, extent - before - after)
    words, boxes = 0, 0
    for part in range(3):
        first = 0 if part == 0 else before if part == 1 else extent - after
        count = min(before, extent) if part == 0 else inside if part == 1 else after
        if count > 0:
            rows[TILES], rows[BEFORE], rows[AFTER] = count, 0 if part == 1 else count, 0
            found = write_copy(state.sides, tables.words, state.numbers, output.words, site,
                               site.side_count + 1, tile + first * rows[PAD], offset, padded, word)
            if found < 0:
                return -1, boxes
            words, boxes = words + found, boxes + 1
    return words, boxes


@helper
def _renew(tables: Tables, state: State, site: Record, tile: int, padded: bool) -> bool:
    """Whether a copy of a buffer, which is one box, has its border already. Afterwards it does."""
    buffer, given = tables.buffers[site.buffer], state.sides.given
    turn = (tile - buffer.first) // buffer.step
    if turn < 0 or turn >= buffer.copies:
        state.numbers[BROKEN] = 1
        return False
    borders, bordered = state.borders[buffer.copy + turn], False
    count = site.side_count + site.runs
    for place in range(count):
        bordered = bordered or given[place, BEFORE] > 0 or given[place, AFTER] > 0
    bordered = bordered and padded
    same: bool = bordered and borders[0] == 1
    borders[0] = 1 if bordered else 0
    for place in range(count):
        for column, number in enumerate((given[place, TILES], given[place, BEFORE],
                                         given[place, AFTER])):
            at = 1 + BORDER * place + column
            same = same and borders[at] == number
            borders[at] = number
    return same

"""Walks through the tables of a nest and writes its instructions: the emitter as compiled code.

A visit whose rule only Python knows, and for which there is no plan yet, stops the walk: whoever
called it makes one and lets it go on, so that no plan is made that nobody needs. Functions that
others call take the arrays that they need, not all: numba compiles them far faster. All that the
walk remembers is in arrays of the caller.
"""

# No postponed annotations here: numba reads the functions as they are.
from .copies import write_copy
from .jit import entry, helper
from .nest_arrays import (
    ALLOCATE,
    AT,
    BROKEN,
    BY_PLAN,
    COPY,
    DONE,
    EVERY_LIST,
    FRESH,
    FULL,
    INVOKE,
    KEY,
    KEYS,
    KNOWN,
    LANES,
    LOOP,
    MISSING,
    MOST_AXES,
    MOST_ROWS,
    MOST_SEQUENCE,
    NEXT,
    NOTED,
    PRODUCT,
    REFUSED,
    ROWS,
    SAVE,
    SELECT,
    SHAPES,
    UOPS,
    WALK_STEPS,
    WALKS,
    WHEN,
    WRITTEN,
    Forms,
    Numbers,
    Output,
    Plans,
    Record,
    State,
    Tables,
    head_of_key,
)
from .pending_sums import clear_touched, forget_sum, touched_walk
from .rules import plan_visit, write_products, write_visit
from .write import write_rows

find_head = helper(head_of_key)


@entry
def walk(tables: Tables, plans: Plans, state: State, output: Output) -> int:
    """Go on until the end, or until something is missing."""
    numbers, values = state.numbers, state.values
    while numbers[AT] < len(tables.operations):
        each = tables.operations[numbers[AT]]
        following = numbers[AT] + 1
        end = DONE
        if each.kind == LOOP:
            values[each.slot] = 0
        elif each.kind == NEXT:
            values[each.slot] += 1
            if values[each.slot] < each.extent:
                following = each.target
        elif each.kind == WHEN:
            for form in range(each.first, each.first + each.count):
                if value_of(tables.forms, form, values) < 0:
                    following = each.target
        elif each.kind == ALLOCATE:
            _allocate(tables, state, each.first)
        elif each.kind == SELECT:
            if not _select(tables, state, each):
                following = each.target
        elif each.kind == SAVE:
            for at in range(each.first, each.first + each.count):
                buffer = tables.saved[at]
                state.history[buffer, values[each.slot] % each.sections] = state.bases[buffer]
        elif each.kind == COPY:
            end = _copy(tables, state, output, each.first)
        elif each.kind == INVOKE:
            end = _invoke(tables, plans, state, output, each.first)
        else:
            end = _start(tables, plans, state, output, each.first)
        if end != DONE:
            return end
        numbers[AT] = following
    return REFUSED if numbers[BROKEN] else DONE


@helper
def value_of(forms: Forms, form: int, values: Numbers) -> int:
    total: int = forms.constant[form]
    for at in range(forms.begin[form], forms.begin[form + 1]):
        total += forms.coefficient[at] * values[forms.slot[at]]
    return total


@helper
def _select(tables: Tables, state: State, each: Record) -> bool:
    """The iteration that a section of a loop which runs ahead is in, if there is one."""
    iteration = state.values[each.slot + 1] - each.delay
    if iteration < 0 or iteration >= each.extent:
        return False
    state.values[each.slot] = iteration
    for at in range(each.first, each.first + each.count):
        buffer = tables.saved[at]
        state.bases[buffer] = state.history[buffer, iteration % each.sections]
    return True


@helper
def _allocate(tables: Tables, state: State, number: int) -> None:
    """Where a buffer is this time: a copy that holds what is about to be loaded, or the one that
    has waited longest."""
    buffer = tables.buffers[number]
    turn = -1
    for copy in range(buffer.copies if buffer.rank >= 0 else 0):
        if turn < 0 and _holds(tables, state, buffer, buffer.copy + copy):
            turn = copy
    state.loaded[number] = turn >= 0
    if turn < 0:
        turn = state.turns[number]
        state.turns[number] = (turn + 1) % buffer.copies
        state.holds[buffer.copy + turn, 0] = buffer.rank >= 0
        for place in range(buffer.rank):
            state.holds[buffer.copy + turn, 1 + place] = value_of(
                tables.forms, buffer.contents + place, state.values)
    first = buffer.first + turn * buffer.step
    state.bases[number] = first * buffer.parts
    for place in range(len(tables.buffers)):
        other = tables.buffers[place]
        if place != number and other.scope == buffer.scope:
            for copy in range(other.copies):
                begin = other.first + copy * other.step
                if begin < first + buffer.tiles and begin + other.tiles > first:
                    state.holds[other.copy + copy, 0] = 0
                    state.borders[other.copy + copy, 0] = 0


@helper
def _holds(tables: Tables, state: State, buffer: Record, copy: int) -> bool:
    if state.holds[copy, 0] == 0:
        return False
    for place in range(buffer.rank):
        if state.holds[copy, 1 + place] != value_of(tables.forms, buffer.contents + place,
                                                    state.values):
            return False
    return True


@helper
def _find(plans: Plans, state: State, site: int, kind: int, length: int) -> int:
    """The plan of a site for `key`; -1 if there is none."""
    found: int = plans.heads[find_head(kind, state.key, length)]
    while found >= 0:
        same = plans.plans[found].kind == kind
        for place in range(length):
            if plans.keys[found, place] != state.key[place]:
                same = False
                break
        if same:
            return found
        found = plans.plans[found].before
    state.numbers[KEYS] = length
    state.key[KEY] = site
    return -1


@helper
def _has_room(state: State, output: Output, rows: int, uops: int) -> bool:
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
def _clip(tables: Tables, state: State, site: Record, beyond: int) -> bool:
    """What limits leave of the loops of a site: `starts` and `extents`. `beyond` is more room than
    the limit of a slide has, where that counts; -1 otherwise."""
    starts, extents = state.starts, state.extents
    for axis in range(site.axis_count):
        starts[axis] = 0
        extents[axis] = tables.extents[site.axes + axis]
    for place in range(site.limit_count + (beyond >= 0)):
        is_slide = place == site.limit_count
        limit = tables.limits[site.slide if is_slide else site.limits + place]
        room = value_of(tables.forms, limit.room, state.values) - (beyond if is_slide else 0)
        if limit.axis < 0:
            if room < 0:
                return False
        elif limit.step > 0:
            starts[limit.axis] = max(starts[limit.axis], -(room // limit.step))
        else:
            extents[limit.axis] = min(extents[limit.axis], room // -limit.step + 1)
    for axis in range(site.axis_count):
        extents[axis] -= starts[axis]
        if extents[axis] <= 0:
            return False
    return True


@helper
def _plan(tables: Tables, plans: Plans, state: State, number: int, tiles: Numbers,
          back: int) -> int:
    """Plan a visit: the tiles of the operands, the result's further back, and how many rows and
    micro-ops it takes. Returns the number of what a rule said, 0 if it is not asked, and how the
    walk ends if it does: -MISSING or -REFUSED."""
    site, key, numbers = tables.sites[number], state.key, state.numbers
    for place in range(site.operand_count):
        operand = tables.operands[site.operands + place]
        tile = state.bases[operand.buffer] + value_of(tables.forms, operand.tile, state.values)
        for axis in range(site.axis_count):
            tile += state.starts[axis] * tables.steps[operand.steps + axis]
        tiles[place] = tile - (back if place == 0 else 0)
        key[site.axis_count + place] = (tiles[place] % operand.multiple if operand.anchor == place
                                        else tiles[place] - tiles[operand.anchor])
    if site.rule != BY_PLAN:
        if not plan_visit(tables.operands, tables.steps, tables.fields[MOST_SEQUENCE],
                          state.lists, state.extents, numbers, site, tiles):
            return -REFUSED
        return 0 if numbers[ROWS] < MOST_ROWS and numbers[FRESH] < MOST_ROWS else -REFUSED
    for axis in range(site.axis_count):
        key[axis] = state.extents[axis]
    found = _find(plans, state, number, site.kind, site.axis_count + site.operand_count)
    if found < 0:
        return -MISSING
    plan = plans.plans[found]
    numbers[ROWS] = 2 * max(plan.count, plan.other_count)
    numbers[FRESH] = plan.uops
    return found


@helper
def _write(tables: Tables, plans: Plans, state: State, output: Output, site: Record, found: int,
           tiles: Numbers, begins: bool) -> bool:
    """Write a visit that is planned."""
    if site.rule == PRODUCT:
        return write_products(tables, plans, state, output, site, tiles, begins)
    if site.rule != BY_PLAN:
        return write_visit(tables.words, state.lists, state.numbers, output.words, site, tiles)
    plan = plans.plans[found]
    first, count = (plan.other, plan.other_count) if begins else (plan.first, plan.count)
    return write_rows(tables, plans, state, output, first, count, tiles)


@helper
def _clip_ring(tables: Tables, state: State, site: Record) -> bool:
    """What lies at the end of a ring, if the result of a site slides and it writes anything
    there."""
    if site.slide < 0:
        return False
    place = tables.operands[site.operands].buffer
    buffer = tables.buffers[place]
    turn = (state.bases[place] - buffer.first) // buffer.step
    return _clip(tables, state, site, (buffer.copies - turn) * site.ring_step)


@helper
def _invoke(tables: Tables, plans: Plans, state: State, output: Output, number: int) -> int:
    """An intrinsic by its rule. Where the result slides, what lies at the end of the ring is
    written for its beginning as well."""
    site, rows, uops, back = tables.sites[number], 0, 0, 0
    again = _clip_ring(tables, state, site)
    if again:
        buffer = tables.buffers[tables.operands[site.operands].buffer]
        back = buffer.copies * buffer.step
        other = _plan(tables, plans, state, number, state.others, back)
        if other < 0:
            return -other
        rows, uops = state.numbers[ROWS], state.numbers[FRESH]
    if not _clip(tables, state, site, -1):
        return DONE
    found = _plan(tables, plans, state, number, state.tiles, 0)
    if found < 0:
        return -found
    if not _has_room(state, output, rows + state.numbers[ROWS], uops + state.numbers[FRESH]):
        return FULL
    begins = False
    if state.numbers[NOTED]:
        begins, refused = _begin(tables, state, output, site)
        if refused:
            return REFUSED
    if not _write(tables, plans, state, output, site, found, state.tiles, begins):
        return REFUSED
    if again:
        _clip_ring(tables, state, site)
        other = _plan(tables, plans, state, number, state.others, back)
        if not _write(tables, plans, state, output, site, other, state.others, False):
            return REFUSED
    return DONE


@helper
def _touched(tables: Tables, state: State, site: Record, operand: int) -> int:
    """The number of the walk of an operand through its tiles."""
    return touched_walk(tables.operands, tables.steps, state.extents, state.lists,
                        state.known_walks, state.numbers, site, operand)


@helper
def _clear(tables: Tables, state: State, output: Output, tile: int, walk: int) -> bool:
    """Clear sums that are noted and touched. Whether that can be done."""
    return clear_touched(tables.words, tables.fields[LANES], state, output.words, tile, walk)


@helper
def _begin(tables: Tables, state: State, output: Output, site: Record) -> tuple[bool, bool]:
    """Whether products begin the sums of their tiles; other sums that are touched are cleared."""
    begins, is_first = False, True
    for place in range(site.operand_count):
        if is_first and tables.operands[site.operands + place].in_acc:
            is_first = False
            if site.begins:
                begins = forget_sum(state.noted, state.numbers, state.tiles[place],
                                    _touched(tables, state, site, place))
    for place in range(site.operand_count):
        if (state.numbers[NOTED] and tables.operands[site.operands + place].in_acc
                and not _clear(tables, state, output, state.tiles[place],
                               _touched(tables, state, site, place))):
            return begins, True
    return begins, False


@helper
def _start(tables: Tables, plans: Plans, state: State, output: Output, number: int) -> int:
    """Note sums that begin with their first product; others are given their value."""
    site = tables.sites[number]
    if not _clip(tables, state, site, -1):
        return DONE
    found = _plan(tables, plans, state, number, state.tiles, 0)
    if found < 0:
        return -found
    if not _has_room(state, output, state.numbers[ROWS], 0):
        return FULL
    tile, walk = state.tiles[0], _touched(tables, state, site, 0)
    if site.begins:
        forget_sum(state.noted, state.numbers, tile, walk)
    if not _clear(tables, state, output, tile, walk):
        return REFUSED
    if site.begins:
        note = state.noted[state.numbers[NOTED]]
        note.tile, note.walks, note.value = tile, walk, site.value
        state.numbers[NOTED] += 1
    elif not write_visit(tables.words, state.lists, state.numbers, output.words, site,
                         state.tiles):
        return REFUSED
    return DONE


@helper
def _copy(tables: Tables, state: State, output: Output, number: int) -> int:
    """A load or a store. What is still on the chip is not loaded again."""
    site, key = tables.transfers[number], state.key
    if site.target >= 0 and state.loaded[site.target]:
        return DONE
    first = state.bases[site.buffer] + value_of(tables.forms, site.tile, state.values)
    if not _start_tiles(tables, state, site):
        return REFUSED
    offset, bordered = 0, False
    for place in range(site.side_count):
        side, begin = tables.sides[site.sides + place], state.starts[place]
        before = min(max(0, -begin), side.extent)
        after = min(max(0, begin + side.extent - side.size), side.extent)
        key[2 * place], key[2 * place + 1] = before, after
        offset += max(begin, 0) * side.dram
        bordered = bordered or before > 0 or after > 0
    tile, padded = first // tables.buffers[site.buffer].parts, site.padded > 0
    words = _write_copy(tables, state, output, site, tile, offset, padded, -1)
    if words < 0:
        return REFUSED
    if not _has_room(state, output, words, 0):
        return FULL
    if state.numbers[NOTED] and site.in_acc and not _clear(tables, state, output, first,
                                                           site.touched):
        return REFUSED
    word = site.word
    if site.has_border and _renew(tables, state, site, tile, bordered and padded):
        inside = _write_copy(tables, state, output, site, tile, offset, False, -1)
        if 0 <= inside <= words:            # what a border leaves is loaded alone
            padded, word = False, site.inside
    if _write_copy(tables, state, output, site, tile, offset, padded, word) < 0:
        return REFUSED
    return DONE


@helper
def _write_copy(tables: Tables, state: State, output: Output, site: Record, tile: int,
                offset: int, padded: bool, word: int) -> int:
    return write_copy(tables.sides, state.key, state.sides, tables.words, state.numbers,
                      output.words, site, tile, offset, padded, word)


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
def _renew(tables: Tables, state: State, site: Record, tile: int, bordered: bool) -> bool:
    """Whether a copy of a buffer has the border in `key` already. Afterwards it does."""
    buffer = tables.buffers[site.buffer]
    turn = (tile - buffer.first) // buffer.step
    if turn < 0 or turn >= buffer.copies:
        state.numbers[BROKEN] = 1
        return False
    borders = state.borders[buffer.copy + turn]
    same: bool = bordered and borders[0] == 1
    borders[0] = 1 if bordered else 0
    for place in range(2 * site.side_count):
        same = same and borders[1 + place] == state.key[place]
        borders[1 + place] = state.key[place]
    return same

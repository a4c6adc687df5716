"""Walks through the tables of a nest and writes its instructions: the emitter as compiled code.

A visit for which there is no plan yet stops the walk: whoever called it makes one and lets it go
on, so that no plan is made that nobody needs. Compiled with numba; all that the walk remembers is
in arrays of the caller.
"""

# No postponed annotations here: numba reads the functions as they are.
from .jit import entry, helper
from .nest_arrays import (
    ALLOCATE,
    AT,
    BROKEN,
    COPY,
    DONE,
    FULL,
    INVOKE,
    KEY,
    KEYS,
    KNOWN,
    LOOP,
    MISSING,
    NEXT,
    NOTED,
    REFUSED,
    SAVE,
    SELECT,
    UOPS,
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
from .pending_sums import clear_touched, forget_sum
from .write import write_rows, write_transfers

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
            end = _copy(tables, plans, state, output, each.first)
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
def _has_room(plans: Plans, state: State, output: Output, rows: int, uops: int) -> bool:
    """Whether so many rows, and everything that is noted, can be written."""
    for place in range(state.numbers[NOTED]):
        rows += plans.walks[state.noted[place].walks].fill_count
    fits: bool = (state.numbers[WRITTEN] + 2 * rows <= len(output.words)
                  and state.numbers[UOPS] + uops <= len(output.uops)
                  and state.numbers[KNOWN] + rows <= len(state.known)
                  and state.numbers[NOTED] < len(state.noted))
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
def _visit(tables: Tables, plans: Plans, state: State, number: int, tiles: Numbers,
           back: int) -> int:
    """The tiles of the operands at a visit, the result's further back, and the plan for it."""
    site, key = tables.sites[number], state.key
    for axis in range(site.axis_count):
        key[axis] = state.extents[axis]
    for place in range(site.operand_count):
        operand = tables.operands[site.operands + place]
        tile = state.bases[operand.buffer] + value_of(tables.forms, operand.tile, state.values)
        for axis in range(site.axis_count):
            tile += state.starts[axis] * tables.steps[operand.steps + axis]
        tiles[place] = tile - (back if place == 0 else 0)
        key[site.axis_count + place] = (tiles[place] % operand.multiple if operand.anchor == place
                                        else tiles[place] - tiles[operand.anchor])
    return _find(plans, state, number, site.kind, site.axis_count + site.operand_count)


@helper
def _invoke(tables: Tables, plans: Plans, state: State, output: Output, number: int) -> int:
    """An intrinsic by its plan. Where the result slides, what lies at the end of the ring is
    written for its beginning as well."""
    site = tables.sites[number]
    if not _clip(tables, state, site, -1):
        return DONE
    plan = _visit(tables, plans, state, number, state.tiles, 0)
    if plan < 0:
        return MISSING
    again, found = -1, plans.plans[plan]
    rows, uops = max(found.count, found.other_count), found.uops
    if site.slide >= 0:
        operand = tables.operands[site.operands]
        buffer = tables.buffers[operand.buffer]
        turn = (state.bases[operand.buffer] - buffer.first) // buffer.step
        if _clip(tables, state, site, (buffer.copies - turn) * site.ring_step):
            again = _visit(tables, plans, state, number, state.others,
                           buffer.copies * buffer.step)
            if again < 0:
                return MISSING
            rows, uops = rows + plans.plans[again].count, uops + plans.plans[again].uops
    if not _has_room(plans, state, output, rows, uops):
        return FULL
    begins = False
    if state.numbers[NOTED]:
        begins, refused = _begin(tables, plans, state, output, site, found.touched)
        if refused:
            return REFUSED
    first, count = (found.other, found.other_count) if begins else (found.first, found.count)
    if not write_rows(tables, plans, state, output, first, count, state.tiles):
        return REFUSED
    if again >= 0 and not write_rows(tables, plans, state, output, plans.plans[again].first,
                                 plans.plans[again].count, state.others):
        return REFUSED
    return DONE


@helper
def _begin(tables: Tables, plans: Plans, state: State, output: Output, site: Record,
           touched: int) -> tuple[bool, bool]:
    """Whether products begin the sums of their tiles; other sums that are touched are cleared."""
    begins, at = False, touched
    for place in range(site.operand_count):
        if tables.operands[site.operands + place].in_acc:
            if at == touched and site.begins:
                begins = forget_sum(state, state.tiles[place], plans.touched[at])
            at += 1
    at = touched
    for place in range(site.operand_count):
        if tables.operands[site.operands + place].in_acc:
            if not clear_touched(tables, plans, state, output, state.tiles[place],
                                 plans.touched[at]):
                return begins, True
            at += 1
    return begins, False


@helper
def _start(tables: Tables, plans: Plans, state: State, output: Output, number: int) -> int:
    """Note sums that begin with their first product; others are given their value."""
    site = tables.sites[number]
    if not _clip(tables, state, site, -1):
        return DONE
    plan = _visit(tables, plans, state, number, state.tiles, 0)
    if plan < 0:
        return MISSING
    found = plans.plans[plan]
    if not _has_room(plans, state, output, found.count, found.uops):
        return FULL
    tile, walks = state.tiles[0], plans.touched[found.touched]
    if site.begins:
        forget_sum(state, tile, walks)
    if not clear_touched(tables, plans, state, output, tile, walks):
        return REFUSED
    if site.begins:
        note = state.noted[state.numbers[NOTED]]
        note.tile, note.walks, note.value = tile, walks, site.value
        state.numbers[NOTED] += 1
    elif not write_rows(tables, plans, state, output, found.first, found.count, state.tiles):
        return REFUSED
    return DONE


@helper
def _copy(tables: Tables, plans: Plans, state: State, output: Output, number: int) -> int:
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
    plan = _find(plans, state, len(tables.sites) + number, site.kind, 2 * site.side_count)
    if plan < 0:
        return MISSING
    found = plans.plans[plan]
    if not _has_room(plans, state, output, max(found.count, found.other_count), 0):
        return FULL
    if state.numbers[NOTED] and site.in_acc and not clear_touched(tables, plans, state, output,
                                                                  first, site.touched):
        return REFUSED
    tile = first // tables.buffers[site.buffer].parts
    begin, count = found.first, found.count
    if site.has_border and _renew(tables, state, site, tile, bordered and site.padded) and (
            found.other_count <= found.count):
        begin, count = found.other, found.other_count
    written = write_transfers(plans, state, output, begin, count, tile, offset)
    return DONE if written else REFUSED


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

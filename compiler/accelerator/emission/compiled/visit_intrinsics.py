"""Intrinsics and starts of sums as compiled code: `sites`, `sum_starts`. Compiled with numba."""

# No postponed annotations here: numba reads the functions as they are.
from .jit import helper
from .nest_arrays import (
    BY_PLAN,
    DONE,
    FRESH,
    FULL,
    KEY,
    KEYS,
    LANES,
    MISSING,
    MOST_ROWS,
    MOST_SEQUENCE,
    NOTED,
    PRODUCT,
    REFUSED,
    ROWS,
    RUN,
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
from .visit_loops import next_run, value_of
from .write import has_room, write_rows

find_head = helper(head_of_key)


@helper
def visit_intrinsic(tables: Tables, plans: Plans, state: State, output: Output,
                    number: int) -> int:
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
    end = _visit(tables, plans, state, output, number, rows, uops,
                 _plan(tables, plans, state, number, state.tiles, 0))
    if again and end == DONE:
        _clip_ring(tables, state, site)
        other = _plan(tables, plans, state, number, state.others, back)
        if not _write(tables, plans, state, output, site, other, state.others, False):
            return REFUSED
    return end


@helper
def visit_start(tables: Tables, plans: Plans, state: State, output: Output, number: int) -> int:
    """Note sums that begin with their first product; others are given their value."""
    if not _clip(tables, state, tables.sites[number], -1):
        return DONE
    return _visit_start(tables, state, output, number,
                        _plan(tables, plans, state, number, state.tiles, 0))


@helper
def visit_runs(tables: Tables, plans: Plans, state: State, output: Output, number: int,
               is_start: bool) -> int:
    """Either of them where an operand is interleaved: a visit for each run, which is a site of its
    own. A walk that stops goes on with the same run."""
    site, numbers = tables.sites[number], state.numbers
    while True:
        if not _clip(tables, state, site, -1):
            return DONE
        first = value_of(tables.forms, site.along, state.values)
        count = 1
        if site.loop >= 0:
            first += state.starts[site.loop]
            count = state.extents[site.loop]
        at, end = first + numbers[RUN], first + count
        if at >= end:
            numbers[RUN] = 0
            return DONE
        groups, length = next_run(at, end, site.ways)
        inner = site.groups_site if groups else site.part_site
        if not _enter_run(tables, state, site, at, at - first, groups, length):
            return REFUSED
        found = _plan_tiles(tables, plans, state, inner, state.tiles)
        ended = _visit_start(tables, state, output, inner, found) if is_start else _visit(
            tables, plans, state, output, inner, 0, 0, found)
        if ended != DONE:
            return ended
        numbers[RUN] += max(groups, 1) * length


@helper
def _enter_run(tables: Tables, state: State, site: Record, at: int, skipped: int, groups: int,
               length: int) -> bool:
    """The tiles of the operands at a run that begins at an index, and its loops: `tiles` and
    `extents`. Whether all operands walk alike."""
    ways, loop, extents = site.ways, site.loop, state.extents
    for place in range(site.operand_count):
        operand = tables.operands[site.operands + place]
        tile = _tile_of(tables, state, site, operand)
        if operand.behind >= 0:
            behind = value_of(tables.forms, operand.behind, state.values)
            if behind % ways:
                return False
            tile += (at + behind) // ways * operand.group + (at + behind) % ways
        elif loop >= 0:
            tile += skipped * tables.steps[operand.steps + loop]
        state.tiles[place] = tile // ways if site.by_tile else tile
    if site.by_tile and at % ways:
        return False
    if loop < 0:
        return True
    if groups and not site.by_tile:         # one loop more
        for axis in range(site.axis_count - 1, loop, -1):
            extents[axis + 1] = extents[axis]
        extents[loop], extents[loop + 1] = groups, length
    elif groups or not site.by_tile:
        extents[loop] = groups if groups else length
    else:                                   # one less
        for axis in range(loop + 1, site.axis_count):
            extents[axis - 1] = extents[axis]
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
def _tile_of(tables: Tables, state: State, site: Record, operand: Record) -> int:
    """The tile of an operand at the beginning of the loops that limits leave."""
    tile: int = state.bases[operand.buffer] + value_of(tables.forms, operand.tile, state.values)
    for axis in range(site.axis_count):
        tile += state.starts[axis] * tables.steps[operand.steps + axis]
    return tile


@helper
def _plan(tables: Tables, plans: Plans, state: State, number: int, tiles: Numbers,
          back: int) -> int:
    """Plan a visit: the tiles of the operands, the result's further back, and the rest."""
    site = tables.sites[number]
    for place in range(site.operand_count):
        tile = _tile_of(tables, state, site, tables.operands[site.operands + place])
        tiles[place] = tile - (back if place == 0 else 0)
    return _plan_tiles(tables, plans, state, number, tiles)


@helper
def _plan_tiles(tables: Tables, plans: Plans, state: State, number: int, tiles: Numbers) -> int:
    """How many rows and micro-ops a visit takes. Returns the number of what a rule said, 0 if it is
    not asked, and how the walk ends if it does: -MISSING or -REFUSED."""
    site, key, numbers = tables.sites[number], state.key, state.numbers
    if site.rule != BY_PLAN:
        if not plan_visit(tables.operands, tables.steps, tables.fields[MOST_SEQUENCE],
                          state.lists, state.extents, numbers, site, tiles):
            return -REFUSED
        return 0 if numbers[ROWS] < MOST_ROWS and numbers[FRESH] < MOST_ROWS else -REFUSED
    for place in range(site.operand_count):
        operand = tables.operands[site.operands + place]
        key[site.axis_count + place] = (tiles[place] % operand.multiple if operand.anchor == place
                                        else tiles[place] - tiles[operand.anchor])
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
def _visit(tables: Tables, plans: Plans, state: State, output: Output, number: int, rows: int,
           uops: int, found: int) -> int:
    """Write a visit for which `_plan` found something, if there is room for it and more."""
    if found < 0:
        return -found
    site = tables.sites[number]
    if not has_room(state, output, rows + state.numbers[ROWS], uops + state.numbers[FRESH]):
        return FULL
    begins = False
    if state.numbers[NOTED]:
        begins, refused = _begin(tables, state, output, site)
        if refused:
            return REFUSED
    if not _write(tables, plans, state, output, site, found, state.tiles, begins):
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
def _visit_start(tables: Tables, state: State, output: Output, number: int, found: int) -> int:
    """The same for the start of sums."""
    if found < 0:
        return -found
    site = tables.sites[number]
    if not has_room(state, output, state.numbers[ROWS], 0):
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

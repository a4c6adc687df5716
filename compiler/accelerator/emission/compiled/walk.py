"""Walks through the tables of a nest and writes its instructions: the emitter as compiled code.

A visit whose rule only Python knows, and for which there is no plan yet, stops the walk: whoever
called it makes one and lets it go on, so that no plan is made that nobody needs. Functions that
others call take the arrays that they need, not all: numba compiles them far faster. All that the
walk remembers is in arrays of the caller.
"""

# No postponed annotations here: numba reads the functions as they are.
from .jit import entry, helper
from .nest_arrays import (
    ALLOCATE,
    AT,
    BROKEN,
    COPY,
    DONE,
    INVOKE,
    LOOP,
    NEXT,
    REFUSED,
    SAVE,
    SELECT,
    WHEN,
    Output,
    Plans,
    Record,
    State,
    Tables,
)
from .visit_copies import visit_copy
from .visit_intrinsics import visit_intrinsic, visit_runs, visit_start
from .visit_loops import value_of


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
            end = visit_copy(tables, state, output, each.first)
        elif tables.sites[each.first].ways:
            end = visit_runs(tables, plans, state, output, each.first, each.kind != INVOKE)
        elif each.kind == INVOKE:
            end = visit_intrinsic(tables, plans, state, output, each.first)
        else:
            end = visit_start(tables, plans, state, output, each.first)
        if end != DONE:
            return end
        numbers[AT] = following
    return REFUSED if numbers[BROKEN] else DONE


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
    state.loaded[number], run = turn >= 0, state.turns[number]
    if buffer.period or turn < 0:
        state.turns[number] += 1
    if turn < 0:
        turn = _copy_of(run, buffer.period, buffer.copies)
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
def _copy_of(run: int, period: int, copies: int) -> int:
    """The copy for a run that finds its contents in none: all but two copies have the same run of
    each period, and the others take turns (`chip_contents.copy_of`)."""
    if period == 0:
        return run % copies
    staying, near = copies - 2, run % period
    if near * staying % period < staying:
        return near * staying // period
    return staying + (run - run // period * staying - -(-near * staying // period)) % 2


@helper
def _holds(tables: Tables, state: State, buffer: Record, copy: int) -> bool:
    if state.holds[copy, 0] == 0:
        return False
    for place in range(buffer.rank):
        if state.holds[copy, 1 + place] != value_of(tables.forms, buffer.contents + place,
                                                    state.values):
            return False
    return True

"""Loops around a statement as compiled code: joined, divided among hardware and micro-ops.

`selection.hardware_loops` says what is done here. A visit has several lists of loops, each from the
outside in; all of them are rows of `Lists`. Compiled with numba.
"""

from .jit import helper
from .nest_arrays import (
    EXTENT,
    HARDWARE_LOOPS,
    LOOP_OPERANDS,
    MOST_ROWS,
    RANK,
    STEP,
    TILE_LIMIT,
    Bytes,
    Forms,
    Lists,
    Numbers,
    Record,
    Records,
)
from .write import put

SMALLEST, LARGEST = -(TILE_LIMIT >> 1), (TILE_LIMIT >> 1) - 1       # strides


@helper
def value_of(forms: Forms, form: int, values: Numbers) -> int:
    """The value of an affine form."""
    total: int = forms.constant[form]
    for at in range(forms.begin[form], forms.begin[form + 1]):
        total += forms.coefficient[at] * values[forms.slot[at]]
    return total


@helper
def next_run(first: int, end: int, ways: int) -> tuple[int, int]:
    """How many whole groups begin at an index, and the indices of each; or none, and the indices
    that are left of the group."""
    groups = (end - first) // ways if first % ways == 0 else 0
    return groups, ways if groups else min(end, (first // ways + 1) * ways) - first


@helper
def step_of(operands: Records, steps: Numbers, site: Record, operand: int,
            axis: int) -> int:
    """How far an operand moves along an axis of its site."""
    step: int = steps[operands[site.operands + operand].steps + axis]
    return step


@helper
def append_loop(lists: Lists, which: int, extent: int, one: int, two: int, three: int) -> None:
    """Append a loop to a list, inside the others."""
    loop = lists.rows[which, lists.counts[which]]
    loop[EXTENT], loop[STEP], loop[STEP + 1], loop[STEP + 2] = extent, one, two, three
    lists.counts[which] += 1


@helper
def join_loop(lists: Lists, which: int, extent: int, one: int, two: int, three: int) -> None:
    """The same, but where the loop walks on as the one around it, they become one."""
    count = lists.counts[which]
    if count > 0:
        last = lists.rows[which, count - 1]
        if last[STEP] == one * extent and last[STEP + 1] == two * extent and (
                last[STEP + 2] == three * extent):
            last[EXTENT] *= extent
            last[STEP], last[STEP + 1], last[STEP + 2] = one, two, three
            return
    append_loop(lists, which, extent, one, two, three)


@helper
def move_loop(lists: Lists, source: int, at: int, target: int) -> None:
    """Append a loop of one list to another."""
    loop = lists.rows[source, at]
    append_loop(lists, target, loop[EXTENT], loop[STEP], loop[STEP + 1], loop[STEP + 2])


@helper
def split_off(lists: Lists, which: int, most: int, rest: int) -> None:
    """Leave the longest loops in a list, and append the others to the rest. Both keep their
    order."""
    loops, count, left = lists.rows[which], lists.counts[which], 0
    if count <= most:
        return
    for at in range(count):
        rank = 0
        for other in range(count):
            if loops[other, EXTENT] > loops[at, EXTENT] or (
                    loops[other, EXTENT] == loops[at, EXTENT] and other < at):
                rank += 1
        loops[at, RANK] = rank
    for at in range(count):
        if loops[at, RANK] >= most:
            move_loop(lists, which, at, rest)
            continue
        for column in range(LOOP_OPERANDS + 1):
            loops[left, column] = loops[at, column]
        left += 1
    lists.counts[which] = left


@helper
def iterations(lists: Lists, which: int, first: int) -> int:
    """Iterations of a list of loops from one of them inwards; `MOST_ROWS` and more are alike."""
    total = 1
    for at in range(first, lists.counts[which]):
        total = min(total * lists.rows[which, at, EXTENT], MOST_ROWS)
    return total


@helper
def moved(lists: Lists, which: int, number: int, operand: int) -> int:
    """How far an operand has moved in an iteration, the last loop fastest."""
    offset, rest = 0, number
    for at in range(lists.counts[which] - 1, -1, -1):
        loop = lists.rows[which, at]
        offset += rest % loop[EXTENT] * loop[STEP + operand]
        rest //= loop[EXTENT]
    return offset


@helper
def put_counts(lists: Lists, words: Bytes, word: int, field: int, which: int) -> bool:
    """Write the iterations of the hardware's loops. Those that are missing run once, outside."""
    missing, good = HARDWARE_LOOPS - lists.counts[which], True
    for place in range(HARDWARE_LOOPS):
        extent = lists.rows[which, place - missing, EXTENT] if place >= missing else 1
        good = good and extent < TILE_LIMIT
        put(words, word, field + 2 * place, 2, extent)
    return good


@helper
def put_strides(lists: Lists, words: Bytes, word: int, field: int, which: int,
                operand: int) -> bool:
    """Write how far an operand moves with each of them."""
    missing, good = HARDWARE_LOOPS - lists.counts[which], True
    for place in range(HARDWARE_LOOPS):
        step = lists.rows[which, place - missing, STEP + operand] if place >= missing else 0
        good = good and SMALLEST <= step <= LARGEST
        put(words, word, field + 2 * place, 2, step)
    return good

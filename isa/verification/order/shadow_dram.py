"""Shadow memory of DRAM: who last wrote or read each cell, without a number for each.

Only STORE writes DRAM and only LOAD reads it; each is a lane here. Transfers touch rows of cells
(see `boxes`). A tree over the cells keeps numbers for halves, quarters and so on, so that a row of
any length costs a few steps. A box of very many rows is kept whole and compared with the
others one by one; that is limited, and beyond the limit nothing is vouched for. Compiled with
numba.
"""

# No postponed annotations here: numba reads the functions as they are.
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...instructions import Engine
from .accesses import SPACES, Row, Table
from .boxes import INNER, LENGTH, OUTER, find_common_run
from .footprints import Mask, Numbers, is_empty
from .jit import helper, inline_always

LOAD, STORE = int(Engine.LOAD), int(Engine.STORE)
WRITTEN, READ = 0, 1                # lanes
WORK_LIMIT = 1 << 26                # planes of long boxes that are compared, a few seconds
MEMORY_LIMIT = 1 << 10              # different long boxes for which it is remembered who meets whom
UNKNOWN, MEET, APART = range(3)

Sequences = npt.NDArray[np.int32]


class Tree(NamedTuple):
    """Numbers for stretches of cells. Node 1 is all of them, nodes 2n and 2n + 1 are the halves of
    node n, and the leaves come last."""

    whole: Sequences        # by lane and node: who last touched all of it at once
    part: Sequences         # ... and who last touched any of it
    coordinates: Numbers    # the cell at which each leaf begins, unless every cell is a leaf


class LongBoxes(NamedTuple):
    """Boxes of too many rows for the tree, each of the different ones once; and, in order, the
    short boxes that were touched, which a long one has to be compared with."""

    rows: Numbers           # where each is found in the access table
    meet: Mask              # whether two of them share a cell, as far as that has been asked
    last: Numbers           # by lane: who last touched it
    met: Numbers            # by lane: the last short box that shares a cell with it ...
    compared: Numbers       # ... among this many
    short: Numbers          # by lane: where short boxes are found in the access table ...
    sequences: Numbers      # ... and who touched them
    total: Numbers          # by lane: short boxes so far
    work: Numbers           # one number: planes compared so far


class DramShadow(NamedTuple):
    """Cells of all segments, one segment after the other."""

    base: Numbers           # first cell of each space
    latest: Numbers         # by space and lane: the last to touch any of it
    tree: Tree
    long: LongBoxes


def new_dram_shadow(base: Numbers, leaves: int, coordinates: Numbers | None, long_rows: Numbers,
                    short: int) -> DramShadow:
    """A blank shadow of this many leaves. `long_rows` are the long boxes; if there are any, there
    may be up to `short` others."""
    leaves = 1 << (max(leaves, 1) - 1).bit_length()
    if coordinates is None:
        coordinates = np.zeros(0, np.int64)
    remembered = len(long_rows) if len(long_rows) <= MEMORY_LIMIT else 0
    long, shorts = (2, len(long_rows)), (2, short if len(long_rows) else 0)
    tree = Tree(np.zeros((2, 2 * leaves), np.int32), np.zeros((2, 2 * leaves), np.int32),
                coordinates)
    boxes = LongBoxes(long_rows, np.zeros((remembered, remembered), np.uint8), *(
        np.zeros(shape, np.int64) for shape in (long, long, long, shorts, shorts, 2, 1)))
    return DramShadow(base, np.zeros((SPACES, 2), np.int64), tree, boxes)


@inline_always
def touch_dram(rows: Table, at: int, shadow: DramShadow, known: Numbers, sequence: int) -> bool:
    """Note that a transfer touches a box; let `known` grow to what it conflicts with, by engine.

    False if there was too much to compare.
    """
    row, long = rows[at], shadow.long
    if is_empty(row):
        return True
    lane, other = (WRITTEN, LOAD) if row.write else (READ, STORE)
    compare = shadow.latest[row.space, 1 - lane] > known[other]
    if compare:
        for each in range(len(long.rows)):
            if long.last[1 - lane, each] > known[other] and _meet(row, rows[long.rows[each]], long):
                known[other] = long.last[1 - lane, each]
    if row.long >= 0:
        if compare:
            _compare_with_short(rows, row, lane, other, long, known)
        long.last[lane, row.long] = sequence
    else:
        _touch_rows(row, lane, other, compare, shadow, known, sequence)
        if len(long.rows):
            long.short[lane, long.total[lane]] = at
            long.sequences[lane, long.total[lane]] = sequence
            long.total[lane] += 1
    shadow.latest[row.space, lane] = sequence
    return bool(long.work[0] <= WORK_LIMIT)


@helper
def _meet(row: Row, other: Row, long: LongBoxes) -> bool:
    """Whether two boxes have a cell in common. If in doubt, `work` is beyond its limit."""
    if row.space != other.space:
        return False
    remember = row.long >= 0 and other.long >= 0 and len(long.meet) > 0
    if remember and long.meet[row.long, other.long] != UNKNOWN:
        return bool(long.meet[row.long, other.long] == MEET)
    first, last = find_common_run(row.base, row.loops, row.stride, other.base, other.loops,
                                  other.stride, long.work, WORK_LIMIT)
    if remember:
        long.meet[row.long, other.long] = MEET if first <= last else APART
    return first <= last


@helper
def _compare_with_short(rows: Table, row: Row, lane: int, other: int, long: LongBoxes,
                        known: Numbers) -> None:
    """A long box with the short ones since it was last seen. What is known stays known."""
    for each in range(long.compared[lane, row.long], long.total[1 - lane]):
        sequence = long.sequences[1 - lane, each]
        if sequence > known[other] and _meet(row, rows[long.short[1 - lane, each]], long):
            long.met[lane, row.long] = sequence
    long.compared[lane, row.long] = long.total[1 - lane]
    known[other] = max(known[other], long.met[lane, row.long])


@helper
def _touch_rows(row: Row, lane: int, other: int, compare: bool, shadow: DramShadow,
                known: Numbers, sequence: int) -> None:
    for outer in range(row.loops[OUTER]):
        for inner in range(row.loops[INNER]):
            first = (shadow.base[row.space] + row.base + outer * row.stride[OUTER]
                     + inner * row.stride[INNER])
            begin = _leaf(shadow.tree, first)
            end = _leaf(shadow.tree, first + row.loops[LENGTH])
            if compare:
                known[other] = max(known[other], _last_in(shadow.tree, 1 - lane, begin, end))
            _mark(shadow.tree, lane, begin, end, sequence)


@helper
def _leaf(tree: Tree, cell: int) -> int:
    """The leaf that begins at a cell."""
    low, high = 0, len(tree.coordinates)
    if high == 0:
        return cell
    while low < high:
        middle = (low + high) // 2
        if tree.coordinates[middle] < cell:
            low = middle + 1
        else:
            high = middle
    return low


@helper
def _last_in(tree: Tree, lane: int, begin: int, end: int) -> int:
    """Who last touched any of these leaves: any part of the nodes that they make up, or the whole
    of a node that they lie in."""
    whole, part = tree.whole[lane], tree.part[lane]
    left, right = begin + len(whole) // 2, end + len(whole) // 2
    most, above, above_end = np.int32(0), left, right - 1
    while above > 0:
        most = max(most, whole[above], whole[above_end])
        above, above_end = above >> 1, above_end >> 1
    while left < right:
        if left & 1:
            most = max(most, part[left])
            left += 1
        if right & 1:
            right -= 1
            most = max(most, part[right])
        left, right = left >> 1, right >> 1
    return int(most)


@helper
def _mark(tree: Tree, lane: int, begin: int, end: int, sequence: int) -> None:
    whole, part = tree.whole[lane], tree.part[lane]
    left, right = begin + len(whole) // 2, end + len(whole) // 2
    above, above_end = left, right - 1
    while above > 0:
        part[above] = part[above_end] = sequence
        above, above_end = above >> 1, above_end >> 1
    while left < right:
        if left & 1:
            whole[left] = part[left] = sequence
            left += 1
        if right & 1:
            right -= 1
            whole[right] = part[right] = sequence
        left, right = left >> 1, right >> 1

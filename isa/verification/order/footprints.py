"""Which tiles of a scratchpad an access touches, in time that does not grow with its iterations.

An access starts at a base, or at one base for each of its micro-ops, and walks from there along
three loops. The set of its tiles is therefore the set of bases, spread along one loop after the
other. A loop that has been spread over n iterations is spread over 2n by one more copy, so any
number of iterations takes a few passes over a mask of the scratchpad:

    bases        x . . . . x . . . . . .
    stride 2     x . x . . x . x . . . .        2 iterations
    stride 2     x . x . x x x x . x . .        3 iterations

Compiled with numba.
"""

# No postponed annotations here: numba reads the functions as they are.
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .accesses import NO_COLUMN, Row
from .jit import entry, helper

Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.uint8]
MicroOps = npt.NDArray[np.int32]    # by column


class Workspace(NamedTuple):
    """Room to work out one footprint, made once."""

    loops: Numbers          # of one access: iterations, smallest stride first ...
    stride: Numbers         # ... and strides, none negative
    mask: Mask              # which cells are touched, from the first one on
    copy: Mask


class Extent(NamedTuple):
    """Where a footprint lies."""

    first: int              # index, before it is divided
    last: int
    bases: int              # how far the last base lies behind the first one
    shift: int              # from a base to the smallest index that is reached from it
    length: int             # indices that follow each other wherever the loops lead


def new_workspace(most_indices: int) -> Workspace:
    return Workspace(np.zeros(3, np.int64), np.zeros(3, np.int64),
                     np.zeros(most_indices, np.uint8), np.zeros(most_indices, np.uint8))


@entry
def is_empty(row: Row) -> bool:
    return row.count == 0 or row.loops[0] == 0 or row.loops[1] == 0 or row.loops[2] == 0


@helper
def extent_of(row: Row, uops: MicroOps, work: Workspace) -> Extent:
    """Where an access lies that is not empty; its loops are left in the workspace, tidied up."""
    low = high = row.base
    if row.column != NO_COLUMN:
        column = uops[row.column, row.uop:row.uop + row.count]
        least = most = column[0]
        for at in range(len(column)):
            least, most = min(least, column[at]), max(most, column[at])
        low, high = int(least) * row.span, int(most) * row.span
    shift = _tidy(row, work)
    length = row.span
    for each in range(3):
        if work.stride[each] <= length:
            length += (work.loops[each] - 1) * work.stride[each]
            work.loops[each] = 1
    reach = length - 1
    for each in range(3):
        reach += (work.loops[each] - 1) * work.stride[each]
    return Extent(low + shift, high + shift + reach, high - low, shift, length)


@helper
def _tidy(row: Row, work: Workspace) -> int:
    """Sort the loops by stride and let them walk upwards. Returns where they begin."""
    shift = 0
    for each in range(3):
        count, stride = row.loops[each], row.stride[each]
        if stride < 0:
            shift += (count - 1) * stride
            stride = -stride
        at = each
        while at > 0 and work.stride[at - 1] > stride:
            work.loops[at], work.stride[at] = work.loops[at - 1], work.stride[at - 1]
            at -= 1
        work.loops[at], work.stride[at] = count, stride
    return shift


@helper
def is_sparse(row: Row, extent: Extent, work: Workspace) -> bool:
    """Whether visiting runs of cells one by one is quicker than a mask of the whole extent."""
    runs = float(row.count) * work.loops[0] * work.loops[1] * work.loops[2]
    return bool(runs == 1 or 8 * runs < extent.last - extent.first)


@entry
def mark(row: Row, uops: MicroOps, work: Workspace) -> tuple[int, int]:
    """Leave the cells of an access that is not empty in the mask. Returns which cell its first
    element is, and how many count."""
    extent = extent_of(row, uops, work)
    return extent.first // row.divisor, fill_mask(row, extent, uops, work)


@helper
def fill_mask(row: Row, extent: Extent, uops: MicroOps, work: Workspace) -> int:
    """Mark the cells of an access in the mask, whose first element is the cell of
    `extent.first`. Returns how many elements count."""
    for at in range(extent.last - extent.first + 1):
        work.mask[at] = 0
    if row.column == NO_COLUMN:
        work.mask[0] = 1
    else:
        column = uops[row.column]
        for at in range(row.uop, row.uop + row.count):
            work.mask[column[at] * row.span + extent.shift - extent.first] = 1
    marked = _repeat(work, extent.bases + 1, extent.length, 1)
    for each in range(3):
        marked = _repeat(work, marked, work.loops[each], work.stride[each])
    if row.divisor > 1:
        marked = _divide(work, marked, extent.first, row.divisor)
    return marked


@helper
def _repeat(work: Workspace, marked: int, count: int, stride: int) -> int:
    """Repeat the first `marked` elements `count` times, `stride` apart. Returns how many there
    are then."""
    done = 1
    while done < count:
        more = min(done, count - done)
        for at in range(marked):
            work.copy[at] = work.mask[at]
        target = work.mask[more * stride:]      # from 0 on, so that it goes to vector units
        for at in range(marked):
            target[at] |= work.copy[at]
        marked += more * stride
        done += more
    return marked


@helper
def _divide(work: Workspace, marked: int, first: int, divisor: int) -> int:
    """From indices to cells: one is touched if any of its indices is."""
    for at in range(marked):
        work.copy[at] = work.mask[at]
        work.mask[at] = 0
    for at in range(marked):
        work.mask[(first + at) // divisor - first // divisor] |= work.copy[at]
    return (first + marked - 1) // divisor - first // divisor + 1

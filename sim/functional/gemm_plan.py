"""Reorders the slots of a gemm, compiled: loops and micro-ops become three lists.

The order of slots in a gemm is outer, middle, inner, micro-op. Mostly they add up products for
independent tiles; then any order gives the same result, and the best one reads a weight once for
several tiles:

    for each group
        for each position           other tiles, the same weights
            for each reduction      the products that a sum is made of
                acc[dst] += inp[src] · wgt[weight]

where each index is the sum of the offsets of the three. A loop belongs to one of the lists,
micro-ops belong to the reductions. A plan is a list of numbers: a header, then the elements of the
lists, all in bytes; `gemm_kernels` has the kernels for it. Importing this module imports numba.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

from ...isa.instructions import Buffer, Gemm, GemmFlags, MicroOp
from ...isa.verification.bounds import BIAS, DST, SRC, WGT
from ..compiled.numba_types import Word
from ..compiled.vectors import NUMBER, c_function, call, half_at, helper, number_at, write_number
from . import machine_table
from .machine_table import (
    ADDRESS,
    BATCH,
    BLOCK_IN,
    BLOCK_OUT,
    BUFFER,
    DENSE_KERNEL,
    DEPTHWISE_KERNEL,
    DONE,
    ELSEWHERE,
    GEMM_OUT,
    LANE,
    OUTSIDE,
    PLAN,
    STOP,
    TILE,
    TILES,
    place,
)

DEPTHWISE, START, FROM_BIAS = (int(each) for each in (GemmFlags.DEPTHWISE, GemmFlags.START,
                                                      GemmFlags.BIAS))
FIRST_UOP, FROM_OUT = int(GemmFlags.FIRST_UOP), int(GemmFlags.OUT)
FIRST_BIT = int(GemmFlags.FIRST_OUTER).bit_length() - 1     # below it are those of the other loops
UOPS, INPS, WGTS, ACCS, OUTS = (machine_table.HEADER + BUFFER * each for each in (
    Buffer.UOP, Buffer.INP, Buffer.WGT, Buffer.ACC, Buffer.OUT))
FLAGS, UOP, COUNT, OUTER, DST_STRIDE, SRC_STRIDE, WGT_STRIDE = (place(Gemm, name) for name in (
    "flags", "uop", "count", "loops", "dst_stride", "src_stride", "wgt_stride"))
LOOPS, MIDDLE, INNER = 3, OUTER + 1, OUTER + 2
UOP_BYTES = MicroOp.size
FIELD = UOP_BYTES // 4

# The header: length of each list, the list of each loop, rows of a tile, bytes from row to row and,
# in the accumulator, from group to group of lanes, columns to compute, and the address of the tile
# that sums start from, or 0.
GROUPS, POSITIONS, REDUCTIONS, LISTS = range(4)
LIST_OF = LISTS
(ROWS, ACC_ROW, ACC_GROUP, INP_ROW, COLUMNS, ORIGIN,
 HEADER) = range(LIST_OF + LOOPS, LIST_OF + LOOPS + 7)
# An element: its offsets in acc, inp and wgt, and whether sums start there; of a reduction, the
# first and last are unused.
TO, LEFT, RIGHT, STARTS, ELEMENT = range(5)
LONGEST = 1 << 18                                   # elements of all lists
SPACE = HEADER + ELEMENT * LONGEST                  # numbers of a plan …
ROW_NUMBERS, WINDOW_UOPS = 32, 4                    # … and of the gemm that a window stands for


def space() -> npt.NDArray[np.int64]:
    """Memory for any plan. Its pages are allocated on first use."""
    return np.empty(SPACE + ROW_NUMBERS + WINDOW_UOPS, np.int64)


@cache
def gemm() -> int:
    """The address of a C function that executes a gemm, given its row and the machine. It does not
    handle gemms without a kernel for such tiles, or whose order of slots matters."""
    def function(row: int, machine: int) -> Word:
        flags, count = number_at(row, FLAGS), number_at(row, COUNT)
        if count * number_at(row, OUTER) * number_at(row, MIDDLE) * number_at(row, INNER) == 0:
            return DONE
        if number_at(row, UOP) + count > number_at(machine, UOPS + TILES):
            return OUTSIDE
        uops = number_at(machine, UOPS + ADDRESS) + number_at(row, UOP) * UOP_BYTES
        return plan_and_execute(row, machine, uops, count, flags)
    return c_function(function)


@helper
def plan_and_execute(row: int, machine: int, uops: int, count: int, flags: int) -> Word:
    """Execute a gemm if it can be planned. Of its row, only loops and strides are used."""
    if not _slots_stay_inside(row, machine, uops, count, flags):
        return OUTSIDE
    kernel = number_at(machine, DEPTHWISE_KERNEL if flags & DEPTHWISE else DENSE_KERNEL)
    plan = number_at(machine, PLAN)
    if kernel == 0 or not _is_reorderable(row, uops, count, flags) or not _assign_loops(plan, row,
                                                                                        count):
        return ELSEWHERE
    if flags & DEPTHWISE and flags & FROM_BIAS and _groups(machine, BLOCK_OUT) > 1:
        return ELSEWHERE                        # other lanes start from other sums
    _begin(plan, machine, uops, flags)
    _fill(plan, row, machine, uops, count, flags)
    return call(kernel, plan, number_at(machine, STOP))


@helper
def _groups(machine: int, block: int) -> Word:
    """How many groups of lanes a tile has for depthwise products."""
    return number_at(machine, block) // min(number_at(machine, BLOCK_IN),
                                            number_at(machine, BLOCK_OUT))


@helper
def _slots_stay_inside(row: int, machine: int, uops: int, count: int, flags: int) -> bool:
    """Whether all slots stay in range."""
    for field, buffer, strides in ((DST, ACCS, DST_STRIDE), (SRC, INPS, SRC_STRIDE),
                                   (WGT, WGTS, WGT_STRIDE)):
        low = high = half_at(uops + field * FIELD)
        for step in range(1, count):
            index = half_at(uops + field * FIELD + step * UOP_BYTES)
            low, high = min(low, index), max(high, index)
        for loop in range(LOOPS):
            reach = (number_at(row, OUTER + loop) - 1) * number_at(row, strides + loop)
            low, high = low + min(reach, 0), high + max(reach, 0)
        limit = number_at(machine, buffer + TILES)
        if flags & FROM_OUT and field == SRC:
            limit = number_at(machine, GEMM_OUT)
        if flags & DEPTHWISE:
            limit *= (number_at(machine, BLOCK_OUT) if field == WGT
                      else _groups(machine, BLOCK_OUT if field == DST else BLOCK_IN))
        if low < 0 or high >= limit:
            return False
    biases = 0 if flags & FROM_BIAS == 0 else 1 if flags & FIRST_UOP else count
    for step in range(biases):
        if half_at(uops + BIAS * FIELD + step * UOP_BYTES) >= number_at(machine, ACCS + TILES):
            return False
    return True


@helper
def _is_reorderable(row: int, uops: int, count: int, flags: int) -> bool:
    """Whether every tile gets one sum that starts, if at all, with its first product, and no bias
    tile gets any (conservative). Tiles are distinct if the stride of a loop exceeds the range of
    all loops with smaller strides."""
    low = high = half_at(uops + DST * FIELD)
    for step in range(1, count):
        if half_at(uops + DST * FIELD + step * UOP_BYTES) != low:
            return False
    if flags & START and flags & FIRST_UOP == 0 and count > 1:
        return False
    for loop in range(LOOPS):
        most, stride = number_at(row, OUTER + loop) - 1, number_at(row, DST_STRIDE + loop)
        reach = 0
        for other in range(LOOPS):
            step = abs(number_at(row, DST_STRIDE + other))
            if step < abs(stride) or (step == abs(stride) and other < loop):
                reach += (number_at(row, OUTER + other) - 1) * step
        if most > 0 and stride != 0 and abs(stride) <= reach:
            return False
        if most > 0 and stride == 0 and flags & START and flags >> FIRST_BIT - loop & 1 == 0:
            return False
        low, high = low + min(stride * most, 0), high + max(stride * most, 0)
    bias = half_at(uops + BIAS * FIELD)
    return flags & FROM_BIAS == 0 or bias < low or bias > high


@helper
def _assign_loops(plan: int, row: int, count: int) -> Word:
    """Assign each loop to a list. Returns whether there is space for the lists."""
    for kind in range(LISTS):
        write_number(plan, kind, count if kind == REDUCTIONS else 1)
    for loop in range(LOOPS):
        kind = POSITIONS if number_at(row, WGT_STRIDE + loop) == 0 else GROUPS
        if number_at(row, OUTER + loop) == 1 or number_at(row, DST_STRIDE + loop) == 0:
            kind = REDUCTIONS
        write_number(plan, LIST_OF + loop, kind)
        write_number(plan, kind, number_at(plan, kind) * number_at(row, OUTER + loop))
    return (number_at(plan, GROUPS) + number_at(plan, POSITIONS) + number_at(plan, REDUCTIONS)
            <= LONGEST)


@helper
def _begin(plan: int, machine: int, uops: int, flags: int) -> None:
    """Write the rest of the header."""
    block_out, rows = number_at(machine, BLOCK_OUT), number_at(machine, BATCH)
    lanes = min(number_at(machine, BLOCK_IN), block_out)
    write_number(plan, ROWS, rows)
    write_number(plan, ACC_ROW, lanes * number_at(machine, ACCS + LANE))
    write_number(plan, ACC_GROUP, rows * lanes * number_at(machine, ACCS + LANE))
    write_number(plan, INP_ROW, lanes)
    write_number(plan, COLUMNS, lanes if flags & DEPTHWISE else block_out)
    origin = 0
    if flags & FROM_BIAS:
        origin = (number_at(machine, ACCS + ADDRESS)
                  + half_at(uops + BIAS * FIELD) * number_at(machine, ACCS + TILE))
    write_number(plan, ORIGIN, origin)


@helper
def _fill(plan: int, row: int, machine: int, uops: int, count: int, flags: int) -> None:
    """Fill the lists. Each begins with one element, or one for each micro-op; groups hold
    addresses. Each of its loops then appends copies of the elements, offset by its strides."""
    acc, inp = number_at(machine, ACCS + TILE), number_at(machine, INPS + TILE)
    wgt = number_at(machine, WGTS + TILE)
    if flags & DEPTHWISE:               # groups of lanes, and rows of weights
        acc, inp = acc // _groups(machine, BLOCK_OUT), inp // _groups(machine, BLOCK_IN)
        wgt = number_at(machine, BLOCK_IN)
    at = plan + NUMBER * HEADER
    for kind in range(LISTS):
        first = at
        for step in range(count if kind == REDUCTIONS else 1):
            to, left, right = 0, 0, 0
            if kind == GROUPS:
                to = number_at(machine, ACCS + ADDRESS) + acc * half_at(uops + DST * FIELD)
                left = number_at(machine, (OUTS if flags & FROM_OUT else INPS) + ADDRESS)
                right = number_at(machine, WGTS + ADDRESS)
            elif kind == REDUCTIONS:
                left = inp * half_at(uops + SRC * FIELD + step * UOP_BYTES)
                right = wgt * half_at(uops + WGT * FIELD + step * UOP_BYTES)
            at = _write(at, to, left, right, 1 if flags & START else 0)
        for loop in range(LOOPS - 1, -1, -1):
            if number_at(plan, LIST_OF + loop) == kind:
                at = _repeat(first, at, number_at(row, OUTER + loop),
                             acc * number_at(row, DST_STRIDE + loop),
                             inp * number_at(row, SRC_STRIDE + loop),
                             wgt * number_at(row, WGT_STRIDE + loop),
                             1 - (flags >> FIRST_BIT - loop & 1))


@helper
def _write(at: int, to: int, left: int, right: int, starts: int) -> int:
    """Write an element. Returns the address of the next one."""
    write_number(at, TO, to)
    write_number(at, LEFT, left)
    write_number(at, RIGHT, right)
    write_number(at, STARTS, starts)
    return at + NUMBER * ELEMENT


@helper
def _repeat(first: int, end: int, times: int, to: int, left: int, right: int,
            starts: int) -> int:
    """Repeat some elements `times` times with growing offsets. Returns the end."""
    at = end
    for number in range(1, times):
        for each in range(first, end, NUMBER * ELEMENT):
            at = _write(at, number_at(each, TO) + number * to,
                        number_at(each, LEFT) + number * left,
                        number_at(each, RIGHT) + number * right,
                        number_at(each, STARTS) & starts)
    return at

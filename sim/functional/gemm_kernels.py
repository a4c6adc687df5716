"""The kernels that execute a planned gemm. Importing this module imports numba."""

from __future__ import annotations

from functools import cache

import numba

from ..compiled.numba_types import Word
from ..compiled.vectors import NUMBER, c_function, is_set, number_at
from .gemm_plan import (
    ACC_GROUP,
    ACC_ROW,
    COLUMNS,
    ELEMENT,
    GROUPS,
    HEADER,
    INP_ROW,
    LEFT,
    ORIGIN,
    POSITIONS,
    REDUCTIONS,
    RIGHT,
    ROWS,
    STARTS,
    TO,
)
from .gemm_sums import (
    FOUR,
    MOST_TILES,
    VECTORS,
    Sums,
    lefts,
    most_columns,
    nothing,
    plus,
    settle,
)
from .machine_table import DONE, STOPPED

NO_KERNEL = 0
MOST_LANES = 64             # of a tile


# Both are inlined by numba, so that their sums stay in registers.
@numba.njit(inline="always")
def _sum_up(empty: Word, positions: int, reductions: int, count: int, to: int, left: int,
            right: int, starts: int, origin: int) -> None:
    """Compute the sums of as many positions as `empty` has tiles."""
    sums, places = empty, lefts(empty, positions, left)
    for each in range(reductions, reductions + count * ELEMENT * NUMBER, ELEMENT * NUMBER):
        sums = plus(sums, places, number_at(each, LEFT), right + number_at(each, RIGHT))
    settle(sums, positions, to, starts, origin)


@numba.njit(inline="always")
def _sum_positions(plan: int, empty: Word, single: Word, several: int, to: int, left: int,
                   right: int, starts: int, origin: int, stop: int) -> None:
    """Compute all positions for some columns of a row of a group: several at once, then one by
    one."""
    positions = plan + NUMBER * (HEADER + ELEMENT * number_at(plan, GROUPS))
    count, number = number_at(plan, REDUCTIONS), number_at(plan, POSITIONS)
    reductions = positions + NUMBER * ELEMENT * number
    for _ in range(number // several):
        if is_set(stop):
            break
        _sum_up(empty, positions, reductions, count, to, left, right, starts, origin)
        positions += several * ELEMENT * NUMBER
    for _ in range(number % several):
        _sum_up(single, positions, reductions, count, to, left, right, starts, origin)
        positions += ELEMENT * NUMBER


def kernel_for(batch: int, block_in: int, block_out: int, depthwise: bool) -> int:
    """The address of a C function that executes plans for such tiles; 0 if there is none. Plans
    treat groups of lanes as tiles, and lanes of a row of activations must be contiguous."""
    if min(block_in, block_out) < FOUR or (not depthwise and block_in > block_out and batch > 1):
        return NO_KERNEL
    columns = min(block_out, most_columns(block_in, depthwise))
    if batch > 1:
        columns = min(columns, block_in)        # sums of a group of lanes
    if depthwise:
        columns = min(columns, block_in)
    return _kernel(columns if depthwise else block_in, columns, depthwise)


@cache
def _kernel(lanes: int, columns: int, depthwise: bool) -> int:
    """Compile a kernel, or load it from numba's cache."""
    several = max(1, min(VECTORS // Sums(lanes, columns, 1, depthwise).vectors, MOST_TILES))
    left_step, right_step = (1, 1) if depthwise else (0, lanes)
    group_lanes = MOST_LANES if depthwise else lanes        # a depthwise plan is for one group

    def kernel(plan: int, stop: int) -> int:
        groups = plan + NUMBER * HEADER
        for group in range(groups, groups + NUMBER * ELEMENT * number_at(plan, GROUPS),
                           NUMBER * ELEMENT):
            for row in range(number_at(plan, ROWS)):
                for column in range(0, number_at(plan, COLUMNS), columns):
                    step = (column // group_lanes * number_at(plan, ACC_GROUP)
                            + row * number_at(plan, ACC_ROW) + column % group_lanes * FOUR)
                    origin = number_at(plan, ORIGIN)
                    left = row * number_at(plan, INP_ROW) + column * left_step
                    _sum_positions(
                        plan, nothing(lanes, columns, several, depthwise),
                        nothing(lanes, columns, 1, depthwise), several,
                        number_at(group, TO) + step, number_at(group, LEFT) + left,
                        number_at(group, RIGHT) + column * right_step, number_at(group, STARTS),
                        origin + step if origin else 0, stop)
                    if is_set(stop):
                        return STOPPED
        return DONE
    return c_function(kernel)

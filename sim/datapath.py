"""What GEMM and ALU compute, compiled: loops over arrays of tiles, iteration by iteration.

The kernels know arrays and integers only, so that every simulator can call them. Nothing is
checked here: `isa.bounds` comes first. Importing this module imports numba.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numba
import numpy as np

from ..isa import arithmetic, instructions
from ..isa.bounds import BIAS, DST, SRC, WGT
from ..isa.instructions import AluOp, GemmFlags, RequantizeFlags
from . import sums as in_registers
from .sources import checksum
from .sums import NO_TILE, nothing, plus, settle

DEPTHWISE, START = int(GemmFlags.DEPTHWISE), int(GemmFlags.START)
FROM_BIAS, FIRST_UOP = int(GemmFlags.BIAS), int(GemmFlags.FIRST_UOP)
FIRST_INNER, FIRST_MIDDLE = int(GemmFlags.FIRST_INNER), int(GemmFlags.FIRST_MIDDLE)
FIRST_OUTER = int(GemmFlags.FIRST_OUTER)
WIDE = int(RequantizeFlags.WIDE)
MOVE = int(AluOp.MOVE)
OUT_LOW, OUT_HIGH = -128, 127
FEW_COLUMNS, MANY_COLUMNS = 4, 16       # that are summed at once

# numba drops a cached kernel when this file changes, but not when a function it was compiled from
# elsewhere does. Every kernel therefore ends with a parameter whose default is a checksum of
# those files: defaults are part of the signature a cached kernel is found by. All have the same
# one, and it is no integer like the cycle kernel's: where defaults of one type differ, numba
# finds the compiled function of the second only the long way, 0.2 ms a call.
FORMULAS = float(checksum(arithmetic, instructions, in_registers))

scale: Any = numba.njit(arithmetic.scale)
alu_lane: Any = numba.njit(arithmetic.alu)


@numba.njit
def _walked(stride: Any, outer: int, middle: int, inner: int) -> Any:
    return stride[0] * outer + stride[1] * middle + stride[2] * inner


@numba.njit
def _index(uops: Any, step: int, field: int) -> Any:
    return np.int64(uops[step, field])


def gemm(acc: Any, inp: Any, wgt: Any, uops: Any, flags: int, loops: Any, dst_stride: Any,
         src_stride: Any, wgt_stride: Any) -> None:
    """Run micro-ops (n, 4) in three loops on acc (tiles, batch, block_out) of 32 bits."""
    block_in, block_out = inp.shape[2], acc.shape[2]
    kernel = gemm_by_slots
    if not flags & DEPTHWISE and min(block_in, block_out) >= FEW_COLUMNS:
        many = min(block_in, block_out) >= MANY_COLUMNS
        kernel = _gemm_in_sums(block_in, MANY_COLUMNS if many else FEW_COLUMNS)
    kernel(acc, inp, wgt, uops, flags, loops, dst_stride, src_stride, wgt_stride)


@cache
def _gemm_in_sums(lanes: int, columns: int) -> Any:
    """The kernel for activation tiles with so many lanes. Each is compiled when it is needed."""
    @numba.njit(cache=True)
    def kernel(acc: Any, inp: Any, wgt: Any, uops: Any, flags: int, loops: Any, dst_stride: Any,
               src_stride: Any, wgt_stride: Any, formulas: float = FORMULAS) -> None:
        # Columns of a tile have nothing to do with one another, whichever tiles coincide: so
        # each group of them goes through all slots by itself.
        strides, places = (dst_stride, src_stride, wgt_stride), _places(uops, inp, wgt)
        for row in range(acc.shape[1]):
            for column in range(0, acc.shape[2], columns):
                _sum_slots(acc, inp, wgt, uops, places, flags, loops, strides, row, column,
                           nothing(lanes, columns))
    return kernel


@numba.njit
def _places(uops: Any, inp: Any, wgt: Any) -> Any:
    """Where micro-ops find their operands, in bytes: nothing is left to multiply in a slot."""
    places = np.empty((len(uops), 2), np.int64)
    for step in range(len(uops)):
        places[step, 0] = _index(uops, step, SRC) * inp.strides[0]
        places[step, 1] = _index(uops, step, WGT) * wgt.strides[0]
    return places


@numba.njit
def _sum_slots(acc: Any, inp: Any, wgt: Any, uops: Any, places: Any, flags: int, loops: Any,
               strides: Any, row: int, column: int, empty: Any) -> None:
    """The slots in their order; those in a row that add to the same tile add in registers."""
    sums, tile, origin = empty, NO_TILE, NO_TILE
    for outer in range(loops[0]):
        for middle in range(loops[1]):
            for inner in range(loops[2]):
                first = flags & START and _is_first(flags, outer, middle, inner, 0)
                walk = _walked(strides[0], outer, middle, inner)
                left = (_walked(strides[1], outer, middle, inner) * inp.strides[0]
                        + row * inp.strides[1])
                right = (_walked(strides[2], outer, middle, inner) * wgt.strides[0]
                         + column * wgt.strides[1])
                for step in range(len(uops)):
                    dst = walk + _index(uops, step, DST)
                    starts = first and (step == 0 or flags & FIRST_UOP == 0)
                    if starts or dst != tile:
                        if tile != NO_TILE:
                            settle(sums, acc, tile, row, column, origin)
                        sums, tile, origin = empty, dst, dst
                        if starts:
                            origin = _index(uops, step, BIAS) if flags & FROM_BIAS else NO_TILE
                    sums = plus(sums, inp, left + places[step, 0], wgt, right + places[step, 1])
    if tile != NO_TILE:
        settle(sums, acc, tile, row, column, origin)


@numba.njit(cache=True)
def gemm_by_slots(acc: Any, inp: Any, wgt: Any, uops: Any, flags: int, loops: Any,
                  dst_stride: Any, src_stride: Any, wgt_stride: Any,
                  formulas: float = FORMULAS) -> None:
    """What `gemm` means, word for word, for any tiles: one slot after the other."""
    for outer in range(loops[0]):
        for middle in range(loops[1]):
            for inner in range(loops[2]):
                dst_walk = _walked(dst_stride, outer, middle, inner)
                src_walk = _walked(src_stride, outer, middle, inner)
                wgt_walk = _walked(wgt_stride, outer, middle, inner)
                for step in range(len(uops)):
                    dst = dst_walk + _index(uops, step, DST)
                    src = src_walk + _index(uops, step, SRC)
                    weight = wgt_walk + _index(uops, step, WGT)
                    if flags & START and _is_first(flags, outer, middle, inner, step):
                        bias = _index(uops, step, BIAS) if flags & FROM_BIAS else NO_TILE
                        _start_sum(acc, dst, bias)
                    if flags & DEPTHWISE:
                        _add_lanes(acc, inp, wgt, dst, src, weight)
                    else:
                        _add_product(acc, inp, wgt, dst, src, weight)


@numba.njit
def _is_first(flags: int, outer: int, middle: int, inner: int, step: int) -> Any:
    return not ((flags & FIRST_OUTER and outer) or (flags & FIRST_MIDDLE and middle)
                or (flags & FIRST_INNER and inner) or (flags & FIRST_UOP and step))


@numba.njit
def _start_sum(acc: Any, dst: int, bias: int) -> None:
    for row in range(acc.shape[1]):
        for column in range(acc.shape[2]):
            acc[dst, row, column] = 0 if bias == NO_TILE else acc[bias, row, column]


# These take arrays with an index, not tiles: views would cost a third of the speed.
@numba.njit
def _add_product(acc: Any, inp: Any, wgt: Any, dst: int, src: int, weight: int) -> None:
    for row in range(acc.shape[1]):
        for column in range(acc.shape[2]):
            total = np.int32(0)
            for lane in range(inp.shape[2]):
                total += np.int32(inp[src, row, lane]) * np.int32(wgt[weight, column, lane])
            acc[dst, row, column] += total


@numba.njit
def _add_lanes(acc: Any, inp: Any, wgt: Any, dst: int, src: int, weight: int) -> None:
    """Depthwise: `weight` counts rows of weight tiles. Lanes that one side lacks add nothing."""
    tile, line = weight // wgt.shape[1], weight % wgt.shape[1]
    for row in range(acc.shape[1]):
        for lane in range(min(acc.shape[2], inp.shape[2])):
            acc[dst, row, lane] += np.int32(inp[src, row, lane]) * np.int32(wgt[tile, line, lane])


@numba.njit(cache=True)
def alu(target: Any, acc: Any, op: int, dst: int, lhs: int, rhs: int, loops: Any, dst_stride: Any,
        rhs_stride: Any, formulas: float = FORMULAS) -> None:
    """`target` is acc itself or the out scratchpad, whose 8 bits saturate."""
    for outer in range(loops[0]):
        for middle in range(loops[1]):
            for inner in range(loops[2]):
                step = _walked(dst_stride, outer, middle, inner)
                to, right = target[dst + step], acc[rhs + _walked(rhs_stride, outer, middle, inner)]
                left = right if op == MOVE else acc[lhs + step]
                for row in range(to.shape[0]):
                    for lane in range(to.shape[1]):
                        value = alu_lane(op, np.int64(left[row, lane]), np.int64(right[row, lane]))
                        if target.itemsize == 1:
                            value = min(max(value, OUT_LOW), OUT_HIGH)
                        to[row, lane] = value


@numba.njit(cache=True)
def alui(target: Any, acc: Any, op: int, dst: int, src: int, loops: Any, dst_stride: Any,
         src_stride: Any, immediate: int, formulas: float = FORMULAS) -> None:
    """As `alu`, with one number for the right operand. A move reads nothing."""
    for outer in range(loops[0]):
        for middle in range(loops[1]):
            for inner in range(loops[2]):
                to = target[dst + _walked(dst_stride, outer, middle, inner)]
                left = acc[0 if op == MOVE else src + _walked(src_stride, outer, middle, inner)]
                for row in range(to.shape[0]):
                    for lane in range(to.shape[1]):
                        value = alu_lane(op, np.int64(left[row, lane]), immediate)
                        if target.itemsize == 1:
                            value = min(max(value, OUT_LOW), OUT_HIGH)
                        to[row, lane] = value


@numba.njit(cache=True)
def requantize(target: Any, acc: Any, flags: int, rounding: int, dst: int, src: int, params: int,
               loops: Any, dst_stride: Any, src_stride: Any, params_stride: int, zero_point: int,
               low: int, high: int, formulas: float = FORMULAS) -> None:
    """Parameters are read when an outer iteration begins: what it writes to them comes later."""
    if loops[1] == 0 or loops[2] == 0:
        return      # nothing is read either, wherever it may point
    for outer in range(loops[0]):
        at = params + params_stride * outer
        bias, multiplier, shift = acc[at].copy(), acc[at + 1].copy(), acc[at + 2].copy()
        for middle in range(loops[1]):
            for inner in range(loops[2]):
                to = target[dst + _walked(dst_stride, outer, middle, inner)]
                value = acc[src + _walked(src_stride, outer, middle, inner)]
                for row in range(to.shape[0]):
                    for lane in range(to.shape[1]):
                        biased = np.int32(np.int64(value[row, lane]) + np.int64(bias[row, lane]))
                        scaled = scale(np.int64(biased), np.int64(multiplier[row, lane]),
                                       np.int64(shift[row, lane]), rounding)
                        if flags & WIDE == 0:
                            scaled = min(max(scaled + zero_point, low), high)
                        to[row, lane] = scaled

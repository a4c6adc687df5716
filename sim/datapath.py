"""What GEMM and ALU compute, compiled: literal loops over arrays of tiles, iteration by iteration.

The kernels know arrays and integers only, so that every simulator can call them. Nothing is
checked here: `isa.bounds` comes first. Importing this module imports numba.
"""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import numba
import numpy as np

from ..isa import arithmetic, instructions
from ..isa.bounds import BIAS, DST, SRC, WGT
from ..isa.instructions import AluOp, GemmFlags, RequantizeFlags

DEPTHWISE, START = int(GemmFlags.DEPTHWISE), int(GemmFlags.START)
FROM_BIAS, FIRST_UOP = int(GemmFlags.BIAS), int(GemmFlags.FIRST_UOP)
FIRST_INNER, FIRST_MIDDLE = int(GemmFlags.FIRST_INNER), int(GemmFlags.FIRST_MIDDLE)
FIRST_OUTER = int(GemmFlags.FIRST_OUTER)
WIDE = int(RequantizeFlags.WIDE)
MOVE = int(AluOp.MOVE)
OUT_LOW, OUT_HIGH = -128, 127
NO_BIAS = -1
VECTOR = 16                 # lanes of a 128-bit register of bytes

# numba drops a cached kernel when this file changes, but not when a function it was compiled from
# elsewhere does. Every kernel therefore ends with a parameter whose default is a checksum of
# those files: defaults are part of the signature a cached kernel is found by.
FORMULAS = zlib.crc32(b"".join(Path(str(module.__file__)).read_bytes()
                               for module in (arithmetic, instructions)))

scale: Any = numba.njit(arithmetic.scale)
alu_lane: Any = numba.njit(arithmetic.alu)


@numba.njit
def _walked(stride: Any, outer: int, middle: int, inner: int) -> Any:
    return stride[0] * outer + stride[1] * middle + stride[2] * inner


@numba.njit(cache=True)
def gemm(acc: Any, inp: Any, wgt: Any, uops: Any, flags: int, loops: Any, dst_stride: Any,
         src_stride: Any, wgt_stride: Any, formulas: int = FORMULAS) -> None:
    """Run micro-ops (n, 4) in three loops on acc (tiles, batch, block_out) of 32 bits."""
    block_in = inp.shape[2]
    for outer in range(loops[0]):
        for middle in range(loops[1]):
            for inner in range(loops[2]):
                dst_walk = _walked(dst_stride, outer, middle, inner)
                src_walk = _walked(src_stride, outer, middle, inner)
                wgt_walk = _walked(wgt_stride, outer, middle, inner)
                for step in range(len(uops)):
                    dst = dst_walk + np.int64(uops[step, DST])
                    src = src_walk + np.int64(uops[step, SRC])
                    weight = wgt_walk + np.int64(uops[step, WGT])
                    if flags & START and _is_first(flags, outer, middle, inner, step):
                        bias = np.int64(uops[step, BIAS]) if flags & FROM_BIAS else NO_BIAS
                        _start_sum(acc, dst, bias)
                    if flags & DEPTHWISE:
                        _add_lanes(acc, inp, wgt, dst, src, weight)
                    elif block_in % VECTOR:
                        _add_product(acc, inp, wgt, dst, src, weight, block_in)
                    else:       # told that whole registers are enough, LLVM makes better code
                        _add_product(acc, inp, wgt, dst, src, weight, block_in // VECTOR * VECTOR)


@numba.njit
def _is_first(flags: int, outer: int, middle: int, inner: int, step: int) -> Any:
    return not ((flags & FIRST_OUTER and outer) or (flags & FIRST_MIDDLE and middle)
                or (flags & FIRST_INNER and inner) or (flags & FIRST_UOP and step))


@numba.njit
def _start_sum(acc: Any, dst: int, bias: int) -> None:
    for row in range(acc.shape[1]):
        for column in range(acc.shape[2]):
            acc[dst, row, column] = 0 if bias == NO_BIAS else acc[bias, row, column]


# These take arrays with an index, not tiles: views would cost a third of the speed.
@numba.njit
def _add_product(acc: Any, inp: Any, wgt: Any, dst: int, src: int, weight: int,
                 block_in: int) -> None:
    for row in range(acc.shape[1]):
        for column in range(acc.shape[2]):
            acc[dst, row, column] += _dot(inp[src, row], wgt[weight, column], block_in)


@numba.njit
def _dot(left: Any, right: Any, lanes: int) -> Any:
    total = np.int32(0)
    for lane in range(lanes):
        total += np.int32(left[lane]) * np.int32(right[lane])
    return total


@numba.njit
def _add_lanes(acc: Any, inp: Any, wgt: Any, dst: int, src: int, weight: int) -> None:
    """Depthwise: `weight` counts rows of weight tiles. Lanes that one side lacks add nothing."""
    tile, line = weight // wgt.shape[1], weight % wgt.shape[1]
    for row in range(acc.shape[1]):
        for lane in range(min(acc.shape[2], inp.shape[2])):
            acc[dst, row, lane] += np.int32(inp[src, row, lane]) * np.int32(wgt[tile, line, lane])


@numba.njit(cache=True)
def alu(target: Any, acc: Any, op: int, dst: int, lhs: int, rhs: int, loops: Any, dst_stride: Any,
        rhs_stride: Any, formulas: int = FORMULAS) -> None:
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
         src_stride: Any, immediate: int, formulas: int = FORMULAS) -> None:
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
               low: int, high: int, formulas: int = FORMULAS) -> None:
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

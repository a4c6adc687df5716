"""The arithmetic of GEMM and ALU as compiled loops over arrays of tiles.

The kernels work on arrays and integers only, so that every simulator can call them. Nothing is
checked here: `isa.verification.bounds` has done so. Importing this module imports numba.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from ...base.source_digest import source_number
from ...isa import arithmetic
from ...isa.instructions import (
    TABLE_ENTRIES,
    TABLE_SHIFT,
    WINDOW_TAPS,
    Buffer,
    GemmFlags,
    RequantizeFlags,
)
from ...isa.verification.bounds import BIAS, DST, SRC, WGT
from ..compiled.interruptible import NEVER
from ..compiled.numba_types import Kernel, Word
from ..compiled.vectors import callable_at, is_set, kernel, plain
from . import gemm_plan, window_plan
from . import requantize_kernels as in_fours
from .gemm_kernels import kernel_for
from .machine_table import DONE, READS_LEFT, STOPPED, machine
from .scratchpads import Tiles

DEPTHWISE, START = int(GemmFlags.DEPTHWISE), int(GemmFlags.START)
FROM_BIAS, FIRST_UOP = int(GemmFlags.BIAS), int(GemmFlags.FIRST_UOP)
FIRST_INNER, FIRST_MIDDLE = int(GemmFlags.FIRST_INNER), int(GemmFlags.FIRST_MIDDLE)
FIRST_OUTER = int(GemmFlags.FIRST_OUTER)
WIDE, LOOKUP = int(RequantizeFlags.WIDE), int(RequantizeFlags.LOOKUP)
OUT_LOW, OUT_HIGH = -128, 127
Three: TypeAlias = tuple[int, int, int]         # of the outer, middle and inner loop
NO_TILE = -1                # where a sum starts from zero
NOWHERE = dict.fromkeys(Buffer, 0)      # bytes of tiles in DRAM, irrelevant for GEMM and ALU

# numba drops a cached kernel when this file changes, but not when a function it was compiled from
# elsewhere does. Every kernel therefore ends with a parameter whose default is a checksum of those
# files: defaults are part of the signature a cached kernel is found by. All have the same one, of a
# type of its own: if defaults of one type differ, numba's dispatch of the second function takes its
# slow path, 0.2 ms a call.
FORMULAS = float(source_number(__name__))

scale: Kernel = plain(arithmetic.scale)
alu_lane: Kernel = plain(arithmetic.alu)


def gemm(acc: Tiles, inp: Tiles, wgt: Tiles, uops: Tiles, flags: int, loops: Three,
         dst_stride: Three, src_stride: Three, wgt_stride: Three,
         stop: int = NEVER.address) -> None:
    """Run micro-ops (n, 4) in three nested loops on acc (tiles, batch, block_out) of 32 bits."""
    uops = np.ascontiguousarray(uops, np.uint16)
    sums = kernel_for(acc.shape[1], inp.shape[2], acc.shape[2], flags & DEPTHWISE != 0)
    row = (0, 0, 0, flags, 0, len(uops), *loops, *dst_stride, *src_stride, *wgt_stride)
    if not sums or not _ran_compiled(gemm_plan.gemm(), row, (uops, inp, wgt, acc, acc, acc), stop,
                                     sums):
        gemm_by_slots(acc, inp, wgt, uops, flags, loops, dst_stride, src_stride, wgt_stride, stop)


def window(acc: Tiles, inp: Tiles, wgt: Tiles, uops: Tiles, flags: int, loops: Three,
           dst_stride: Three, src_stride: Three, wgt_stride: Three,
           stop: int = NEVER.address) -> None:
    """Slide three taps along the inner loop, with the first of these micro-ops."""
    uops = np.ascontiguousarray(uops, np.uint16)
    sums = kernel_for(acc.shape[1], inp.shape[2], acc.shape[2], True)
    row = (0, 0, 0, flags, 0, *loops, *dst_stride, *src_stride, *wgt_stride)
    if not sums or not _ran_compiled(window_plan.window(), row, (uops, inp, wgt, acc, acc, acc),
                                     stop, sums):
        window_by_sums(acc, inp, wgt, uops, flags, loops, dst_stride, src_stride, wgt_stride, stop)


def _ran_compiled(function: int, row: tuple[int, ...], pads: tuple[Tiles, ...], stop: int,
                  sums: int = 0, tables: int = 0) -> bool:
    """Whether a compiled function executed an instruction. `pads` are in the order of Buffer."""
    space = gemm_plan.space()
    numbers = machine(dict(zip(Buffer, pads, strict=True)), NOWHERE, stop=stop, dense=sums,
                      depthwise=sums, plan=space.ctypes.data, tables=tables)
    words = np.array(row, np.int64)
    heard = callable_at(function, locks=stop == NEVER.address)(words.ctypes.data,
                                                               numbers.ctypes.data)
    return heard in (DONE, STOPPED)


@plain
def _tile_offset(stride: Three, outer: int, middle: int, inner: int) -> int:
    return stride[0] * outer + stride[1] * middle + stride[2] * inner


@plain
def _index(uops: Tiles, step: int, field: int) -> Word:
    return np.int64(uops[step, field])


@kernel
def gemm_by_slots(acc: Tiles, inp: Tiles, wgt: Tiles, uops: Tiles, flags: int, loops: Three,
                  dst_stride: Three, src_stride: Three, wgt_stride: Three, stop: int,
                  formulas: float = FORMULAS) -> None:
    """The reference for `gemm`, for any tiles: slot by slot."""
    groups = acc.shape[2] // min(acc.shape[2], inp.shape[2])
    for outer in range(loops[0]):
        for middle in range(loops[1]):
            for inner in range(loops[2]):
                if is_set(stop):
                    return
                dst_walk = _tile_offset(dst_stride, outer, middle, inner)
                src_walk = _tile_offset(src_stride, outer, middle, inner)
                wgt_walk = _tile_offset(wgt_stride, outer, middle, inner)
                for step in range(len(uops)):
                    dst = dst_walk + _index(uops, step, DST)
                    src = src_walk + _index(uops, step, SRC)
                    weight = wgt_walk + _index(uops, step, WGT)
                    if flags & START and _is_first(flags, outer, middle, inner, step):
                        bias = _index(uops, step, BIAS) if flags & FROM_BIAS else NO_TILE
                        _start_sum(acc, dst, bias, groups if flags & DEPTHWISE else 1)
                    if flags & DEPTHWISE:
                        _add_lanes(acc, inp, wgt, dst, src, weight)
                    else:
                        _add_product(acc, inp, wgt, dst, src, weight)


@kernel
def window_by_sums(acc: Tiles, inp: Tiles, wgt: Tiles, uops: Tiles, flags: int, loops: Three,
                   dst_stride: Three, src_stride: Three, wgt_stride: Three, stop: int,
                   formulas: float = FORMULAS) -> None:
    """The reference for `window`, for any tiles: sum by sum."""
    groups = acc.shape[2] // min(acc.shape[2], inp.shape[2])
    for outer in range(loops[0]):
        for middle in range(loops[1]):
            for inner in range(loops[2] - WINDOW_TAPS + 1):
                if is_set(stop):
                    return
                dst = _tile_offset(dst_stride, outer, middle, inner) + _index(uops, 0, DST)
                if flags & START and _is_first(flags, outer, middle, 0, 0):
                    bias = _index(uops, 0, BIAS) if flags & FROM_BIAS else NO_TILE
                    _start_sum(acc, dst, bias, groups)
                for tap in range(WINDOW_TAPS):
                    src = _tile_offset(src_stride, outer, middle, inner + tap) + _index(uops, 0,
                                                                                        SRC)
                    weight = _tile_offset(wgt_stride, outer, middle, inner + tap) + _index(uops, 0,
                                                                                           WGT)
                    _add_lanes(acc, inp, wgt, dst, src, weight + tap)


@plain
def _is_first(flags: int, outer: int, middle: int, inner: int, step: int) -> bool:
    return not ((flags & FIRST_OUTER and outer) or (flags & FIRST_MIDDLE and middle)
                or (flags & FIRST_INNER and inner) or (flags & FIRST_UOP and step))


@plain
def _start_sum(acc: Tiles, dst: int, bias: int, groups: int) -> None:
    """Start the sums of a tile, or of one of its groups of lanes, whose number is then `dst`."""
    places = acc.shape[1] * acc.shape[2] // groups
    tile, first = dst // groups, dst % groups * places
    for place in range(first, first + places):
        row, column = place // acc.shape[2], place % acc.shape[2]
        acc[tile, row, column] = 0 if bias == NO_TILE else acc[bias, row, column]


# These take arrays and an index instead of tiles: views would cost a third of the speed.
@plain
def _add_product(acc: Tiles, inp: Tiles, wgt: Tiles, dst: int, src: int, weight: int) -> None:
    lanes = min(acc.shape[2], inp.shape[2])
    for row in range(acc.shape[1]):
        for group in range(acc.shape[2] // lanes):
            to, column = _place(acc, row, group, lanes)
            for output in range(lanes):
                total = np.int32(0)
                for left in range(inp.shape[2] // lanes):
                    at, first = _place(inp, row, left, lanes)
                    for lane in range(lanes):
                        total += (np.int32(inp[src, at, first + lane])
                                  * np.int32(wgt[weight, group * lanes + output,
                                                 left * lanes + lane]))
                acc[dst, to, column + output] += total


@plain
def _place(tiles: Tiles, row: int, group: int, lanes: int) -> tuple[int, int]:
    """Where the lanes of a group of a row begin in a tile. Tiles have the shape (batch, block), but
    store group after group, each with all rows."""
    at = (group * tiles.shape[1] + row) * lanes
    return at // tiles.shape[2], at % tiles.shape[2]


@plain
def _add_lanes(acc: Tiles, inp: Tiles, wgt: Tiles, dst: int, src: int, weight: int) -> None:
    """Depthwise: `weight` counts rows of weight tiles, the others groups of lanes."""
    lanes = min(acc.shape[2], inp.shape[2])
    tile, line = weight // wgt.shape[1], weight % wgt.shape[1]
    to, left = acc.shape[2] // lanes, inp.shape[2] // lanes
    for row in range(acc.shape[1]):
        at, column = _place(acc, row, dst % to, lanes)
        of, first = _place(inp, row, src % left, lanes)
        for lane in range(lanes):
            acc[dst // to, at, column + lane] += (
                np.int32(inp[src // left, of, first + lane]) * np.int32(wgt[tile, line, lane]))


def alu(target: Tiles, acc: Tiles, op: int, dst: int, lhs: int, rhs: int, loops: Three,
        dst_stride: Three, rhs_stride: Three, stop: int = NEVER.address) -> None:
    """`target` is acc itself or the out scratchpad, where values saturate at 8 bits."""
    alu_by_lanes(target, acc, op, dst, lhs, rhs, loops, dst_stride, rhs_stride, stop)


def alui(target: Tiles, acc: Tiles, op: int, dst: int, src: int, loops: Three, dst_stride: Three,
         src_stride: Three, immediate: int, stop: int = NEVER.address) -> None:
    """Like `alu`, with one number as the right operand."""
    alui_by_lanes(target, acc, op, dst, src, loops, dst_stride, src_stride, immediate, stop)


@kernel
def alu_by_lanes(target: Tiles, acc: Tiles, op: int, dst: int, lhs: int, rhs: int, loops: Three,
                 dst_stride: Three, rhs_stride: Three, stop: int,
                 formulas: float = FORMULAS) -> None:
    """The reference for `alu`."""
    for outer in range(loops[0]):
        for middle in range(loops[1]):
            if is_set(stop):
                return
            for inner in range(loops[2]):
                step = _tile_offset(dst_stride, outer, middle, inner)
                to, right = target[dst + step], acc[rhs + _tile_offset(rhs_stride, outer, middle,
                                                                       inner)]
                left = acc[lhs + step] if READS_LEFT >> op & 1 else right
                for row in range(to.shape[0]):
                    for lane in range(to.shape[1]):
                        value = alu_lane(op, np.int64(left[row, lane]), np.int64(right[row, lane]))
                        if target.itemsize == 1:
                            value = min(max(value, OUT_LOW), OUT_HIGH)
                        to[row, lane] = value


@kernel
def alui_by_lanes(target: Tiles, acc: Tiles, op: int, dst: int, src: int, loops: Three,
                  dst_stride: Three, src_stride: Three, immediate: int, stop: int,
                  formulas: float = FORMULAS) -> None:
    """The reference for `alui`."""
    for outer in range(loops[0]):
        for middle in range(loops[1]):
            if is_set(stop):
                return
            for inner in range(loops[2]):
                to = target[dst + _tile_offset(dst_stride, outer, middle, inner)]
                walk = _tile_offset(src_stride, outer, middle, inner)
                left = acc[src + walk if READS_LEFT >> op & 1 else 0]
                for row in range(to.shape[0]):
                    for lane in range(to.shape[1]):
                        value = alu_lane(op, np.int64(left[row, lane]), immediate)
                        if target.itemsize == 1:
                            value = min(max(value, OUT_LOW), OUT_HIGH)
                        to[row, lane] = value


def requantize(target: Tiles, acc: Tiles, tables: Tiles, flags: int, rounding: int, dst: int,
               src: int, params: int, loops: Three, dst_stride: Three, src_stride: Three,
               params_stride: int, zero_point: int, low: int, high: int,
               stop: int = NEVER.address) -> None:
    """Parameters are read at the beginning of an outer iteration, before it overwrites them."""
    row = (0, 0, 0, flags, dst, src, params, *loops, *dst_stride, *src_stride, params_stride,
           zero_point, low, high)
    if not _ran_compiled(in_fours.requantize(), row, (acc, acc, acc, acc, acc, target), stop,
                         tables=tables.ctypes.data):
        requantize_by_lanes(target, acc, tables, flags, rounding, dst, src, params, loops,
                            dst_stride, src_stride, params_stride, zero_point, low, high, stop)


@kernel
def requantize_by_lanes(target: Tiles, acc: Tiles, tables: Tiles, flags: int, rounding: int,
                        dst: int, src: int, params: int, loops: Three, dst_stride: Three,
                        src_stride: Three, params_stride: int, zero_point: int, low: int, high: int,
                        stop: int, formulas: float = FORMULAS) -> None:
    """The reference for `requantize`, for any tiles: lane by lane."""
    if loops[1] == 0 or loops[2] == 0:
        return      # nothing is read either, so indices do not matter
    for outer in range(loops[0]):
        at = params + params_stride * outer
        bias, multiplier, shift = acc[at].copy(), acc[at + 1].copy(), acc[at + 2].copy()
        for middle in range(loops[1]):
            if is_set(stop):
                return
            for inner in range(loops[2]):
                to = target[dst + _tile_offset(dst_stride, outer, middle, inner)]
                value = acc[src + _tile_offset(src_stride, outer, middle, inner)]
                for row in range(to.shape[0]):
                    for lane in range(to.shape[1]):
                        biased = np.int32(np.int64(value[row, lane]) + np.int64(bias[row, lane]))
                        scaled = scale(np.int64(biased), np.int64(multiplier[row, lane]),
                                       np.int64(shift[row, lane]), rounding)
                        if flags & WIDE == 0:
                            scaled = min(max(scaled + zero_point, low), high)
                        if flags & LOOKUP:
                            table = TABLE_ENTRIES * (flags >> TABLE_SHIFT)
                            scaled = np.int64(tables[table + TABLE_ENTRIES // 2 + scaled])
                        to[row, lane] = scaled

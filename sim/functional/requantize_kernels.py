"""REQUANTIZE, compiled: four lanes at once; and TABLE, which fills its tables. Importing this
module imports numba."""

from __future__ import annotations

from functools import cache

from ...isa.arithmetic import EVEN, INT32_HIGH, INT32_LOW, TWICE
from ...isa.instructions import (
    PARAMETER_TILES,
    TABLE_ENTRIES,
    TABLE_SHIFT,
    TABLE_WORDS,
    Buffer,
    Requantize,
    RequantizeFlags,
    Table,
)
from ..compiled.numba_types import Word
from ..compiled.vectors import NUMBER, c_function, copy, helper, is_set, number_at
from .four_lanes import FOUR, four_at, four_times, walk_stays_inside, write_bytes, write_numbers
from .machine_table import (
    ADDRESS,
    BATCH,
    BLOCK_OUT,
    BUFFER,
    DONE,
    ELSEWHERE,
    HEADER,
    LANE,
    OUTSIDE,
    STOP,
    STOPPED,
    TABLES,
    TILE,
    TILES,
    place,
)
from .requantize_lanes import (
    clamp_to_8_bits,
    scale_rounding_once,
    scale_rounding_twice,
    write_entries,
)

(FLAGS, DST, SRC, PARAMS, OUTER, DST_STRIDE, SRC_STRIDE, PARAMS_STRIDE, ZERO_POINT, LOW, HIGH) = (
    place(Requantize, name) for name in (
        "flags", "dst", "src", "params", "loops", "dst_stride", "src_stride", "params_stride",
        "zero_point", "low", "high"))
MIDDLE, INNER = OUTER + 1, OUTER + 2
TO_ACC, WIDE = int(RequantizeFlags.ACC), int(RequantizeFlags.WIDE)
LOOKUP = int(RequantizeFlags.LOOKUP)
NUMBER_OF_TABLE, TABLE_SRC = place(Table, "table"), place(Table, "src")
ROUNDING_SHIFT, ROUNDING_MASK = 2, 3
ACCS, OUTS = (HEADER + BUFFER * each for each in (Buffer.ACC, Buffer.OUT))


@cache
def requantize() -> int:
    """The address of a C function that executes a requantize, given its row and the machine. It
    does not handle tiles whose lanes are not a multiple of four."""
    def function(row: int, machine: int) -> int:
        if number_at(row, OUTER) * number_at(row, MIDDLE) * number_at(row, INNER) == 0:
            return DONE
        acc, target, loops = (machine + NUMBER * ACCS, machine + NUMBER * OUTS,
                              row + NUMBER * OUTER)
        if number_at(row, FLAGS) & TO_ACC:
            target = acc
        last = (number_at(row, PARAMS) + PARAMETER_TILES - 1
                + (number_at(row, OUTER) - 1) * number_at(row, PARAMS_STRIDE))
        if not (walk_stays_inside(number_at(row, DST), loops, row + NUMBER * DST_STRIDE,
                                  number_at(target, TILES))
                and walk_stays_inside(number_at(row, SRC), loops, row + NUMBER * SRC_STRIDE,
                                      number_at(acc, TILES))
                and last < number_at(acc, TILES)):
            return OUTSIDE
        tables = number_at(machine, TABLES)
        if number_at(row, FLAGS) & LOOKUP and tables == 0:
            return OUTSIDE
        table = tables + TABLE_ENTRIES * (number_at(row, FLAGS) >> TABLE_SHIFT)
        lanes = number_at(machine, BATCH) * number_at(machine, BLOCK_OUT)
        if lanes % FOUR:
            return ELSEWHERE
        # Parameters are read when an iteration of the outer loop begins, before it may overwrite
        # them. Lanes are independent, so four of them go through all tiles.
        for outer in range(number_at(row, OUTER)):
            for lane in range(0, lanes, FOUR):
                _scale_lanes(row, acc, target, outer, lane, table, number_at(machine, STOP))
            if is_set(number_at(machine, STOP)):
                return STOPPED
        return DONE
    return c_function(function)


@helper
def _scale_lanes(row: int, acc: int, target: int, outer: int, lane: int, table: int,
                 stop: int) -> None:
    """Four lanes, in one iteration of the outer loop."""
    tile, step = number_at(acc, TILE), number_at(target, TILE)
    first = number_at(acc, ADDRESS) + lane * number_at(acc, LANE)
    params = first + tile * (number_at(row, PARAMS) + outer * number_at(row, PARAMS_STRIDE))
    origin = first + tile * (number_at(row, SRC) + outer * number_at(row, SRC_STRIDE))
    to = (number_at(target, ADDRESS) + lane * number_at(target, LANE)
          + step * (number_at(row, DST) + outer * number_at(row, DST_STRIDE)))
    bias, multiplier, shift = four_at(params), four_at(params + tile), four_at(params + 2 * tile)
    zero_point, low, high = number_at(row, ZERO_POINT), number_at(row, LOW), number_at(row, HIGH)
    if number_at(row, FLAGS) & WIDE:
        zero_point, low, high = 0, INT32_LOW, INT32_HIGH
    for _ in range(number_at(row, MIDDLE)):
        _scale_tiles(number_at(row, FLAGS), origin, to, number_at(row, INNER),
                     tile * number_at(row, SRC_STRIDE + 2), step * number_at(row, DST_STRIDE + 2),
                     bias, multiplier, shift, four_times(zero_point), four_times(low),
                     four_times(high), table)
        if is_set(stop):
            return
        origin += tile * number_at(row, SRC_STRIDE + 1)
        to += step * number_at(row, DST_STRIDE + 1)


@helper
def _scale_tiles(flags: int, origin: int, to: int, count: int, origin_step: int, to_step: int,
                 bias: Word, multiplier: Word, shift: Word, zero_point: Word, low: Word,
                 high: Word, table: int) -> None:
    """Four lanes of some tiles."""
    rounding = flags >> ROUNDING_SHIFT & ROUNDING_MASK
    for _ in range(count):
        value = four_at(origin)
        if rounding == TWICE:
            value = scale_rounding_twice(value, bias, multiplier, shift)
        else:
            value = scale_rounding_once(value, bias, multiplier, shift, rounding == EVEN)
        value = clamp_to_8_bits(value, zero_point, low, high)
        if flags & TO_ACC:
            write_numbers(value, to)
        elif flags & LOOKUP:
            write_entries(value, to, table)
        else:
            write_bytes(value, to)
        origin += origin_step
        to += to_step


@cache
def fill_table() -> int:
    """The address of a C function that executes a table, given its row and the machine. Lanes of
    consecutive tiles are consecutive bytes."""
    def function(row: int, machine: int) -> int:
        acc, tables = machine + NUMBER * ACCS, number_at(machine, TABLES)
        lanes = number_at(machine, BATCH) * number_at(machine, BLOCK_OUT)
        needed = (TABLE_WORDS + lanes - 1) // lanes
        if tables == 0 or number_at(row, TABLE_SRC) + needed > number_at(acc, TILES):
            return OUTSIDE
        copy(tables + TABLE_ENTRIES * number_at(row, NUMBER_OF_TABLE),
             number_at(acc, ADDRESS) + number_at(acc, TILE) * number_at(row, TABLE_SRC),
             TABLE_ENTRIES)
        return DONE
    return c_function(function)

"""TABLE and the lookups of REQUANTIZE, compiled. Importing this module imports numba."""

from __future__ import annotations

from functools import cache

from numba import types

from ...isa.instructions import TABLE_ENTRIES, TABLE_WORDS, Buffer, Table
from ..compiled.numba_types import Builder, Context, Intrinsic, Kind, Signature, Word, Words
from ..compiled.vectors import I8, I32, I64, NUMBER, c_function, copy, intrinsic, load, number_at
from ..compiled.vectors import store as store_at
from .four_lanes import FOUR, FOUR_NUMBERS
from .machine_table import (
    ADDRESS,
    BATCH,
    BLOCK_OUT,
    BUFFER,
    DONE,
    HEADER,
    OUTSIDE,
    TABLES,
    TILE,
    TILES,
    place,
)

NUMBER_OF, SRC = place(Table, "table"), place(Table, "src")
ACCS = HEADER + BUFFER * Buffer.ACC
ZERO = TABLE_ENTRIES // 2       # the entry for a result of 0


@cache
def fill_table() -> int:
    """The address of a C function that executes a table, given its row and the machine. Lanes of
    tiles in a row are bytes in a row."""
    def function(row: int, machine: int) -> int:
        acc, tables = machine + NUMBER * ACCS, number_at(machine, TABLES)
        lanes = number_at(machine, BATCH) * number_at(machine, BLOCK_OUT)
        needed = (TABLE_WORDS + lanes - 1) // lanes
        if tables == 0 or number_at(row, SRC) + needed > number_at(acc, TILES):
            return OUTSIDE
        copy(tables + TABLE_ENTRIES * number_at(row, NUMBER_OF),
             number_at(acc, ADDRESS) + number_at(acc, TILE) * number_at(row, SRC), TABLE_ENTRIES)
        return DONE
    return c_function(function)


@intrinsic
def write_entries(context: Context, value: Kind, address: Kind, table: Kind) -> Intrinsic:
    """Write the entries of a table, given its address, for four results of 8 bits."""
    def generate(context: Context, builder: Builder, signature: Signature, values: Words) -> Word:
        results, address, table = values
        zero = builder.add(table, I64(ZERO))
        for lane in range(FOUR):
            result = builder.sext(builder.extract_element(results, I32(lane)), I64)
            entry = load(builder, builder.add(zero, result), I8)
            store_at(builder, entry, builder.add(address, I64(lane)))
        return context.get_dummy_value()
    return types.void(FOUR_NUMBERS, types.int64, types.int64), generate

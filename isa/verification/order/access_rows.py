"""Which rows of the access table an instruction has, as lists of places.

The elements of an instruction's fields are numbers in a list, followed by numbers that are derived
from them (`fill_accesses`). A row of the table is picked from that list: for each of its columns,
the place of the number that it gets.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from ...instructions import (
    ISA,
    Alu,
    AluI,
    Buffer,
    Gemm,
    Instruction,
    Load,
    Requantize,
    Store,
    Window,
)
from ...instructions import Table as FillTable
from ...record import fields_of
from ..bounds import BIAS, DST, SRC, WGT
from .accesses import AT, NO_COLUMN

Place: TypeAlias = int
Three: TypeAlias = tuple[int, int, int]

ELEMENTS = max(sum(field.count for field in fields_of(kind)) for kind in ISA)
# Derived: whether a row that may be missing is there, spaces, loops …
(ZERO, ONE, THERE, SPACE, SEGMENT, HEIGHT, WIDTH, BYTES, WORKS, SUMS, BIASES, DIVISOR, SPAN,
 GROUPS, BLOCK, GRID, TILES) = range(ELEMENTS, ELEMENTS + 17)
STEPS = TILES + 1                               # … three strides …
PADS = STEPS + 3                                # … and numbers: of scratchpads,
COLUMNS = PADS + len(Buffer) - NO_COLUMN        # and of the columns of micro-ops, from none on
NUMBERS = COLUMNS + 1 + BIAS


def place(kind: type[Instruction], name: str) -> Place:
    """Where the first element of a field is."""
    at = 0
    for field in fields_of(kind):
        if field.name == name:
            return at
        at += field.count
    raise KeyError(name)


def _three(first: Place) -> Three:
    return first, first + 1, first + 2


PICKED = np.array([AT["space"], AT["write"], AT["base"], *_three(AT["loops"]),
                   *_three(AT["stride"]), *(AT[name] for name in (
                       "divisor", "span", "grid", "column", "uop", "count"))])


def _row(space: Place, base: Place, loops: Three, stride: Three, *, there: Place = ONE,
         writes: bool = False, divisor: Place = ONE, span: Place = ONE, grid: Place = ONE,
         column: int = NO_COLUMN, uop: Place = ZERO, count: Place = ONE) -> list[Place]:
    """Whether it is there, then its columns in the order of `PICKED`."""
    return [there, space, ONE if writes else ZERO, base, *loops, *stride, divisor, span, grid,
            COLUMNS + column, uop, count]


def _box(kind: type[Instruction]) -> list[Place]:
    """What a transfer touches in DRAM."""
    shape, stride = place(kind, "shape"), place(kind, "stride")
    return _row(SEGMENT, place(kind, "offset"), (shape, shape + 1, BYTES),
                (stride, stride + 1, ONE), writes=kind is Store, there=THERE)


def _products(kind: type[Instruction], count: Place) -> list[list[Place]]:
    """Of gemms and windows: micro-ops, activations, weights, sums, and what sums begin with.
    Indices count tiles, or groups of lanes and rows of weights where products are lane by lane."""
    uop, loops = place(kind, "uop"), _three(place(kind, "loops"))
    sums = (loops[0], loops[1], SUMS)
    return [_row(PADS + Buffer.UOP, uop, (WORKS, ONE, count), (ZERO, ZERO, ONE)),
            _row(SPACE, ZERO, loops, _three(STEPS), divisor=DIVISOR, span=SPAN, column=SRC, uop=uop,
                 count=count),
            _row(PADS + Buffer.WGT, ZERO, loops, _three(place(kind, "wgt_stride")), divisor=BLOCK,
                 grid=GRID, column=WGT, uop=uop, count=count),
            _row(PADS + Buffer.ACC, ZERO, sums, _three(place(kind, "dst_stride")), writes=True,
                 divisor=GROUPS, column=DST, uop=uop, count=count),
            _row(PADS + Buffer.ACC, ZERO, sums, (ZERO, ZERO, ZERO), column=BIAS, uop=uop,
                 count=BIASES, there=THERE)]


def _operand(kind: type[Instruction], base: str, stride: str, space: Place = PADS + Buffer.ACC, *,
             writes: bool = False, there: Place = ONE) -> list[Place]:
    """An operand of the ALU."""
    return _row(space, place(kind, base), _three(place(kind, "loops")),
                _three(place(kind, stride)), writes=writes, there=there)


ROWS: dict[type[Instruction], list[list[Place]]] = {
    Load: [_row(SPACE, place(Load, "sram"), (place(Load, "shape"), HEIGHT, WIDTH),
                (place(Load, "sram_pitch"), WIDTH, ONE), writes=True), _box(Load)],
    Store: [_row(place(Store, "buffer"), place(Store, "sram"), _three(place(Store, "shape")),
                 (place(Store, "sram_pitch"), place(Store, "sram_pitch") + 1, ONE)), _box(Store)],
    Gemm: _products(Gemm, place(Gemm, "count")),
    Window: _products(Window, ONE),
    Alu: [_operand(Alu, "lhs", "dst_stride", there=THERE), _operand(Alu, "rhs", "rhs_stride"),
          _operand(Alu, "dst", "dst_stride", place(Alu, "target"), writes=True)],
    AluI: [_operand(AluI, "src", "src_stride", there=THERE),
           _operand(AluI, "dst", "dst_stride", place(AluI, "target"), writes=True)],
    Requantize: [_operand(Requantize, "src", "src_stride"),
                 _row(PADS + Buffer.ACC, place(Requantize, "params"),
                      (place(Requantize, "loops"), WORKS, TILES),
                      (place(Requantize, "params_stride"), ZERO, ONE)),
                 _operand(Requantize, "dst", "dst_stride", SPACE, writes=True)],
    FillTable: [_row(PADS + Buffer.ACC, place(FillTable, "src"), (ONE, ONE, TILES),
                     (ZERO, ZERO, ONE))],       # tables are the ALU's own, and it works in order
}
assert set(ROWS) == {kind for kind in ISA if kind.engine is not None}

# The same by opcode, for compiled code.
ROW_COUNTS = np.zeros(256, np.int64)
PLACES = np.zeros((256, max(map(len, ROWS.values())), 1 + len(PICKED)), np.int64)
for _kind, _rows in ROWS.items():
    ROW_COUNTS[_kind.opcode] = len(_rows)
    PLACES[_kind.opcode, :len(_rows)] = _rows

# By opcode, for each element of its fields: where its bytes begin, how many, whether it is signed.
FIELDS = np.zeros((256, ELEMENTS, 3), np.int64)
for _kind in ISA:
    _elements = [(field.offset + number * field.scalar.bytes, field.scalar.bytes,
                  field.scalar.signed) for field in fields_of(_kind)
                 for number in range(field.count)]
    FIELDS[_kind.opcode, :len(_elements)] = _elements


def new_numbers() -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Room for the numbers of one instruction, with those that are the same for all."""
    numbers = np.zeros(NUMBERS, np.int64)
    numbers[ONE] = 1
    numbers[PADS:PADS + len(Buffer)] = range(len(Buffer))
    numbers[COLUMNS + NO_COLUMN:] = range(NO_COLUMN, BIAS + 1)
    return numbers

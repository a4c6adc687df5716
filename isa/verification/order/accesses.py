"""What every instruction of a stream touches, as one table of affine accesses.

A row says: this instruction reads (or writes) the cells `base + Σ counter × stride` of a space,
for every combination of three loop counters. Cells are tiles of a scratchpad or bytes of a
segment. Rows of a gemm or a window stand for one column of its micro-ops and are relative to each
of them. The verifier proves orders from this table, and tokens are derived from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ....base.arrays import Array
from ...config import Config
from ...instructions import (
    ISA,
    PARAMETER_TILES,
    WINDOW_ROWS,
    WINDOW_TAPS,
    Alu,
    AluI,
    AluOp,
    Buffer,
    Gemm,
    GemmFlags,
    Instruction,
    Load,
    Requantize,
    RequantizeFlags,
    Store,
    Window,
)
from ...instructions import Table as FillTable
from ...stream import Stream, kinds_in, positions_of
from ..bounds import BIAS, DST, SRC, WGT

DRAM = 8                    # space of segment 0; scratchpads are numbered as in `Buffer`
SPACES = 16
NO_COLUMN = NOT_LONG = -1

ROW = np.dtype([
    ("instruction", "i8"), ("space", "i8"), ("write", "?"), ("base", "i8"),
    ("loops", "i8", (3,)), ("stride", "i8", (3,)),
    ("divisor", "i8"),      # cells are index // divisor: rows of weight tiles become tiles
    ("span", "i8"),         # ... or, where a gemm reads several tiles of out as one, as many cells
    ("grid", "i8"),         # indices that are no multiple of it are outside
    ("column", "i8"),       # field of the micro-op that is added to the base, or NO_COLUMN
    ("uop", "i8"), ("count", "i8"),
    ("long", "i8"),         # number of a box of DRAM that has very many rows, or NOT_LONG
])
Table = npt.NDArray[np.void]
Columns = Array


READS_LEFT = np.array([op.reads_left for op in AluOp])
SCRATCHPAD = np.array([buffer.scratchpad for buffer in Buffer])


class Row(Protocol):
    """One element of the table, as compiled functions see it."""

    instruction: int
    space: int
    write: bool
    base: int
    loops: npt.NDArray[np.int64]
    stride: npt.NDArray[np.int64]
    divisor: int
    span: int
    grid: int
    column: int
    uop: int
    count: int
    long: int


def access_table(stream: Stream, config: Config) -> Table:
    """Every access of every instruction, in program order."""
    parts = [rows for kind in kinds_in(stream) if kind in BUILDERS
             for rows in BUILDERS[kind](stream, config)]
    table = np.zeros(sum(map(len, parts)), ROW)
    begin = 0
    for rows in parts:              # concatenate compares the fields of any two of them
        table[begin:begin + len(rows)] = rows
        begin += len(rows)
    # Steps that do not move reach the same cells again: once is enough.
    table["loops"] = np.where(table["stride"] == 0, np.minimum(table["loops"], 1), table["loops"])
    return table[np.argsort(table["instruction"], kind="stable")]


def _rows(positions: Columns, space: npt.ArrayLike, base: Columns, loops: Columns, stride: Columns,
          **more: npt.ArrayLike) -> Table:
    rows = np.zeros(len(positions), ROW)
    rows["instruction"], rows["space"], rows["base"] = positions, space, base
    rows["loops"], rows["stride"] = loops, stride
    rows["divisor"], rows["span"], rows["grid"], rows["count"] = 1, 1, 1, 1
    rows["column"], rows["long"] = NO_COLUMN, NOT_LONG
    for name, value in more.items():
        rows[name] = value
    return rows


def _columns(*each: npt.ArrayLike) -> Columns:
    """Columns side by side, as the three loops of a row."""
    return np.stack([np.asarray(column, np.int64) for column in np.broadcast_arrays(*each)], 1)


def _loads(stream: Stream, config: Config) -> Iterator[Table]:
    positions, words = positions_of(stream, Load)
    z, y, x = words["shape"].astype(np.int64).T
    top, bottom, left, right = words["pad"].astype(np.int64).T
    width = left + x + right
    yield _rows(positions, SCRATCHPAD[words["buffer"]], words["sram"],
                _columns(z, top + y + bottom, width),
                _columns(words["sram_pitch"], width, np.int64(1)), write=True)
    yield _dram_rows(positions, words, config, write=False)


def _stores(stream: Stream, config: Config) -> Iterator[Table]:
    positions, words = positions_of(stream, Store)
    plane, row = words["sram_pitch"].T
    yield _rows(positions, words["buffer"], words["sram"], words["shape"],
                _columns(plane, row, np.int64(1)))
    yield _dram_rows(positions, words, config, write=True)


def _dram_rows(positions: Columns, words: Stream, config: Config, *, write: bool) -> Table:
    tile = np.zeros(len(Buffer), np.int64)
    for buffer in Buffer:
        tile[buffer] = config.tile_bytes(buffer)
    z, y, x = words["shape"].astype(np.int64).T
    plane, row = words["stride"].T
    return _rows(positions, DRAM + words["segment"].astype(np.int64), words["offset"],
                 _columns(z, y, x * tile[words["buffer"]]), _columns(plane, row, np.int64(1)),
                 write=write)


def _gemms(stream: Stream, config: Config) -> Iterator[Table]:
    positions, words = positions_of(stream, Gemm)
    uops = {"uop": words["uop"], "count": words["count"]}
    runs = np.all(words["loops"] > 0, axis=1) & (words["count"] > 0)
    depthwise = words["flags"] & GemmFlags.DEPTHWISE != 0
    yield _rows(positions, Buffer.UOP, words["uop"], _columns(runs, 1, words["count"]),
                _columns(0, 0, np.ones(len(words), np.int64)))
    yield _activations(positions, words, config, depthwise, **uops)
    yield _rows(positions, Buffer.WGT, 0 * positions, words["loops"], words["wgt_stride"],
                column=WGT, divisor=np.where(depthwise, config.block_out, 1), **uops)
    yield _rows(positions, Buffer.ACC, 0 * positions, words["loops"], words["dst_stride"],
                column=DST, write=True, divisor=np.where(depthwise, config.acc_groups, 1), **uops)
    biased = np.flatnonzero(words["flags"] & GemmFlags.BIAS)
    first_only = words["flags"][biased] & GemmFlags.FIRST_UOP != 0
    count = np.where(first_only, np.minimum(words["count"][biased], 1), words["count"][biased])
    still = np.zeros((len(biased), 3), np.int64)
    yield _rows(positions[biased], Buffer.ACC, 0 * positions[biased], words["loops"][biased],
                still, column=BIAS, uop=words["uop"][biased], count=count)


def _activations(positions: Columns, words: Stream, config: Config, depthwise: npt.ArrayLike,
                 **uops: npt.ArrayLike) -> Table:
    """What gemms and windows read. Indices count activation tiles, or groups of their lanes, and
    cells of out are tiles of results."""
    from_out = words["flags"] & GemmFlags.OUT != 0
    groups = np.where(depthwise, config.inp_groups, 1)
    divisor = np.where(from_out, config.acc_groups, groups)
    span = np.where(from_out, config.inp_groups // groups, 1)
    return _rows(positions, np.where(from_out, Buffer.OUT, Buffer.INP), 0 * positions,
                 words["loops"], words["src_stride"] * span[:, None], column=SRC, divisor=divisor,
                 span=span, **uops)


def _windows(stream: Stream, config: Config) -> Iterator[Table]:
    """The group of rows that a window takes lies in one tile; the last iterations of the inner loop
    begin no sum."""
    positions, words = positions_of(stream, Window)
    uops = {"uop": words["uop"]}
    outer, middle, inner = words["loops"].astype(np.int64).T
    sums = _columns(outer, middle, np.maximum(inner - WINDOW_TAPS + 1, 0))
    nowhere = 0 * positions
    yield _rows(positions, Buffer.UOP, words["uop"],
                _columns(np.all(words["loops"] > 0, axis=1), 1, 1), _columns(nowhere, 0, 0))
    yield _activations(positions, words, config, np.ones(len(words), np.bool_), **uops)
    yield _rows(positions, Buffer.WGT, nowhere, words["loops"], words["wgt_stride"], column=WGT,
                divisor=config.block_out, grid=WINDOW_ROWS, **uops)
    yield _rows(positions, Buffer.ACC, nowhere, sums, words["dst_stride"], column=DST, write=True,
                divisor=config.acc_groups, **uops)
    biased = words["flags"] & GemmFlags.BIAS != 0
    yield _rows(positions[biased], Buffer.ACC, nowhere[biased], sums[biased],
                np.zeros((int(biased.sum()), 3), np.int64), column=BIAS, uop=words["uop"][biased])


def _alus(stream: Stream, config: Config) -> Iterator[Table]:
    positions, words = positions_of(stream, Alu)
    yield _operands(positions, words, READS_LEFT[words["op"]], "lhs", "dst_stride")
    yield _operands(positions, words, np.ones(len(words), np.bool_), "rhs", "rhs_stride")
    yield _rows(positions, words["target"], words["dst"], words["loops"], words["dst_stride"],
                write=True)


def _aluis(stream: Stream, config: Config) -> Iterator[Table]:
    positions, words = positions_of(stream, AluI)
    yield _operands(positions, words, READS_LEFT[words["op"]], "src", "src_stride")
    yield _rows(positions, words["target"], words["dst"], words["loops"], words["dst_stride"],
                write=True)


def _operands(positions: Columns, words: Stream, reads: Columns, base: str, stride: str) -> Table:
    words = words[reads]
    return _rows(positions[reads], Buffer.ACC, words[base], words["loops"], words[stride])


def _requantizes(stream: Stream, config: Config) -> Iterator[Table]:
    positions, words = positions_of(stream, Requantize)
    outer, middle, inner = words["loops"].T
    yield _rows(positions, Buffer.ACC, words["src"], words["loops"], words["src_stride"])
    yield _rows(positions, Buffer.ACC, words["params"],
                _columns(outer, (middle > 0) & (inner > 0), PARAMETER_TILES),
                _columns(words["params_stride"], 0, 1))
    to_acc = words["flags"] & RequantizeFlags.ACC != 0
    yield _rows(positions, np.where(to_acc, Buffer.ACC, Buffer.OUT), words["dst"],
                words["loops"], words["dst_stride"], write=True)


def _tables(stream: Stream, config: Config) -> Iterator[Table]:
    """Tables themselves are the ALU's own, and it works in order."""
    positions, words = positions_of(stream, FillTable)
    still = 0 * positions
    yield _rows(positions, Buffer.ACC, words["src"], _columns(still + 1, 1, config.table_tiles),
                _columns(still, 0, 1))


# Only instructions that FETCH executes touch nothing.
BUILDERS: dict[type[Instruction], Callable[[Stream, Config], Iterator[Table]]] = {
    Load: _loads, Gemm: _gemms, Window: _windows, Alu: _alus, AluI: _aluis,
    Requantize: _requantizes, FillTable: _tables, Store: _stores}
assert set(BUILDERS) == {kind for kind in ISA if kind.engine is not None}

"""Fills the rows of a program, one instruction after the other. Compiled, like the twins.

`decode` has the columns and says which fields are copied into them; here is what follows from them.
Whether a word is an instruction at all is known before: `legal`.
"""

from __future__ import annotations

import numpy as np

from ...isa.instructions import (
    PARAMETER_TILES,
    TABLE_WORDS,
    Alu,
    AluI,
    AluOp,
    Buffer,
    Engine,
    Gemm,
    GemmFlags,
    Instruction,
    Load,
    MicroOp,
    Requantize,
    RequantizeFlags,
    Store,
    Sync,
    SyncAction,
    Window,
)
from ...isa.instructions import Table as FillTable
from ...isa.record import fields_of
from ..llvm.decorators import inline
from .decode import AT, COPIED, END, SYNC
from .record_types import Bytes, Numbers, Row, Rows, Settings

LOAD, GEMM, WINDOW, ALU, ALUI, REQUANTIZE, FILL, STORE, STOP = (int(kind.opcode) for kind in (
    Load, Gemm, Window, Alu, AluI, Requantize, FillTable, Store, Sync))
LOADS, GEMMS, ALUS, STORES = (int(each) for each in (
    Engine.LOAD, Engine.GEMM, Engine.ALU, Engine.STORE))
UOP, WGT, OUT = int(Buffer.UOP), int(Buffer.WGT), int(Buffer.OUT)
DEPTHWISE, TO_ACC = int(GemmFlags.DEPTHWISE), int(RequantizeFlags.ACC)
ENDS, UOP_BYTES = int(SyncAction.END), MicroOp.size
READS_LEFT = sum(1 << each for each in AluOp if each.reads_left)        # as a set
BANKS = 8                                       # most that an accumulator has
# What is known of an accelerator, and of each of its buffers.
FACTS = np.dtype([(name, np.int64) for name in (
    "acc_tiles", "out_tiles", "bank_tiles", "has_windows", "has_tables", "table_lanes",
    "most_weight")])
TILE_BYTES, TILES, PARTS, LANES, IN_ACC, BUFFER_FACTS = range(6)


def byte_of(kind: type[Instruction], name: str) -> int:
    """The byte of a word that is a field."""
    field, = (each for each in fields_of(kind) if each.name == name)
    assert field.bytes == 1
    return field.offset


SEGMENT, PAD_VALUE, ACTION, FLAGS = (byte_of(kind, name) for kind, name in (
    (Load, "segment"), (Load, "pad_value"), (Sync, "action"), (Requantize, "flags")))
OPERATION, ALU_TARGET, ALUI_TARGET = (byte_of(kind, name) for kind, name in (
    (Alu, "op"), (Alu, "target"), (AluI, "target")))
assert (byte_of(Store, "segment"), byte_of(AluI, "op")) == (SEGMENT, OPERATION)


def _copies(kind: type[Instruction]) -> list[tuple[int, int, int, int]]:
    """Which bytes are copied to which columns: the first, how many, whether there is a sign."""
    return [(field.offset + number % field.count * field.scalar.bytes, field.scalar.bytes,
             int(field.scalar.low < 0), AT[name])
            for field in fields_of(kind)
            for number, name in enumerate(COPIED[kind].get(field.name, ()))]


KINDS: tuple[type[Instruction], ...] = (
    Load, Gemm, Window, Alu, AluI, Requantize, FillTable, Store, Sync)
KIND_OF = np.full(256, -1, np.int64)
COPY_COUNTS = np.array([len(_copies(kind)) for kind in KINDS])
COPIES = np.zeros((len(KINDS), COPY_COUNTS.max(), 4), np.int64)
for number, kind in enumerate(KINDS):
    KIND_OF[kind.opcode] = number
    COPIES[number, :COPY_COUNTS[number]] = _copies(kind)


def fill_rows(code: Bytes, legal: Bytes, rows: Rows, words: Numbers, buffers: Numbers,
              windows: Numbers, facts: Settings, positions: Numbers, lengths: Numbers) -> int:
    """Fill rows that are zero; `words` are the same memory. `windows` has the bases of segments,
    their bytes for loads and those for stores, `positions` gets those of each engine's
    instructions, and `lengths` how many there are."""
    for now in range(len(rows)):
        opcode = code[now, 0]
        if KIND_OF[opcode] < 0:
            continue
        row, word = rows[now], code[now]
        _copy_fields(word, words[now], KIND_OF[opcode])
        row.legal = legal[now]
        if opcode == LOAD:
            _load(row, word, buffers, windows, facts)
        elif opcode == STORE:
            _store(row, word, buffers, windows, facts)
        elif opcode == GEMM:
            _gemm(row)
        elif opcode == WINDOW:      # timing and indices of a depthwise gemm with one micro-op
            row.count = row.window = 1
            row.flags = row.flags | DEPTHWISE
            row.legal = row.legal and facts.has_windows
            _gemm(row)
        elif opcode == STOP:
            row.engine = END if word[ACTION] == ENDS else SYNC
        else:
            _alu(row, word, opcode, facts)
        if row.legal and row.engine < SYNC:
            positions[row.engine, lengths[row.engine]] = now
            lengths[row.engine] += 1
    return 0


@inline
def _copy_fields(word: Bytes, row: Numbers, kind: int) -> None:
    for each in range(COPY_COUNTS[kind]):
        first, size, value = COPIES[kind, each, 0], COPIES[kind, each, 1], 0
        for byte in range(size):
            value |= word[first + byte] << 8 * byte
        if COPIES[kind, each, 2] and value >> 8 * size - 1:
            value -= 1 << 8 * size
        row[COPIES[kind, each, 3]] = value


@inline
def _box(row: Row, word: Bytes, buffers: Numbers, windows: Numbers, limit: int) -> None:
    """The columns that loads and stores share."""
    segment, buffer = word[SEGMENT], row.buffer
    row.base, row.size = windows[0, segment], windows[limit, segment]
    row.tile_bytes, row.pad_tiles = buffers[TILE_BYTES, buffer], buffers[TILES, buffer]
    row.parts, row.lanes = buffers[PARTS, buffer], buffers[LANES, buffer]
    row.in_acc = buffers[IN_ACC, buffer]
    beside = row.offset | row.plane_stride | row.row_stride
    row.misaligned = beside & (max(row.tile_bytes, 1) - 1) != 0
    row.no_bytes = row.planes == 0 or row.rows == 0 or row.tiles == 0


@inline
def _load(row: Row, word: Bytes, buffers: Numbers, windows: Numbers, facts: Settings) -> None:
    _box(row, word, buffers, windows, 1)
    row.engine = LOADS
    height, width = row.top + row.rows + row.bottom, row.left + row.tiles + row.right
    row.no_tiles = row.planes == 0 or height == 0 or width == 0
    _reach(row, row.sram + (row.planes - 1) * row.plane_pitch + height * width - 1, facts)
    value = word[PAD_VALUE]
    if value >= 128:
        value -= 256
    row.bad_padding = row.buffer == WGT and (value < -facts.most_weight
                                             or value >= facts.most_weight)


@inline
def _store(row: Row, word: Bytes, buffers: Numbers, windows: Numbers, facts: Settings) -> None:
    _box(row, word, buffers, windows, 2)
    row.engine = STORES
    row.no_tiles = row.no_bytes
    _reach(row, row.sram + (row.planes - 1) * row.plane_pitch
           + (row.rows - 1) * row.row_pitch + row.tiles - 1, facts)


@inline
def _reach(row: Row, last: int, facts: Settings) -> None:
    """Whether all tiles are in the scratchpad, and the banks of the accumulator they are in."""
    row.inside = row.no_tiles or last < row.pad_tiles
    if row.in_acc and not row.no_tiles:
        row.banks = _banks(row.sram, last, facts)


@inline
def _banks(low: int, high: int, facts: Settings) -> int:
    """The accumulator banks of tiles from `low` to `high`, as a set."""
    first = min(max(low // facts.bank_tiles, 0), BANKS)
    last = min(max(high // facts.bank_tiles, 0), BANKS)
    return (2 << last) - (1 << first)


@inline
def _gemm(row: Row) -> None:
    slots = row.outer * row.middle * row.inner * row.count
    row.engine = GEMMS
    row.no_work = slots == 0
    row.slots = max(slots, 1)


@inline
def _alu(row: Row, word: Bytes, opcode: int, facts: Settings) -> None:
    row.engine = ALUS
    if opcode == REQUANTIZE:        # whose parameters are its right operand
        row.reads_left = row.requantize = 1
        row.to_out = word[FLAGS] & TO_ACC == 0
    elif opcode == FILL:            # a step for each word; its write never waits
        row.outer, row.middle, row.inner = 1, TABLE_WORDS // facts.table_lanes, facts.table_lanes
        row.reads_right, row.rhs_middle, row.to_out = 1, 1, 1
        row.legal = row.legal and facts.has_tables
    else:
        row.reads_left = READS_LEFT >> min(word[OPERATION], 62) & 1
        row.reads_right = opcode == ALU
        row.to_out = word[ALU_TARGET if opcode == ALU else ALUI_TARGET] == OUT
    row.no_work = row.outer * row.middle * row.inner == 0
    right = row.reads_right or row.requantize
    low, high = _span(row, row.dst, row.dst_outer, row.dst_middle, row.dst_inner)
    inside = low >= 0 and high < (facts.out_tiles if row.to_out else facts.acc_tiles)
    row.written_banks = 0 if row.to_out else _banks(low, high, facts)
    row.banks = row.written_banks
    if row.reads_left:
        low, high = _span(row, row.lhs, row.lhs_outer, row.lhs_middle, row.lhs_inner)
        inside = inside and low >= 0 and high < facts.acc_tiles
        row.banks |= _banks(low, high, facts)
    if right:
        low, high = _span(row, row.rhs, row.rhs_outer, row.rhs_middle, row.rhs_inner)
        high += row.requantize * (PARAMETER_TILES - 1)
        inside = inside and low >= 0 and high < facts.acc_tiles
        row.banks |= _banks(low, high, facts)
    row.inside = row.no_work or inside


@inline
def _span(row: Row, start: int, outer: int, middle: int, inner: int) -> tuple[int, int]:
    """The first and the last tile of an operand."""
    low = high = start
    for reach in ((row.outer - 1) * outer, (row.middle - 1) * middle, (row.inner - 1) * inner):
        low += min(reach, 0)
        high += max(reach, 0)
    return low, high


def list_micro_ops(code: Bytes, rows: Rows, span: Numbers, tile: Numbers, segment: Numbers,
                   place: Numbers) -> int:
    """The effects of all loads of micro-ops that end, tile by tile. Where planes of a load overlap,
    the last one wins. Returns how many there are, and writes as many as there is room for."""
    count = 0
    for now in range(len(rows)):
        row = rows[now]
        if row.legal and row.engine == LOADS and row.buffer == UOP and _ends(row):
            span[now, 0] = count
            tiles = row.rows * row.tiles
            for at in range(0 if row.no_bytes else (row.planes - 1) * row.plane_pitch + tiles):
                plane = row.planes - 1
                if row.plane_pitch:
                    plane = min(at // row.plane_pitch, plane)
                within = at - plane * row.plane_pitch
                if within < tiles:          # there may be gaps between planes
                    if count < len(tile):
                        line, column = divmod(within, row.tiles)
                        begin = row.offset + plane * row.plane_stride + line * row.row_stride
                        tile[count] = row.sram + at
                        segment[count] = code[now, SEGMENT]
                        place[count] = begin // UOP_BYTES + column
                    count += 1
            span[now, 1] = count
    return count


@inline
def _ends(row: Row) -> bool:
    """Whether a load stays inside its segment and scratchpad. Others never end."""
    if not row.inside or row.misaligned:
        return False
    low = high = row.offset
    for reach in ((row.planes - 1) * row.plane_stride, (row.rows - 1) * row.row_stride):
        low += min(reach, 0)
        high += max(reach, 0)
    return row.no_bytes != 0 or (low >= 0 and high + row.tiles * row.tile_bytes <= row.size)

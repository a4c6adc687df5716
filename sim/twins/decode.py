"""Decodes a program for the twins: a row of integers for each instruction.

Hardware decodes an instruction when it arrives. Here all are decoded before the first cycle,
including everything that can be derived from an instruction alone. Importing this module does not
import numba.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from types import SimpleNamespace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ...isa.config import Config
from ...isa.instructions import (
    INSTRUCTION_BYTES,
    ISA,
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
    Requantize,
    RequantizeFlags,
    Store,
    Sync,
    SyncAction,
    Window,
)
from ...isa.instructions import Table as FillTable
from ...isa.program import Access, Segment
from ...isa.record import fields_of, reserved_bytes
from ...isa.stream import Stream, as_bytes
from ..functional.machine_table import rows_by_kind

WRITABLE = Access.WRITE
SYNC, END = len(Engine), len(Engine) + 1        # executed by FETCH; numbered after engines

ROW = np.dtype([(name, np.int64) for name in (
    "legal", "engine", "wait", "post",
    # load and store: the box in DRAM ...
    "buffer", "base", "size", "offset", "planes", "rows", "tiles", "plane_stride", "row_stride",
    "tile_bytes", "misaligned", "no_bytes",
    # ... and in the scratchpad; `parts` beats in a tile, `lanes` tiles in a beat
    "sram", "plane_pitch", "row_pitch", "top", "bottom", "left", "right", "parts", "lanes",
    "pad_tiles", "inside", "no_tiles", "in_acc", "bad_padding",
    # the accumulator banks that it may access, as a set, and those that the ALU writes; not for
    # gemm, whose micro-ops are known later
    "banks", "written_banks",
    # gemm and window
    "flags", "uop", "count", "slots", "window",
    # gemm and the ALU: loops and strides
    "outer", "middle", "inner", "no_work",
    "dst_outer", "dst_middle", "dst_inner",
    "lhs_outer", "lhs_middle", "lhs_inner",     # of a gemm: activations
    "rhs_outer", "rhs_middle", "rhs_inner",     # of a gemm: weights
    "dst", "lhs", "rhs", "reads_left", "reads_right", "requantize", "to_out",
)])
READS_LEFT = np.array([each in {*AluOp} and AluOp(each).reads_left for each in range(256)])
AT = {name: number for number, name in enumerate(ROW.names or ())}
LOOP_COUNTS = [AT[name] for name in ("outer", "middle", "inner")]
STARTS = [AT[name] for name in ("dst", "lhs", "rhs")]
STRIDES = [[AT[f"{operand}_{loop}"] for loop in ("outer", "middle", "inner")]
           for operand in ("dst", "lhs", "rhs")]
BANKS = 8                                       # most that an accumulator has
Rows = npt.NDArray[np.void]
Column = npt.NDArray[np.int64]
Fields: TypeAlias = SimpleNamespace             # of instructions: a column each, or a tuple of them


class Table:
    """Rows of one kind of instruction, by column: a few calls of NumPy decode all of them, which is
    also fast for short programs."""

    def __init__(self, length: int):
        self.columns = np.zeros((len(AT), length), np.int64)

    def __getitem__(self, name: str) -> Column:
        column: Column = self.columns[AT[name]]
        return column

    def __setitem__(self, name: str, values: npt.ArrayLike) -> None:
        self.columns[AT[name]] = values


def decode_rows(code: Stream, config: Config, segments: Sequence[Segment],
                bases: Sequence[int]) -> Rows:
    """The rows of a program whose segments are at the addresses `bases`."""
    rows = np.zeros((len(code), len(AT)), np.int64)
    legal, raw = _is_well_formed(code), as_bytes(code)
    for kind, positions, found in rows_by_kind(code):
        words, table = found.T, Table(len(positions))
        targets, sources = COPIES[kind]
        table.columns[targets] = words[sources]
        fields = _fields(words, kind)
        broken = False
        for each, _ in (*kind.rules(fields), *kind.lacks(fields, config)):
            broken = broken | each
        table["legal"] = (legal[positions] & _have_members(raw[positions], kind)
                          & ~np.asarray(broken, np.bool_))
        _FILL[kind](table, fields, config)
        if kind in (Load, Store):
            _place(table, fields.segment, segments, bases, writes=kind is Store)
        rows[positions] = table.columns.T
    return rows.view(ROW)[:, 0]


def _fields(words: Column, kind: type[Instruction]) -> Fields:
    """Fields by name: each is a column, or a tuple of columns."""
    columns: dict[str, Column | tuple[Column, ...]] = {}
    place = 1                                   # after the opcode
    for field in fields_of(kind):
        columns[field.name] = (tuple(words[place:place + field.count]) if field.axes
                               else words[place])
        place += field.count
    return SimpleNamespace(**columns)


@cache
def _reserved_bits() -> npt.NDArray[np.uint64]:
    """For each opcode, the bits of an instruction that must be zero; all of them for an unknown
    opcode."""
    masks = np.full((256, INSTRUCTION_BYTES), 0xFF, np.uint8)
    for kind in ISA:
        masks[kind.opcode] = 0
        masks[kind.opcode, list(reserved_bytes(kind))] = 0xFF
    return masks.view(np.uint64)


@cache
def _members() -> dict[type[Instruction], list[tuple[int, npt.NDArray[np.bool_]]]]:
    """The bytes of each instruction that are members of an enum, or sets of them: the offset, and a
    table of the values that are allowed."""
    found: dict[type[Instruction], list[tuple[int, npt.NDArray[np.bool_]]]] = {}
    values = np.arange(256)
    for kind in ISA:
        found[kind] = []
        for field in fields_of(kind):
            if field.kind is not None:
                assert field.scalar.bytes == 1
                members = [int(each) for each in field.allowed or field.kind]
                fine = values & ~sum(members) == 0 if field.is_flags else np.isin(values, members)
                found[kind] += [(field.offset + place, fine) for place in range(field.bytes)]
    return found


def _is_well_formed(code: Stream) -> npt.NDArray[np.bool_]:
    """Which words are instructions whose reserved bits are zero."""
    words = as_bytes(code).view(np.uint64)
    well: npt.NDArray[np.bool_] = ~(words & _reserved_bits()[code["opcode"]]).any(axis=1)
    return well


def _have_members(raw: npt.NDArray[np.uint8], kind: type[Instruction]) -> npt.NDArray[np.bool_]:
    """Which words have a valid member in every enum byte."""
    fine = np.ones(len(raw), np.bool_)
    for place, allowed in _members()[kind]:
        fine &= allowed[raw[:, place]]
    return fine


def _place(table: Table, numbers: Column, segments: Sequence[Segment], bases: Sequence[int], *,
           writes: bool) -> None:
    """Set the window of each transfer. A read-only segment has no bytes for a store."""
    windows = np.zeros((2, 256), np.int64)      # empty if no segment has the number
    windows[0, :len(segments)] = bases
    windows[1, :len(segments)] = [each.size if not writes or each.access is WRITABLE else 0
                                  for each in segments]
    table.columns[WINDOW] = windows[:, numbers]


@cache
def _by_buffer(config: Config) -> Column:
    """For each buffer: bytes of a tile, number of tiles, parts, lanes, and whether it is acc.
    Numbers without a buffer have tiles of no bytes."""
    facts = np.zeros((5, 256), np.int64)
    for buffer in Buffer:
        size = config.tile_bytes(buffer)
        facts[:, buffer] = (size, config.tiles(buffer), max(1, size // config.bus_bytes),
                            max(1, config.bus_bytes // size),
                            buffer in (Buffer.ACC, Buffer.ACC8))
    return facts


BOX = {"buffer": ("buffer",), "offset": ("offset",), "shape": ("planes", "rows", "tiles"),
       "stride": ("plane_stride", "row_stride"), "sram": ("sram",)}
WINDOW = [AT["base"], AT["size"]]
IN_BUFFER = [AT[name] for name in ("tile_bytes", "pad_tiles", "parts", "lanes", "in_acc")]


def _box(table: Table, config: Config) -> None:
    """The columns that loads and stores share."""
    table.columns[IN_BUFFER] = _by_buffer(config)[:, table["buffer"]]
    beside = table["offset"] | table["plane_stride"] | table["row_stride"]
    table["misaligned"] = beside & (np.maximum(table["tile_bytes"], 1) - 1) != 0
    table["no_bytes"] = (table["planes"] == 0) | (table["rows"] == 0) | (table["tiles"] == 0)


def _load(table: Table, fields: Fields, config: Config) -> None:
    _box(table, config)
    table["engine"] = Engine.LOAD
    height = table["top"] + table["rows"] + table["bottom"]
    width = table["left"] + table["tiles"] + table["right"]
    table["no_tiles"] = (table["planes"] == 0) | (height == 0) | (width == 0)
    last = table["sram"] + (table["planes"] - 1) * table["plane_pitch"] + height * width - 1
    table["inside"] = table["no_tiles"] | (last < table["pad_tiles"])
    table["banks"] = _banks(table["sram"], last, config) * _touches_acc(table)
    limit = 1 << config.wgt_bits - 1
    table["bad_padding"] = (fields.buffer == Buffer.WGT) & (
        (fields.pad_value < -limit) | (fields.pad_value >= limit))


def _store(table: Table, fields: Fields, config: Config) -> None:
    _box(table, config)
    table["engine"] = Engine.STORE
    table["no_tiles"] = table["no_bytes"]
    last = (table["sram"] + (table["planes"] - 1) * table["plane_pitch"]
            + (table["rows"] - 1) * table["row_pitch"] + table["tiles"] - 1)
    table["inside"] = table["no_tiles"] | (last < table["pad_tiles"])
    table["banks"] = _banks(table["sram"], last, config) * _touches_acc(table)


def _touches_acc(table: Table) -> Column:
    """1 for loads and stores that move tiles of the accumulator."""
    touches: Column = table["in_acc"] * (1 - table["no_tiles"])
    return touches


def _banks(low: Column, high: Column, config: Config) -> Column:
    """The accumulator banks of tiles from `low` to `high`, as sets."""
    first, last = (np.clip(each // config.acc_bank_tiles, 0, BANKS) for each in (low, high))
    banks: Column = (2 << last) - (1 << first)
    return banks


def _loops(table: Table) -> Column:
    """Set the loop counts. Returns their product."""
    slots: Column = table["outer"] * table["middle"] * table["inner"]
    table["no_work"] = slots == 0
    return slots


def _gemm(table: Table, fields: Fields, config: Config) -> None:
    slots = _loops(table) * table["count"]
    table["engine"] = Engine.GEMM
    table["no_work"] = slots == 0
    table["slots"] = np.maximum(slots, 1)


def _window(table: Table, fields: Fields, config: Config) -> None:
    """A window has the timing and the indices of a depthwise gemm with one micro-op."""
    table["count"], table["window"] = 1, 1
    table["flags"] |= GemmFlags.DEPTHWISE
    table["legal"] &= config.has_windows
    _gemm(table, fields, config)


def _alu(table: Table, fields: Fields, config: Config) -> None:
    _loops(table)
    table["engine"] = Engine.ALU
    table["reads_left"], table["reads_right"] = READS_LEFT[fields.op], 1
    table["to_out"] = fields.target == Buffer.OUT
    _walks(table, config)


def _alui(table: Table, fields: Fields, config: Config) -> None:
    _loops(table)
    table["engine"] = Engine.ALU
    table["reads_left"] = READS_LEFT[fields.op]
    table["to_out"] = fields.target == Buffer.OUT
    _walks(table, config)


def _requantize(table: Table, fields: Fields, config: Config) -> None:
    """The parameters of a requantize are its right operand."""
    _loops(table)
    table["engine"] = Engine.ALU
    table["reads_left"], table["requantize"] = 1, 1
    table["to_out"] = fields.flags & RequantizeFlags.ACC == 0
    _walks(table, config)


def _fill_table(table: Table, fields: Fields, config: Config) -> None:
    """A step for each word. Its write never waits, as for results in out."""
    lanes = min(TABLE_WORDS, config.batch * config.block_out)
    table["outer"], table["middle"], table["inner"] = 1, TABLE_WORDS // lanes, lanes
    table["engine"] = Engine.ALU
    table["reads_right"], table["rhs_middle"], table["to_out"] = 1, 1, 1
    table["legal"] &= config.tables > 0
    _walks(table, config)


def _walks(table: Table, config: Config) -> None:
    """Whether all steps of the ALU are in range, and the banks that they access."""
    reach = (table.columns[LOOP_COUNTS] - 1) * table.columns[STRIDES]
    starts = table.columns[STARTS]
    low = starts + np.minimum(reach, 0).sum(axis=1)
    high = starts + np.maximum(reach, 0).sum(axis=1)
    high[2] += table["requantize"] * (PARAMETER_TILES - 1)
    in_acc = np.stack([1 - table["to_out"], table["reads_left"],
                       table["reads_right"] | table["requantize"]])
    limits = np.where(in_acc, config.tiles(Buffer.ACC), config.tiles(Buffer.OUT))
    inside = (low >= 0) & (high < limits)
    inside[1:] |= in_acc[1:] == 0
    table["inside"] = table["no_work"] | inside.all(axis=0)
    banks = _banks(low, high, config) * in_acc
    table["banks"] = np.bitwise_or.reduce(banks, axis=0)
    table["written_banks"] = banks[0]


def _sync(table: Table, fields: Fields, config: Config) -> None:
    table["engine"] = np.where(fields.action == SyncAction.END, END, SYNC)


_FILL = {Load: _load, Gemm: _gemm, Window: _window, Alu: _alu, AluI: _alui, Requantize: _requantize,
         FillTable: _fill_table, Store: _store, Sync: _sync}


def _walk(*operands: str) -> tuple[str, ...]:
    """The columns of strides, which operands may share."""
    return tuple(f"{each}_{loop}" for each in operands for loop in ("outer", "middle", "inner"))


TOKENS: dict[str, tuple[str, ...]] = {"wait": ("wait",), "post": ("post",)}
LOOPS = {**TOKENS, "loops": ("outer", "middle", "inner")}
COPIED: dict[type[Instruction], dict[str, tuple[str, ...]]] = {     # field → columns
    Load: {**TOKENS, **BOX, "sram_pitch": ("plane_pitch",),
           "pad": ("top", "bottom", "left", "right")},
    Store: {**TOKENS, **BOX, "sram_pitch": ("plane_pitch", "row_pitch")},
    Gemm: {**LOOPS, "flags": ("flags",), "uop": ("uop",), "count": ("count",),
           "dst_stride": _walk("dst"), "src_stride": _walk("lhs"), "wgt_stride": _walk("rhs")},
    Window: {**LOOPS, "flags": ("flags",), "uop": ("uop",), "dst_stride": _walk("dst"),
             "src_stride": _walk("lhs"), "wgt_stride": _walk("rhs")},
    Alu: {**LOOPS, "dst": ("dst",), "lhs": ("lhs",), "rhs": ("rhs",),
          "dst_stride": _walk("dst", "lhs"), "rhs_stride": _walk("rhs")},
    AluI: {**LOOPS, "dst": ("dst",), "src": ("lhs",), "dst_stride": _walk("dst"),
           "src_stride": _walk("lhs")},
    Requantize: {**LOOPS, "dst": ("dst",), "src": ("lhs",), "params": ("rhs",),
                 "dst_stride": _walk("dst"), "src_stride": _walk("lhs"),
                 "params_stride": ("rhs_outer",)},
    FillTable: {**TOKENS, "src": ("rhs",)},
    Sync: TOKENS,
}


def _copies(kind: type[Instruction]) -> tuple[list[int], list[int]]:
    """The indices of such columns, and of the field elements copied into them."""
    targets, sources, place = [], [], 1         # after the opcode
    for field in fields_of(kind):
        for number, name in enumerate(COPIED[kind].get(field.name, ())):
            targets.append(AT[name])
            sources.append(place + number % field.count)
        place += field.count
    return targets, sources


COPIES = {kind: _copies(kind) for kind in ISA}

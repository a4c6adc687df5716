"""Decodes a program for the twins: a row of integers for each instruction.

Hardware decodes an instruction when it arrives. Here all are decoded before the first cycle,
including everything that can be derived from an instruction alone (`fill_rows`).
"""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ...isa.config import Config
from ...isa.instructions import (
    INSTRUCTION_BYTES,
    ISA,
    Alu,
    AluI,
    Engine,
    Gemm,
    Instruction,
    Load,
    Requantize,
    Store,
    Sync,
    Window,
)
from ...isa.instructions import Table as FillTable
from ...isa.program import Access
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
AT = {name: number for number, name in enumerate(ROW.names or ())}
Rows = npt.NDArray[np.void]
Column = npt.NDArray[np.int64]
Fields: TypeAlias = SimpleNamespace             # of instructions: a column each, or a tuple of them


def find_legal(code: Stream, config: Config) -> npt.NDArray[np.uint8]:
    """Which words are instructions that follow all rules, as 1 or 0."""
    legal, raw = _is_well_formed(code), as_bytes(code)
    for kind, positions, found in rows_by_kind(code):
        fields = _fields(found.T, kind)
        fine = _have_members(raw[positions], kind)
        for broken, _ in (*kind.rules(fields), *kind.lacks(fields, config)):
            fine &= ~np.asarray(broken, np.bool_)
        legal[positions] &= fine
    return legal.view(np.uint8)


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


BOX = {"buffer": ("buffer",), "offset": ("offset",), "shape": ("planes", "rows", "tiles"),
       "stride": ("plane_stride", "row_stride"), "sram": ("sram",)}


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

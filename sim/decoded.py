"""A program as the twins want it: a row of plain integers for each instruction.

Hardware decodes an instruction when it comes; here all are decoded before the first cycle, with
what follows from an instruction alone. Importing this module does not import numba.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..isa.config import Config
from ..isa.instructions import (
    ISA,
    Alu,
    AluI,
    AluOp,
    Buffer,
    Engine,
    Gemm,
    Load,
    Requantize,
    RequantizeFlags,
    Store,
    Sync,
    SyncAction,
)
from ..isa.program import Access, Segment
from ..isa.record import reserved_bytes
from ..isa.stream import Stream, as_bytes, positions_of

SYNC, END = len(Engine), len(Engine) + 1        # what FETCH executes itself, after the engines

ROW = np.dtype([(name, np.int64) for name in (
    "legal", "engine", "wait", "post",
    # load and store: the box in DRAM ...
    "buffer", "base", "size", "offset", "planes", "rows", "tiles", "plane_stride", "row_stride",
    "tile_bytes", "misaligned", "no_bytes",
    # ... and in the scratchpad; `parts` beats in a tile, `lanes` tiles in a beat
    "sram", "plane_pitch", "row_pitch", "top", "bottom", "left", "right", "parts", "lanes",
    "pad_tiles", "inside", "no_tiles", "in_acc", "bad_padding",
    # gemm
    "flags", "uop", "count", "slots",
    # gemm and the ALU: loops and walks
    "outer", "middle", "inner", "no_work",
    "dst_outer", "dst_middle", "dst_inner",
    "lhs_outer", "lhs_middle", "lhs_inner",     # of a gemm: activations
    "rhs_outer", "rhs_middle", "rhs_inner",     # of a gemm: weights
    "dst", "lhs", "rhs", "reads_left", "reads_right", "requantize", "to_out",
)])
Rows = npt.NDArray[np.void]


def decoded(code: Stream, config: Config, segments: Sequence[Segment],
            bases: Sequence[int]) -> Rows:
    """The rows of a program whose segments lie at `bases`."""
    rows = np.zeros(len(code), ROW)
    rows["legal"] = _legal(code)
    for kind in ISA:
        positions, words = positions_of(code, kind)
        if len(positions) == 0:
            continue
        part = np.zeros(len(positions), ROW)
        part["legal"] = rows["legal"][positions]
        part["wait"], part["post"] = words["wait"], words["post"]
        _FILL[kind](part, words, config)
        if kind in (Load, Store):
            _place(part, words["segment"], segments, bases, writes=kind is Store)
        rows[positions] = part
    return rows


def _legal(code: Stream) -> npt.NDArray[np.bool_]:
    """Which words are instructions, by the rules of the ISA."""
    legal = np.zeros(len(code), np.bool_)
    raw = as_bytes(code)
    for kind in ISA:
        positions, words = positions_of(code, kind)
        if len(positions) == 0:
            continue
        legal[positions] = ~raw[positions][:, list(reserved_bytes(kind))].any(axis=1)
        legal[positions[kind.broken(words)]] = False
    return legal


def _place(rows: Rows, numbers: Any, segments: Sequence[Segment], bases: Sequence[int], *,
           writes: bool) -> None:
    """Where the window of each transfer lies. One that may not be written has no bytes."""
    for number, (segment, base) in enumerate(zip(segments, bases, strict=True)):
        mine = numbers == number
        rows["base"][mine] = base
        if segment.access == Access.WRITE or not writes:
            rows["size"][mine] = segment.size


def _box(rows: Rows, words: Stream, config: Config) -> None:
    """What loads and stores have in common."""
    rows["buffer"], rows["offset"] = words["buffer"], words["offset"]
    rows["planes"], rows["rows"], rows["tiles"] = words["shape"].T
    rows["plane_stride"], rows["row_stride"] = words["stride"].T
    rows["sram"] = words["sram"]
    for buffer in Buffer:
        mine, size = words["buffer"] == buffer, config.tile_bytes(buffer)
        rows["tile_bytes"][mine] = size
        rows["pad_tiles"][mine] = config.tiles(buffer)
        rows["parts"][mine] = max(1, size // config.bus_bytes)
        rows["lanes"][mine] = max(1, config.bus_bytes // size)
        rows["in_acc"][mine] = buffer in (Buffer.ACC, Buffer.ACC8)
    beside = rows["offset"] | rows["plane_stride"] | rows["row_stride"]
    rows["misaligned"] = beside & (np.maximum(rows["tile_bytes"], 1) - 1) != 0
    rows["no_bytes"] = (words["shape"] == 0).any(axis=1)


def _load(rows: Rows, words: Stream, config: Config) -> None:
    _box(rows, words, config)
    rows["engine"] = Engine.LOAD
    rows["plane_pitch"] = words["sram_pitch"]
    rows["top"], rows["bottom"], rows["left"], rows["right"] = words["pad"].T
    height = rows["top"] + rows["rows"] + rows["bottom"]
    width = rows["left"] + rows["tiles"] + rows["right"]
    rows["no_tiles"] = (rows["planes"] == 0) | (height == 0) | (width == 0)
    last = rows["sram"] + (rows["planes"] - 1) * rows["plane_pitch"] + height * width - 1
    rows["inside"] = rows["no_tiles"] | (last < rows["pad_tiles"])
    limit = 1 << config.wgt_bits - 1
    value = words["pad_value"].astype(np.int64)
    rows["bad_padding"] = (words["buffer"] == Buffer.WGT) & ((value < -limit) | (value >= limit))


def _store(rows: Rows, words: Stream, config: Config) -> None:
    _box(rows, words, config)
    rows["engine"] = Engine.STORE
    rows["plane_pitch"], rows["row_pitch"] = words["sram_pitch"].T
    rows["no_tiles"] = rows["no_bytes"]
    last = (rows["sram"] + (rows["planes"] - 1) * rows["plane_pitch"]
            + (rows["rows"] - 1) * rows["row_pitch"] + rows["tiles"] - 1)
    rows["inside"] = rows["no_tiles"] | (last < rows["pad_tiles"])


def _loops(rows: Rows, words: Stream, walks: dict[str, str]) -> None:
    rows["outer"], rows["middle"], rows["inner"] = words["loops"].T
    rows["no_work"] = (words["loops"] == 0).any(axis=1)
    for walk, stride in walks.items():
        rows[f"{walk}_outer"], rows[f"{walk}_middle"], rows[f"{walk}_inner"] = words[stride].T


def _gemm(rows: Rows, words: Stream, config: Config) -> None:
    _loops(rows, words, {"dst": "dst_stride", "lhs": "src_stride", "rhs": "wgt_stride"})
    rows["engine"] = Engine.GEMM
    for name in ("flags", "uop", "count"):
        rows[name] = words[name]
    rows["no_work"] |= words["count"] == 0
    slots = rows["outer"] * rows["middle"] * rows["inner"] * rows["count"]
    rows["slots"] = np.where(rows["no_work"], 1, slots)


def _alu(rows: Rows, words: Stream, config: Config) -> None:
    _loops(rows, words, {"dst": "dst_stride", "lhs": "dst_stride", "rhs": "rhs_stride"})
    rows["engine"] = Engine.ALU
    rows["dst"], rows["lhs"], rows["rhs"] = words["dst"], words["lhs"], words["rhs"]
    rows["reads_left"], rows["reads_right"] = words["op"] != AluOp.MOVE, 1
    rows["to_out"] = words["target"] == Buffer.OUT


def _alui(rows: Rows, words: Stream, config: Config) -> None:
    _loops(rows, words, {"dst": "dst_stride", "lhs": "src_stride"})
    rows["engine"] = Engine.ALU
    rows["dst"], rows["lhs"] = words["dst"], words["src"]
    rows["reads_left"] = words["op"] != AluOp.MOVE
    rows["to_out"] = words["target"] == Buffer.OUT


def _requantize(rows: Rows, words: Stream, config: Config) -> None:
    """The parameters are its right operand."""
    _loops(rows, words, {"dst": "dst_stride", "lhs": "src_stride"})
    rows["engine"] = Engine.ALU
    rows["dst"], rows["lhs"], rows["rhs"] = words["dst"], words["src"], words["params"]
    rows["rhs_outer"] = words["params_stride"]
    rows["reads_left"], rows["requantize"] = 1, 1
    rows["to_out"] = words["flags"] & RequantizeFlags.ACC == 0


def _sync(rows: Rows, words: Stream, config: Config) -> None:
    rows["engine"] = np.where(words["action"] == SyncAction.END, END, SYNC)


_FILL = {Load: _load, Gemm: _gemm, Alu: _alu, AluI: _alui, Requantize: _requantize,
         Store: _store, Sync: _sync}

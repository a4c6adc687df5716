"""How much of each scratchpad a stream uses."""

from __future__ import annotations

import numpy as np

from ....base.arrays import Array
from ....isa.instructions import (
    SCRATCHPADS,
    Alu,
    AluI,
    Buffer,
    Load,
    Requantize,
    RequantizeFlags,
    Store,
)
from ....isa.stream import Stream, positions_of

TO_ACC, OUT = int(RequantizeFlags.ACC), int(Buffer.OUT)


def footprint(code: Stream) -> dict[Buffer, int]:
    """Tiles of each scratchpad up to the last one that is used. What a gemm touches is loaded by
    somebody, or taken by the ALU, so that micro-ops need not be looked at."""
    ends = dict.fromkeys(SCRATCHPADS, 0)
    for kind in (Load, Store):
        _, words = positions_of(code, kind)
        reached = _last_tiles_loaded(words) if kind is Load else _last_tiles_stored(words)
        for buffer in Buffer:
            _reach(ends, buffer.scratchpad, reached[words["buffer"] == int(buffer)])
    for lanes in (Alu, AluI, Requantize):
        _, words = positions_of(code, lanes)
        steps = _furthest(words, "dst_stride")
        to_out = (words["flags"] & TO_ACC == 0 if lanes is Requantize
                  else words["target"] == OUT)
        result = words["dst"] + steps
        _reach(ends, Buffer.OUT, result[to_out])
        _reach(ends, Buffer.ACC, result[~to_out])
        for tile, stride in _sources(lanes):
            _reach(ends, Buffer.ACC, words[tile] + _furthest(words, stride))
        if lanes is Requantize:
            outer = (words["loops"][:, 0].astype(np.int64) - 1) * words["params_stride"]
            _reach(ends, Buffer.ACC, words["params"] + outer + 2)
    return ends


def _sources(kind: type[Alu | AluI | Requantize]) -> tuple[tuple[str, str], ...]:
    """Fields of the first tile of each operand, and of how it moves."""
    if kind is Alu:
        return ("lhs", "dst_stride"), ("rhs", "rhs_stride")
    return (("src", "src_stride"),)


def _reach(ends: dict[Buffer, int], buffer: Buffer, last: Array) -> None:
    if len(last):
        ends[buffer] = max(ends[buffer], int(last.max()) + 1)


def _furthest(words: Stream, stride: str) -> Array:
    """How far loops go from the first tile on."""
    steps = (words["loops"].astype(np.int64) - 1) * words[stride]
    furthest: Array = np.maximum(steps, 0).sum(axis=1)
    return furthest


def _last_tiles_loaded(words: Stream) -> Array:
    """The last tile of each load, its border included."""
    planes, rows, columns = (words["shape"][:, axis].astype(np.int64) for axis in range(3))
    top, bottom, left, right = (words["pad"][:, side].astype(np.int64) for side in range(4))
    plane = (top + rows + bottom) * (left + columns + right)
    last: Array = words["sram"] + (planes - 1) * words["sram_pitch"] + plane - 1
    return last


def _last_tiles_stored(words: Stream) -> Array:
    shape, pitch = words["shape"].astype(np.int64), words["sram_pitch"].astype(np.int64)
    last: Array = words["sram"] + ((shape[:, :2] - 1) * pitch).sum(axis=1) + shape[:, 2] - 1
    return last

"""A program laid out for the walk of `ordering`: access table, shadow memory, micro-ops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .accesses import DRAM, Table, access_table
from .bounds import MicroOps
from .bounds import check as check_bounds
from .errors import ExecutionError
from .instructions import ISA, Buffer, Load, MicroOp, Store
from .program import Access, Program, Segment
from .stream import instruction_at, positions_of

if TYPE_CHECKING:
    from .ordering import Code, Shadow

PADS = (Buffer.UOP, Buffer.INP, Buffer.WGT, Buffer.ACC, Buffer.OUT)


@dataclass(frozen=True)
class Layout:
    """Everything `ordering.walk` wants to know about a program."""

    table: Table
    code: Code
    shadow: Shadow
    grain: int                              # bytes of a DRAM cell

    def rows_of(self, position: int) -> Table:
        begin, end = self.code.row_begin[position:position + 2]
        return self.table[begin:end]

    def uops_at(self, position: int) -> MicroOps:
        """The micro-op scratchpad as it is when an instruction runs in program order."""
        uops = np.zeros(self.shadow.uops.shape, np.uint16)
        for index, *micro_op in self.code.feed[:self.code.feed_begin[position]].tolist():
            uops[index] = micro_op
        return uops

    def why_outside(self, program: Program, position: int) -> str:
        """What an instruction at which the walk stopped reaches outside its buffers."""
        try:
            check_bounds(instruction_at(program.code, position), program.config,
                         program.segments, self.uops_at(position), position=position)
        except ExecutionError as error:
            return str(error)
        raise AssertionError(f"instruction {position}: the walk left a buffer, its check did not")


def prepare(program: Program) -> Layout:
    """Check addresses, then lay the program out. Raises ExecutionError."""
    from .ordering import Code, new_shadow

    _check_transfers(program)
    table = access_table(program.code, program.config)
    table, grain, sizes = _dram_cells(program, table)
    sizes |= {int(pad): program.config.tiles(pad) for pad in PADS}
    feed, feed_begin = _feed(program)
    count = len(program.code)
    code = Code(engine=engines_of(program), wait=program.code["wait"].astype(np.int64),
                post=program.code["post"].astype(np.int64), rows=table,
                row_begin=np.searchsorted(table["instruction"], np.arange(count + 1)),
                feed=feed, feed_begin=feed_begin)
    return Layout(table, code, new_shadow(sizes), grain)


def engines_of(program: Program) -> npt.NDArray[np.int64]:
    """The engine of each instruction, -1 for those that FETCH executes."""
    table = np.full(256, -1, np.int64)
    for kind in ISA:
        table[kind.opcode] = -1 if kind.engine is None else kind.engine
    engines: npt.NDArray[np.int64] = table[program.code["opcode"]]
    return engines


def _check_transfers(program: Program) -> None:
    """Addresses, sizes and access rights of loads and stores, all at once; a suspect gets the
    full check, which says what is wrong."""
    for kind in (Load, Store):
        positions, words = positions_of(program.code, kind)
        for suspect in np.flatnonzero(_suspicious(program, words, kind is Store)).tolist():
            instruction = instruction_at(program.code, positions[suspect])
            check_bounds(instruction, program.config, program.segments,
                         np.zeros((0, 4), np.uint16), position=int(positions[suspect]))


def _suspicious(program: Program, words: Any, stores: bool) -> npt.NDArray[np.bool_]:
    tile = np.array([program.config.tile_bytes(buffer) for buffer in Buffer])[words["buffer"]]
    size = np.zeros(256, np.int64)
    for number, segment in enumerate(program.segments):
        allowed = not stores or segment.access == Access.WRITE
        size[number] = segment.size if allowed else 0
    extent, stride = words["shape"].astype(np.int64), words["stride"].astype(np.int64)
    offset = words["offset"].astype(np.int64)
    steps = np.maximum(extent[:, :2] - 1, 0) * stride
    low = offset + np.minimum(steps, 0).sum(axis=1)
    high = offset + np.maximum(steps, 0).sum(axis=1) + extent[:, 2] * tile
    unaligned = (offset % tile != 0) | np.any(stride % tile[:, None] != 0, axis=1)
    outside = (low < 0) | (high > size[words["segment"]])
    pad_value = words["pad_value"] if not stores else np.zeros(len(words))
    suspicious: npt.NDArray[np.bool_] = unaligned | (outside & np.all(extent > 0, axis=1)) | (
        (words["buffer"] == Buffer.WGT) & (pad_value != 0))
    return suspicious


def _dram_cells(program: Program, table: Table) -> tuple[Table, int, dict[int, int]]:
    """Keep DRAM rows of segments that are stored to; count them in the coarsest cells that fit.

    All tiles are powers of two and aligned, so the smallest tile that moves is such a cell.
    """
    dram = table["space"] >= DRAM
    stored = np.unique(table["space"][dram & table["write"]])
    table = table[~dram | np.isin(table["space"], stored)]
    dram = table["space"] >= DRAM
    rows = table[dram]
    moved = rows["loops"][:, 2]
    grain = int(np.bitwise_or.reduce(np.concatenate([
        moved, rows["base"], rows["stride"][:, :2].ravel()]))) if len(rows) else 1
    grain = grain & -grain or 1
    rows["base"] //= grain
    rows["loops"][:, 2] //= grain
    rows["stride"][:, :2] //= grain
    table[dram] = rows
    sizes = {int(space): -(-program.segments[space - DRAM].size // grain) for space in stored}
    return table, grain, sizes


def _feed(program: Program) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The micro-ops that each load.uop brings, and where each instruction's begin."""
    positions, words = positions_of(program.code, Load)
    count = np.zeros(len(program.code) + 1, np.int64)
    parts = [np.zeros((0, 5), np.int64)]
    for position, word in zip(positions.tolist(), words, strict=True):
        if word["buffer"] == Buffer.UOP:
            part = _fed_by(position, Load.of(word), program.segments[word["segment"]])
            parts.append(part)
            count[position + 1] = len(part)
    return np.concatenate(parts), np.cumsum(count)


def _fed_by(position: int, load: Load, segment: Segment) -> npt.NDArray[np.int64]:
    if segment.access == Access.WRITE or segment.data is None:
        raise ExecutionError(f"instruction {position} (load): micro-ops come from segment "
                             f"{segment.name}, but only a read-only segment with data tells in "
                             f"advance what they will be")
    z, y, x = (np.arange(extent) for extent in load.shape)
    plane, row = load.stride
    at = load.offset + (z[:, None, None] * plane + y[:, None] * row + x * MicroOp.size)
    to = load.sram + (z[:, None, None] * load.sram_pitch + y[:, None] * len(x) + x)
    data = np.zeros(max(int(at.max(initial=0)) + MicroOp.size, len(segment.data)), np.uint8)
    data[:len(segment.data)] = segment.data
    raw = data[at.ravel()[:, None] + np.arange(MicroOp.size)]
    fields = raw.view("<u2").astype(np.int64)
    return np.concatenate([to.ravel()[:, None], fields], axis=1)

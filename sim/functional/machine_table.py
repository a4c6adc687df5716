"""The machine as an array of numbers, and instructions as rows of numbers, for compiled code.

Compiled functions get the addresses of such arrays, so that one function serves every program and
configuration. Importing this module does not import numba.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from ...isa.instructions import INSTRUCTION_BYTES, ISA, AluOp, Buffer, Instruction
from ...isa.program import Access
from ...isa.record import fields_of
from ...isa.stream import Stream
from .memory import Memory
from .scratchpads import Tiles

Numbers = npt.NDArray[np.int64]

READS_LEFT = sum(1 << each for each in AluOp if each.reads_left)        # ALU operations, as a set

# Results of a compiled function: the instruction is done; it has an index or address out of range;
# this function does not handle it; it was interrupted. In the second and third case it had no
# effect, in the last one part of it.
DONE, OUTSIDE, ELSEWHERE, STOPPED = range(4)

# A machine: addresses of the kernels for gemm, of their scratch space and of the stop cell, the
# shape of tiles, tiles of results that a gemm may read, whether there are windows, the address of
# the ALU's tables or 0, segments …
(DENSE_KERNEL, DEPTHWISE_KERNEL, PLAN, STOP, BATCH, BLOCK_IN, BLOCK_OUT, GEMM_OUT, WINDOWS,
 TABLES, SEGMENTS, HEADER) = range(12)
# … then a row for each buffer: the address of its scratchpad, its tiles, bytes of a tile and of a
# lane there, bytes of a tile in DRAM …
ADDRESS, TILES, TILE, LANE, IN_DRAM, BUFFER = range(6)
FIRST_SEGMENT = HEADER + BUFFER * len(Buffer)
# … and one for each segment: its address, its bytes, and those that may be written.
SIZE, WRITABLE, SEGMENT = range(1, 4)


def machine(pads: Mapping[Buffer, Tiles], tile_bytes: Mapping[Buffer, int],
            memory: Memory | None = None, *, stop: int, dense: int = 0, depthwise: int = 0,
            plan: int = 0, gemm_out: int = 0, windows: bool = True, tables: int = 0) -> Numbers:
    """The numbers of a machine with these scratchpads. All arrays must stay where they are."""
    batch, block_out = pads[Buffer.ACC].shape[1:]
    segments = () if memory is None else tuple(
        zip(memory.program.segments, memory.segments, strict=True))
    numbers = [dense, depthwise, plan, stop, batch, pads[Buffer.INP].shape[-1], block_out,
               gemm_out, int(windows), tables, len(segments)]
    for buffer in Buffer:
        tiles = pads[buffer]
        numbers += [tiles.ctypes.data, len(tiles), tiles.strides[0], tiles.itemsize,
                    tile_bytes[buffer]]
    for segment, data in segments:
        numbers += [data.ctypes.data, segment.size,
                    segment.size if segment.access == Access.WRITE else 0]
    return np.array(numbers, np.int64)


def place(kind: type[Instruction], name: str) -> int:
    """The index in a row of a field's first element: after the opcode and the fields before it."""
    at = 1
    for field in fields_of(kind):
        if field.name == name:
            return at
        at += field.count
    raise KeyError(name)


def rows_by_kind(code: Stream) -> Iterator[tuple[type[Instruction], npt.NDArray[np.intp], Numbers]]:
    """For each kind of instruction in a program: its positions, and a row for each of them with the
    opcode and all elements of its fields."""
    opcodes = np.ascontiguousarray(code["opcode"])
    whole = np.ascontiguousarray(code).view(WHOLE)      # one item per word is fast to select
    for kind in ISA:
        positions = np.flatnonzero(opcodes == OPCODES[kind])
        if len(positions):
            words = whole[positions].view(kind.dtype()).astype(WIDE[kind])
            yield kind, positions, words.view(np.int64).reshape(len(words), -1)


def rows_of(code: Stream) -> Numbers:
    """The rows of a program. The row of a word without a known opcode is all zero."""
    rows = np.zeros((len(code), WIDTH), np.int64)
    for _, positions, found in rows_by_kind(code):
        rows[positions, :found.shape[1]] = found
    return rows


WHOLE = np.dtype((np.void, INSTRUCTION_BYTES))
OPCODES = {kind: np.uint8(kind.opcode) for kind in ISA}     # enums are slow to compare with
# The fields of an instruction, with 64 bits for each element.
WIDE = {kind: np.dtype([("opcode", np.int64), *(
    (each.name, np.int64, (each.count,) if each.axes else ()) for each in fields_of(kind))])
    for kind in ISA}
WIDTH = max(each.itemsize for each in WIDE.values()) // np.dtype(np.int64).itemsize

"""From emitted instructions to a program: segments, tensors and tokens."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import prod

import numpy as np
import numpy.typing as npt

from ....base.classes.dataclass import dataclass
from ....isa.config import Config
from ....isa.instructions import (
    TABLES,
    Engine,
    Load,
    MicroOp,
    Sync,
    SyncAction,
    Table,
)
from ....isa.instructions import Buffer as Scratchpad
from ....isa.program import Access, Program, Segment, Tensor
from ....isa.record import fields_of
from ....isa.stream import BY_OPCODE, Stream, encode, join
from ....isa.verification.bounds import DST, SRC, WGT
from ....isa.verification.derive_tokens import with_tokens
from ...errors import CompileError
from ...nest.nest import TILE_RANK, Buffer, Nest
from .footprint import footprint
from .interleave_buffers import memory_shape

MICRO_OPS, TABLE_INPUT = "micro_ops", "tables"         # what programs call them
BYTE = 8                    # bits
REMEMBERED = 256            # buffers in DRAM
END = encode([Sync()])
ENGINES = np.array([-1 if kind is None or kind.engine is None else kind.engine
                    for kind in map(BY_OPCODE.get, range(256))])        # by opcode


@dataclass(frozen=True)
class Dram:
    """The buffers of a nest in DRAM, in order: a segment and a tensor each."""

    segments: tuple[Segment, ...]
    tensors: tuple[Tensor, ...]


def dram_of(nest: Nest, bits: Mapping[Buffer, int]) -> Dram:
    """Where the buffers of a nest lie in DRAM, given the bits of their elements. Refuses what no
    segment can hold, which should be known before anything is emitted."""
    found = [_outside(buffer.name, buffer.shape, memory_shape(buffer), buffer.dtype, bits[buffer],
                      Access.WRITE if buffer in nest.outputs else Access.READ)
             for buffer in (*nest.inputs, *nest.outputs)]
    return Dram(tuple([segment for segment, _ in found]), tuple([tensor for _, tensor in found]))


@lru_cache(REMEMBERED)
def _outside(name: str, shape: tuple[int, ...], in_memory: tuple[int, ...], dtype: str, bits: int,
             access: Access) -> tuple[Segment, Tensor]:
    """The segment and the tensor of a buffer, which are the same for all schedules of a form."""
    name = name.replace(".", "_")
    tensor = Tensor(name, name, 0, in_memory, dtype)
    if bits < BYTE:                     # how the host sees elements of less: as bytes of tiles
        size = prod(shape[-TILE_RANK:]) * bits // BYTE
        tensor = Tensor(name, name, 0, (*shape[:-TILE_RANK], size), "uint8")
    return Segment(name, tensor.size, access), tensor


def program_of(config: Config, dram: Dram, code: Stream, micro_ops: npt.ArrayLike, *,
               hide_latency: bool) -> Program:
    """The program of a nest. Its segments are the micro-ops, of which dst, src and wgt are given,
    and the nest's buffers. Waits and posts are derived from the data."""
    given = np.asarray(micro_ops, np.uint16).reshape(-1, len((DST, SRC, WGT)))
    words = np.zeros((max(1, len(given)), len(fields_of(MicroOp))), "<u2")
    words[:len(given), [DST, SRC, WGT]] = given
    data = words.reshape(-1).view(np.uint8)
    first = Segment(MICRO_OPS, len(data), Access.READ, data)
    stream = join([code if hide_latency else _take_turns(code), END])
    return with_tokens(Program(config, stream, (first, *dram.segments), dram.tensors),
                       is_checked=True)


def with_tables(dram: Dram, config: Config, tables: int) -> Dram:
    """One input more: the tables, each in as many tiles of the accumulator as it takes."""
    if not config.tables:
        raise CompileError(f"results are looked up in a table, but the ALU has none: tables is "
                           f"{config.tables}, but must be {TABLES}")
    shape = (tables * config.table_tiles, config.batch, config.block_out)
    tensor = Tensor(TABLE_INPUT, TABLE_INPUT, 0, shape, "int32")
    return Dram((*dram.segments, Segment(TABLE_INPUT, tensor.size, Access.READ)),
                (*dram.tensors, tensor))


def fill_tables(code: Stream, config: Config, tables: int, segment: int) -> Stream:
    """The instructions with those that fill tables. If there are tiles left that nobody else uses,
    they stand before the first instruction of the ALU, so that what is needed sooner is loaded
    sooner; else before all others."""
    tiles, room = tables * config.table_tiles, config.tiles(Scratchpad.ACC)
    if tiles > room:
        raise CompileError(f"{tables} tables take {tiles} tiles of the accumulator, which has "
                           f"{room}; set larger acc_bytes")
    used = footprint(code)[Scratchpad.ACC]
    first, begin = room - tiles, 0
    if used + tiles <= room:
        first = used
        begin = int(np.argmax(ENGINES[code["opcode"]] == Engine.ALU))
    load = Load(buffer=Scratchpad.ACC, segment=segment, sram=first, shape=(1, 1, tiles))
    fills = [Table(table=number, src=first + number * config.table_tiles)
             for number in range(tables)]
    return join([code[:begin], encode([load, *fills]), code[begin:]])


def _take_turns(code: Stream) -> Stream:
    """The instructions with a barrier wherever another engine goes on."""
    engines = ENGINES[code["opcode"]]
    changes = np.flatnonzero(np.diff(engines)) + 1
    return np.insert(code, changes, encode([Sync(action=SyncAction.BARRIER)])[0])

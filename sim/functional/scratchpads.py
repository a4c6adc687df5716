"""The five scratchpads as arrays of tiles, the ALU's tables, and the layout of tiles in DRAM."""

from __future__ import annotations

import copy
from typing import Self

import numpy as np
import numpy.typing as npt

from ...base.arrays import Array
from ...isa.config import Config
from ...isa.instructions import TABLE_ENTRIES, Buffer, Load, MicroOp, Store
from ...isa.record import fields_of

Tiles = Array
Bytes = npt.NDArray[np.uint8]
NIBBLE = 4
NAMES = {Buffer.UOP: "uop", Buffer.INP: "inp", Buffer.WGT: "wgt", Buffer.ACC: "acc",
         Buffer.ACC8: "acc", Buffer.OUT: "out"}


def tile_shape(buffer: Buffer, config: Config) -> tuple[int, ...]:
    """The shape of one tile; a micro-op is a row of its fields."""
    match buffer:
        case Buffer.UOP:
            return (len(fields_of(MicroOp)),)
        case Buffer.INP:
            return (config.batch, config.block_in)
        case Buffer.WGT:
            return (config.block_out, config.block_in)
        case _:
            return (config.batch, config.block_out)


# The type of a lane in DRAM. Weights of four bits are two to a byte, the first in the low nibble.
IN_DRAM = {Buffer.UOP: "<u2", Buffer.INP: "i1", Buffer.WGT: "i1", Buffer.ACC: "<i4",
           Buffer.ACC8: "i1", Buffer.OUT: "i1"}
IN_SCRATCHPAD = {**IN_DRAM, Buffer.UOP: "u2", Buffer.ACC: "i4", Buffer.ACC8: "i4"}


def unpack(data: Bytes, buffer: Buffer, config: Config) -> Tiles:
    """Tiles from rows of DRAM bytes: (…, tiles × tile bytes) becomes (…, tiles, *tile shape)."""
    if buffer == Buffer.WGT and config.wgt_bits == NIBBLE:
        nibbles = np.stack((data << NIBBLE, data), axis=-1).view(np.int8) >> NIBBLE
        lanes: Tiles = nibbles.reshape(*data.shape[:-1], 2 * data.shape[-1])
    else:
        lanes = np.ascontiguousarray(data).view(IN_DRAM[buffer])
    tiles = data.shape[-1] // config.tile_bytes(buffer)
    shape = (*data.shape[:-1], tiles, *tile_shape(buffer, config))
    return lanes.reshape(shape).astype(IN_SCRATCHPAD[buffer], copy=False)


def pack(tiles: Tiles, buffer: Buffer, config: Config) -> Bytes:
    """The inverse of `unpack`. Lanes that are wider than in DRAM lose their high bits."""
    rows = tiles.shape[:tiles.ndim - len(tile_shape(buffer, config))]
    size = rows[-1] * config.tile_bytes(buffer)
    if buffer == Buffer.WGT and config.wgt_bits == NIBBLE:
        low, high = np.moveaxis(tiles.astype(np.uint8).reshape(-1, 2), 1, 0)
        data: Tiles = low & 0xF | high << NIBBLE
    else:
        data = np.ascontiguousarray(tiles.astype(IN_DRAM[buffer], copy=False)).view(np.uint8)
    return data.reshape(*rows[:-1], size)


class Scratchpads:
    """Every scratchpad as an array with one tile per element of the first axis, and the entries of
    tables, all initially zero."""

    def __init__(self, config: Config):
        self.config = config
        self.uop, self.inp, self.wgt, self.acc, self.out = (
            np.zeros((config.tiles(buffer), *tile_shape(buffer, config)), IN_SCRATCHPAD[buffer])
            for buffer in (Buffer.UOP, Buffer.INP, Buffer.WGT, Buffer.ACC, Buffer.OUT))
        self.tables = np.zeros(config.tables * TABLE_ENTRIES, np.int8)      # one after the other

    def clear(self) -> None:
        """Set everything to zero again."""
        for tiles in (self.uop, self.inp, self.wgt, self.acc, self.out, self.tables):
            tiles.fill(0)

    def of(self, buffer: Buffer) -> Tiles:
        tiles: Tiles = getattr(self, NAMES[buffer])
        return tiles

    def with_copy_of(self, buffer: Buffer) -> Self:
        """The same scratchpads, but with a private copy of one."""
        twin = copy.copy(self)
        setattr(twin, NAMES[buffer], self.of(buffer).copy())
        return twin

    def fill(self, load: Load, data: Bytes) -> None:
        """Write the box that a load has read, plane by plane, inside its border."""
        z, y, x = load.shape
        top, bottom, left, right = load.pad
        rows, width = top + y + bottom, left + x + right
        pads, tiles = self.of(load.buffer), unpack(data, load.buffer, self.config)
        if 0 in (z, rows, width):
            return
        tile = pads.strides[0]
        boxes = np.ndarray((z, rows, width, *pads.shape[1:]), pads.dtype, pads, load.sram * tile,
                           (load.sram_pitch * tile, width * tile, tile, *pads.strides[1:]))
        apart = load.sram_pitch >= rows * width
        # Planes that overlap are written in order: the last one wins.
        for planes in (slice(None),) if apart else (slice(at, at + 1) for at in range(z)):
            if any(load.pad):
                boxes[planes] = load.pad_value
            boxes[planes, top:top + y, left:left + x] = tiles[planes]

    def take(self, store: Store) -> Bytes:
        """A copy of the box that a store reads, as rows of DRAM bytes."""
        pads = self.of(store.buffer)
        tile = pads.strides[0]
        shape, tail = store.shape, pads.shape[1:]
        if 0 in shape:
            return pack(np.empty((*shape, *tail), pads.dtype), store.buffer, self.config)
        strides = (*(pitch * tile for pitch in store.sram_pitch), tile, *pads.strides[1:])
        box = np.ndarray((*shape, *tail), pads.dtype, pads, store.sram * tile, strides)
        return pack(box.copy(), store.buffer, self.config)

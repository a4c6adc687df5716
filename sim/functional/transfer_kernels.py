"""LOAD and STORE, compiled: boxes of tiles between segments and scratchpads.

A box that reaches outside of either is not moved. Lanes have the same bytes in DRAM and in a
scratchpad on every processor that numba supports, because all are little-endian. Importing this
module imports numba.
"""

from __future__ import annotations

from functools import cache

from ...isa.instructions import Buffer, Load, Store
from ..compiled.numba_types import Word
from ..compiled.vectors import (
    NUMBER,
    byte_at,
    c_function,
    copy,
    fill,
    helper,
    is_set,
    number_at,
    write_byte,
    write_lane,
)
from .machine_table import (
    ADDRESS,
    BUFFER,
    DONE,
    FIRST_SEGMENT,
    HEADER,
    IN_DRAM,
    LANE,
    OUTSIDE,
    SEGMENT,
    SEGMENTS,
    SIZE,
    STOP,
    STOPPED,
    TILE,
    TILES,
    WRITABLE,
    place,
)

# Loads and stores have the same first fields.
WHICH, FROM, PAD_VALUE, SRAM, OFFSET, SHAPE, PITCH, STRIDE, PAD = (place(Load, name) for name in (
    "buffer", "segment", "pad_value", "sram", "offset", "shape", "sram_pitch", "stride", "pad"))
STORED, INTO, STORE_SRAM, STORE_OFFSET, STORE_SHAPE, STORE_STRIDE, STORE_PITCH = (
    place(Store, name) for name in (
        "buffer", "segment", "sram", "offset", "shape", "stride", "sram_pitch"))
BUFFERS = len(Buffer)
LANE_BYTES = 4              # of an accumulator
NIBBLE, LOW_NIBBLE, SIGN = 4, 15, 8
TWICE = 2                   # unpacked nibbles take twice the space of DRAM


@cache
def load() -> int:
    """The address of a C function that executes a load, given its row and the machine."""
    def function(row: int, machine: int) -> int:
        if number_at(row, WHICH) >= BUFFERS:
            return OUTSIDE
        pad = machine + NUMBER * (HEADER + BUFFER * number_at(row, WHICH))
        z, y, x = number_at(row, SHAPE), number_at(row, SHAPE + 1), number_at(row, SHAPE + 2)
        plane = ((number_at(row, PAD) + y + number_at(row, PAD + 1))
                 * (number_at(row, PAD + 2) + x + number_at(row, PAD + 3)))
        if z * plane == 0:
            return DONE
        end = number_at(row, SRAM) + (z - 1) * number_at(row, PITCH) + plane
        if end > number_at(pad, TILES):
            return OUTSIDE
        base = 0
        if y * x > 0:
            base = _base(machine, number_at(row, FROM), SIZE, number_at(row, OFFSET), z, y,
                         x * number_at(pad, IN_DRAM), row + NUMBER * STRIDE)
            if base == 0:
                return OUTSIDE
        for number in range(z):
            if is_set(number_at(machine, STOP)):
                return STOPPED
            _load_plane(row, pad, plane, number, base + number * number_at(row, STRIDE))
        return DONE
    return c_function(function)


@helper
def _base(machine: int, segment: int, limit: int, offset: int, planes: int, rows: int, size: int,
          strides: int) -> Word:
    """The address of a box of rows of `size` bytes, or 0 if it is not inside its segment."""
    if segment >= number_at(machine, SEGMENTS):
        return 0
    row = machine + NUMBER * (FIRST_SEGMENT + SEGMENT * segment)
    far, wide = (planes - 1) * number_at(strides, 0), (rows - 1) * number_at(strides, 1)
    if (offset + min(far, 0) + min(wide, 0) < 0
            or offset + max(far, 0) + max(wide, 0) + size > number_at(row, limit)):
        return 0
    return number_at(row, ADDRESS) + offset


@helper
def _load_plane(row: int, pad: int, plane: int, number: int, origin: int) -> None:
    """Load a plane of a box, with its border."""
    y, x, tile = number_at(row, SHAPE + 1), number_at(row, SHAPE + 2), number_at(pad, TILE)
    left = number_at(row, PAD + 2)
    width = left + x + number_at(row, PAD + 3)
    to = number_at(pad, ADDRESS) + tile * (number_at(row, SRAM) + number * number_at(row, PITCH))
    if plane > y * x:
        _border(to, plane * tile, number_at(pad, LANE), number_at(row, PAD_VALUE))
    to += tile * (number_at(row, PAD) * width + left)
    if x > 0:
        for line in range(y):
            _unpack(to + tile * width * line, origin + line * number_at(row, STRIDE + 1),
                    x * number_at(pad, IN_DRAM), tile // number_at(pad, IN_DRAM))


@helper
def _border(to: int, size: int, lane: int, value: int) -> None:
    """Fill the whole plane with padding; the data inside the border are written later."""
    if lane == LANE_BYTES:
        for at in range(to, to + size, LANE_BYTES):
            write_lane(at, value)
    else:
        fill(to, value, size)


@helper
def _unpack(to: int, origin: int, size: int, growth: int) -> None:
    """Copy bytes from DRAM to a scratchpad, where each takes `growth` times the space."""
    if growth == 1:
        copy(to, origin, size)
    elif growth == TWICE:
        for at in range(size):
            both = byte_at(origin + at)
            write_byte(to + TWICE * at, ((both & LOW_NIBBLE) ^ SIGN) - SIGN)
            write_byte(to + TWICE * at + 1, both >> NIBBLE)
    else:
        for at in range(size):
            write_lane(to + LANE_BYTES * at, byte_at(origin + at))


@cache
def store() -> int:
    """The address of a C function that executes a store, given its row and the machine."""
    def function(row: int, machine: int) -> int:
        if number_at(row, STORED) >= BUFFERS:
            return OUTSIDE
        pad = machine + NUMBER * (HEADER + BUFFER * number_at(row, STORED))
        z, y = number_at(row, STORE_SHAPE), number_at(row, STORE_SHAPE + 1)
        x = number_at(row, STORE_SHAPE + 2)
        if z * y * x == 0:
            return DONE
        far, wide = number_at(row, STORE_PITCH), number_at(row, STORE_PITCH + 1)
        if (number_at(row, STORE_SRAM) + (z - 1) * far + (y - 1) * wide + x
                > number_at(pad, TILES)):
            return OUTSIDE
        tile, size = number_at(pad, TILE), x * number_at(pad, IN_DRAM)
        base = _base(machine, number_at(row, INTO), WRITABLE, number_at(row, STORE_OFFSET), z, y,
                     size, row + NUMBER * STORE_STRIDE)
        if base == 0:
            return OUTSIDE
        origin = number_at(pad, ADDRESS) + tile * number_at(row, STORE_SRAM)
        for plane in range(z):              # in order: where rows overlap, the last one wins
            for line in range(y):
                if is_set(number_at(machine, STOP)):
                    return STOPPED
                copy(base + plane * number_at(row, STORE_STRIDE)
                     + line * number_at(row, STORE_STRIDE + 1),
                     origin + tile * (plane * far + line * wide), size)
        return DONE
    return c_function(function)

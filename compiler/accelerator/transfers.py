"""Loads and stores from copies of boxes: three dimensions, padding, and pieces where that is not
enough.

A dimension of a copy is a count with a step in DRAM and a step in the scratchpad. Neighbours that
step as one are joined. What the instruction has no dimension for is written out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod

from ...isa.config import Config
from ...isa.instructions import Buffer as Scratchpad
from ...isa.instructions import Load, Store
from ..errors import CompileError
from ..nest.nest import Buffer, Copy, Nest, Scope, statements_of
from .scratchpads import SCRATCHPADS, TILE_RANK, strides_of

WIDEST = 255                # tiles of border on one side


@dataclass(frozen=True)
class Side:
    """One dimension of a copy. `before` and `after` of its `count` tiles lie outside DRAM."""

    count: int
    dram: int               # bytes from tile to tile
    pad: int                # tiles of the scratchpad from tile to tile
    before: int = 0
    after: int = 0

    @property
    def inside(self) -> int:
        return self.count - self.before - self.after


def element_bits(buffer: Buffer) -> int:
    return {"int8": 8, "uint8": 8, "int16": 16, "int32": 32}[buffer.dtype]


def bits_in_dram(nest: Nest, config: Config) -> dict[Buffer, int]:
    """The bits of an element of every buffer outside. What is loaded as weights has the bits of a
    weight, and its tiles are packed."""
    found = {buffer: element_bits(buffer) for buffer in (*nest.inputs, *nest.outputs)}
    for each in statements_of(nest.body):
        if isinstance(each, Copy) and each.target.buffer.scope == Scope.WGT:
            found[each.source.buffer] = config.wgt_bits
    return found


def dram_strides(buffer: Buffer, bits: int) -> list[int]:
    """Bytes from one index of a dimension to the next, dimensions of a tile left out."""
    return [prod(buffer.shape[place + 1:]) * bits // 8
            for place in range(len(buffer.shape) - TILE_RANK)]


def scratchpad_of(scope: Scope, dram: Buffer, on_chip: Buffer) -> Scratchpad:
    """The scratchpad as a transfer names it: narrow lanes may be widened on their way."""
    if scope == Scope.ACC and dram.dtype == "int8":
        return Scratchpad.ACC8
    if dram.dtype != on_chip.dtype:
        raise CompileError(f"{dram.name} is {dram.dtype} and {on_chip.name} {on_chip.dtype}: a "
                           f"transfer widens int8 to the accumulator and nothing else")
    return SCRATCHPADS[scope]


def in_tiles(buffer: Buffer, tile_rows: int) -> Buffer:
    """A buffer whose rows are addressed one by one, seen as whole tiles of them."""
    *leading, rows, lanes = buffer.shape
    return replace(buffer, shape=(*leading, rows // tile_rows, tile_rows, lanes), tile_rows=0)


def sides_of(dram: Buffer, start: Sequence[int], on_chip: Buffer, extents: Sequence[int],
             tile_bytes: int, bits: int) -> tuple[int, list[Side]]:
    """The byte at which the box starts in DRAM, where elements have so many bits, and its
    dimensions from the outside in."""
    rows = on_chip.tile_rows
    if rows:
        dram, on_chip = in_tiles(dram, rows), in_tiles(on_chip, rows)
        start = [*start[:-1], 0, start[-1]]
        extents = [*extents[:-2], extents[-2] // rows, rows, extents[-1]]
    for place in range(-TILE_RANK, 0):
        if start[place] or extents[place] != dram.shape[place]:
            raise CompileError(f"a copy of {dram.name} cuts through its tiles; only whole tiles "
                               f"are moved")
    strides = dram_strides(dram, bits)
    if prod(dram.shape[-TILE_RANK:]) * bits != tile_bytes * 8:
        raise CompileError(f"a tile of {dram.name} has {dram.shape[-TILE_RANK]} × "
                           f"{dram.shape[-1]} elements of {bits} bits, but a tile of the "
                           f"scratchpad takes {tile_bytes} bytes of DRAM")
    offset = sum(max(first, 0) * stride for first, stride in zip(start, strides, strict=False))
    sides = []
    for first, extent, size, stride, step in zip(start, extents, dram.shape, strides,
                                                 strides_of(on_chip), strict=False):
        before, after = max(0, -first), max(0, first + extent - size)
        sides.append(Side(extent, stride, step, min(before, extent), min(after, extent)))
    return offset, sides


def joined(sides: Sequence[Side]) -> list[Side]:
    """Dimensions of one tile left out, neighbours that step as one joined."""
    result: list[Side] = []
    for side in sides:
        if side.count == 1 and not side.before and not side.after:
            continue
        if result and not (side.before or side.after or result[-1].before or result[-1].after) and (
                result[-1].dram == side.dram * side.count
                and result[-1].pad == side.pad * side.count):
            result[-1] = replace(side, count=result[-1].count * side.count)
        else:
            result.append(side)
    return result


def loads(base: Load, sides: list[Side], tile_bytes: int, *, padding: int | None) -> Iterator[Load]:
    """The loads that bring a box into a scratchpad. `base` has the places where it starts.

    Without padding, what lies outside DRAM is left out, and its tiles stay as they are.
    """
    if padding is None:
        first = base.sram + sum(side.before * side.pad for side in sides)
        sides = [_inside(side) for side in sides]
    else:
        first = base.sram
    if any(side.count <= 0 for side in sides):
        return
    sides = joined(sides)
    row = sides.pop() if sides and sides[-1].pad == 1 and sides[-1].dram == tile_bytes else Side(
        1, tile_bytes, 1)
    rows = sides.pop() if sides and sides[-1].pad == row.count else Side(1, 0, row.count)
    planes = sides.pop() if sides and not (sides[-1].before or sides[-1].after) else Side(1, 0, 0)
    for far in product(*(range(side.count) for side in sides)):
        outside = any(not side.before <= number < side.count - side.after
                      for number, side in zip(far, sides, strict=True))
        dram = sum((number - side.before) * side.dram for number, side
                   in zip(far, sides, strict=True))
        at = sum(number * side.pad for number, side in zip(far, sides, strict=True))
        if outside or rows.inside <= 0 or row.inside <= 0:
            yield from _borders(base, rows.count * row.count, planes, first + at, padding or 0)
        else:
            yield _load(base, row, rows, planes, dram, first + at, padding or 0)


def _inside(side: Side) -> Side:
    """What of a dimension lies in DRAM."""
    if side.before or side.after:
        return replace(side, count=side.inside, before=0, after=0)
    return side


def _borders(base: Load, tiles: int, planes: Side, sram: int, padding: int) -> Iterator[Load]:
    """Loads that read nothing, for tiles in a row that are all padding: a border is as wide as a
    byte can say."""
    for done in range(0, tiles, WIDEST):
        yield Load(buffer=base.buffer, segment=base.segment, pad_value=padding, sram=sram + done,
                   shape=(planes.count, 0, 0), sram_pitch=planes.pad,
                   pad=(1, 0, min(WIDEST, tiles - done), 0))


def _load(base: Load, row: Side, rows: Side, planes: Side, dram: int, sram: int,
          padding: int) -> Load:
    pad = (rows.before, rows.after, row.before, row.after)
    if max(pad) > WIDEST:
        raise CompileError(f"a border of {max(pad)} tiles is more than the {WIDEST} that a load "
                           f"pads")
    return Load(buffer=base.buffer, segment=base.segment, pad_value=padding, sram=sram,
                offset=base.offset + dram, shape=(planes.count, rows.inside, row.inside),
                sram_pitch=planes.pad, stride=(planes.dram, rows.dram), pad=pad)


def stores(base: Store, sides: list[Side], tile_bytes: int) -> Iterator[Store]:
    """The stores that take a box from a scratchpad to DRAM; what lies outside is left out."""
    sram = base.sram + sum(side.before * side.pad for side in sides)
    sides = [_inside(side) for side in sides]
    if any(side.count <= 0 for side in sides):
        return
    sides = joined(sides)
    row = sides.pop() if sides and sides[-1].pad == 1 and sides[-1].dram == tile_bytes else Side(
        1, tile_bytes, 1)
    rows = sides.pop() if sides else Side(1, 0, 0)
    planes = sides.pop() if sides else Side(1, 0, 0)
    for far in product(*(range(side.count) for side in sides)):
        dram = sum(number * side.dram for number, side in zip(far, sides, strict=True))
        at = sum(number * side.pad for number, side in zip(far, sides, strict=True))
        yield replace(base, sram=sram + at, offset=base.offset + dram,
                      shape=(planes.count, rows.count, row.count),
                      stride=(planes.dram, rows.dram), sram_pitch=(planes.pad, rows.pad))

"""Loads and stores from copies of boxes: three dimensions, padding, and pieces where that is not
enough.

A dimension of a copy is a count with a step in DRAM and a step in the scratchpad. Neighbours that
step as one are joined. Dimensions that an instruction does not have are written out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import product
from math import prod
from typing import NamedTuple, TypeVar

from ....base.classes.dataclass import unguarded
from ....isa.config import Config
from ....isa.instructions import Buffer as Scratchpad
from ....isa.instructions import Load, Store
from ...errors import CompileError
from ...nest.nest import TILE_RANK, Buffer, Copy, Interleave, Nest, Region, Scope, statements_of
from ..selection.hardware_loops import REMEMBERED
from .interleave_buffers import is_spread, memory_shape, runs_of
from .scratchpads import SCRATCHPADS

Each = TypeVar("Each")
WIDEST = 255                # tiles of border on one side


class Side(NamedTuple):
    """One dimension of a copy, of which `before` and `after` tiles lie outside DRAM."""

    extent: int
    dram: int               # bytes from tile to tile
    pad: int                # tiles of the scratchpad from tile to tile
    before: int = 0
    after: int = 0

    @property
    def inside(self) -> int:
        return self.extent - self.before - self.after


Sides = tuple[Side, ...]    # from the outside in


class Piece(NamedTuple):
    """One load or store of a copy, relative to where the copy starts."""

    sram: int
    offset: int
    shape: tuple[int, int, int]
    stride: tuple[int, int]
    sram_pitch: tuple[int, int]             # a load has the first only
    pad: tuple[int, int, int, int] = (0, 0, 0, 0)

    @property
    def reads(self) -> bool:
        """Whether it is more than a border."""
        return self.shape[2] > 0


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


def scratchpad_of(scope: Scope, dram: Buffer, on_chip: Buffer) -> Scratchpad:
    """The scratchpad as a transfer names it: narrow lanes may be widened on their way."""
    if scope == Scope.ACC and dram.dtype == "int8":
        return Scratchpad.ACC8
    if dram.dtype != on_chip.dtype:
        raise CompileError(f"{dram.name} is {dram.dtype} and {on_chip.name} {on_chip.dtype}: a "
                           f"transfer widens int8 to the accumulator and nothing else")
    return SCRATCHPADS[scope]


class Box(NamedTuple):
    """A part of a copy: tiles of the scratchpad and bytes of DRAM from where the buffers start, and
    its dimensions."""

    sram: int
    offset: int
    sides: Sides


@unguarded(frozen=True)
class Transfer:
    """A copy between DRAM and a scratchpad, without the places where it starts. If channel blocks
    are interleaved in DRAM, the side of that dimension steps from group to group there."""

    loads: bool
    scratchpad: Scratchpad
    tile_bytes: int
    tile_rows: int          # rows of a tile, if they are addressed one by one
    sizes: tuple[int, ...]  # tiles of the buffer in DRAM, along each dimension
    sides: Sides            # of a copy that lies inside
    interleave: Interleave | None = None
    alike: bool = False     # the scratchpad is interleaved too ...
    whole: bool = False     # ... and groups are tiles there
    part_rows: int = 0      # rows of the first dimension's indices, if several share a tile

    def at(self, start: Sequence[int]) -> tuple[int, Sides]:
        """The byte at which a copy that starts somewhere does so in DRAM, and its dimensions."""
        offset, sides = 0, []
        for first, size, side in zip(self._tiles(start), self.sizes, self.sides, strict=True):
            last = first + side.extent
            if first < 0 or last > size:
                before, after = max(0, -first), max(0, last - size)
                side = side._replace(before=min(before, side.extent), after=min(after, side.extent))
            offset += max(first, 0) * side.dram
            sides.append(side)
        return offset, tuple(sides)

    def boxes(self, start: Sequence[int]) -> Iterator[Box]:
        """The boxes that a copy is, which starts somewhere: one, unless it takes parts of groups
        that are interleaved in DRAM."""
        if self.interleave is None:
            yield Box(0, *self.at(start))
            return
        place, ways = self.interleave.dimension, self.interleave.ways
        first, side, size = start[place], self.sides[place], self.sizes[place]
        if self.alike:
            groups = replace(self, sizes=_replace_at(self.sizes, place, -(-size // ways)),
                             sides=_replace_at(self.sides, place, side._replace(
                                 extent=-(-side.extent // ways))))
            offset, sides = groups.at(_replace_at(start, place, first // ways))
            yield Box(0, offset, sides if self.whole else _in_groups(sides, self.tile_bytes, ways))
            return
        one = replace(self, sides=_replace_at(self.sides, place, side._replace(extent=1)))
        offset, sides = one.at(_replace_at(start, place, 0))
        for run in runs_of(first, min(side.extent, size - first), ways):
            blocks = (Side(run.groups or 1, side.dram, ways * side.pad),
                      Side(run.length, self.tile_bytes, side.pad))
            at = offset + run.first // ways * side.dram + run.first % ways * self.tile_bytes
            yield from _split_borders(
                Box((run.first - first) * side.pad, at,
                    (*sides[:place], *blocks, *sides[place + 1:])))

    def _tiles(self, start: Sequence[int]) -> Sequence[int]:
        """Which tile a copy starts with."""
        *leading, row, lane = start
        if self.part_rows:
            leading, row = [], leading[0] * self.part_rows + row
        if self.tile_rows:
            leading, row = [*leading, row // self.tile_rows], row % self.tile_rows
        if row or lane:
            raise CompileError(f"a copy starts at row {row} and lane {lane} of a tile; only whole "
                               f"tiles are moved")
        return leading


def _replace_at(values: Sequence[Each], place: int, value: Each) -> tuple[Each, ...]:
    """The same values but for one."""
    return (*values[:place], value, *values[place + 1:])


def _in_groups(sides: Sides, tile_bytes: int, ways: int) -> Sides:
    """Sides of groups of tiles in those of tiles: the last walks along the tiles of a row."""
    *outer, row = sides
    return (*outer, Side(row.extent * ways, tile_bytes, 1, row.before * ways, row.after * ways))


def _split_borders(box: Box) -> Iterator[Box]:
    """A box of single tiles, in which only the last side is padded by the load that moves it:
    the rows of another border are boxes of their own."""
    place = len(box.sides) - 2
    rows = box.sides[place]
    inside = max(0, rows.inside)
    for first, count, is_border in ((0, min(rows.before, rows.extent), True),
                                    (rows.before, inside, False),
                                    (rows.extent - rows.after, rows.after, True)):
        if count and (inside or is_border):
            side = rows._replace(extent=count, before=count if is_border else 0, after=0)
            yield Box(box.sram + first * rows.pad, box.offset, _replace_at(box.sides, place, side))


def ends_of(copy: Copy) -> tuple[Region, Region]:
    """The region of a copy that lies on the chip, and the one in DRAM."""
    if copy.target.buffer.scope in SCRATCHPADS:
        return copy.target, copy.source
    return copy.source, copy.target


def transfer_of(copy: Copy, config: Config, bits: int) -> Transfer:
    """The transfer that a copy is. An element has a number of bits in DRAM."""
    chip, dram = ends_of(copy)
    scratchpad = scratchpad_of(chip.buffer.scope, dram.buffer, chip.buffer)
    rows = chip.buffer.tile_rows
    shape, extents, on_chip = (_in_tiles(each, rows) for each in (
        dram.buffer.shape, dram.extents, chip.buffer.shape))
    if extents[-TILE_RANK:] != shape[-TILE_RANK:]:
        raise CompileError(f"a copy of {dram.buffer.name} cuts through its tiles; only whole tiles "
                           f"are moved")
    tile_bytes = config.tile_bytes(scratchpad)
    whole = chip.buffer.parts if not rows else 1
    if prod(shape[-TILE_RANK:]) * bits * whole != tile_bytes * 8:
        raise CompileError(f"a tile of {dram.buffer.name} has {shape[-TILE_RANK]} × {shape[-1]} "
                           f"elements of {bits} bits, but a tile of the scratchpad takes "
                           f"{tile_bytes} bytes of DRAM")
    leading = len(shape) - TILE_RANK
    order = dram.buffer.interleave
    in_memory = _in_tiles(memory_shape(dram.buffer), rows)
    sides = tuple(Side(extents[place], prod(in_memory[place + 1:]) * bits // 8,
                       prod(on_chip[place + 1:leading])) for place in range(leading))
    if order is None or (not is_spread(dram.buffer, order) and whole == 1):
        if order is not None:                   # the last dimension: its end is filled up
            sides = (*sides[:-1], sides[-1]._replace(dram=tile_bytes))
        part = dram.buffer.shape[-TILE_RANK] if rows else 0
        return Transfer(chip is copy.target, scratchpad, tile_bytes, rows, shape[:leading], sides,
                        part_rows=part if rows and part % rows else 0)
    alike = chip.buffer.interleave is not None
    if alike:
        on_chip = memory_shape(chip.buffer)
        sides = tuple(side._replace(pad=prod(on_chip[place + 1:leading + 1]) // whole)
                      for place, side in enumerate(sides))
    return Transfer(chip is copy.target, scratchpad, tile_bytes, rows, shape[:leading], sides,
                    order, alike, whole > 1)


def _in_tiles(shape: tuple[int, ...], tile_rows: int) -> tuple[int, ...]:
    """A shape in which rows that are addressed one by one are tiles of rows. Where a tile has those
    of several indices, only the first dimension has any."""
    if not tile_rows:
        return shape
    *leading, rows, lanes = shape
    if rows % tile_rows:
        return (-(-prod(shape[:-1]) // tile_rows), tile_rows, lanes)
    return (*leading, rows // tile_rows, tile_rows, lanes)


def merge_dimensions(sides: Sides) -> list[Side]:
    """Dimensions of one tile left out, neighbours that step as one joined."""
    result: list[Side] = []
    for side in sides:
        if side.extent == 1 and not side.before and not side.after:
            continue
        if result and not (side.before or side.after or result[-1].before or result[-1].after) and (
                result[-1].dram == side.dram * side.extent
                and result[-1].pad == side.pad * side.extent):
            result[-1] = side._replace(extent=result[-1].extent * side.extent)
        else:
            result.append(side)
    return result


@lru_cache(REMEMBERED)
def load_pieces(sides: Sides, tile_bytes: int, *, padded: bool) -> tuple[Piece, ...]:
    """The loads that bring a box into a scratchpad. What lies outside DRAM is padded, or left out,
    so that its tiles stay as they are."""
    first = 0 if padded else sum(side.before * side.pad for side in sides)
    within = sides if padded else tuple(map(_part_in_dram, sides))
    if not _is_something(within):
        return ()
    return tuple(_load_pieces(merge_dimensions(within), tile_bytes, first))


def _load_pieces(sides: list[Side], tile_bytes: int, first: int) -> Iterator[Piece]:
    row = _row(sides, tile_bytes)
    rows = sides.pop() if sides and sides[-1].pad == row.extent else Side(1, 0, row.extent)
    planes = sides.pop() if sides and not (sides[-1].before or sides[-1].after) else Side(1, 0, 0)
    for far in product(*(range(side.extent) for side in sides)):
        outside = any(not side.before <= number < side.extent - side.after
                      for number, side in zip(far, sides, strict=True))
        dram = sum((number - side.before) * side.dram for number, side
                   in zip(far, sides, strict=True))
        sram = first + sum(number * side.pad for number, side in zip(far, sides, strict=True))
        if outside or rows.inside <= 0 or row.inside <= 0:
            yield from _borders(rows.extent * row.extent, planes, sram)
        else:
            pad = rows.before, rows.after, row.before, row.after
            if max(pad) > WIDEST:
                raise CompileError(f"a border of {max(pad)} tiles is more than the {WIDEST} that "
                                   f"a load pads")
            yield Piece(sram, dram, (planes.extent, rows.inside, row.inside),
                        (planes.dram, rows.dram), (planes.pad, 0), pad)


def _borders(tiles: int, planes: Side, sram: int) -> Iterator[Piece]:
    """Loads that read nothing, for tiles in a row that are all padding: a border is as wide as a
    byte can say."""
    for done in range(0, tiles, WIDEST):
        yield Piece(sram + done, 0, (planes.extent, 0, 0), (0, 0), (planes.pad, 0),
                    (1, 0, min(WIDEST, tiles - done), 0))


@lru_cache(REMEMBERED)
def store_pieces(sides: Sides, tile_bytes: int) -> tuple[Piece, ...]:
    """The stores that take a box from a scratchpad to DRAM; what lies outside is left out."""
    first = sum(side.before * side.pad for side in sides)
    within = tuple(map(_part_in_dram, sides))
    if not _is_something(within):
        return ()
    return tuple(_store_pieces(merge_dimensions(within), tile_bytes, first))


def _store_pieces(sides: list[Side], tile_bytes: int, first: int) -> Iterator[Piece]:
    row = _row(sides, tile_bytes)
    rows = sides.pop() if sides else Side(1, 0, 0)
    planes = sides.pop() if sides else Side(1, 0, 0)
    for far in product(*(range(side.extent) for side in sides)):
        dram = sum(number * side.dram for number, side in zip(far, sides, strict=True))
        sram = first + sum(number * side.pad for number, side in zip(far, sides, strict=True))
        yield Piece(sram, dram, (planes.extent, rows.extent, row.extent),
                    (planes.dram, rows.dram), (planes.pad, rows.pad))


def _row(sides: list[Side], tile_bytes: int) -> Side:
    """Tiles that lie side by side both in DRAM and in the scratchpad: one, if there are no more."""
    if sides and sides[-1].pad == 1 and sides[-1].dram == tile_bytes:
        return sides.pop()
    return Side(1, tile_bytes, 1)


def _part_in_dram(side: Side) -> Side:
    """The part of a dimension that lies in DRAM."""
    return side._replace(extent=side.inside, before=0, after=0)


def _is_something(sides: Sides) -> bool:
    return all(side.extent > 0 for side in sides)


class Ends(NamedTuple):
    """Where a transfer starts, in its scratchpad and in DRAM."""

    scratchpad: Scratchpad
    sram: int
    segment: int
    offset: int


def loads_of(pieces: Iterable[Piece], ends: Ends, padding: int) -> Iterator[Load]:
    """Loads, moved to where they start. Those that are only a border have no place in DRAM."""
    for each in pieces:
        offset = ends.offset + each.offset if each.reads else 0
        yield Load(buffer=ends.scratchpad, segment=ends.segment, pad_value=padding, offset=offset,
                   sram=ends.sram + each.sram, shape=each.shape, sram_pitch=each.sram_pitch[0],
                   stride=each.stride, pad=each.pad)


def stores_of(pieces: Iterable[Piece], ends: Ends) -> Iterator[Store]:
    """Stores, moved to where they start."""
    for each in pieces:
        yield Store(buffer=ends.scratchpad, segment=ends.segment, sram=ends.sram + each.sram,
                    offset=ends.offset + each.offset, shape=each.shape, stride=each.stride,
                    sram_pitch=each.sram_pitch)

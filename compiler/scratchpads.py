"""Where buffers lie in the scratchpads: fixed places, found before anything is emitted.

Buffers inside one another stand one after the other; buffers that are never alive together share
a place. Copies of a buffer, which are used by turns, and the parts of virtual threads lie in
different banks of the accumulator where there is room, so that engines do not meet there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from ..isa.config import Config
from ..isa.instructions import Buffer as Scratchpad
from .affine import Affine, affine
from .errors import CompileError
from .nest import (
    Allocate,
    Buffer,
    Copy,
    Loop,
    LoopKind,
    Nest,
    Region,
    Scope,
    Statement,
    statements_of,
)

SCRATCHPADS = {Scope.UOP: Scratchpad.UOP, Scope.INP: Scratchpad.INP, Scope.WGT: Scratchpad.WGT,
               Scope.ACC: Scratchpad.ACC, Scope.OUT: Scratchpad.OUT}
TILE_RANK = 2               # dimensions of a tile


@dataclass(frozen=True)
class Place:
    """The tiles of a buffer: from `first` on, a step further for each copy and thread."""

    first: int
    tiles: int
    step: int
    copies: int

    def of(self, thread: int, turn: int) -> int:
        """The first tile of one of the copies that a thread has."""
        return self.first + (thread * self.copies + turn) * self.step


def tiles_of(buffer: Buffer) -> int:
    """Tiles of a buffer in a scratchpad."""
    if buffer.tile_rows:
        return prod(buffer.shape[:-1]) // buffer.tile_rows
    return prod(buffer.shape[:-TILE_RANK])


def strides_of(buffer: Buffer) -> list[int]:
    """From one index of a dimension to the next, in tiles, or in rows where these are addressed;
    dimensions of the tile or row left out."""
    leading = buffer.shape[:-1 if buffer.tile_rows else -TILE_RANK]
    return [prod(leading[place + 1:]) for place in range(len(leading))]


def tile_index(region: Region) -> Affine:
    """Which tile, or row, of its buffer a region of one is."""
    total = Affine()
    for index, stride in zip(region.start, strides_of(region.buffer), strict=False):
        form = affine(index)
        if form is None:
            raise CompileError(f"{region}: {index} is not a sum of axes times constants, which is "
                               f"all that hardware loops can walk")
        total = total + form.times(stride)
    return total


def place_buffers(nest: Nest, config: Config) -> dict[Buffer, Place]:
    """A place for every buffer that is allocated on the chip, in banks of their own if all fit."""
    places: dict[Buffer, Place] = {}
    try:
        _place(nest.body, config, {}, 1, places, apart=True)
    except CompileError:
        places = {}
        _place(nest.body, config, {}, 1, places, apart=False)
    return places


def _place(statement: Statement, config: Config, tops: Mapping[Scope, int], threads: int,
           places: dict[Buffer, Place], *, apart: bool) -> None:
    if isinstance(statement, Allocate) and statement.buffer.scope in SCRATCHPADS:
        scope = statement.buffer.scope
        top = tops.get(scope, 0)
        place = _placed(statement, config, top, threads, places, apart=apart)
        places[statement.buffer] = place
        end = place.first + (statement.copies * threads - 1) * place.step + place.tiles
        _place(statement.body, config, {**tops, scope: end}, threads, places, apart=apart)
        return
    if isinstance(statement, Loop) and statement.kind == LoopKind.THREADS:
        threads *= statement.axis.extent
    for child in statement.children():
        _place(child, config, tops, threads, places, apart=apart)


def _placed(statement: Allocate, config: Config, top: int, threads: int,
            places: Mapping[Buffer, Place], *, apart: bool) -> Place:
    buffer = statement.buffer
    capacity, tiles = config.tiles(SCRATCHPADS[buffer.scope]), tiles_of(buffer)
    count = statement.copies * threads
    need = top + count * tiles
    if need > capacity:
        others = ", ".join(f"{each.name} {place.tiles}" for each, place in places.items()
                           if each.scope == buffer.scope)
        raise CompileError(f"{buffer.name} does not fit in {buffer.scope.value}: it takes "
                           f"{count} × {tiles} tiles{' beside ' + others if others else ''}, but "
                           f"there are {capacity}: {need - capacity} too many")
    step = tiles
    spread = (capacity - top) // count // config.acc_bank_tiles * config.acc_bank_tiles
    # Few tiles that are only loaded, such as parameters, leave the banks to others.
    matters = 4 * tiles >= config.acc_bank_tiles or not _is_loaded(statement)
    # What lies before, such as parameters, is loaded while the gemm holds a bank of its sums, or
    # read by the ALU together with this: another bank is better.
    bank = config.acc_bank_tiles
    aligned = -(-top // bank) * bank
    behind = (capacity - aligned) // count // bank * bank
    if apart and buffer.scope == Scope.ACC and count > 1 and matters and behind >= tiles:
        return Place(aligned, tiles, behind, statement.copies)
    if apart and buffer.scope == Scope.ACC and count > 1 and spread >= tiles and matters:
        step = spread
    return Place(top, tiles, step, statement.copies)


def _is_loaded(statement: Allocate) -> bool:
    return any(isinstance(each, Copy) and each.target.buffer is statement.buffer
               for each in statements_of(statement.body))

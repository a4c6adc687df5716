"""Where buffers lie in the scratchpads: fixed places, found before anything is emitted.

Buffers inside one another stand one after the other; buffers that are never alive together share
a place. Copies of a buffer, which are used in turn, and the parts of virtual threads lie in
different banks of the accumulator where there is room, so that engines do not meet there.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from itertools import accumulate
from math import prod
from operator import mul
from typing import NamedTuple

from ....base.classes.dataclass import unguarded
from ....isa.config import Config
from ....isa.instructions import Buffer as Scratchpad
from ...errors import CompileError
from ...expression.affine import ZERO, Affine, affine
from ...expression.expression import Axis
from ...nest.nest import (
    TILE_RANK,
    Allocate,
    Buffer,
    Copy,
    Invoke,
    Loop,
    LoopKind,
    Nest,
    Region,
    Scope,
    Statement,
    When,
    statements_of,
)
from .interleave_buffers import is_spread, memory_shape

SCRATCHPADS = {Scope.UOP: Scratchpad.UOP, Scope.INP: Scratchpad.INP, Scope.WGT: Scratchpad.WGT,
               Scope.ACC: Scratchpad.ACC, Scope.OUT: Scratchpad.OUT}
OPERANDS = 3                # of an operation of the ALU, its result included
STRIDES = "strides"         # what a buffer remembers them as


@unguarded(frozen=True)
class Place:
    """The tiles of a buffer: from `first` on, a step further for each copy and thread. With a
    `pitch`, its indices (of the outermost dimension that has several) are that far apart, and
    other copies lie in between. With a `period`, contents come again after so many."""

    first: int
    tiles: int
    step: int
    copies: int
    pitch: int | None = None
    period: int = 0

    def of(self, thread: int, turn: int) -> int:
        """The first tile of one of the copies that a thread has."""
        return self.first + (thread * self.copies + turn) * self.step


def tiles_of(buffer: Buffer) -> int:
    """Tiles of a buffer in a scratchpad."""
    if buffer.tile_rows:
        return -(-prod(buffer.shape[:-1]) // buffer.tile_rows)
    return prod(memory_shape(buffer)[:-TILE_RANK]) // buffer.parts


def strides_of(buffer: Buffer) -> list[int]:
    """From one index of a dimension to the next, in tiles, or in rows or groups of lanes where
    these are addressed; dimensions of the tile or row left out. From group to group, if a dimension
    is interleaved."""
    known: dict[str, list[int]] = buffer.__dict__
    if STRIDES not in known:
        known[STRIDES] = _find_strides(buffer)
    return [*known[STRIDES]]


def _find_strides(buffer: Buffer) -> list[int]:
    leading = memory_shape(buffer)[:-1 if buffer.tile_rows else -TILE_RANK]
    strides = [*accumulate(reversed(leading[1:]), mul, initial=1)][::-1] if leading else []
    if buffer.interleave is None:
        return strides
    return strides[:-1] if is_spread(buffer, buffer.interleave) else [*strides[:-2], 1]


def tile_index(region: Region, pitch: int | None = None) -> Affine:
    """Which tile, or row, of its buffer a region of one is, counted from index 0 of a dimension
    that is interleaved."""
    strides = strides_of(region.buffer)
    if pitch is not None:
        strides[_outermost(region.buffer)] = pitch
    order = region.buffer.interleave
    if order is not None and is_spread(region.buffer, order):
        strides[order.dimension] = 0
    constant = 0
    terms: dict[Axis, int] = {}
    for index, stride in zip(region.start, strides, strict=False):
        if index is ZERO:
            continue
        form = affine(index)
        if form is None:
            raise CompileError(f"{region}: {index} is not a sum of axes times constants, which is "
                               f"all that hardware loops can walk")
        constant += form.constant * stride
        for axis, coefficient in form.terms.items():
            terms[axis] = terms.get(axis, 0) + coefficient * stride
    return Affine(constant, {axis: each for axis, each in terms.items() if each})


def _outermost(buffer: Buffer) -> int:
    """The first dimension of several indices, those of the tile left out; if there is none, 0."""
    return next((place for place in range(len(strides_of(buffer))) if buffer.shape[place] > 1), 0)


class Banks(Enum):
    """How the accumulator's banks are divided among buffers that are used in turn."""

    WIDE = "as far apart as possible, parameters in a bank of their own"
    CLOSE = "each in the next bank, the first beside the parameters"
    SHARED = "side by side"


class Uses(NamedTuple):
    """How a nest uses buffers: those that are loaded, those that are loaded or stored, and the
    intrinsics that combine some lane by lane, unlike the parameters of a requantization."""

    loaded: set[Buffer]
    moved: set[Buffer]
    combined: list[Invoke]


def _uses_of(nest: Nest) -> Uses:
    found = Uses(set(), set(), [])
    for each in statements_of(nest.body):
        if isinstance(each, Copy):
            found.loaded.add(each.target.buffer)
            found.moved.update((each.target.buffer, each.source.buffer))
        elif isinstance(each, Invoke) and len(each.regions) <= OPERANDS and all(
                region.buffer.scope == Scope.ACC for region in each.regions):
            found.combined.append(each)
    return found


def place_buffers(nest: Nest, config: Config) -> dict[Buffer, Place]:
    """A place for every buffer that is allocated on the chip, in banks of their own if all fit."""
    uses = _uses_of(nest)
    for banks in Banks:
        places: dict[Buffer, Place] = {}
        try:
            _place(nest.body, config, uses, {}, 1, places, banks)
        except CompileError:
            if banks == Banks.SHARED:
                raise
        else:
            break
    return places


def _place(statement: Statement, config: Config, uses: Uses, tops: Mapping[Scope, int],
           threads: int, places: dict[Buffer, Place], banks: Banks) -> None:
    while isinstance(statement, Loop | When):
        if isinstance(statement, Loop) and statement.kind == LoopKind.THREADS:
            threads *= statement.axis.extent
        statement = statement.body
    if isinstance(statement, Allocate) and statement.buffer.scope in SCRATCHPADS:
        scope = statement.buffer.scope
        top = tops.get(scope, 0)
        place = _allocate(statement, config, uses, top, threads, places, banks)
        places[statement.buffer] = place
        others = 0 if statement.slide else statement.copies * threads - 1
        end = place.first + others * place.step + place.tiles
        _place(statement.body, config, uses, {**tops, scope: end}, threads, places, banks)
        return
    for child in statement.children():
        _place(child, config, uses, tops, threads, places, banks)


def _allocate(statement: Allocate, config: Config, uses: Uses, top: int, threads: int,
              places: Mapping[Buffer, Place], banks: Banks) -> Place:
    buffer = statement.buffer
    capacity, tiles = config.tiles(SCRATCHPADS[buffer.scope]), tiles_of(buffer)
    count = 1 if statement.slide else statement.copies * threads       # copies overlap
    need = top + count * tiles
    if need > capacity:
        others = ", ".join(f"{each.name} {place.tiles}" for each, place in places.items()
                           if each.scope == buffer.scope)
        raise CompileError(f"{buffer.name} does not fit in {buffer.scope.value}: it takes "
                           f"{count} × {tiles} tiles{' beside ' + others if others else ''}, but "
                           f"there are {capacity}: {need - capacity} too many")
    if statement.slide is not None:
        if threads > 1:
            raise CompileError(f"{buffer.name} slides, which virtual threads cannot share")
        step = statement.slide.step * strides_of(buffer)[statement.slide.dimension]
        return Place(top, tiles, step, statement.copies)
    if banks == Banks.SHARED or buffer.scope != Scope.ACC:
        return Place(top, tiles, tiles, statement.copies, period=statement.period)
    place = _spread_over_banks(statement, config, uses, top, count)
    if place and banks == Banks.WIDE:
        return place
    is_loaded, is_combined = buffer in uses.loaded, _is_combined(buffer, uses, places)
    # Few tiles that are only loaded, such as parameters, leave the banks to others.
    if count > 1 and (4 * tiles >= config.acc_bank_tiles or not is_loaded
                      or is_combined):
        if banks == Banks.CLOSE:
            first, step = _in_next_banks(top, tiles, config.acc_bank_tiles, places)
            if first + (count - 1) * step + tiles > capacity:
                raise CompileError(f"{buffer.name} does not find banks of its own")
        else:
            first, step = _in_banks(top, tiles, count, capacity, config.acc_bank_tiles,
                                    later=_tiles_loaded_later(statement, uses), loaded=is_loaded)
        return Place(first, tiles, step, statement.copies)
    fresh = -(-top // config.acc_bank_tiles) * config.acc_bank_tiles
    if count > 1 and _has_sums_before(places) and fresh + count * tiles <= capacity:
        top = fresh                     # a load would wait for the gemm
    if (count == 1 and is_combined and not is_loaded
            and _leaves_banks(statement, fresh + tiles, config)):
        top = fresh                     # the ALU reads both in one cycle
    return Place(top, tiles, tiles, statement.copies)


def _is_combined(buffer: Buffer, uses: Uses, places: Mapping[Buffer, Place]) -> bool:
    """Whether the ALU combines a buffer with one that has a place already, and no copies: both are
    read in one cycle if they lie in different banks."""
    for invoke in uses.combined:
        buffers = [region.buffer for region in invoke.regions]
        if buffer in buffers and any(
                each in places and places[each].copies == 1 for each in buffers):
            return True
    return False


def _leaves_banks(statement: Allocate, end: int, config: Config) -> bool:
    """Whether everything that is loaded later has banks of its own behind a tile."""
    bank = config.acc_bank_tiles
    for each in statements_of(statement.body):
        if isinstance(each, Allocate) and each is not statement and (
                each.buffer.scope == Scope.ACC):
            end = -(-end // bank) * bank + each.copies * -(-tiles_of(each.buffer) // bank) * bank
    return end <= config.tiles(SCRATCHPADS[Scope.ACC])


def _has_sums_before(places: Mapping[Buffer, Place]) -> bool:
    """Whether other buffers of the accumulator have a place already, in banks of their own."""
    return any(buffer.scope == Scope.ACC and place.step > place.tiles
               for buffer, place in places.items())


def _spread_over_banks(statement: Allocate, config: Config, uses: Uses, top: int,
                       count: int) -> Place | None:
    """Each index of the outermost dimension in banks of its own, if they fit and leave the chip one
    by one: while the gemm works on one, the ALU has the one before."""
    buffer, copies = statement.buffer, statement.copies
    indices = buffer.shape[_outermost(buffer)] if strides_of(buffer) else 1
    if (not 1 < indices <= config.acc_banks or buffer.parts > 1 or buffer in uses.moved
            or not _leaves_in_parts(statement)):
        return None
    pitch = config.acc_banks // indices * config.acc_bank_tiles
    size = tiles_of(buffer) // indices
    if top + count * size > pitch:
        return None
    return Place(top, (indices - 1) * pitch + size, size, copies, pitch)


def _in_banks(top: int, tiles: int, count: int, capacity: int, bank: int, *,
              later: int, loaded: bool) -> tuple[int, int]:
    """Where the first of several copies begins, and how far from one another they are, so that no
    two of them share a bank; side by side if that is not possible. What lies before, such as
    parameters, is loaded while the gemm holds a bank of its sums, or read by the ALU together with
    them: it gets a bank of its own too, if there is one. Copies are as far apart as possible, or
    as close, if that leaves whole banks to tiles that are loaded `later`. These rather share a bank
    with one another than with sums: the load, and all after it, would wait for the gemm."""
    fresh = -(-top // bank) * bank
    for first in (fresh, top):
        most = (capacity - first - tiles) // (count - 1)
        steps = [*range(bank, most + 1, bank), *range(bank - first % bank, most + 1, bank)]
        if loaded and first != fresh and fresh + count * tiles <= capacity:
            return fresh, tiles
        close = [step for step in sorted(steps) if later and
                 -(-(first + (count - 1) * step + tiles) // bank) * bank + later <= capacity]
        for step in (*close, *sorted(steps, reverse=True)):
            begins = [(first + number * step) // bank for number in range(count)]
            ends = [(first + number * step + tiles - 1) // bank for number in range(count)]
            if all(end < begin for end, begin in zip(ends, begins[1:], strict=False)):
                return first, step
    return top, tiles


def _tiles_loaded_later(statement: Allocate, uses: Uses) -> int:
    """Tiles of the accumulator that are loaded in turn, such as shortcuts of residual additions,
    and get a place after this buffer."""
    return sum(each.copies * tiles_of(each.buffer) for each in statements_of(statement.body)
               if isinstance(each, Allocate) and each.buffer.scope == Scope.ACC
               and each.copies > 1 and each.buffer in uses.loaded)


def _in_next_banks(top: int, tiles: int, bank: int,
                   places: Mapping[Buffer, Place]) -> tuple[int, int]:
    """The first copy from here on, or if another that is used in turn is in this bank, or it
    does not fit, in the next one; the others each in a bank further on."""
    shared = any(place.copies > 1 and place.step >= place.tiles and place.step > bank // 2
                 and place.of(0, place.copies - 1) // bank == (top - 1) // bank
                 for buffer, place in places.items() if buffer.scope == Scope.ACC)
    first = top if not shared and top % bank + tiles <= bank else -(-top // bank) * bank
    begin = -(-(first + tiles) // bank) * bank          # of the second
    return first, begin - first if first % bank else -(-tiles // bank) * bank


def _leaves_in_parts(statement: Allocate) -> bool:
    """Whether a loop along the outermost dimension takes what is computed and moves it on."""
    buffer, place = statement.buffer, _outermost(statement.buffer)
    inside, axes = statements_of(statement.body), set[Axis]()
    for each in inside:
        if isinstance(each, Invoke) and each.regions[0].buffer is not buffer:
            for region in each.regions[1:]:
                form = affine(region.start[place]) if region.buffer is buffer else None
                axes.update(form.terms if form is not None else ())
    return any(isinstance(each, Loop) and each.axis in axes and any(
        isinstance(one, Copy) for one in statements_of(each.body)) for each in inside)

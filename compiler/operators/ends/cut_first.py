"""The first product of a program and its loads, cut into pieces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from math import prod
from typing import TypeAlias

import numpy as np

from ....base.classes.dataclass import dataclass
from ....isa.config import Config
from ....isa.instructions import (
    Buffer,
    Engine,
    Gemm,
    GemmFlags,
    Instruction,
    Load,
    Window,
)
from ....isa.program import Program, engines_of
from ....isa.stream import decode, encode
from ....isa.verification.bounds import SRC, WGT
from .pieces import (
    LONG,
    MicroOps,
    Product,
    Range,
    Tiles,
    Triple,
    Words,
    is_free,
    pieces_of,
    replace_at,
    tiles_of,
)

Parts: TypeAlias = tuple[tuple[Load, ...], ...]


def cut_first(program: Program, data: int, weights: int) -> Program | None:
    """The first product in pieces, with what it takes of data and weights loaded in so many; None
    if there is none that can be cut so."""
    engines = engines_of(program)[:LONG]
    number = int(np.argmax(engines != Engine.LOAD))
    *loads, first = decode(program.code[:number + 1])
    if not isinstance(first, Gemm | Window) or not loads:
        return None
    micro_ops = MicroOps(program)
    words = micro_ops.words_of(first, number)
    if words is None or not micro_ops.has_room(words, data * weights - 1):
        return None
    cut = [_side(first, words, loads, buffer, count, program.config)
           for buffer, count in ((Buffer.WGT, weights), (Buffer.INP, data)) if count > 1]
    sides = [each for each in cut if each is not None]
    if len(sides) < len(cut) or len({each.loop for each in sides}) < len(sides):
        return None
    own = {id(each.load) for each in sides}
    found: list[Instruction] = [each for each in loads if id(each) not in own]
    known: set[tuple[int, int]] = set()
    for numbers in product(*(range(len(each.pieces)) for each in sides)):
        begin, loops = (0, 0, 0), first.loops
        for side, which in zip(sides, numbers, strict=True):
            low, high = side.pieces[which]
            begin = replace_at(side.loop, low, begin)
            loops = replace_at(side.loop, high - low, loops)
            if (side.loop, which) not in known:
                known.add((side.loop, which))
                found += side.parts[which]
        found += micro_ops.piece(first, words, begin, loops)
    return micro_ops.program([encode(found), program.code[number + 1:]])


@dataclass(frozen=True)
class Side:
    """An operand of a product: its load, cut along the loop of the product that walks over it, and
    what has to be loaded before each piece of the loop."""

    load: Load
    loop: int
    pieces: tuple[Range, ...]
    parts: tuple[tuple[Load, ...], ...]


def _side(first: Product, words: Words, loads: Sequence[Instruction], buffer: Buffer, count: int,
          config: Config) -> Side | None:
    """The largest load of an operand in so many pieces; None if it cannot be cut so."""
    own = [each for each in loads if isinstance(each, Load) and each.buffer == buffer
           and all(each.shape)]
    mine, other = ((first.src_stride, first.wgt_stride) if buffer == Buffer.INP
                   else (first.wgt_stride, first.src_stride))
    free = [loop for loop in range(len(first.loops)) if is_free(first, loop) and mine[loop]
            and not other[loop] and first.loops[loop] >= count]
    if not own or not free:
        return None
    load = max(own, key=lambda each: prod(each.shape))
    loop = max(free, key=lambda each: abs(mine[each]) * first.loops[each])
    unit = load.shape[2] if first.loops[loop] % load.shape[2] == 0 else 1
    unit = unit if first.loops[loop] >= unit * count else 1
    pieces = tuple((low * unit, high * unit)
                   for low, high in pieces_of(first.loops[loop] // unit, count))
    needed = [_tiles_read(first, words, buffer, replace_at(loop, high, first.loops), config)
              for _, high in pieces]
    for cut in (_cut_planes, _cut_rows, _cut_columns):
        parts = cut(load, needed, config)
        if parts is not None:
            return Side(load, loop, pieces, parts)
    return None


def _tiles_read(of: Product, words: Words, buffer: Buffer, loops: Triple,
                config: Config) -> Tiles:
    """Tiles of an operand that the first iterations of a product read."""
    column, strides = (SRC, of.src_stride) if buffer == Buffer.INP else (WGT, of.wgt_stride)
    found = tiles_of(words[:, column].astype(np.int64), loops, strides)
    if isinstance(of, Window) or of.flags & GemmFlags.DEPTHWISE:    # groups of lanes, or rows
        return found // (config.inp_groups if buffer == Buffer.INP else config.block_out)
    return found


def _cut_planes(load: Load, needed: Sequence[Tiles], config: Config) -> Parts | None:
    """Planes of a load that each piece needs beyond those before it."""
    pitch, last = load.sram_pitch, load.shape[0]
    if last == 1 or pitch < _plane(load):
        return None
    return _parts([(tiles - load.sram) // pitch for tiles in needed], last,
                  lambda low, high: replace(
        load, sram=load.sram + low * pitch, offset=load.offset + low * load.stride[0],
        shape=(high - low, *load.shape[1:])))


def _cut_rows(load: Load, needed: Sequence[Tiles], config: Config) -> Parts | None:
    """The same with rows; the first and the last have the border above and below."""
    planes, last, columns = load.shape
    top, bottom, left, right = load.pad
    row = left + columns + right
    if last == 1 or (planes > 1 and load.sram_pitch < _plane(load)):
        return None
    return _parts([_in_plane(load, tiles) // row - top for tiles in needed], last,
                  lambda low, high: replace(
        load, sram=load.sram + (low + top if low else 0) * row,
        offset=load.offset + low * load.stride[1], shape=(planes, high - low, columns),
        pad=(0 if low else top, 0 if high < last else bottom, left, right)))


def _cut_columns(load: Load, needed: Sequence[Tiles], config: Config) -> Parts | None:
    """The same with columns, where these have no border; rows of one plane become planes."""
    planes, rows, last = load.shape
    if any(load.pad) or last == 1 or (planes > 1 and (rows > 1 or load.sram_pitch < last)):
        return None
    size = config.tile_bytes(load.buffer)
    pitch, far = (load.sram_pitch, load.stride[0]) if rows == 1 else (last, load.stride[1])
    return _parts([_in_plane(load, tiles) % last for tiles in needed], last,
                  lambda low, high: replace(
        load, sram=load.sram + low, offset=load.offset + low * size, sram_pitch=pitch,
        stride=(far, 0), shape=(planes * rows, 1, high - low)))


def _plane(load: Load) -> int:
    """Tiles of a plane in the scratchpad."""
    top, bottom, left, right = load.pad
    return (top + load.shape[1] + bottom) * (left + load.shape[2] + right)


def _in_plane(load: Load, tiles: Tiles) -> Tiles:
    here: Tiles = tiles[tiles >= load.sram] - load.sram
    return here % load.sram_pitch if load.shape[0] > 1 else here


def _parts(places: Sequence[Tiles], last: int, make: Callable[[int, int], Load]) -> Parts | None:
    """For each piece, a load from where the one before ended to the last place that it needs; None
    if the first needs them all."""
    found: list[tuple[Load, ...]] = []
    begin = 0
    for number, each in enumerate(places):
        # The border beyond the last is filled together with it.
        needed = min(last, 1 + int(each.max(initial=0)))
        end = last if number == len(places) - 1 else max(begin, needed)
        found.append((make(begin, end),) if end > begin else ())
        begin = end
    return None if not found[0] or not any(found[1:]) else tuple(found)

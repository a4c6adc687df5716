"""The last results of a program, cut into pieces: sums, what the ALU makes of them, and stores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from ....isa.config import Config
from ....isa.instructions import (
    Alu,
    AluI,
    Gemm,
    Instruction,
    Load,
    Requantize,
    Store,
    Window,
)
from ....isa.program import Program
from ....isa.stream import decode, encode
from .pieces import (
    LONG,
    MicroOps,
    Product,
    is_free,
    pieces_of,
    replace_at,
    tiles_of,
)

OfAlu: TypeAlias = Requantize | Alu | AluI


def cut_last(program: Program, count: int) -> Program | None:
    """The last results in pieces: their sums, if a product makes them, what the ALU makes of these,
    and their store; None if they cannot be cut so."""
    begin = max(0, len(program.code) - LONG)
    tail, micro_ops = decode(program.code[begin:]), MicroOps(program)
    *_, narrow, store, _ = (None, None, None, *tail)
    if not isinstance(store, Store) or not isinstance(narrow, Requantize | Alu | AluI):
        return None
    stores, narrows = _cut_store(store, count, program.config), _cut_narrow(narrow, count)
    if stores is None or narrows is None:
        return None
    ends = _in_order(narrows, stores)
    place = next((place for place in range(len(tail) - 1, -1, -1)
                  if isinstance(tail[place], Gemm | Window)), None)
    before = tail[:-3]
    if place is not None:
        last = tail[place]
        assert isinstance(last, Gemm | Window)
        before[place:place + 1] = _cut_product(last, begin + place, count, micro_ops)
    return micro_ops.program([program.code[:begin], encode([*before, *ends, tail[-1]])])


def _in_order(narrows: Sequence[OfAlu], stores: Sequence[Store]) -> list[Instruction]:
    """Each store after the last instruction that writes what it reads."""
    writes = [tiles_of(np.array([each.dst]), each.loops, each.dst_stride) for each in narrows]
    found: list[Instruction] = []
    left = list(stores)
    for number, each in enumerate(narrows):
        found.append(each)
        later = np.concatenate([*writes[number + 1:], np.array([], np.int64)])
        while left and not np.isin(tiles_of(np.array([left[0].sram]), left[0].shape,
                                         (*left[0].sram_pitch, 1)), later).any():
            found.append(left.pop(0))
    return [*found, *left]


def _cut_product(last: Product, position: int, count: int,
                 micro_ops: MicroOps) -> list[Instruction]:
    """A product in pieces of its sums; whole if it cannot be cut."""
    words = micro_ops.words_of(last, position)
    free = [loop for loop in range(len(last.loops))
            if is_free(last, loop) and last.loops[loop] >= count]
    if not free or words is None or not micro_ops.has_room(words, count - 1):
        return [last]
    loop = max(free, key=lambda each: abs(last.dst_stride[each]))
    found: list[Instruction] = []
    for low, high in pieces_of(last.loops[loop], count):
        found += micro_ops.piece(last, words, replace_at(loop, low, (0, 0, 0)),
                                 replace_at(loop, high - low, last.loops))
    loads = [each for each in found if isinstance(each, Load)]
    return [*loads, *(each for each in found if not isinstance(each, Load))]


def _cut_store(store: Store, count: int, config: Config) -> list[Store] | None:
    size = config.tile_bytes(store.buffer)
    for dimension, (far, near) in enumerate(zip(
            (*store.sram_pitch, 1), (*store.stride, size), strict=True)):
        extent = store.shape[dimension]
        if extent > 1:              # of those that come after one another
            return None if extent < count else [
                replace(store, sram=store.sram + low * far, offset=store.offset + low * near,
                        shape=replace_at(dimension, high - low, store.shape))
                for low, high in pieces_of(extent, count)]
    return None


def _cut_narrow(narrow: OfAlu, count: int) -> list[OfAlu] | None:
    loop = next((loop for loop, extent in enumerate(narrow.loops) if extent > 1), None)
    if loop is None or narrow.loops[loop] < count:
        return None
    found: list[OfAlu] = []
    for low, high in pieces_of(narrow.loops[loop], count):
        loops = replace_at(loop, high - low, narrow.loops)
        dst = narrow.dst + low * narrow.dst_stride[loop]
        match narrow:
            case Requantize():
                found.append(replace(
                    narrow, loops=loops, dst=dst, src=narrow.src + low * narrow.src_stride[loop],
                    params=narrow.params + (low * narrow.params_stride if loop == 0 else 0)))
            case Alu():
                found.append(replace(
                    narrow, loops=loops, dst=dst, lhs=narrow.lhs + low * narrow.dst_stride[loop],
                    rhs=narrow.rhs + low * narrow.rhs_stride[loop]))
            case AluI():
                found.append(replace(narrow, loops=loops, dst=dst,
                                     src=narrow.src + low * narrow.src_stride[loop]))
    return found
